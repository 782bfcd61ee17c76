// Package dashboard is the billing page: which plan a user is on and which one
// follows, the three effective values, each told to be the plan's or negotiated,
// and the operations used (BILL-1, PLAN-2). It never shows who negotiated a
// value or why: [account.Billing] does not hold it.
//
// Most callers want [New] and [Paths]. The page is plain HTML and CSS, asks the
// network for nothing, and allows itself nothing but its own style and forms.
//
// One signs in with an API key. It is posted once and kept nowhere: the session
// is a signed and encrypted cookie that holds the key's digest, and every view
// looks that up anew, so that a revoked key ends its sessions. No list of
// sessions is kept: signing out takes the cookie from the browser, and a copy of
// it made before is good for [SessionAge] or until its key is revoked.
package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/policy"
)

// The paths that the handler of [New] answers.
const (
	BillingPath = "/dashboard/billing"
	SignInPath  = "/dashboard/sign-in"
	SignOutPath = "/dashboard/sign-out"
)

// Paths are the paths that the handler of [New] answers.
func Paths() []string { return []string{BillingPath, SignInPath, SignOutPath} }

// KeyField is the field of the sign-in form that holds the API key.
const KeyField = "key"

// Accounts finds users and what they are entitled to. An unknown or revoked key
// is [account.ErrUnknownKey], a user who is gone [account.ErrUnknownUser]; any
// other error means that the store is out of reach.
type Accounts interface {
	Lookup(ctx context.Context, key account.Digest) (account.Record, error)
	Billing(ctx context.Context, user string) (account.Billing, error)
}

// Ports is all that the page is built from. Every field is required.
type Ports struct {
	Clock    clock.Clock
	Digest   func(account.Key) account.Digest
	Accounts Accounts
	Resolve  func(account.Record, time.Time) (policy.Effective, error)
	Gate     httpapi.Gate               // of the attempts to sign in: one that no other route shares (ANON-1, ANON-6)
	Pool     func(*http.Request) string // of the client's address, as the gate names it
	Secret   []byte                     // of the sessions, at least [MinSecretBytes]; another one ends them all
	Logger   *slog.Logger
}

// storeTime is the longest a store may take to answer for one page.
const storeTime = 5 * time.Second

type page struct {
	Ports
	sessions sessions
}

// New returns the handler of the billing page and its forms, for [Paths]. It
// fails when the secret is too short.
func New(p Ports) (http.Handler, error) {
	s, err := newSessions(p.Secret)
	if err != nil {
		return nil, err
	}
	h := &page{Ports: p, sessions: s}
	routes := http.NewServeMux()
	routes.HandleFunc("GET "+BillingPath, h.billing)
	routes.HandleFunc("GET "+SignInPath, h.signInForm)
	routes.HandleFunc("POST "+SignInPath, h.signIn)
	routes.HandleFunc("POST "+SignOutPath, h.signOut)

	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h.notice(w, crossOrigin()) }))
	guarded := origin.Handler(routes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		guarded.ServeHTTP(w, r)
	}), nil
}
