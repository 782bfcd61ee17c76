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

// deafEngine does its work whether or not anybody waits: it says that it has
// begun, and goes on when told to.
type deafEngine struct {
	httpapi.Engine
	began chan<- struct{}
	goOn  <-chan struct{}
}

func (e deafEngine) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	e.began <- struct{}{}
	<-e.goOn
	return e.Engine.Calculate(context.WithoutCancel(ctx), in)
}
