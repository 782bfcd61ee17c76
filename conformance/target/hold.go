package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// Place is where a request can be held in flight.
type Place string

// The places. All but the first need gates of the control protocol.
const (
	PlaceUpload         Place = "upload" // half of the body is sent; witness: 100 Continue came
	PlaceAuthentication Place = Place(control.PlaceAuthentication)
	PlaceEngine         Place = Place(control.PlaceEngine)
	PlaceResponse       Place = Place(control.PlaceResponse)
)

// CanHold reports whether requests can be held at a place.
func (t *Target) CanHold(p Place) bool {
	if p == PlaceUpload {
		return t.stalls || t.ledger
	}
	return t.behind.has(control.FeatureGates)
}

// Held is a request in flight. End it with Finish, Await, Drop or Reset; whoever
// returns its user ends it too.
type Held struct {
	*flight
	user  *User
	place Place
	round int // of the gate that holds it

	continued chan struct{} // closed when 100 Continue has come
	result    chan arrival  // what came in the end
	early     *arrival      // the same, if it came before a witness
	ended     bool

	claim    oracle.Claim
	findings []oracle.Finding
	released int64 // on the target's timeline; of one held at authentication
}

type arrival struct {
	answer
	err error
}

// Findings is what the oracle holds against the token that the request spent.
func (h *Held) Findings() []oracle.Finding { return h.findings }

// Hold sends a request and returns once it is seen to be in flight at the
// place. Where it was answered instead, held is nil and the exchange is the
// answer, judged like that of [Target.Send]; where neither could be seen in
// time, the exchange's Err wraps [ErrNoWitness].
func (t *Target) Hold(ctx context.Context, u *User, r Request, p Place) (*Held, Exchange) {
	if p == PlaceUpload && t.ledger {
		return t.holdUnseen(ctx, u, r)
	}
	all, _ := t.launch(ctx, u, []Request{r}, p)
	h := all[0]
	switch {
	case h.sent && t.torn(u, h.exchange.Span):
		h.exchange.Err = cmp.Or(h.exchange.Err, ErrTorn)
		if h.early == nil {
			h.Drop()
		}
	case h.exchange.Err != nil:
		if h.sent {
			u.Bucket.Lose(h.exchange.Span)
		}
	case h.early != nil:
		h.exchange.Findings = u.Bucket.Judge(h.exchange.Answer, h.exchange.Span)
	default:
		if p != PlaceAuthentication { // where no token is spent yet
			h.claim, h.findings = u.Bucket.Spend(h.exchange.Span)
		}
		u.flights.add(h)
		return h, h.exchange
	}
	return nil, h.exchange
}

// HoldTogether is Hold for requests that leave at one moment. Exchanges are
// those of the requests that were answered; held ones are in no order.
func (t *Target) HoldTogether(ctx context.Context, u *User, rs []Request, p Place) ([]*Held, []Exchange, []oracle.Finding) {
	var held []*Held
	var answered []Exchange
	all, probes := t.launch(ctx, u, rs, p)
	samples := probes
	for _, h := range all {
		switch {
		case h.exchange.Err != nil:
			answered = append(answered, h.exchange)
		case h.early != nil:
			answered = append(answered, h.exchange)
			samples = append(samples, oracle.Sample{Answer: &h.exchange.Answer, Span: h.exchange.Span})
		default:
			held = append(held, h)
			u.flights.add(h)
			if p != PlaceAuthentication {
				samples = append(samples, oracle.Sample{Span: h.exchange.Span})
			}
		}
	}
	if len(probes) > 0 && slices.ContainsFunc(all, func(h *Held) bool { return h.exchange.Err != nil && h.sent }) {
		for _, s := range samples { // beside one of which nothing is known, nothing is known of the others
			u.Bucket.Lose(s.Span)
		}
		samples = nil
	}
	claims, findings := u.Bucket.JudgeParallel(samples)
	if n := len(probes); n > 0 && len(samples) > 0 && len(held) > 0 && len(findings) == 0 {
		u.Bucket.Narrow(*probes[n-1].Answer, probes[n-1].Span) // it has seen all others in
	}
	for i, c := range claims {
		held[i].claim = c
	}
	for _, h := range all {
		if h.exchange.Err != nil && h.sent {
			u.Bucket.Lose(h.exchange.Span)
		}
	}
	return held, answered, findings
}

// launch sends requests and waits until each is seen at the place, or was
// answered, or could not be seen. Probes are what was sent besides to see it.
func (t *Target) launch(ctx context.Context, u *User, rs []Request, p Place) (_ []*Held, probes []oracle.Sample) {
	all := make([]*Held, len(rs))
	for i, r := range rs {
		all[i] = &Held{user: u, place: p, continued: make(chan struct{}), result: make(chan arrival, 1),
			flight: &flight{t: t, exchange: Exchange{Method: r.Method, Path: r.Path}}}
	}
	before, err := t.ready(ctx, u, rs, p)
	if err != nil {
		for _, h := range all {
			h.exchange.Err = err
		}
		return all, nil
	}
	each(len(rs), func(i int) { all[i].flight = t.prepare(ctx, u, rs[i], p == PlaceUpload) })
	each(len(rs), func(i int) { all[i].start() })
	within, cancel := context.WithTimeout(ctx, t.patience.witness())
	defer cancel()
	switch {
	case p == PlaceUpload && t.ledger:
		probes = t.seeSpent(within, u, all)
	case p == PlaceUpload:
		each(len(rs), func(i int) { all[i].seeContinue(within) })
	default:
		t.seeWaiting(within, all, before)
	}
	return all, probes
}

// ready closes the gate that is to hold requests and returns how many wait there
// already.
func (t *Target) ready(ctx context.Context, u *User, rs []Request, p Place) (int, error) {
	if !t.CanHold(p) {
		return 0, fmt.Errorf("%w: to hold a request at %s", ErrUnsupported, p)
	}
	if p == PlaceUpload {
		for _, r := range rs {
			if len(r.Body) < 2 {
				return 0, fmt.Errorf("%w: %s %s has no body that could be half sent", ErrUnsupported, r.Method, r.Path)
			}
		}
		return 0, nil
	}
	if err := t.CloseGate(ctx, u, p); err != nil {
		return 0, err
	}
	// One that was dropped may still wait there until the target has noticed.
	waiting := 0
	err := t.poll(ctx, func() (bool, error) {
		var err error
		waiting, err = t.waiting(ctx, u, p)
		return waiting <= u.flights.at(p), err
	})
	return waiting, err
}

// start sends the request, without its body if that is what will hold it, and
// waits in the background for what comes back.
func (h *Held) start() {
	if h.conn == nil {
		return
	}
	h.round = h.user.flights.round[h.place]
	whole := h.message
	if h.place == PlaceUpload {
		h.message.body = nil
	}
	h.leave()
	h.message = whole
	go func() {
		once := false
		a, err := h.conn.read(h.message.method, h.t.time.atMost, func(status int) {
			if status == 100 && !once {
				once = true
				close(h.continued)
			}
		})
		h.result <- arrival{a, err}
	}()
}

// answered reports whether the whole answer is there already.
func (h *Held) answered() bool {
	if h.early != nil {
		return true
	}
	select {
	case a := <-h.result:
		h.early = &a
		h.conn.Close()
		h.take(a.answer, a.err)
		return true
	default:
		return false
	}
}

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

// seeContinue waits for the witness of a stalled upload, and then stalls it.
func (h *Held) seeContinue(ctx context.Context) {
	if h.conn == nil {
		return
	}
	select {
	case <-h.continued:
		if h.answered() {
			return
		}
		h.exchange.Span.To = h.t.time.atMost()
		_, _ = h.conn.Write(h.message.body[:len(h.message.body)/2]) // an error shows in the answer
	case a := <-h.result:
		h.result <- a
		h.answered()
	case <-ctx.Done():
		h.giveUp(fmt.Errorf("%w: no 100 Continue for %s %s", ErrNoWitness, h.exchange.Method, h.exchange.Path))
	}
}

// seeWaiting waits until all requests that were not answered wait at their gate.
func (t *Target) seeWaiting(ctx context.Context, all []*Held, before int) {
	var flying []*Held
	for _, h := range all {
		if h.conn != nil {
			flying = append(flying, h)
		}
	}
	for wait := time.Millisecond; len(flying) > 0; wait = min(2*wait, 50*time.Millisecond) {
		// In this order: one that was answered after it was counted may have been
		// among those that waited.
		var rest []*Held
		for _, h := range flying {
			if !h.answered() {
				rest = append(rest, h)
			}
		}
		flying = rest
		if len(flying) == 0 {
			return
		}
		waiting, err := t.waiting(ctx, flying[0].user, flying[0].place)
		if err == nil && waiting-before >= len(flying) {
			for _, h := range flying {
				h.exchange.Span.To = t.time.atMost()
			}
			return
		}
		if err == nil {
			err = pause(ctx, wait)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %d of %d requests wait at %s", ErrNoWitness, waiting-before, len(flying), flying[0].place)
			}
			for _, h := range flying {
				h.giveUp(err)
			}
			return
		}
	}
}

// giveUp ends a request that is neither in flight for sure nor answered.
func (h *Held) giveUp(err error) {
	h.conn.reset()
	<-h.result
	h.exchange.Span.To = h.t.time.atMost()
	h.exchange.Err = err
	h.ended = true
}

// Alone reports whether [Held.Finish] lets this request go and no other.
func (h *Held) Alone() bool { return h.place == PlaceUpload || h.user.flights.at(h.place) == 1 }

// Finish lets the request go on and returns its answer. A gate lets all requests
// of its user go at once; their answers wait for their own Finish.
func (h *Held) Finish(ctx context.Context) Exchange {
	if h.ended {
		return h.end(errEnded)
	}
	h.released = h.t.time.atLeast()
	if h.place == PlaceUpload {
		h.conn.SetDeadline(time.Now().Add(h.t.patience.answer()))
		_, _ = h.conn.Write(h.message.body[len(h.message.body)/2:])
	} else if err := h.t.OpenGate(ctx, h.user, h.place); err != nil {
		h.Drop()
		return h.end(err)
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
	a := <-h.result
	h.leaveUser()
	h.conn.Close()
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

// Drop closes the connection as a client does that goes away.
func (h *Held) Drop() { h.abandon(func() { h.conn.Close() }) }

// Reset tears the connection down without a farewell (RST).
func (h *Held) Reset() { h.abandon(func() { h.conn.reset() }) }

func (h *Held) abandon(leave func()) {
	if h.ended {
		return
	}
	leave()
	<-h.result
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
