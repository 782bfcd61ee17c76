package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/invoice"
)

// engine carries out PERMIT-5, PERMIT-6 and LOG-4: the work runs under a
// deadline, and its success is charged once, also when the client has gone. At
// the deadline the client is told at once, but the link returns, and the permit
// with it, only when the work has really ended.
func engine(p *Ports, _ http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := From(r.Context())
		ctx, cancel := context.WithTimeout(r.Context(), p.Bounds.Engine)
		defer cancel()
		done := p.work(ctx, x)
		select {
		case o := <-done:
			p.conclude(w, r, x, o)
		case <-ctx.Done():
			if r.Context().Err() != nil {
				p.conclude(w, r, x, <-done)
				return
			}
			busy := http.Header{}
			if !x.shared {
				busy.Set("Connection", "close") // it takes no other request before the work has ended
			}
			p.timedOut(w, x, busy)
			<-done
		}
	})
}

// outcome is how a piece of work ended.
type outcome struct {
	result invoice.Result
	err    error
}

// work calls the engine on a goroutine of its own. However that ends, one
// outcome is sent.
func (p *Ports) work(ctx context.Context, x *Exchange) <-chan outcome {
	done := make(chan outcome, 1)
	in, id := x.Invoice, x.ID
	go func() {
		o := outcome{err: errors.New("the engine ended its goroutine")}
		defer func() {
			if v := recover(); v != nil {
				p.Logger.Error("the engine panicked", "request_id", id, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
				o.err = errors.New("the engine panicked")
			}
			done <- o
		}()
		o.result, o.err = p.Engine.Calculate(ctx, in)
	}()
	return done
}

// conclude answers for work that has ended.
func (p *Ports) conclude(w http.ResponseWriter, r *http.Request, x *Exchange, o outcome) {
	switch {
	case o.err == nil:
		p.succeeded(w, r, x, o.result)
	case r.Context().Err() != nil:
		p.respond(w, x, Reply{Status: statusClientGone}) // whatever it failed with
	case errors.Is(o.err, context.DeadlineExceeded):
		p.timedOut(w, x, nil)
	default:
		p.Logger.Error("the engine failed", "request_id", x.ID, "user", x.Account.User, "error", o.err)
		p.respond(w, x, Reply{
			Status:  http.StatusInternalServerError,
			Code:    contract.CodeEngineFailure,
			Message: "the invoice could not be calculated; nothing was charged",
		})
	}
}

func (p *Ports) succeeded(w http.ResponseWriter, r *http.Request, x *Exchange, result invoice.Result) {
	body, err := json.Marshal(result)
	if err == nil {
		err = p.Ledger.Charge(context.WithoutCancel(r.Context()), x.ID)
	}
	if err != nil {
		p.capacityUnavailable(w, x, err)
		return
	}
	x.Charged = 1
	p.respond(w, x, Reply{Status: http.StatusOK, Body: body})
}

func (p *Ports) timedOut(w http.ResponseWriter, x *Exchange, h http.Header) {
	p.respond(w, x, Reply{
		Status:  http.StatusGatewayTimeout,
		Code:    contract.CodeEngineTimeout,
		Message: fmt.Sprintf("the invoice was not calculated within %v; nothing was charged", p.Bounds.Engine),
		Header:  h,
	})
}
