package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
)

// capacity carries out LOG-7: one paid operation is reserved before any work.
// The engine's success charges it; whatever else happens, it is given back.
func capacity(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := From(r.Context())
		err := p.Ledger.Reserve(r.Context(), x.Account.User, x.ID)
		if errors.Is(err, account.ErrExhausted) {
			p.respond(w, x, Reply{
				Status:  http.StatusPaymentRequired,
				Code:    contract.CodeCapacityExhausted,
				Message: "no operation is left in this billing period",
			})
			return
		}
		if err != nil {
			if !p.clientGone(w, r, x, err) {
				p.capacityUnavailable(w, x, err)
			}
			return
		}
		defer func() {
			if err := p.Ledger.GiveBack(context.WithoutCancel(r.Context()), x.ID); err != nil {
				p.Logger.Error("an operation could not be given back", "request_id", x.ID, "user", x.Account.User, "error", err)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (p *Ports) capacityUnavailable(w http.ResponseWriter, x *Exchange, cause error) {
	p.Logger.Error("the ledger of operations failed", "request_id", x.ID, "user", x.Account.User, "error", cause)
	p.respond(w, x, Reply{
		Status:  http.StatusServiceUnavailable,
		Code:    contract.CodeCapacityUnavailable,
		Message: "operations cannot be accounted for at the moment; retry later",
	})
}
