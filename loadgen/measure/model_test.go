package measure_test

import (
	"cmp"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/loadgen/measure"
)

// model is a limiter over rational numbers. It shares nothing with the judge.
// Its fields say in which way it is wrong; new ones are right.
type model struct {
	allowance oracle.Allowance
	level     *big.Rat // tokens
	last      time.Duration
	inFlight  int64

	clock   func(time.Duration) time.Duration // from our time to the server's
	refill  *big.Rat                          // factor
	burst   int64                             // added
	cap     int64                             // added
	refunds bool                              // a rejection for lack of a place gives the token back
}

func newModel(a oracle.Allowance) *model {
	return &model{
		allowance: a, level: new(big.Rat).SetInt64(a.Burst),
		clock:  func(t time.Duration) time.Duration { return t },
		refill: big.NewRat(1, 1),
	}
}

// settle brings the level to an instant of the server's clock.
func (m *model) settle(at time.Duration) {
	elapsed := new(big.Rat).SetFrac64(int64(at-m.last), int64(time.Minute))
	m.last = at
	gain := elapsed.Mul(elapsed, new(big.Rat).SetInt64(m.allowance.RequestsPerMinute))
	m.level.Add(m.level, gain.Mul(gain, m.refill))
	if full := new(big.Rat).SetInt64(m.allowance.Burst + m.burst); m.level.Cmp(full) > 0 {
		m.level.Set(full)
	}
}

func (m *model) decide(at time.Duration) measure.Kind {
	m.settle(m.clock(at))
	one := big.NewRat(1, 1)
	if m.level.Cmp(one) < 0 {
		return measure.RefusedRate
	}
	m.level.Sub(m.level, one)
	if m.inFlight >= m.allowance.Concurrency+m.cap {
		if m.refunds {
			m.level.Add(m.level, one)
		}
		return measure.RefusedConcurrency
	}
	m.inFlight++
	return measure.Passed
}

// headers are what an answer says of the level that the decision left.
func (m *model) headers() http.Header {
	up := func(tokens *big.Rat) string { // the seconds until so many have come in
		s := new(big.Rat).Mul(tokens, big.NewRat(60, m.allowance.RequestsPerMinute))
		n := new(big.Int).Add(s.Num(), new(big.Int).Sub(s.Denom(), big.NewInt(1)))
		return n.Div(n, s.Denom()).String()
	}
	burst, one := new(big.Rat).SetInt64(m.allowance.Burst), big.NewRat(1, 1)
	return http.Header{
		"Ratelimit-Limit":     {burst.Num().String()},
		"Ratelimit-Remaining": {new(big.Int).Div(m.level.Num(), m.level.Denom()).String()},
		"Ratelimit-Reset":     {up(burst.Sub(burst, m.level))},
		"Retry-After":         {up(one.Sub(one, m.level))},
	}
}

// request is one request and what the world does with it. All instants are
// different.
type request struct {
	begin, end time.Duration
	decides    []time.Duration // when attempts are decided; none: it never comes to the limiter
	release    time.Duration   // when its permit comes back, if it gets one
	lost       bool            // no answer comes
	masked     bool            // the answer does not say what was decided
}

func (r request) attempts() int { return max(1, len(r.decides)) }

// event is something that happens at an instant.
type event struct {
	at time.Duration
	do func()
}

func byTime(a, b event) int { return cmp.Compare(a.at, b.at) }

// play lets a server decide and a judge watch, each in its own order of events. It
// gives the faults that were found in the server's headers.
func play(m *model, j *measure.Judge, now *time.Duration, requests []request) (faults []measure.Faults) {
	var server []event
	kinds := map[time.Duration]measure.Kind{}  // of answers, by when their requests began
	headers := map[time.Duration]http.Header{} // likewise
	for _, r := range requests {
		kinds[r.begin] = measure.Untouched
		for n, at := range r.decides {
			server = append(server, event{at, func() {
				kind := m.decide(at)
				if n == len(r.decides)-1 { // the answer is that of the last attempt
					kinds[r.begin], headers[r.begin] = kind, m.headers()
				}
				if kind == measure.Passed {
					release := event{max(r.release, at), func() { m.inFlight-- }}
					k, _ := slices.BinarySearchFunc(server, release, byTime)
					server = slices.Insert(server, k, release)
				}
			}})
		}
	}
	slices.SortStableFunc(server, byTime)
	for len(server) > 0 {
		next := server[0]
		server = server[1:]
		next.do()
	}

	exchanges := watch(j, now, requests, func(r request) measure.Kind {
		switch {
		case r.lost:
			return measure.Lost
		case r.masked:
			return measure.Unclear
		}
		return kinds[r.begin]
	})
	reader, codes := measure.NewReader(contract.Wording{}), map[measure.Kind]string{
		measure.RefusedRate: contract.CodeRateLimited, measure.RefusedConcurrency: contract.CodeConcurrencyLimited,
	}
	for i, r := range requests {
		if r.lost || r.masked || len(r.decides) == 0 {
			continue
		}
		status := http.StatusOK
		if kinds[r.begin] != measure.Passed {
			status = http.StatusTooManyRequests
		}
		read := reader.Read(status, headers[r.begin], []byte(`{"errorCode":"`+codes[kinds[r.begin]]+`"}`), http.StatusOK)
		if f := read.Headers.Against(exchanges[i].Bounds()); f != 0 {
			faults = append(faults, f)
		}
	}
	return faults
}

// watch shows a judge when requests leave and how they are answered.
func watch(j *measure.Judge, now *time.Duration, requests []request, answer func(request) measure.Kind) []*measure.Exchange {
	var events []event
	exchanges := make([]*measure.Exchange, len(requests))
	for i, r := range requests {
		events = append(events,
			event{r.begin, func() { exchanges[i], _ = j.Begin() }},
			event{r.end, func() { j.End(exchanges[i], answer(r), r.attempts()) }})
	}
	slices.SortFunc(events, byTime)
	for _, e := range events {
		*now = e.at
		e.do()
	}
	return exchanges
}
