// Package operator is the operator's side of a server over HTTP: /internal/billing
// for whoever manages users, plans and overrides, /internal/capacity for the
// engine's own services. Both lie outside the quotas and know no API key: each
// has a token of its own (SCOPE-2, OVR-3, OVR-6, OVR-7, PLAN-2, LOG-7).
//
// Most callers want [Handler]. What is written is written by the ports, which
// refuse what makes no sense; the command line writes through the same ones.
package operator

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
)

// Prefix is the path at and below which the routes live.
const Prefix = "/internal"

const (
	maxBody = 64 << 10
	maxKeys = 16
)

// Accounts is what billing reads and writes of users.
type Accounts interface {
	CreateUser(ctx context.Context, plan string, keys int) (string, []account.Key, error)
	AddKey(ctx context.Context, user string) (account.Key, error)
	Keys(ctx context.Context, user string) ([]account.KeyInfo, error)
	RevokeKeyNamed(ctx context.Context, user, id string) error

	SchedulePlan(ctx context.Context, user, plan string) (boundary time.Time, err error)
	CancelPlan(ctx context.Context, user string) error
	EndPeriod(ctx context.Context, user string) (account.Period, error)
	SetOperations(ctx context.Context, user string, left int64) error
	Billing(ctx context.Context, user string) (account.Billing, error)

	SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error
	EndOverride(ctx context.Context, user string, d policy.Dimension, by account.Note) error
	Overrides(ctx context.Context, user string) ([]account.OverrideEntry, error)
}

// Ledger is what the engine's services reserve, charge and give back.
type Ledger interface {
	Reserve(ctx context.Context, user, id string) error
	Charge(ctx context.Context, id string) error
	GiveBack(ctx context.Context, id string) error
}

// Config is what the routes are made of. Every field is required but the tokens:
// routes without a token let nobody in.
type Config struct {
	Accounts      Accounts
	Ledger        Ledger
	Clock         clock.Clock
	Resolve       func(account.Record, time.Time) (policy.Effective, error)
	BillingToken  string // opens /internal/billing
	CapacityToken string // opens /internal/capacity
}

// Handler is the routes. Whatever is asked, the token comes first, so that
// nothing is told about what is there.
func Handler(cfg Config) http.Handler {
	m := mux.NewRouter().SkipClean(true)
	part := func(name, token string, routes []route) {
		s := mux.NewRouter().SkipClean(true)
		for _, r := range routes {
			s.Path(Prefix + "/" + name + r.path).Methods(r.method).Handler(answering(r.do))
		}
		s.NotFoundHandler = answering(func(*http.Request) (any, error) { return nil, errNoRoute })
		s.MethodNotAllowedHandler = answering(func(*http.Request) (any, error) { return nil, errMethod })
		m.PathPrefix(Prefix + "/" + name + "/").Handler(guarded(token, s))
	}
	part("billing", cfg.BillingToken, billing{cfg}.routes())
	part("capacity", cfg.CapacityToken, capacity{cfg.Ledger}.routes())
	m.NotFoundHandler = answering(func(*http.Request) (any, error) { return nil, errNoRoute })
	return m
}

// route is one operation below a part's path.
type route struct {
	method, path string
	do           func(r *http.Request) (answer any, err error)
}

var (
	errNoRoute = errors.New("there is no such route")
	errMethod  = errors.New("this method does not apply here")
	errToken   = errors.New("the operator's token is required, as Authorization: Bearer TOKEN")
)

// guarded lets requests with the token through. Digests are compared, so that
// not even the length of a wrong token shows.
func guarded(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if len(r.Header["Authorization"]) != 1 || token == "" || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, errToken)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answering writes what an operation returns; nothing is a 204.
func answering(do func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := do(r)
		switch {
		case err != nil:
			refuse(w, err)
		case answer == nil:
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusNoContent)
		default:
			write(w, http.StatusOK, answer)
		}
	})
}

// failure is the body of every answer that is no success.
type failure struct {
	Code    string `json:"errorCode"`
	Message string `json:"message"`
}

// refuse is the one place where an error becomes a status and a code.
func refuse(w http.ResponseWriter, err error) {
	status, code, message := http.StatusServiceUnavailable, "UNAVAILABLE", err.Error()
	shape := (*strictjson.Error)(nil)
	switch {
	case errors.Is(err, errToken):
		status, code = http.StatusUnauthorized, "UNAUTHENTICATED"
	case errors.Is(err, errNoRoute), errors.Is(err, account.ErrUnknownUser), errors.Is(err, account.ErrUnknownKey):
		status, code = http.StatusNotFound, "NOT_FOUND"
	case errors.Is(err, errMethod):
		status, code = http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED"
	case errors.Is(err, account.ErrExhausted):
		status, code = http.StatusPaymentRequired, "CAPACITY_EXHAUSTED"
	case errors.Is(err, account.ErrFull):
		status, code = http.StatusConflict, "FULL"
	case errors.Is(err, account.ErrReserved):
		status, code = http.StatusConflict, "ALREADY_RESERVED"
	case errors.As(err, &shape), errors.Is(err, account.ErrRefused), errors.Is(err, account.ErrUnknownPlan), errors.Is(err, account.ErrUnreserved):
		status, code = http.StatusUnprocessableEntity, "VALIDATION_FAILED"
	default:
		message = "the store failed; retry later" // its own words may show what it holds
	}
	write(w, status, failure{Code: code, Message: message})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // the client may have gone
}

// read reads a request's body by shape.
func read(r *http.Request, shape strictjson.Value) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return strictjson.Fail("", "the body could not be read, or is over %d bytes", maxBody)
	}
	return strictjson.Parse(body, shape)
}
