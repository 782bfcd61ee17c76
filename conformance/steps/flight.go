package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// flights are the sentences about requests in flight.
func (s *Scenario) flights() []sentence {
	return []sentence{
		{when, `^they start as many requests at once as their cap$`, "each stays in flight if it gets in", needs{contract.NeedHold}, func(ctx context.Context) error { return s.startAtOnce(ctx, 0) }},
		{when, `^they start more requests at once than their cap$`, "three more; each stays in flight if it gets in", needs{contract.NeedHold}, func(ctx context.Context) error { return s.startAtOnce(ctx, 3) }},
		{when, `^they ask for one more such response$`, "one more that would stay in flight while its response is written", needs{contract.NeedGates}, s.oneMoreResponse},
		{when, `^they have one request in flight$`, "until it is let go", needs{contract.NeedHold}, func(ctx context.Context) error { return s.startOne(ctx) }},
		{when, `^they let go of what is in flight$`, "each is answered", needs{contract.NeedHold}, func(ctx context.Context) error { return s.release(ctx, s.user()) }},
		{when, `^other requests end in every way there is$`, "success, 404, failed validation, engine failure, disconnect, as far as the target can be brought to each", needs{contract.NeedHold}, s.endInEveryWay},
		{when, `^two of their requests are abandoned while the body is still coming$`, "the client closes one connection and resets the other", needs{contract.NeedUpload}, func(ctx context.Context) error { return s.abandonTwo(ctx, target.PlaceUpload) }},
		{when, `^two of their requests are abandoned (before|during) the response$`, "the client closes one connection and resets the other", needs{contract.NeedGates}, func(ctx context.Context, when string) error {
			return s.abandonTwo(ctx, map[string]target.Place{"before": target.PlaceEngine, "during": target.PlaceResponse}[when])
		}},
		{when, `^two of their requests are abandoned by a reset of their streams$`, "over HTTP/2", needs{contract.NeedHTTP2}, s.resetTwo},
		{when, `^their whole cap times out while the work goes on$`, "each is answered with its timeout, and its work is kept from ending", needs{contract.NeedEngine, contract.NeedGates}, s.timeOutStubbornly},
	}
}

// startAtOnce starts as many requests as the cap, and some more, at one moment.
// Where fewer than the cap got in, a permit of an earlier request may just not
// have been back yet: it lets go and starts anew, twice.
func (s *Scenario) startAtOnce(ctx context.Context, more int64) error {
	u := s.user()
	if err := s.holdable(u, u.Bucket.Allowance().Concurrency+more); err != nil {
		return err
	}
	for _, look := range s.patience()[2:] {
		if err := s.startTogether(ctx, u, more); err != nil || int64(len(u.held)) >= u.Bucket.Allowance().Concurrency || !all(s.got, capRejected) {
			return err
		}
		if err := s.release(ctx, u); err != nil {
			return err
		}
		if err := pause(ctx, look); err != nil {
			return noAnswer(err)
		}
		if err := s.ensure(ctx, u, s.HoldPrice(u.Bucket.Allowance().Concurrency+more)); err != nil {
			return err
		}
	}
	return s.startTogether(ctx, u, more)
}

func all(got []exchange, is func(exchange) bool) bool {
	return !slices.ContainsFunc(got, func(e exchange) bool { return !is(e) })
}

func (s *Scenario) startTogether(ctx context.Context, u *subject, more int64) error {
	got, err := s.holdTogether(ctx, u, u.Bucket.Allowance().Concurrency+more, s.anywhere())
	s.got = got
	return err
}

func (s *Scenario) startOne(ctx context.Context) error {
	u := s.user()
	if err := s.ensure(ctx, u, u.Bucket.Allowance().Concurrency+few); err != nil {
		return err
	}
	rejection, err := s.fill(ctx, u, 1, s.anywhere())
	if err == nil && rejection != nil {
		return s.belowTheCap("CONC-6", *rejection, u, 1)
	}
	return err
}

// endInEveryWay lets requests end in each way that the target can be brought to.
func (s *Scenario) endInEveryWay(ctx context.Context) error {
	if taken := int64(len(s.user().held)); taken >= s.user().Bucket.Allowance().Concurrency {
		return fmt.Errorf("%w: needs a plan with a cap above %d", ErrRoom, taken)
	}
	kinds := []kind{kindUnknown}
	if s.Has(contract.NeedInvalid) {
		kinds = append(kinds, kindInvalid)
	}
	if s.anywhere() != target.PlaceEngine {
		kinds = append(kinds, kindValid)
		if s.Has(contract.NeedFail) {
			kinds = append(kinds, kindFails)
		}
	}
	for _, k := range kinds {
		if err := s.theySend(ctx, k, 1); err != nil {
			return err
		}
	}
	if s.anywhere() == target.PlaceWork {
		return nil // when its work ends would not be seen
	}
	return s.abandon(ctx, s.anywhere(), (*target.Held).Drop)
}

func (s *Scenario) abandonTwo(ctx context.Context, at target.Place) error {
	if err := s.abandon(ctx, at, (*target.Held).Drop); err != nil {
		return err
	}
	if err := s.abandon(ctx, at, (*target.Held).Reset); err != nil {
		return err
	}
	if at == target.PlaceUpload {
		return nil
	}
	return asSetup(s.OpenGate(ctx, s.user().User, at))
}

// abandon starts one more request and leaves it once it is in flight.
func (s *Scenario) abandon(ctx context.Context, at target.Place, leave func(*target.Held)) error {
	u := s.user()
	rejection, err := s.fill(ctx, u, 1, at)
	if err != nil {
		return err
	}
	if rejection != nil {
		return s.broken(*rejection, "requests in flight", "one more", "a concurrency rejection, also when asked again for a while")
	}
	last := len(u.held) - 1
	leave(u.held[last])
	u.left = true
	u.held = u.held[:last]
	return nil
}

// resetTwo resets two streams, each once its request is in flight.
func (s *Scenario) resetTwo(ctx context.Context) error {
	u := s.user()
	for range 2 {
		if err := s.ensure(ctx, u, 1+int64(len(s.patience()))); err != nil {
			return err
		}
		for _, look := range append(s.patience(), 0) {
			e := exchange{Exchange: s.ResetStream(ctx, u.User, s.Valid()), who: u}
			if e.Err != nil {
				return noAnswer(e.Err)
			}
			s.note(e, e.Findings)
			if e.Status == 0 {
				u.served, u.left = true, true
				break
			}
			if !capRejected(e) {
				return fmt.Errorf("%w: a request that was to stay in flight was answered with %s", ErrSetup, statusAndCode(e))
			}
			if look == 0 {
				return s.broken(e, "requests in flight", "one more", "a concurrency rejection, also when asked again for a while")
			}
			if err := pause(ctx, look); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneMoreResponse asks for a response that would be held as well: if it is, a
// permit was free.
func (s *Scenario) oneMoreResponse(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		e, held, err := s.hold(ctx, s.user(), s.Valid(), target.PlaceResponse)
		if held {
			return nil, s.broken(e, "status", "429 CONCURRENCY_LIMIT_EXCEEDED", "a response that is being written, above the cap")
		}
		return []exchange{e}, err
	})
}

// timeOutStubbornly fills the cap with work that goes on past its deadline: each
// request has its answer, and the engine's gate keeps the work from ending. A
// permit that is not back yet is a reason to ask again.
func (s *Scenario) timeOutStubbornly(ctx context.Context) error {
	u := s.user()
	left := u.Bucket.Allowance().Concurrency
	if err := s.ensure(ctx, u, left+few); err != nil {
		return err
	}
	if err := s.SetEngine(ctx, u.User, control.EngineStubborn); err != nil {
		return setup(err)
	}
	if err := s.CloseGate(ctx, u.User, target.PlaceEngine); err != nil {
		return setup(err)
	}
	return s.sends(func() (got []exchange, err error) {
		for _, d := range s.patience() {
			rs := make([]target.Request, left)
			for i := range rs {
				rs[i] = s.Valid()
			}
			got, err = s.together(ctx, u, rs)
			for _, e := range got {
				if e.Status >= http.StatusInternalServerError {
					left--
				}
			}
			if err != nil || left == 0 {
				return got, err
			}
			if err := pause(ctx, d); err != nil {
				return got, err
			}
		}
		return got, fmt.Errorf("%w: work that goes on past its deadline was answered with %s", ErrSetup, statusAndCode(got[len(got)-1]))
	})
}

// sendLarge sends a request whose body is larger than what sockets hold, and
// looks for the answer only then: a server that closes the connection at once
// takes its answer back. No answer at all may be the network's doing once.
func (s *Scenario) sendLarge(ctx context.Context) error {
	r := s.Valid()
	r.Body = append(r.Body, bytes.Repeat([]byte(" "), 768<<10)...) // below what proxies take by default
	u := s.user()
	ask := func() (exchange, error) {
		first := exchange{Exchange: s.Send(ctx, u.User, r), who: u}
		if first.Err == nil || errors.Is(first.Err, target.ErrBudget) || ctx.Err() != nil {
			return s.take(first)
		}
		second := exchange{Exchange: s.Send(ctx, u.User, r), who: u}
		if second.Err != nil && ctx.Err() == nil && second.Status == 0 {
			return second, s.broken(second, "answer", "429, while the body is sent", "none: the connection was torn")
		}
		return s.take(second)
	}
	return s.sends(func() ([]exchange, error) {
		e, err := s.whileEmpty(ctx, u, ask)
		return []exchange{e}, err
	})
}
