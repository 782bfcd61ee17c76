// Package control is the server side of the control protocol: what a conformance
// suite may see and do beyond plain HTTP, on a listener of its own. The words
// are those of conformance/contract/control.
//
// A [Control] is put into a server by decorating its parts, see
// [Control.Attach]; the server itself does not know of it.
package control

import (
	"crypto/rand"
	"net/http"
	"sync"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/wiring"
)

// Config is what a control server needs.
type Config struct {
	Server string // name and version, as it calls itself
	Clock  clock.Clock
	Mode   wire.ClockMode
}

// Control is one server's control. Make one with [New].
type Control struct {
	cfg      Config
	parts    *wiring.Parts // of the server it is attached to
	token    string
	recorder *recorder
	stopped  chan struct{}
	stopOnce sync.Once
	moving   sync.Mutex // one move of the clock at a time

	mu       sync.Mutex
	subjects map[string]*subject
}

// subject is what control keeps of one user.
type subject struct {
	gates map[wire.Place]*gate

	mu        sync.Mutex
	behaviour wire.Behaviour
}

// New returns a control server with a token of its own.
func New(cfg Config) *Control {
	return &Control{
		cfg:      cfg,
		token:    rand.Text(),
		recorder: newRecorder(),
		stopped:  make(chan struct{}),
		subjects: map[string]*subject{},
	}
}

// Token is what every request of the protocol has to carry.
func (c *Control) Token() string { return c.token }

// Stop lets go whatever is held and holds nothing from now on, so that a server
// can drain.
func (c *Control) Stop() { c.stopOnce.Do(func() { close(c.stopped) }) }

// Attach adds recorders and gates to a server's parts. What is asked of it later
// it asks of these parts, whatever they have become by then.
func (c *Control) Attach(p *wiring.Parts) {
	c.parts = p
	p.Accounts = lookups{Accounts: p.Accounts, c: c}
	p.Ledger = charges{Ledger: p.Ledger, c: c}
	p.Engine = calls{Engine: p.Engine, c: c}
	p.Log = entries{Log: p.Log, c: c}
	p.Links = p.Links.
		After(httpapi.LinkLimit, httpapi.Link{Name: "response-gate", Wrap: c.responseGate}).
		Before(httpapi.LinkEngine, httpapi.Link{Name: "engine-gate", Wrap: c.engineGate})
}

// subject is what is kept of a user, from the first time it is asked for.
func (c *Control) subject(user string) *subject {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.subjects[user]
	if !ok {
		s = &subject{behaviour: wire.EngineOK, gates: map[wire.Place]*gate{}}
		for _, place := range places() {
			s.gates[place] = &gate{stopped: c.stopped}
		}
		c.subjects[user] = s
	}
	return s
}

func places() []wire.Place {
	return []wire.Place{wire.PlaceAuthentication, wire.PlaceEngine, wire.PlaceResponse}
}

func (s *subject) set(b wire.Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour = b
}

func (s *subject) engine() wire.Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behaviour
}

// engineGate holds a request before its work begins, and before the engine's
// deadline runs. Stubborn work waits at the same gate later, past its deadline.
func (c *Control) engineGate(_ *httpapi.Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.subject(httpapi.From(r.Context()).Account.User)
		if s.engine() != wire.EngineStubborn {
			s.gates[wire.PlaceEngine].pass(r.Context())
		}
		next.ServeHTTP(w, r)
	})
}

// responseGate holds a request after the first byte of its body.
func (c *Control) responseGate(_ *httpapi.Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.subject(httpapi.From(r.Context()).Account.User)
		next.ServeHTTP(&gatedWriter{ResponseWriter: w, gate: s.gates[wire.PlaceResponse], ctx: r.Context()}, r)
	})
}
