package attack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/invoicespec/brimline/loadgen/dice"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// maxBody bounds what is read of an answer.
const maxBody = 1 << 20

var (
	errNotSent = errors.New("not sent")
	errTooLong = errors.New("the body is too long")
)

// transport is the round tripper that vegeta calls. What vegeta built is only
// looked at for the slot's place; the request that leaves is made here.
type transport struct {
	attack   *Attack
	base     http.RoundTripper
	stop     <-chan struct{}
	requests context.Context // of every request
}

// RoundTrip judges the slot again, since it may have waited for a worker, and
// sends it. Vegeta learns no more than a status.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a := t.attack
	s := a.slots.at(r.URL.Fragment)
	switch {
	case t.stopped():
		s.fate = unsent
	case a.held(s.user, s.due):
		s.fate = heldOff
	case a.now()-s.due > MostLate:
		s.fate = late
	default:
		s.fate = sent
		t.send(s)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}
	return nil, errNotSent
}

func (t *transport) stopped() bool {
	select {
	case <-t.stop:
		return true
	default:
		return false
	}
}

// send makes the exchange and notes its answer in the slot.
func (t *transport) send(s *slot) {
	a := t.attack
	m := &a.config.Members[s.user]
	operation := m.Operation(s.number)
	judge := a.Meter.Judge(s.user)
	now := a.now()
	s.answer = measure.Answer{
		User: s.user, Due: s.due, Taken: now, Waited: s.busy, Sent: now,
		Operation: operation.String(), Stranger: operation == traffic.Unauthenticated,
	}
	if s.watch == nil {
		s.watch = newWatch(t.requests, a.now)
	}
	w := s.watch
	w.deadline, w.attempts, w.exchange, w.judge = time.Now().Add(Timeout), 0, nil, judge
	if s.answer.Stranger {
		w.judge = nil
	}
	w.first.Store(0)
	answer, err := t.exchange(a.config.Site.request(w, m, s.number, operation), s, a.config.Site.Requests[operation].Expect)
	if s.answer.Attempts = w.attempts; w.attempts > 0 {
		s.answer.Sent = w.sent
	}
	x := w.exchange
	if err != nil {
		s.answer.Outcome, s.answer.Error = record.OutcomeTransportError, t.kind(err)
	} else {
		s.answer.Outcome = answer.Outcome
	}
	if s.answer.Stranger {
		s.answer.Outcome = strange(s.answer.Outcome)
	}
	s.answer.Code = answer.Code
	s.answer.Status, s.answer.First = answer.Status, time.Duration(w.first.Load())
	if err != nil {
		s.watch = nil // somebody may still look at it, or note something in it
	}
	if x == nil { // nothing was written, or nobody's bucket is asked
		s.answer.Done = a.now()
		return
	}
	s.answer.Done = judge.End(x, answer.Kind, s.answer.Attempts)
	if a.config.Each != nil {
		s.answer.Verdict = judge.Known(x)
	}
	s.answer.Faults = answer.Headers.Against(x.Bounds())
	switch user := &a.users[s.user]; {
	case answer.Status == http.StatusTooManyRequests:
		s.answer.NoWait = m.On429.Listens() && answer.Wait == 0
		m.On429.Refused(user, a.dice(m), s.answer.Sent, s.answer.Done, answer.Wait)
	case err == nil:
		m.On429.Passed(user, s.answer.Sent)
	}
}

// strange is the outcome of a request with a key that nobody has: nobody's bucket
// can have let it in or refused it.
func strange(o record.Outcome) record.Outcome {
	switch o {
	case record.OutcomeAdmitted, record.OutcomeRejectedRate, record.OutcomeRejectedConcurrency:
		return record.OutcomeOtherStatus
	}
	return o
}

// dice are what a member's waits are drawn with.
func (a *Attack) dice(m *traffic.Member) dice.Dice {
	if m.On429 == manners.Ignore() {
		return 0
	}
	return manners.Dice(a.config.Seed, m.Name)
}

// reply is what came back.
type reply struct {
	measure.Reading
	Status int
	Code   string // of an answer that is none of the contract's outcomes
}

// exchange sends a request and reads its answer. With an error the reading is
// what the status and the headers say, if they came.
func (t *transport) exchange(r *http.Request, s *slot, expect int) (reply, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return reply{Reading: measure.Reading{Kind: measure.Lost}}, err
	}
	defer resp.Body.Close()
	s.body, err = readBody(resp.Body, s.body[:0])
	read := t.attack.reader.Read(resp.StatusCode, resp.Header, s.body, expect)
	answer := reply{Reading: read, Status: resp.StatusCode}
	if read.Outcome == record.OutcomeOtherStatus {
		answer.Code = t.attack.reader.Code(resp.StatusCode, resp.Header, s.body)
	}
	return answer, err
}

// readBody reads a body into memory that was used before, up to a bound.
func readBody(r io.Reader, into []byte) ([]byte, error) {
	for {
		if len(into) == cap(into) {
			into = slices.Grow(into, max(512, len(into)))
		}
		n, err := r.Read(into[len(into):cap(into)])
		into = into[:len(into)+n]
		switch {
		case len(into) > maxBody:
			return into[:maxBody], errTooLong
		case err == io.EOF:
			return into, nil
		case err != nil:
			return into, err
		}
	}
}
