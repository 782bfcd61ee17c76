package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// mostProbes is how often the ledger is asked for one hold; each costs a token.
const mostProbes = 4

// settling is how long a request may take from its token to its place under the
// cap, or to the answer that it has none: others must not ask meanwhile.
const settling = 50 * time.Millisecond

// unseen reports whether nothing but what is left of the bucket shows that a
// request is in flight at a place.
func (t *Target) unseen(p Place) bool { return p == PlaceWork || p == PlaceUpload && t.ledger }

// HoldPrice is how many tokens it takes to put n requests in flight and to see that
// they are.
func (t *Target) HoldPrice(n int64) int64 {
	switch {
	case t.ledger:
		return 2 * n
	case t.works:
		return n + 1 // they are started together
	}
	return n
}

// seeSpent is the witness where 100 Continue comes to everybody, as behind a proxy
// that says it by itself, and of a slow operation: a request in flight has spent
// its token, so what is left after one more request shows how many are in. Halves
// of bodies that are to be stalled are sent first. Where all that it asks is rejected
// by the cap, and what that leaves of the bucket shows nothing, the cap is full: so
// what was not answered is in flight, though not for sure. It returns the requests it
// asked with, which are none of those to hold; the last one has no answer if it got
// none.
func (t *Target) seeSpent(ctx context.Context, u *User, all []*Held) (probes []oracle.Sample) {
	for _, h := range all {
		if h.conn != nil && h.place == PlaceUpload {
			h.conn.more(len(h.message.body) / 2)
		}
	}
	problem := errors.New("no token was seen to be spent on what was to be in flight")
	capped := true
	for wait := 10 * time.Millisecond; len(probes) < mostProbes; wait *= 4 {
		if pause(ctx, wait) != nil {
			break
		}
		for _, h := range all {
			h.exchange.Beside = h.exchange.Beside || !h.answered()
		}
		f := t.exchange(ctx, u, t.Valid())
		e := f.exchange
		if e.Err != nil {
			if f.sent {
				probes = append(probes, oracle.Sample{Span: e.Span})
			}
			problem = e.Err
			break
		}
		probes = append(probes, oracle.Sample{Answer: &e.Answer, Span: e.Span})
		capped = capped && e.Status == http.StatusTooManyRequests && e.Answer.Body.ErrorCode.Value == contract.CodeConcurrencyLimited
		flying := 0
		for _, h := range all {
			if h.conn != nil && !h.answered() {
				flying++
			}
		}
		if flying == 0 {
			return probes
		}
		spent := u.Bucket.SpentBy(e.Answer, e.Span)
		if certain := spent >= int64(len(all)+len(probes)); certain || capped && len(probes) == mostProbes {
			if problem = t.settle(ctx, all, e.Span.To); problem != nil {
				break
			}
			for _, h := range all {
				h.capped, h.unsure = capped, !certain
			}
			return probes
		}
		if n := u.Bucket.LevelWidth(e.Span); n > oracle.Token {
			problem = fmt.Errorf("the bucket's level is known only to within %.1f tokens, too little to see who is in flight", float64(n)/float64(oracle.Token))
		}
	}
	for _, h := range all {
		if h.conn != nil && h.early == nil {
			h.giveUp(problem)
		}
	}
	return probes
}

// settle lets what was seen in flight, decided before an instant, come to rest. Its
// error says that some of it may be over already.
func (t *Target) settle(ctx context.Context, all []*Held, decided int64) error {
	if err := pause(ctx, t.patience.times(settling)); err != nil {
		return err
	}
	for _, h := range all {
		if h.conn != nil && !h.answered() && h.Lapsed() {
			return errors.New("it may have been over before it was seen to be in flight")
		}
	}
	for _, h := range all {
		if h.conn != nil && (h.early == nil || h.exchange.Span.To > decided) {
			h.exchange.Span.To = decided
		}
	}
	return nil
}

// holdsUnseen tries whether half a body stays in flight, where only the ledger
// could show it.
func (t *Target) holdsUnseen(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, t.patience.dial())
	defer cancel()
	for _, plan := range t.Plans() {
		u, err := t.Lease(ctx, plan, 1)
		if err != nil {
			continue
		}
		defer t.Return(ctx, u)
		if e := t.Send(ctx, u, t.Valid()); e.Err != nil || e.Answer.Remaining.Value < 1+mostProbes {
			continue
		}
		t.ledger = true
		h, _ := t.Hold(ctx, u, t.Valid(), PlaceUpload)
		if t.ledger = h != nil; h != nil {
			h.Finish(ctx)
		}
		return t.ledger
	}
	return false
}

// holdUnseen is Hold where others have to be asked what became of the request.
func (t *Target) holdUnseen(ctx context.Context, u *User, r Request) (*Held, Exchange) {
	held, answered, findings := t.HoldTogether(ctx, u, []Request{r}, PlaceUpload)
	if len(held) == 1 {
		held[0].findings = findings
		return held[0], held[0].exchange
	}
	answered[0].Findings = findings
	return nil, answered[0]
}
