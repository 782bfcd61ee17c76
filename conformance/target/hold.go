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

// The places. All but the first two need gates of the control protocol.
const (
	PlaceUpload         Place = "upload" // half of the body is sent; witness: 100 Continue came
	PlaceWork           Place = "work"   // the slow operation takes its time; witness: what is left of the bucket
	PlaceAuthentication Place = Place(control.PlaceAuthentication)
	PlaceEngine         Place = Place(control.PlaceEngine)
	PlaceResponse       Place = Place(control.PlaceResponse)
)

// CanHold reports whether requests can be held at a place.
func (t *Target) CanHold(p Place) bool {
	switch p {
	case PlaceUpload:
		return t.stalls || t.ledger
	case PlaceWork:
		return t.works
	}
	return t.behind.has(control.FeatureGates)
}

// Held is a request in flight. End it with Finish, Await, Drop or Reset; whoever
// returns its user ends it too.
type Held struct {
	*flight
	user  *User
	place Place
	round int       // of the gate that holds it
	began time.Time // just before it left

	continued chan struct{} // closed when 100 Continue has come
	result    chan arrival  // what came in the end
	early     *arrival      // the same, if it came before a witness
	ended     bool
	over      time.Time // when the answer was there

	capped bool // what was to see it in flight was rejected by the cap
	unsure bool // that alone shows that it is

	claim    oracle.Claim
	findings []oracle.Finding
	released int64 // on the target's timeline; of one held at authentication
}

type arrival struct {
	answer
	err error
	at  time.Time
}

// Findings is what the oracle holds against the token that the request spent.
func (h *Held) Findings() []oracle.Finding { return h.findings }

// Hold sends a request and returns once it is seen to be in flight at the
// place. Where it was answered instead, held is nil and the exchange is the
// answer, judged like that of [Target.Send]; where neither could be seen in
// time, the exchange's Err wraps [ErrNoWitness].
func (t *Target) Hold(ctx context.Context, u *User, r Request, p Place) (*Held, Exchange) {
	if t.unseen(p) {
		return t.holdUnseen(ctx, u, r)
	}
	return t.hold(ctx, u, r, p, t.protocol)
}

// hold is Hold in a protocol, where the request's own answer is the witness.
func (t *Target) hold(ctx context.Context, u *User, r Request, p Place, in Protocol) (*Held, Exchange) {
	all, _ := t.launch(ctx, u, []Request{r}, p, in)
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
		t.fly(h)
		return h, h.exchange
	}
	return nil, h.exchange
}

// HoldTogether is Hold for requests that leave at one moment. Exchanges are
// those of the requests that were answered; held ones are in no order.
func (t *Target) HoldTogether(ctx context.Context, u *User, rs []Request, p Place) ([]*Held, []Exchange, []oracle.Finding) {
	var held []*Held
	var answered []Exchange
	all, probes := t.launch(ctx, u, rs, p, t.protocol)
	samples := probes
	unsure := slices.ContainsFunc(all, func(h *Held) bool { return h.unsure })
	if unsure {
		samples = nil
	}
	for _, h := range all {
		switch {
		case h.exchange.Err != nil:
			answered = append(answered, h.exchange)
		case h.early != nil:
			answered = append(answered, h.exchange)
			samples = append(samples, oracle.Sample{Answer: &h.exchange.Answer, Span: h.exchange.Span})
		default:
			held = append(held, h)
			if p != PlaceAuthentication {
				samples = append(samples, oracle.Sample{Span: h.exchange.Span})
			}
		}
	}
	t.fly(held...)
	if len(probes) > 0 && (slices.ContainsFunc(all, func(h *Held) bool { return h.exchange.Err != nil && h.sent }) || probes[len(probes)-1].Answer == nil) {
		for _, s := range samples { // beside one of which nothing is known, nothing is known of the others
			u.Bucket.Lose(s.Span)
		}
		samples = nil
	}
	claims, findings := u.Bucket.JudgeParallel(samples)
	if unsure {
		for range probes { // what they spent is not known either, nor when
			u.Bucket.Lose(probes[len(probes)-1].Span)
		}
	}
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
func (t *Target) launch(ctx context.Context, u *User, rs []Request, p Place, in Protocol) (_ []*Held, probes []oracle.Sample) {
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
	each(len(rs), func(i int) { all[i].flight = t.prepare(ctx, u, rs[i], p == PlaceUpload, in) })
	each(len(rs), func(i int) { all[i].start() })
	within, cancel := context.WithTimeout(ctx, t.patience.witness())
	defer cancel()
	switch {
	case t.unseen(p):
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
	switch p {
	case PlaceWork:
		return 0, nil
	case PlaceUpload:
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
	body := len(h.message.body)
	if h.place == PlaceUpload {
		body = 0
	}
	h.began = time.Now()
	h.leave(body)
	go func() {
		once := false
		a, err := h.conn.read(h.t.time.atMost, func(status int) {
			if status == 100 && !once {
				once = true
				close(h.continued)
			}
		})
		h.result <- arrival{a, err, time.Now()}
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
		h.conn.more(len(h.message.body) / 2)
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
	h.part(h.conn.reset)
	h.exchange.Span.To = h.t.time.atMost()
	h.exchange.Err = err
	h.ended = true
}
