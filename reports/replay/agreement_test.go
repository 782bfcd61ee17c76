package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// recorder is the reference's limiter on a clock of the test, and the log that it
// would leave behind.
type recorder struct {
	t       require.TestingT
	clock   *clock.Shifted
	limiter *limiter.Local
	flying  []contract.LogEntry
	log     []contract.LogEntry // in the order in which requests ended
}

func newRecorder(t require.TestingT) *recorder { return newRecorderAt(t, 0) }

func newRecorderAt(t require.TestingT, later time.Duration) *recorder {
	c := clock.NewFrozen(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).Add(later))
	return &recorder{t: t, clock: c, limiter: limiter.NewLocal(c, limiter.Config{})}
}

func (s *recorder) request(id, user string, a policy.Allowance) {
	d, err := s.limiter.Admit(context.Background(), user, a, id)
	require.NoError(s.t, err)
	e := contract.LogEntry{
		Schema: 1, RequestID: id, Received: s.clock.Now(), Method: "POST", Path: "/v1/invoice/calculate",
		Status: 200, Outcome: contract.LogAdmitted, User: user,
		Decision: &contract.LogDecision{
			Order: d.Order, Instant: int64(d.At), Outcome: d.Outcome.String(), InFlight: d.InFlight, Level: d.Level,
			RequestsPerMinute: a.RequestsPerMinute(), Burst: a.Burst(), Concurrency: a.Concurrency(),
		},
	}
	if d.Outcome == admission.Admitted {
		s.flying = append(s.flying, e)
		return
	}
	e.Status, e.Outcome = 429, contract.LogRejected
	s.log = append(s.log, e)
}

func (s *recorder) end(i int) {
	e := s.flying[i]
	s.flying = slices.Delete(s.flying, i, i+1)
	require.NoError(s.t, s.limiter.Release(context.Background(), e.User, e.RequestID))
	e.Duration = int64(s.clock.Instant()) - e.Decision.Instant // the timeline's, which never steps back
	s.log = append(s.log, e)
}

func (s *recorder) endAll() {
	for len(s.flying) > 0 {
		s.end(0)
	}
}

func lines(t require.TestingT, entries []contract.LogEntry) []string {
	var out []string
	for _, e := range entries {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}

func allowance(t require.TestingT, rate, burst, concurrency int64) policy.Allowance {
	a, err := policy.NewAllowance(rate, burst, concurrency)
	require.NoError(t, err)
	return a
}

// drive sends a drawn mix of requests of several users, whose allowances change
// on the way, and lets the date step back.
func drive(t *rapid.T, s *recorder) {
	allowances := []policy.Allowance{
		allowance(t, 10, 10, 2), allowance(t, 60, 20, 5), allowance(t, 7, 3, 1), allowance(t, 300, 100, 20), allowance(t, 1_000_000, 1, 1),
	}
	for i := range rapid.IntRange(1, 120).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "step") {
		case 0:
			s.clock.Advance(time.Duration(rapid.Int64Range(-1e6, 30e6).Draw(t, "micros")) * time.Microsecond)
		case 1:
			if len(s.flying) > 0 {
				s.end(rapid.IntRange(0, len(s.flying)-1).Draw(t, "ending"))
			}
		default:
			user := rapid.IntRange(0, 2).Draw(t, "user")
			a := allowances[user]
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				a = rapid.SampledFrom(allowances).Draw(t, "allowance")
			}
			s.request(fmt.Sprintf("req-%d", i), fmt.Sprintf("user-%d", user), a)
		}
	}
	s.request("req-last", "user-0", allowances[0])
	s.endAll()
}

// Whatever the limiter decided comes out the same, to the unit, though the log
// is in another order and the date stepped back.
func TestRecordedDecisionsComeOutAsRecorded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newRecorder(t)
		drive(t, s)
		var rejected, concurrency int64
		for _, e := range s.log {
			switch e.Decision.Outcome {
			case accesslog.RateRejected:
				rejected++
			case accesslog.ConcurrencyRejected:
				concurrency++
			}
		}
		r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, s.log)), replay.Question{})
		require.NoError(t, err)
		require.Equal(t, record.PoolUser, r.Pool)
		n := int64(len(s.log))
		require.Equal(t, record.Agreed{Compared: n, Agreed: n, Runs: 1}, *r.Agreement)
		require.Equal(t, rejected, r.RejectedRate)
		require.Equal(t, concurrency, r.RejectedConcurrency)
	})
}

// What-if at the allowance that was in force says what the limiter said: tokens
// do not depend on how long requests took.
func TestWhatIfAtTheRecordedAllowance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newRecorder(t)
		a := allowance(t, rapid.Int64Range(1, 200).Draw(t, "rate"), rapid.Int64Range(1, 8).Draw(t, "burst"), 2)
		var rejected int64
		for i := range rapid.IntRange(1, 80).Draw(t, "requests") {
			s.clock.Advance(time.Duration(rapid.Int64Range(0, 2e6).Draw(t, "micros")) * time.Microsecond)
			s.request(fmt.Sprintf("req-%d", i), fmt.Sprintf("user-%d", rapid.IntRange(0, 2).Draw(t, "user")), a)
			if rapid.Bool().Draw(t, "ends") {
				s.endAll()
			}
		}
		s.endAll()
		for _, e := range s.log {
			if e.Decision.Outcome == accesslog.RateRejected {
				rejected++
			}
		}
		r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, s.log)), ask(a.RequestsPerMinute(), a.Burst()))
		require.NoError(t, err)
		require.Equal(t, rejected, r.RejectedRate)
	})
}

// One decision changed in the log is one disagreement, and it is named.
func TestWrongDecisionIsFoundAndNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newRecorder(t)
		drive(t, s)
		e := &s.log[rapid.IntRange(0, len(s.log)-1).Draw(t, "entry")]
		d := *e.Decision
		e.Decision = &d
		switch rapid.IntRange(0, 1).Draw(t, "change") {
		case 0:
			words := []string{accesslog.Admitted, accesslog.RateRejected, accesslog.ConcurrencyRejected}
			words = slices.DeleteFunc(words, func(w string) bool { return w == d.Outcome })
			d.Outcome = rapid.SampledFrom(words).Draw(t, "outcome")
		case 1:
			if d.Level++; d.Level > d.Burst*60_000_000 {
				d.Level -= 2
			}
		}
		r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, s.log)), replay.Question{})
		require.NoError(t, err)
		require.NotNil(t, r.Agreement.First)
		require.Equal(t, e.RequestID, r.Agreement.First.RequestID)
		require.Equal(t, d.Order, r.Agreement.First.Order)
		require.Equal(t, record.Decision{Outcome: d.Outcome, Level: d.Level}, r.Agreement.First.Recorded)
		require.Equal(t, r.Agreement.Compared, r.Agreement.Agreed+r.Agreement.Disagreed)
		require.LessOrEqual(t, r.Agreement.Disagreed, int64(2), "the wrong one, and the next if the level was wrong")
	})
}

func TestMissingEntriesProveNothing(t *testing.T) {
	s := newRecorder(t)
	for i := range 6 {
		s.request(fmt.Sprintf("a%d", i), "alice", allowance(t, 10, 10, 20))
		s.request(fmt.Sprintf("b%d", i), "bob", allowance(t, 10, 10, 20))
	}
	s.endAll()
	log := slices.DeleteFunc(s.log, func(e contract.LogEntry) bool { return e.RequestID == "a3" })
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, log)), replay.Question{})
	require.NoError(t, err)
	require.Equal(t, record.Agreed{Compared: 11, Agreed: 10, Untold: 1, Missing: 1, Runs: 1}, *r.Agreement)

	log[len(log)-1].Decision.Level++ // long after the gap
	r, err = replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, log)), replay.Question{})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Agreement.Disagreed)
	require.Equal(t, "b5", r.Agreement.First.RequestID)
}

func TestRestartRefillsEveryBucket(t *testing.T) {
	a := allowance(t, 10, 3, 20)
	first, second := newRecorder(t), newRecorderAt(t, time.Second)
	for i := range 4 {
		first.request(fmt.Sprintf("first-%d", i), "alice", a)
		second.request(fmt.Sprintf("second-%d", i), "alice", a)
	}
	first.endAll()
	second.endAll()
	log := read(t, accesslog.Options{}, lines(t, append(first.log, second.log...)))
	r, err := replay.Run(t.Context(), log, replay.Question{})
	require.NoError(t, err)
	require.Equal(t, record.Agreed{Compared: 8, Agreed: 8, Runs: 2}, *r.Agreement)
	require.EqualValues(t, 2, r.Rejected)

	what, err := replay.Run(t.Context(), log, ask(10, 3))
	require.NoError(t, err)
	require.EqualValues(t, 5, what.Rejected, "what would have been is not about restarts")
	require.Contains(t, what.Assumed, "2 server processes one after another; no restart refills a bucket")
}

// What one run lacks excuses nothing in the next.
func TestMissingEntriesOfAnEarlierRun(t *testing.T) {
	a := allowance(t, 10, 3, 20)
	first, second := newRecorder(t), newRecorderAt(t, time.Second)
	for i := range 3 {
		first.request(fmt.Sprintf("first-%d", i), "alice", a)
		second.request(fmt.Sprintf("second-%d", i), "alice", a)
	}
	first.endAll()
	second.endAll()
	second.log[0].Decision.Level++
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, append(first.log[1:], second.log...))), replay.Question{})
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Agreement.Missing)
	require.EqualValues(t, 1, r.Agreement.Untold)
	require.Equal(t, "second-0", r.Agreement.First.RequestID)
}

// Levels and allowances that no server can have recorded are disagreements, not
// crashes.
func TestImpossibleRecords(t *testing.T) {
	s := newRecorder(t)
	for i := range 3 {
		s.request(fmt.Sprintf("r%d", i), "alice", allowance(t, 10, 10, 20))
	}
	s.endAll()
	s.log[0].Decision.Level = 1<<63 - 1
	s.log[1].Decision.Burst = 1 << 40
	s.log[1].Decision.Concurrency = 0
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, s.log)), replay.Question{})
	require.NoError(t, err)
	require.EqualValues(t, 3, r.Agreement.Compared)
	require.EqualValues(t, 2, r.Agreement.Disagreed)
	require.Equal(t, "r0", r.Agreement.First.RequestID)
}

// With durations concurrency can be asked for; the requests that were refused
// have none, and that is said.
func TestConcurrencyFromDurations(t *testing.T) {
	s := newRecorder(t)
	a := allowance(t, 300, 100, 3)
	for i := range 5 { // three in flight for two seconds, two refused
		s.request(fmt.Sprintf("r%d", i), "alice", a)
		s.clock.Advance(time.Millisecond)
	}
	s.clock.Advance(2 * time.Second)
	s.endAll()
	q := ask(300, 100)
	q.Concurrency = []int64{1, 3, 5}
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, s.log)), q)
	require.NoError(t, err)
	require.EqualValues(t, 5, r.Agreement.Agreed)
	require.EqualValues(t, 2, r.AlreadyRefused)
	var got [][2]int64
	for _, c := range r.Cells {
		got = append(got, [2]int64{c.RejectedConcurrency, c.WithoutRefused.RejectedConcurrency})
	}
	require.Equal(t, [][2]int64{{4, 2}, {2, 0}, {0, 0}}, got)
	require.Len(t, r.Missing, 1)
	require.Contains(t, r.Missing[0], "concurrency rejections are counted too low")
}

// Where nobody asks for concurrency, requests that overlap do not meet a cap.
func TestWithoutConcurrencyNothingIsInFlight(t *testing.T) {
	s := newRecorder(t)
	a := allowance(t, 300, 100, 5)
	for i := range 5 {
		s.request(fmt.Sprintf("r%d", i), "alice", a)
	}
	s.clock.Advance(2 * time.Second)
	s.endAll()
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines(t, s.log)), replay.Question{
		Rates: []int64{60, 300}, Bursts: []int64{4},
	})
	require.NoError(t, err)
	require.Len(t, r.Cells, 2)
	for _, c := range r.Cells {
		require.EqualValues(t, 1, c.RejectedRate, "five at once, and a burst of four")
		require.Zero(t, c.RejectedConcurrency)
	}
}
