package fault

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// restartFaults forget what was stored. They are right until the control
// protocol lets the server start anew, and for ever where it cannot.
func restartFaults() []Fault {
	return []Fault{
		{"restart-forgets-plan", "RESTART-2", "after a restart everybody is on Free", forgetting(func(rec account.Record) account.Record {
			rec.Subscription = policy.Subscription{Plan: "free"}
			return rec
		})},
		{"restart-forgets-overrides", "RESTART-2", "after a restart no override holds", forgetting(func(rec account.Record) account.Record {
			rec.Overrides = nil
			return rec
		})},
		{"restart-returns-operations", "RESTART-2", "after a restart an operation that was used is there again", func(p *wiring.Parts) {
			anew := startedAnew(p)
			operating(func(s wiring.Operator) wiring.Operator { return returning{s, anew} })(p)
		}},
	}
}

// forgetting changes what is known of a user once the server has started anew.
func forgetting(change func(account.Record) account.Record) alteration {
	return func(p *wiring.Parts) {
		anew := startedAnew(p)
		records(func(rec account.Record, _ time.Time) account.Record {
			if anew.Load() > 0 {
				return change(rec)
			}
			return rec
		})(p)
	}
}

// startedAnew counts how often the server has started anew since.
func startedAnew(p *wiring.Parts) *atomic.Int64 {
	var anew atomic.Int64
	if restart := p.Restart; restart != nil {
		p.Restart = func(ctx context.Context) error {
			anew.Add(1)
			return restart(ctx)
		}
	}
	return &anew
}

// returning has one operation more than is left for each time that the server
// has started anew.
type returning struct {
	wiring.Operator
	anew *atomic.Int64
}

func (g returning) Billing(ctx context.Context, user string) (account.Billing, error) {
	b, err := g.Operator.Billing(ctx, user)
	b.Left += g.anew.Load()
	return b, err
}
