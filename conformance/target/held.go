package target

import (
	"cmp"
	"context"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// Over reports whether the request was answered though it was to stay in flight.
func (h *Held) Over() bool {
	select {
	case a := <-h.result:
		h.result <- a
		return true
	default:
		return h.ended
	}
}

// Capped reports whether the request was seen to be in flight by others that were
// rejected by the cap.
func (h *Held) Capped() bool { return h.capped }

// Alone reports whether [Held.Finish] lets this request go and no other.
func (h *Held) Alone() bool { return h.place == PlaceUpload || h.user.flights.at(h.place) == 1 }

// Finish lets the request go on and returns its answer. A gate lets all requests
// of its user go at once; their answers wait for their own Finish.
func (h *Held) Finish(ctx context.Context) Exchange {
	if h.ended {
		return h.end(errEnded)
	}
	h.released = h.t.time.atLeast()
	switch h.place {
	case PlaceWork: // by itself
	case PlaceUpload:
		h.conn.SetDeadline(time.Now().Add(h.t.patience.answer()))
		h.conn.more(len(h.message.body))
	default:
		if err := h.t.OpenGate(ctx, h.user, h.place); err != nil {
			h.Drop()
			return h.end(err)
		}
	}
	return h.Await(ctx)
}

// Await waits for an answer without letting the request go.
func (h *Held) Await(ctx context.Context) Exchange {
	if h.ended {
		return h.end(errEnded)
	}
	h.conn.SetDeadline(time.Now().Add(h.t.patience.answer()))
	h.conn.follow(ctx)
	a := h.part(func() {})
	h.leaveUser()
	to := h.exchange.Span.To
	h.take(a.answer, a.err)
	e := &h.exchange
	switch {
	case h.place == PlaceAuthentication: // only now the bucket was asked
		e.Span.From = max(h.released, e.Span.From)
		h.t.catchUp(h.user, e.Span.From)
		switch {
		case h.t.torn(h.user, e.Span):
			e.Err = cmp.Or(e.Err, ErrTorn)
		case e.Err != nil:
			h.user.Bucket.Lose(e.Span)
		default:
			e.Findings = h.user.Bucket.Judge(e.Answer, e.Span)
		}
	case e.Err == nil:
		e.Span.To = to
		e.Findings = h.claim.Judge(e.Answer)
	}
	return *e
}

// Drop closes the connection as a client does that goes away. Over HTTP/2 it
// resets the stream, and the connection is closed when the user is returned. A
// slow operation is not dropped but waited for: see [Held.turnAway].
func (h *Held) Drop() { h.abandon(func() { h.conn.drop() }) }

// Reset tears the connection down without a farewell (RST).
func (h *Held) Reset() { h.abandon(func() { h.conn.reset() }) }

func (h *Held) abandon(leave func()) {
	if h.ended {
		return
	}
	h.turnAway(leave)
	h.user.flights.left = append(h.user.flights.left, h.conn)
	h.leaveUser()
	if h.place == PlaceAuthentication {
		h.user.Bucket.Lose(oracle.Span{From: h.exchange.Span.From, To: h.t.time.atMost()})
	}
}

func (h *Held) leaveUser() {
	h.ended = true
	delete(h.user.flights.held, h)
}

func (h *Held) end(err error) Exchange {
	e := h.exchange
	e.Err = err
	return e
}
