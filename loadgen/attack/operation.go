package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/loadgen/lean"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

// Site is where requests go and what they are.
type Site struct {
	BaseURLs   []string // asked in turn
	Credential target.Credential
	Wording    contract.Wording // of the answers
	TLS        *tls.Config      // nil: whom this machine trusts
	Protocol   target.Protocol  // empty: HTTP/1.1
	Requests   map[traffic.Operation]Request
	Stranger   target.Secret // a key that nobody has

	agent         []string // what User-Agent says, unless an operation says otherwise
	before, after string   // the key in the credential
	urls          map[traffic.Operation][]*url.URL
	asked         *atomic.Uint64
}

// Request is what an operation sends.
type Request struct {
	Method string
	Path   string      // sent as it is spelled
	Header http.Header // sent as spelled
	Body   []byte
	Expect int           // the status that says it was let in and did what it does; 0: none says so
	Takes  time.Duration // at least, if it is let in
}

// SiteOf is a target with the operations that it has.
func SiteOf(f target.File, t *target.Target) Site {
	request := func(r target.Request, expect int) Request {
		return Request{Method: r.Method, Path: r.Path, Header: r.Header, Body: r.Body, Expect: expect}
	}
	s := Site{
		BaseURLs: f.BaseURLs, Credential: f.Credential, Wording: t.Wording(), TLS: t.TLS(), Protocol: f.Protocol,
		Requests: map[traffic.Operation]Request{
			traffic.Valid:           request(t.Valid(), t.ExpectValid()),
			traffic.Unauthenticated: request(t.Valid(), 0),
		},
		Stranger: target.NewSecret(t.WrongKey()),
	}
	if r, ok := t.Invalid(); ok {
		s.Requests[traffic.Invalid] = request(r, t.ExpectInvalid())
	}
	if o := f.Operations.Slow; o != nil {
		r := request(t.Staying(target.PlaceWork), t.ExpectStaying(target.PlaceWork))
		r.Takes = o.Takes
		s.Requests[traffic.Slow] = r
	}
	return s
}

// prepare checks that everything that members ask for can be sent.
func (s *Site) prepare(members []traffic.Member) error {
	s.asked, s.agent = new(atomic.Uint64), []string{"brimline/" + build.Version()}
	s.before, s.after, _ = strings.Cut(s.Credential.Template, "{key}")
	s.urls = map[traffic.Operation][]*url.URL{}
	for o, r := range s.Requests {
		if !strings.HasPrefix(r.Path, "/") || strings.HasPrefix(r.Path, "//") {
			return fmt.Errorf("%q cannot be sent as it is spelled; accepted: a path that begins with one /", r.Path)
		}
		for _, base := range s.BaseURLs {
			u, err := url.Parse(base)
			if err != nil || u.Host == "" {
				return fmt.Errorf("%q is no base URL", base)
			}
			// Opaque, so that the path is not cleaned or encoded anew.
			s.urls[o] = append(s.urls[o], &url.URL{Scheme: u.Scheme, Host: u.Host, Opaque: r.Path})
		}
		if len(s.urls[o]) == 0 {
			return fmt.Errorf("no base URL to send %s %s to", r.Method, r.Path)
		}
	}
	for _, m := range members {
		for _, o := range traffic.Operations() {
			if _, ok := s.Requests[o]; !ok && m.Mix.Share(o) > 0 {
				return fmt.Errorf("%s asks for %s operations, and the target has none", m.Name, o)
			}
		}
	}
	return nil
}

// plain reports whether everything goes out as HTTP/1.1 in the clear.
func (s *Site) plain() bool {
	return s.Protocol != target.HTTP2 && !slices.ContainsFunc(s.BaseURLs, func(base string) bool {
		return !strings.HasPrefix(strings.ToLower(base), "http:")
	})
}

// request is a member's request of a number.
func (s *Site) request(ctx context.Context, m *traffic.Member, number int64, o traffic.Operation) *http.Request {
	urls := s.urls[o]
	to := urls[(s.asked.Add(1)-1)%uint64(len(urls))]
	what, key := s.Requests[o], m.Key(number)
	if o == traffic.Unauthenticated {
		key = s.Stranger
	}
	h := make(http.Header, len(what.Header)+2)
	for name, values := range what.Header {
		h[name] = values
	}
	if m.From != nil {
		for name, values := range m.From.Header {
			h[name] = values
		}
		ctx = context.WithValue(ctx, lean.From{}, m.From.From)
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = s.agent
	}
	h[s.Credential.Header] = []string{s.before + key.Reveal() + s.after}
	r := http.Request{Method: what.Method, URL: to, Host: to.Host, Header: h, ContentLength: int64(len(what.Body))}
	switch {
	case len(what.Body) > 0:
		r.Body = once{bytes.NewReader(what.Body)}
	case s.Protocol == target.HTTP2: // what a server has not looked at may be sent again; it is counted
	case what.Method != http.MethodPost && what.Method != http.MethodPut && what.Method != http.MethodPatch:
		r.Body = once{bytes.NewReader(nil)}
	}
	return r.WithContext(ctx)
}

// once is a body that cannot be had again: net/http sends a request a second
// time, silently, if it has no body or one that can, and a second request spends
// a second token.
type once struct{ io.Reader }

func (once) Close() error { return nil }
