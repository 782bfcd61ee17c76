package attack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
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
	attack      *Attack
	base        http.RoundTripper
	stop        <-chan struct{}
	requests    context.Context // of every request
	connections atomic.Int64    // opened
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
		User: s.user, Due: s.due, Taken: now, Waited: s.busy, Sent: now, Stranger: operation == traffic.Unauthenticated,
	}
	var x *measure.Exchange // nil: no connection yet, or nothing to judge

	ctx, cancel := context.WithTimeout(t.requests, Timeout)
	defer cancel()
	var first atomic.Int64 // noted on a goroutine of net/http's, maybe after we have given up
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { // before the first byte, on this goroutine
			switch s.answer.Attempts++; {
			case s.answer.Attempts > 1:
			case s.answer.Stranger:
				s.answer.Sent = a.now()
			default:
				x, s.answer.Sent = judge.Begin()
			}
		},
		GotFirstResponseByte: func() { first.Store(int64(a.now())) },
	})
	answer, err := t.exchange(a.config.Site.request(ctx, m, s.number, operation), a.config.Site.Requests[operation].Expect)
	if err != nil {
		s.answer.Outcome, s.answer.Error = record.OutcomeTransportError, t.kind(ctx, err)
	} else {
		s.answer.Outcome = answer.Outcome
	}
	if s.answer.Stranger {
		s.answer.Outcome = strange(s.answer.Outcome)
	}
	s.answer.Status, s.answer.First = answer.Status, time.Duration(first.Load())
	if x == nil { // nothing was written, or nobody's bucket is asked
		s.answer.Done = a.now()
		return
	}
	s.answer.Done = judge.End(x, answer.Kind, s.answer.Attempts)
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
	return dice.New(a.config.Seed, "wait", m.Name)
}

// reply is what came back.
type reply struct {
	measure.Reading
	Status int
}

// exchange sends a request and reads its answer. With an error the reading is
// what the status and the headers say, if they came.
func (t *transport) exchange(r *http.Request, expect int) (reply, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return reply{Reading: measure.Reading{Kind: measure.Lost}}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLong
	}
	read := measure.Classify(resp.StatusCode, resp.Header, body, t.attack.config.Site.Wording, expect)
	return reply{Reading: read, Status: resp.StatusCode}, err
}
