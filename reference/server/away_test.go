package server_test

import (
	"context"
	"errors"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
)

var errAway = errors.New("connection refused")

// The ports of a server whose stores are away.
type (
	away       struct{ httpapi.Accounts }
	awayLedger struct{ httpapi.Ledger }
	awayLog    struct{}
)

func (away) Lookup(context.Context, account.Digest) (account.Record, error) {
	return account.Record{}, errAway
}

func (awayLedger) Reserve(context.Context, string, string) error { return errAway }

func (awayLog) Write(context.Context, contract.LogEntry) error { return errAway }

// deafEngine says that it has begun, waits until nobody waits for it any more,
// and then does its work all the same.
type deafEngine struct {
	httpapi.Engine
	began chan<- struct{}
}

func (e deafEngine) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	e.began <- struct{}{}
	<-ctx.Done()
	return e.Engine.Calculate(context.WithoutCancel(ctx), in)
}

// remoteLedger does nothing for a context that is done, as a database would not.
type remoteLedger struct{ httpapi.Ledger }

func (l remoteLedger) Charge(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Ledger.Charge(ctx, id)
}

func (l remoteLedger) GiveBack(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Ledger.GiveBack(ctx, id)
}

// remoteLog is likewise.
type remoteLog struct{ httpapi.Log }

func (l remoteLog) Write(ctx context.Context, e contract.LogEntry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Log.Write(ctx, e)
}
