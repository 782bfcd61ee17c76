package target

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// What operations.slow.takes may be: long enough that something can be asked
// meanwhile, and within what an answer may take.
const (
	leastTakes = 500 * time.Millisecond
	mostTakes  = 30 * time.Second
)

// takes is how long the slow operation takes at least.
func (t *Target) takes() time.Duration { return t.file.Operations.Slow.Takes }

// WorkTakes is how long what is in flight at [PlaceWork] takes to end; 0: nothing
// is held there.
func (t *Target) WorkTakes() time.Duration {
	if !t.works {
		return 0
	}
	return t.takes()
}

// Lapsed reports whether the request may be over by itself: nothing but the time
// it takes keeps it in flight, and of that no more than a tenth is left, if any.
func (h *Held) Lapsed() bool {
	return h.place == PlaceWork && time.Since(h.began) >= h.t.takes()*9/10
}

// Stood says why a request that was seen in flight may have been over by itself
// before now; nil: it was not. It waits for the end of a slow operation, which has
// to be the one that it comes to when it is let in, and not a rejection.
func (h *Held) Stood(ctx context.Context) error {
	if h.unsure {
		return fmt.Errorf("a request that was held in flight was not seen to have spent its token")
	}
	if h.place != PlaceWork {
		if h.Over() {
			return fmt.Errorf("a request that was held in flight was answered before it was let go")
		}
		return nil
	}
	e := h.Await(ctx)
	switch took := h.over.Sub(h.began); {
	case e.Err != nil:
		return fmt.Errorf("what became of a slow operation is not known: %w", e.Err)
	case e.Status != h.t.ExpectStaying(PlaceWork):
		return fmt.Errorf("a slow operation was answered with %d", e.Status)
	case took < h.t.takes():
		return fmt.Errorf("a slow operation took %s, and operations.slow.takes says %s", took.Round(time.Millisecond), h.t.takes())
	}
	return nil
}

// part ends the conversation and returns what came of it.
func (h *Held) part(leave func()) arrival {
	defer h.conn.Close()
	return h.turnAway(leave)
}

// turnAway is part for a connection that is closed later. A slow operation is
// waited for first, whatever leave would do: its work cannot be called off, and
// would take up a place that nobody sees. Where its end is not seen, nobody is lent
// the user again.
func (h *Held) turnAway(leave func()) arrival {
	if h.place != PlaceWork {
		leave()
	}
	a := <-h.result
	h.over = a.at
	if h.place == PlaceWork && a.err != nil {
		h.t.Retire(h.user)
	}
	return a
}

// takesItsTime asks once for the slow operation; empty: it is one.
func (t *Target) takesItsTime(ctx context.Context) (why string) {
	for _, plan := range t.Plans() {
		u, err := t.Lease(ctx, plan, 1)
		if err != nil {
			why = err.Error()
			continue
		}
		defer t.Return(ctx, u)
		e, took := t.timed(ctx, u)
		if e.Err == nil && e.Status == http.StatusTooManyRequests {
			if _, err := t.Ready(ctx, u, 1); err == nil { // others may have used up what it had
				e, took = t.timed(ctx, u)
			}
		}
		switch want := t.ExpectStaying(PlaceWork); {
		case e.Err != nil:
			return e.Err.Error()
		case e.Status == http.StatusTooManyRequests:
			why = fmt.Sprintf("answered with %d", e.Status)
			continue
		case e.Status != want:
			return fmt.Sprintf("answered with %d, not with %d", e.Status, want)
		case took < t.takes():
			return fmt.Sprintf("answered after %s, and takes says %s", took.Round(time.Millisecond), t.takes())
		}
		return ""
	}
	return why
}

// timed sends the slow operation and says how long it took to be answered.
func (t *Target) timed(ctx context.Context, u *User) (Exchange, time.Duration) {
	f := t.prepare(ctx, u, t.Staying(PlaceWork), false, t.protocol)
	began := time.Now()
	f.leave(len(f.message.body))
	f.arrive()
	took := time.Since(began)
	if f.exchange.Err == nil {
		f.exchange.Findings = u.Bucket.Judge(f.exchange.Answer, f.exchange.Span)
	} else if f.sent {
		u.Bucket.Lose(f.exchange.Span)
	}
	return f.exchange, took
}
