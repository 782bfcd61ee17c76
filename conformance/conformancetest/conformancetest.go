// Package conformancetest runs the suite in the tests of a Go service: its
// handler is started on loopback, asked by the contract's scenarios, and told of
// in one subtest per clause and scenario.
//
// Most callers want [Run] with the plans, a few keys and an operation that
// succeeds. What else can be seen depends on [Hooks]: functions of the service's
// own tests that make users, move the clock, change plans or show what was
// logged. A service that is no [http.Handler] of this process is judged by
// [Target], or by the command line with a target file.
//
// Without a clock in the hooks a whole run waits for tokens, which takes minutes:
// Options.Clauses chooses what a test is about. Handlers of net/http that read
// their bodies have requests in flight with Target.Can.StalledUpload, no hooks
// needed. What could not be told fails the test too; a test that shall not mind
// it looks at what [Judge] returns.
package conformancetest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// Config is what the suite has to know of a service.
type Config struct {
	// Target is what a target file would say: at least Allowances and
	// Operations.Valid. BaseURLs and Can.Control are filled in; no Credential is
	// "Authorization: Bearer {key}". With Can.HTTP2 the handler is served HTTP/2
	// without TLS as well.
	Target target.File

	Users []control.User // who exists, on which plan, with which keys; none: Hooks makes them
	Hooks Hooks

	Options conformance.Options
}

// Run judges h and reports it as [Report] does. A test in which nothing could be
// run fails.
func Run(t *testing.T, h http.Handler, c Config) record.Conformance {
	t.Helper()
	got, err := Judge(t.Context(), h, c)
	if err != nil {
		t.Fatal(err)
	}
	Report(t, got)
	return got
}

// Judge is [Run] without a test. Its errors are those of [target.Open] and
// [conformance.Run], or say which hooks are missing.
func Judge(ctx context.Context, h http.Handler, c Config) (got record.Conformance, err error) {
	features, err := c.Hooks.features()
	if err != nil {
		return got, err
	}
	service := httptest.NewUnstartedServer(h)
	if c.Target.Can.HTTP2 {
		service.Config.Protocols = new(http.Protocols)
		service.Config.Protocols.SetHTTP1(true)
		service.Config.Protocols.SetUnencryptedHTTP2(true)
	}
	service.Start()
	defer service.Close()

	f, o := c.Target, target.Options{}
	f.BaseURLs = []string{service.URL}
	if f.Credential == (target.Credential{}) {
		f.Credential = target.Credential{Header: "Authorization", Template: "Bearer {key}"}
	}
	for _, u := range c.Users {
		for _, k := range u.Keys {
			o.Keys = append(o.Keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(k)})
		}
	}
	f.Can.Control = nil
	if len(features) > 0 {
		p := newProtocol(c.Hooks, features)
		behind := httptest.NewServer(p)
		defer behind.Close()
		f.Can.Control = &target.ControlAddress{URL: behind.URL, TokenFile: "in memory"}
		o.ControlToken = target.NewSecret(p.token)
	}
	t, err := target.Open(ctx, f, o)
	if err != nil {
		return got, err
	}
	defer func() {
		c.Hooks.Gates.openAll() // or the service would never close
		err = errors.Join(err, t.Close())
	}()
	return conformance.Run(ctx, t, c.Options)
}
