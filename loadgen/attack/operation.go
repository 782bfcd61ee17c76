package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/build"
)

// Operation is the request that every user sends.
type Operation struct {
	BaseURLs   []string // asked in turn
	Method     string
	Path       string      // sent as it is spelled
	Header     http.Header // sent as spelled
	Body       []byte
	Expect     int // the status that says it succeeded
	Credential target.Credential
	Wording    contract.Wording // of the answers
	TLS        *tls.Config      // nil: whom this machine trusts

	urls []*url.URL
	next *atomic.Uint64
}

// OperationOf is the operation of a target that succeeds.
func OperationOf(f target.File, t *target.Target) Operation {
	r := t.Valid()
	return Operation{
		BaseURLs: f.BaseURLs, Method: r.Method, Path: r.Path, Header: r.Header, Body: r.Body,
		Expect: t.ExpectValid(), Credential: f.Credential, Wording: t.Wording(), TLS: t.TLS(),
	}
}

func (o *Operation) prepare() error {
	if !strings.HasPrefix(o.Path, "/") || strings.HasPrefix(o.Path, "//") {
		return fmt.Errorf("%q cannot be sent as it is spelled; accepted: a path that begins with one /", o.Path)
	}
	o.next = new(atomic.Uint64)
	o.urls = nil
	for _, base := range o.BaseURLs {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%q is no base URL", base)
		}
		// Opaque, so that the path is not cleaned or encoded anew.
		o.urls = append(o.urls, &url.URL{Scheme: u.Scheme, Host: u.Host, Opaque: o.Path})
	}
	if len(o.urls) == 0 {
		return fmt.Errorf("no base URL to send %s %s to", o.Method, o.Path)
	}
	return nil
}

// request is the request with a user's key.
func (o *Operation) request(ctx context.Context, key target.Secret) *http.Request {
	to := o.urls[(o.next.Add(1)-1)%uint64(len(o.urls))]
	h := make(http.Header, len(o.Header)+2)
	for name, values := range o.Header {
		h[name] = values
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{"brimline/" + build.Version()}
	}
	h[o.Credential.Header] = []string{strings.Replace(o.Credential.Template, "{key}", key.Reveal(), 1)}
	r := &http.Request{Method: o.Method, URL: to, Host: to.Host, Header: h, ContentLength: int64(len(o.Body))}
	switch {
	case len(o.Body) > 0:
		r.Body = once{bytes.NewReader(o.Body)}
	case o.Method != http.MethodPost && o.Method != http.MethodPut && o.Method != http.MethodPatch:
		r.Body = once{bytes.NewReader(nil)}
	}
	return r.WithContext(ctx)
}

// once is a body that cannot be had again: net/http sends a request a second
// time, silently, if it has no body or one that can, and a second request spends
// a second token.
type once struct{ io.Reader }

func (once) Close() error { return nil }
