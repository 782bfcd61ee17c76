package attack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// maxBody bounds what is read of an answer.
const maxBody = 1 << 20

// floorWait is how long users wait who obey a 429 that names no time.
const floorWait = time.Second

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
	judge := a.Meter.Judge(s.user)
	s.answer = measure.Answer{User: s.user, Due: s.due, Sent: a.now()}
	var x *measure.Exchange // nil: no connection yet

	ctx, cancel := context.WithTimeout(t.requests, Timeout)
	defer cancel()
	var first atomic.Int64 // noted on a goroutine of net/http's, maybe after we have given up
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { // before the first byte, on this goroutine
			if s.answer.Attempts++; x == nil {
				x, s.answer.Sent = judge.Begin()
			}
		},
		GotFirstResponseByte: func() { first.Store(int64(a.now())) },
	})
	answer, err := t.exchange(a.config.Operation.request(ctx, m.Key))
	if err != nil {
		s.answer.Outcome, s.answer.Error = record.OutcomeTransportError, t.kind(ctx, err)
	} else {
		s.answer.Outcome = answer.Outcome
	}
	s.answer.Status, s.answer.First = answer.Status, time.Duration(first.Load())
	if x == nil { // nothing was written
		s.answer.Done = a.now()
		return
	}
	s.answer.Done = judge.End(x, answer.Kind, s.answer.Attempts)
	if answer.Status == http.StatusTooManyRequests && m.Obeys {
		s.answer.NoWait = answer.Wait == 0
		until := s.answer.Done + max(answer.Wait, floorWait)
		for old := a.holdOff[s.user].Load(); old < int64(until) && !a.holdOff[s.user].CompareAndSwap(old, int64(until)); {
			old = a.holdOff[s.user].Load()
		}
	}
}

// reply is what came back.
type reply struct {
	measure.Reading
	Status int
}

// exchange sends a request and reads its answer. With an error the reading is
// what the status and the headers say, if they came.
func (t *transport) exchange(r *http.Request) (reply, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return reply{Reading: measure.Reading{Kind: measure.Lost}}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errTooLong
	}
	read := measure.Classify(resp.StatusCode, resp.Header, body, t.attack.config.Operation.Wording, t.attack.config.Operation.Expect)
	return reply{Reading: read, Status: resp.StatusCode}, err
}
