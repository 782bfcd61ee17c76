package control

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
)

// maxBody is the largest request body of the protocol.
const maxBody = 64 << 10

// The codes of errors beside [wire.CodeUnsupported].
const (
	codeUnauthorized = "unauthorized"
	codeNotFound     = "not_found"
	codeMethod       = "method_not_allowed"
	codeInvalid      = "invalid"
	codeFull         = "full"
	codeInternal     = "internal"
)

// handler answers one request of the protocol with a value to encode; nil means
// 204.
type handler func(r *http.Request) (status int, answer any, err error)

// Handler is the protocol over HTTP. Whatever is asked, the token comes first.
func (c *Control) Handler() http.Handler {
	m := mux.NewRouter().SkipClean(true)
	on := func(method, path string, h handler) {
		m.Path(wire.Prefix + path).Methods(method).HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, h) })
	}
	on(http.MethodGet, "", c.capabilities)
	on(http.MethodGet, "/clock", c.readClock)
	on(http.MethodPost, "/clock/advance", c.advanceClock)
	on(http.MethodPost, "/users", c.createUser)
	on(http.MethodPost, "/users/{user}/keys", c.ofUser(c.addKey))
	on(http.MethodPost, "/users/{user}/keys/revoke", c.ofUser(c.revokeKey))
	on(http.MethodPut, "/users/{user}/plan", c.ofUser(c.setPlan))
	on(http.MethodPut, "/users/{user}/schedule", c.ofUser(c.schedulePlan))
	on(http.MethodGet, "/users/{user}/period", c.ofUser(c.readPeriod))
	on(http.MethodPost, "/users/{user}/period/end", c.ofUser(c.endPeriod))
	on(http.MethodGet, "/users/{user}/overrides", c.ofUser(c.history))
	on(http.MethodPut, "/users/{user}/overrides/{dimension}", c.ofUser(c.setOverride))
	on(http.MethodDelete, "/users/{user}/overrides/{dimension}", c.ofUser(c.endOverride))
	on(http.MethodPut, "/users/{user}/overrides/{dimension}/stored", c.ofUser(c.storeOverride))
	on(http.MethodPost, "/users/{user}/entitlements/mend", c.ofUser(c.mendEntitlements))
	on(http.MethodPut, "/users/{user}/entitlements/{dimension}", c.ofUser(c.storeEntitlement))
	on(http.MethodDelete, "/users/{user}/entitlements/{dimension}", c.ofUser(c.removeEntitlement))
	on(http.MethodPut, "/users/{user}/operations", c.ofUser(c.setOperations))
	on(http.MethodGet, "/users/{user}/operations", c.ofUser(c.readOperations))
	on(http.MethodGet, "/users/{user}/gates/{place}", c.ofUser(c.gate))
	on(http.MethodPut, "/users/{user}/gates/{place}", c.ofUser(c.gate))
	on(http.MethodDelete, "/users/{user}/gates/{place}", c.ofUser(c.gate))
	on(http.MethodPut, "/users/{user}/engine", c.ofUser(c.setEngine))
	on(http.MethodGet, "/users/{user}/audit", c.ofUser(c.auditUser))
	on(http.MethodGet, "/audit/requests/{request}", c.auditRequest)
	on(http.MethodPost, "/restart", c.restart)
	m.NotFoundHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, wire.CodeUnsupported, "this server has no "+r.URL.Path)
	})
	m.MethodNotAllowedHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusMethodNotAllowed, codeMethod, r.Method+" does not apply to "+r.URL.Path)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, got := []byte("Bearer "+c.token), []byte(r.Header.Get("Authorization"))
		if subtle.ConstantTimeCompare(want, got) != 1 {
			fail(w, http.StatusUnauthorized, codeUnauthorized, "the control token is required, as Authorization: Bearer TOKEN")
			return
		}
		m.ServeHTTP(w, r)
	})
}

// ofUser lets h have requests that name an existing user.
func (c *Control) ofUser(h func(user string, r *http.Request) (int, any, error)) handler {
	return func(r *http.Request) (int, any, error) {
		user := mux.Vars(r)["user"]
		known, err := c.parts.Operator.Known(r.Context(), user)
		if err != nil {
			return 0, nil, err
		}
		if !known {
			return 0, nil, fmt.Errorf("%w %q", account.ErrUnknownUser, user)
		}
		return h(user, r)
	}
}

// unsupported is a feature that this server lacks.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// invalid is a request that makes no sense.
type invalid string

func (i invalid) Error() string { return string(i) }

func serve(w http.ResponseWriter, r *http.Request, h handler) {
	status, answer, err := h(r)
	if err != nil {
		status, code := classify(err)
		fail(w, status, code, err.Error())
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	write(w, status, answer)
}

// classify is the one place where an error becomes a status and a code.
func classify(err error) (int, string) {
	var (
		lacking unsupported
		wrong   invalid
		shape   *strictjson.Error
	)
	switch {
	case errors.As(err, &lacking):
		return http.StatusNotFound, wire.CodeUnsupported
	case errors.Is(err, account.ErrUnknownUser), errors.Is(err, account.ErrUnknownKey):
		return http.StatusNotFound, codeNotFound
	case errors.Is(err, account.ErrFull):
		return http.StatusConflict, codeFull
	case errors.As(err, &wrong), errors.As(err, &shape),
		errors.Is(err, account.ErrRefused), errors.Is(err, account.ErrUnknownPlan), errors.Is(err, account.ErrMalformedKey):
		return http.StatusUnprocessableEntity, codeInvalid
	}
	return http.StatusInternalServerError, codeInternal
}

func fail(w http.ResponseWriter, status int, code, message string) {
	write(w, status, wire.Error{Code: code, Message: message})
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(body)
}

// read reads a request's body by shape.
func read(r *http.Request, shape strictjson.Value) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return invalid("the body could not be read to its end")
	case len(body) > maxBody:
		return invalid(fmt.Sprintf("the body is larger than %d bytes", maxBody))
	}
	return strictjson.Parse(body, shape)
}

// oneOf refuses a word that is not among those accepted, and names them.
func oneOf[T ~string](what string, got T, accepted ...T) error {
	var words []string
	for _, w := range accepted {
		if got == w {
			return nil
		}
		words = append(words, string(w))
	}
	return invalid(fmt.Sprintf("%s %q: want one of %s", what, got, strings.Join(words, ", ")))
}
