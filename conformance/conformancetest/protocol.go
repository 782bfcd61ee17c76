package conformancetest

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// protocol speaks the control protocol with the suite on behalf of hooks.
type protocol struct {
	hooks    Hooks
	features []control.Feature
	token    string
	routes   *http.ServeMux
}

// Bounds and codes of the protocol.
const (
	maxBody      = 64 << 10
	codeRefused  = "refused"
	codeStranger = "unauthorized"
)

func newProtocol(h Hooks, features []control.Feature) *protocol {
	p := &protocol{hooks: h, features: features, token: rand.Text(), routes: http.NewServeMux()}
	p.on(true, "GET ", func(*http.Request) (any, error) {
		return control.Capabilities{Protocol: 1, Server: "a Go handler", Features: p.features, Clock: h.clock()}, nil
	})
	p.users(h)
	p.policies(h)
	p.rest(h)
	return p
}

// answers is what a hook says to a request; nil means 204.
type answers func(r *http.Request) (any, error)

// on answers a route where its hook is there.
func (p *protocol) on(there bool, route string, answer answers) {
	if !there {
		return
	}
	method, path, _ := strings.Cut(route, " ")
	p.routes.HandleFunc(method+" "+control.Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch got, err := answer(r); {
		case err != nil:
			write(w, http.StatusUnprocessableEntity, control.Error{Code: codeRefused, Message: err.Error()})
		case got == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			write(w, http.StatusOK, got)
		}
	})
}

func (p *protocol) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+p.token)) != 1 {
		write(w, http.StatusUnauthorized, control.Error{Code: codeStranger, Message: "the token is wrong"})
		return
	}
	if _, pattern := p.routes.Handler(r); pattern == "" {
		write(w, http.StatusNotFound, control.Error{Code: control.CodeUnsupported, Message: "there is no hook for it"})
		return
	}
	p.routes.ServeHTTP(w, r)
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // who asked has gone
}

// with reads a body for a hook. Numbers stay as they are spelled: whether 5.0 is
// a whole number is for the service to say.
func with[T any](answer func(r *http.Request, body T) (any, error)) answers {
	return func(r *http.Request) (any, error) {
		var body T
		d := json.NewDecoder(r.Body)
		d.UseNumber()
		if err := d.Decode(&body); err != nil {
			return nil, err
		}
		return answer(r, body)
	}
}

func user(r *http.Request) string      { return r.PathValue("user") }
func dimension(r *http.Request) string { return r.PathValue("dimension") }

func (p *protocol) users(h Hooks) {
	p.on(h.NewUser != nil, "POST /users", with(func(r *http.Request, b control.NewUser) (any, error) {
		return h.NewUser(r.Context(), b.Plan, b.Keys)
	}))
	p.on(h.AddKey != nil, "POST /users/{user}/keys", func(r *http.Request) (any, error) {
		k, err := h.AddKey(r.Context(), user(r))
		return control.Key{Key: k}, err
	})
	p.on(h.RevokeKey != nil, "POST /users/{user}/keys/revoke", with(func(r *http.Request, b control.Key) (any, error) {
		return nil, h.RevokeKey(r.Context(), user(r), b.Key)
	}))
	p.on(h.SetOperations != nil, "PUT /users/{user}/operations", with(func(r *http.Request, b control.Operations) (any, error) {
		return nil, h.SetOperations(r.Context(), user(r), b.Remaining)
	}))
	p.on(h.Operations != nil, "GET /users/{user}/operations", func(r *http.Request) (any, error) {
		return h.Operations(r.Context(), user(r))
	})
}

func (p *protocol) policies(h Hooks) {
	p.on(h.SetPlan != nil, "PUT /users/{user}/plan", with(func(r *http.Request, b control.Plan) (any, error) {
		return nil, h.SetPlan(r.Context(), user(r), b.Plan)
	}))
	p.on(h.SchedulePlan != nil, "PUT /users/{user}/schedule", with(func(r *http.Request, b control.Plan) (any, error) {
		return nil, h.SchedulePlan(r.Context(), user(r), b.Plan)
	}))
	p.on(h.Period != nil, "GET /users/{user}/period", func(r *http.Request) (any, error) {
		return h.Period(r.Context(), user(r))
	})
	p.on(h.EndPeriod != nil, "POST /users/{user}/period/end", func(r *http.Request) (any, error) {
		if err := h.EndPeriod(r.Context(), user(r)); err != nil {
			return nil, err
		}
		return h.Period(r.Context(), user(r))
	})
	p.on(h.SetOverride != nil, "PUT /users/{user}/overrides/{dimension}", with(func(r *http.Request, b control.Override) (any, error) {
		return nil, h.SetOverride(r.Context(), user(r), dimension(r), b)
	}))
	p.on(h.EndOverride != nil, "DELETE /users/{user}/overrides/{dimension}", func(r *http.Request) (any, error) {
		return nil, h.EndOverride(r.Context(), user(r), dimension(r))
	})
	p.on(h.Overrides != nil, "GET /users/{user}/overrides", func(r *http.Request) (any, error) {
		all, err := h.Overrides(r.Context(), user(r))
		return control.History{Entries: all}, err
	})
	p.on(h.StoreEntitlement != nil, "PUT /users/{user}/entitlements/{dimension}", with(func(r *http.Request, b control.Stored) (any, error) {
		return nil, h.StoreEntitlement(r.Context(), user(r), dimension(r), b.Text)
	}))
	p.on(h.RemoveEntitlement != nil, "DELETE /users/{user}/entitlements/{dimension}", func(r *http.Request) (any, error) {
		return nil, h.RemoveEntitlement(r.Context(), user(r), dimension(r))
	})
	p.on(h.MendEntitlements != nil, "POST /users/{user}/entitlements/mend", func(r *http.Request) (any, error) {
		return nil, h.MendEntitlements(r.Context(), user(r))
	})
	p.on(h.StoreOverride != nil, "PUT /users/{user}/overrides/{dimension}/stored", with(func(r *http.Request, b control.Stored) (any, error) {
		return nil, h.StoreOverride(r.Context(), user(r), dimension(r), b)
	}))
}

func (p *protocol) rest(h Hooks) {
	clock := func(r *http.Request) (any, error) {
		now, err := h.Now(r.Context())
		return control.Clock{Mode: h.clock(), Now: now.UTC().Format(time.RFC3339Nano)}, err
	}
	p.on(h.Now != nil, "GET /clock", clock)
	p.on(h.Advance != nil, "POST /clock/advance", with(func(r *http.Request, b control.Advance) (any, error) {
		if err := h.Advance(r.Context(), time.Duration(b.Microseconds)*time.Microsecond); err != nil {
			return nil, err
		}
		return clock(r)
	}))
	at := func(r *http.Request) spot { return spot{user(r), control.Place(r.PathValue("place"))} }
	for method, do := range map[string]func(*Gates, spot) control.Gate{"GET": (*Gates).state, "PUT": (*Gates).shut, "DELETE": (*Gates).open} {
		p.on(h.Gates != nil, method+" /users/{user}/gates/{place}", func(r *http.Request) (any, error) {
			switch here := at(r); here.place {
			case control.PlaceAuthentication, control.PlaceEngine, control.PlaceResponse:
				return do(h.Gates, here), nil
			default:
				return nil, fmt.Errorf("there is no place %q", here.place)
			}
		})
	}
	p.on(h.SetEngine != nil, "PUT /users/{user}/engine", with(func(r *http.Request, b control.Engine) (any, error) {
		return nil, h.SetEngine(r.Context(), user(r), b.Behaviour)
	}))
	p.on(h.Audit != nil, "GET /audit/requests/{request}", func(r *http.Request) (any, error) {
		return h.Audit(r.Context(), r.PathValue("request"))
	})
	p.on(h.UserAudit != nil, "GET /users/{user}/audit", func(r *http.Request) (any, error) {
		return h.UserAudit(r.Context(), user(r))
	})
	p.on(h.Restart != nil, "POST /restart", func(r *http.Request) (any, error) { return nil, h.Restart(r.Context()) })
}
