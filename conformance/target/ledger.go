package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// mostProbes is how often the ledger is asked for one hold; each costs a token.
const mostProbes = 4

// HoldPrice is how many tokens it takes to put a request in flight and to see that
// it is.
func (t *Target) HoldPrice() int64 {
	if t.ledger {
		return 2
	}
	return 1
}

// seeSpent is the witness where 100 Continue comes to everybody, as behind a proxy
// that says it by itself: a request in flight has spent its token, so what is left
// after one more request shows how many are in. Halves of the bodies are sent
// first. It returns the requests it asked with, which are none of those to hold.
func (t *Target) seeSpent(ctx context.Context, u *User, all []*Held) (probes []oracle.Sample) {
	for _, h := range all {
		if h.conn != nil {
			_, _ = h.conn.Write(h.message.body[:len(h.message.body)/2]) // an error shows in the answer
		}
	}
	problem := errors.New("no token was seen to be spent on half a body")
	for wait := 10 * time.Millisecond; len(probes) < mostProbes; wait *= 4 {
		if pause(ctx, wait) != nil {
			break
		}
		f := t.exchange(ctx, u, t.Valid())
		e := f.exchange
		if e.Err != nil {
			problem = e.Err
			break
		}
		probes = append(probes, oracle.Sample{Answer: &e.Answer, Span: e.Span})
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
		if spent >= int64(len(all)+len(probes)) {
			for _, h := range all {
				if h.early == nil {
					h.exchange.Span.To = e.Span.To
				}
			}
			return probes
		}
		if n := u.Bucket.LevelWidth(e.Span); n > oracle.Token {
			problem = fmt.Errorf("the bucket's level is known to %.1f tokens, too little to see who is in flight", float64(n)/float64(oracle.Token))
		}
	}
	for _, h := range all {
		if h.conn != nil && h.early == nil {
			h.giveUp(problem)
		}
	}
	return probes
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
