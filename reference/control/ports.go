package control

import (
	"context"
	"errors"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
)

// lookups counts key lookups and is the authentication gate: the key is found
// first, since before that nobody knows whose gate it is.
type lookups struct {
	httpapi.Accounts
	c *Control
}

func (l lookups) Lookup(ctx context.Context, key account.Digest) (account.Record, error) {
	rec, err := l.Accounts.Lookup(ctx, key)
	l.c.recorder.lookup(requestOf(ctx), rec.User)
	if err == nil {
		l.c.subject(rec.User).gates[wire.PlaceAuthentication].pass(ctx)
	}
	return rec, err
}

// charges counts what was charged.
type charges struct {
	httpapi.Ledger
	c *Control
}

func (l charges) Charge(ctx context.Context, id string) error {
	err := l.Ledger.Charge(ctx, id)
	if err == nil {
		l.c.recorder.charge(requestOf(ctx), userOf(ctx), id)
	}
	return err
}

// calls counts calls of the engine and treats them as it was told to.
type calls struct {
	httpapi.Engine
	c *Control
}

func (e calls) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	user := userOf(ctx)
	e.c.recorder.call(requestOf(ctx), user)
	s := e.c.subject(user)
	switch s.engine() {
	case wire.EngineFail:
		return invoice.Result{}, errors.New("the engine was told to fail")
	case wire.EnginePanic:
		panic("the engine was told to panic")
	case wire.EngineTimeout:
		<-ctx.Done()
		return invoice.Result{}, ctx.Err()
	case wire.EngineStubborn:
		<-ctx.Done()
		s.gates[wire.PlaceEngine].pass(context.WithoutCancel(ctx))
		return invoice.Result{}, ctx.Err()
	}
	return e.Engine.Calculate(ctx, in)
}

// entries keeps what is written to the API log, as it is written.
type entries struct {
	httpapi.Log
	c *Control
}

func (l entries) Write(ctx context.Context, e contract.LogEntry) error {
	l.c.recorder.entry(e)
	return l.Log.Write(ctx, e)
}

// requestOf and userOf are empty outside the chain, where nothing is recorded.
func requestOf(ctx context.Context) string {
	if x := httpapi.From(ctx); x != nil {
		return x.ID
	}
	return ""
}

func userOf(ctx context.Context) string {
	if x := httpapi.From(ctx); x != nil {
		return x.Account.User
	}
	return ""
}
