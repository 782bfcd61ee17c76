package measure_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

func subjects(planned int64, plans ...string) []measure.Subject {
	var list []measure.Subject
	for i, plan := range plans {
		list = append(list, measure.Subject{
			Name: fmt.Sprintf("%s-%03d", plan, i+1), Plan: plan, Rested: true, Planned: planned,
			Allowance: oracle.Allowance{RequestsPerMinute: 60, Burst: 2, Concurrency: 1},
		})
	}
	return list
}

// TestAnyRunAddsUp throws anything at a meter; the record's own check adds it up.
func TestAnyRunAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const planned = 40
		var now time.Duration
		people := subjects(planned, "free", "pro", "free")
		m := measure.NewMeter(people, func() time.Duration { return now })
		left := []int64{planned, planned, planned}
		outcomes := rapid.SliceOfN(rapid.SampledFrom(record.Outcomes()), 2, 2).Draw(t, "outcomes") // all of them take long to encode
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			user := rapid.IntRange(0, 2).Draw(t, "user")
			if left[user] == 0 {
				continue
			}
			left[user]--
			due := now
			now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "gap"))
			switch rapid.IntRange(0, 4).Draw(t, "fate") {
			case 0:
				m.Dropped(user, due, rapid.Bool().Draw(t, "busy"))
			case 1:
				m.HeldOff(user, due)
			default:
				outcome := rapid.SampledFrom(outcomes).Draw(t, "outcome")
				kind := map[record.Outcome]measure.Kind{
					record.OutcomeAdmitted: measure.Passed, record.OutcomeRejectedRate: measure.RefusedRate,
					record.OutcomeRejectedConcurrency: measure.RefusedConcurrency, record.OutcomeOtherStatus: measure.Unclear,
					record.OutcomeTransportError: measure.Lost,
				}
				k, ok := kind[outcome]
				if !ok {
					k = measure.Untouched
				}
				x, sent := m.Judge(user).Begin()
				now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "length"))
				done := m.Judge(user).End(x, k, 1)
				m.Answered(measure.Answer{User: user, Due: due, Sent: sent, Done: done, Attempts: 1, Outcome: outcome, Status: 500, Error: "timeout"})
			}
		}
		s := m.Snapshot()
		require.Equal(t, s[0].Planned+s[1].Planned, s[0].Offered+s[1].Offered+left[0]+left[1]+left[2])
		for user, n := range left {
			for range n {
				m.Unsent(user)
			}
		}
		r := record.Run{Schema: record.RunSchema}
		require.NoError(t, m.Fill(&r, now))
		require.NoError(t, r.Check())
		require.Len(t, r.Plans, 2)
		require.EqualValues(t, 2, r.Plans[0].Users)
		for i, p := range s {
			require.Equal(t, r.Plans[i].Admitted, p.Admitted)
			require.Equal(t, r.Plans[i].RateJudged, p.RateJudged)
			require.Equal(t, r.Plans[i].ConcurrencyJudged, p.ConcurrencyJudged)
			require.Len(t, p.Latency, len(r.Plans[i].Latency))
		}
		require.NotEmpty(t, m.Limits(r))
	})
}

func TestLatencyIsApartByOutcome(t *testing.T) {
	m := measure.NewMeter(subjects(300, "free"), func() time.Duration { return 0 })
	// Fast rejections must not flatter the admissions.
	for i := range 200 {
		a := measure.Answer{Due: time.Second, Sent: time.Second + 10*time.Millisecond, Attempts: 1}
		if i%2 == 0 {
			a.Outcome, a.Done = record.OutcomeAdmitted, a.Sent+time.Duration(i+1)*time.Millisecond
		} else {
			a.Outcome, a.Done = record.OutcomeUnauthenticated, a.Sent+time.Microsecond
		}
		m.Answered(a)
	}
	var r record.Run
	require.NoError(t, m.Fill(&r, 20*time.Second))
	l := r.Plans[0].Latency
	require.Len(t, l, 2)
	require.Equal(t, record.OutcomeAdmitted, l[0].Outcome)
	require.EqualValues(t, 100, l[0].FromSend.Count)
	require.EqualValues(t, 1_000, l[0].FromSend.MinUS)
	require.EqualValues(t, 199_000, l[0].FromSend.MaxUS)
	require.InEpsilon(t, 99_000, l[0].FromSend.P50US, 0.001)
	require.InEpsilon(t, 109_000, l[0].FromDue.P50US, 0.001)
	require.EqualValues(t, 1, l[1].FromSend.MaxUS)
	require.EqualValues(t, 10_000, r.Generator.Lag.MinUS)
}

func TestQuantilesAscend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(10*time.Minute)), 1, 20).Draw(t, "values")
		m := measure.NewMeter(subjects(100, "free"), func() time.Duration { return 0 })
		for _, v := range values {
			m.Answered(measure.Answer{Done: time.Duration(v), Outcome: record.OutcomeAdmitted, Attempts: 1})
		}
		q := m.Snapshot()[0].Latency[0].FromDue
		require.True(t, slices.IsSorted([]int64{q.MinUS, q.P50US, q.P90US, q.P95US, q.P99US, q.P999US, q.MaxUS}), "%+v", q)

		var r record.Run
		require.NoError(t, m.Fill(&r, 20*time.Second))
		whole := r.Plans[0].Latency[0].FromDue
		h, err := hdrhistogram.Decode([]byte(whole.Histogram))
		require.NoError(t, err)
		require.EqualValues(t, len(values), h.TotalCount())
		whole.Histogram = ""
		require.Equal(t, q, whole)
	})
}

func TestLongestWait(t *testing.T) {
	m := measure.NewMeter(subjects(10, "free", "free"), func() time.Duration { return 0 })
	answer := func(user int, outcome record.Outcome, sent, done time.Duration) {
		m.Answered(measure.Answer{User: user, Outcome: outcome, Due: sent * time.Second, Sent: sent * time.Second, Done: done * time.Second, Attempts: 1})
	}
	answer(0, record.OutcomeAdmitted, 0, 1)
	answer(0, record.OutcomeRejectedRate, 2, 3)
	answer(0, record.OutcomeRejectedAnonymous, 4, 5)
	answer(0, record.OutcomeAdmitted, 6, 7) // waited from 2 to 7
	answer(0, record.OutcomeRejectedRate, 8, 9)
	answer(1, record.OutcomeRejectedRate, 9, 10)
	answer(1, record.OutcomeAdmitted, 19, 20)
	var r record.Run
	require.NoError(t, m.Fill(&r, 20*time.Second))
	require.EqualValues(t, 12_000, r.Users[0].LongestWaitMS, "from 8 to the end at 20")
	require.EqualValues(t, 11_000, r.Users[1].LongestWaitMS)
	require.EqualValues(t, 2, r.Plans[0].UsersAffected)
	require.Equal(t, []int64{1, 0, 1, 0, 1, 0, 1, 0, 1, 1}, r.Plans[0].PerSecond.Due[:10])
	require.Len(t, r.Plans[0].PerSecond.Admitted, 21)
}

func TestLimitsAreSaid(t *testing.T) {
	people := subjects(100, "free", "free")
	people[1].Rested = false
	m := measure.NewMeter(people, func() time.Duration { return 0 })
	answer := func(user int, x *measure.Exchange, kind measure.Kind, outcome record.Outcome) {
		m.Judge(user).End(x, kind, 1)
		m.Answered(measure.Answer{User: user, Outcome: outcome, Attempts: 2, NoWait: kind == measure.RefusedConcurrency})
	}
	passed, _ := m.Judge(0).Begin()
	refused, _ := m.Judge(0).Begin()
	answer(0, passed, measure.Passed, record.OutcomeAdmitted)
	answer(0, refused, measure.RefusedConcurrency, record.OutcomeRejectedConcurrency)
	early, _ := m.Judge(1).Begin()
	answer(1, early, measure.RefusedRate, record.OutcomeRejectedRate)
	m.Answered(measure.Answer{Outcome: record.OutcomeTransportError, Error: "timeout", Attempts: 1})
	m.Answered(measure.Answer{Outcome: record.OutcomeOtherStatus, Status: 429, Attempts: 1})
	m.Answered(measure.Answer{Outcome: record.OutcomeRejectedAnonymous, Attempts: 1})
	m.Dropped(0, 0, true)
	m.Dropped(0, 0, false)
	r := record.Run{Interrupted: true, Generator: record.Generator{Workers: 16}}
	require.NoError(t, m.Fill(&r, 20*time.Second))
	list := m.Limits(r)
	for _, want := range []string{
		"judged by the allowances of the target file", "1 ms, of one that runs 0.05 % fast", "was interrupted",
		"buckets of 1 of 2 users", "Of 1 rate 429s 1 could", "Of 1 concurrency 429s 1 could", "1 429s came without RateLimit",
		"1 429s named no known cause", "1 requests got no whole answer", "3 requests went out more than once", "1 429s to users who obey",
		"1 of 8 requests were dropped because this machine", "1 of 8 requests were dropped because all 16 workers",
	} {
		require.Condition(t, func() bool {
			return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, want) })
		}, "%q is not in %q", want, list)
	}
	require.Len(t, list, 13)
}

func TestRead(t *testing.T) {
	limits := func(more ...string) http.Header {
		h := http.Header{}
		h.Set("RateLimit-Limit", "10")
		for i := 0; i < len(more); i += 2 {
			h.Add(more[i], more[i+1])
		}
		return h
	}
	body := func(code string) string {
		return `{"requestId":"r","errorCode":"` + code + `","message":"the code CONCURRENCY_LIMIT_EXCEEDED is quoted"}`
	}
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		want   measure.Reading
	}{
		"admitted":           {200, limits(), "", measure.Reading{Outcome: record.OutcomeAdmitted, Kind: measure.Passed}},
		"another success":    {201, limits(), "", measure.Reading{Outcome: record.OutcomeOtherStatus, Kind: measure.Passed}},
		"rate":               {429, limits("Retry-After", "6"), body("RATE_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedRate, Kind: measure.RefusedRate, Wait: 6 * time.Second}},
		"concurrency":        {429, limits("Retry-After", "1"), body("CONCURRENCY_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedConcurrency, Kind: measure.RefusedConcurrency, Wait: time.Second}},
		"anonymous":          {429, http.Header{"Retry-After": {"2"}}, body("RATE_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedAnonymous, Kind: measure.Untouched, Wait: 2 * time.Second}},
		"429 of no cause":    {429, limits("Retry-After", "2"), "Too many", measure.Reading{Outcome: record.OutcomeOtherStatus, Kind: measure.Unclear, Wait: 2 * time.Second}},
		"wait 0":             {429, limits("Retry-After", "0"), body("RATE_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedRate, Kind: measure.RefusedRate}},
		"wait a date":        {429, limits("Retry-After", "Mon, 30 Nov 2026 00:00:00 GMT"), body("RATE_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedRate, Kind: measure.RefusedRate}},
		"wait twice":         {429, limits("Retry-After", "1", "Retry-After", "2"), body("RATE_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedRate, Kind: measure.RefusedRate}},
		"wait for ever":      {429, limits("Retry-After", "9223372036854775807"), body("RATE_LIMIT_EXCEEDED"), measure.Reading{Outcome: record.OutcomeRejectedRate, Kind: measure.RefusedRate, Wait: 24 * time.Hour}},
		"unauthenticated":    {401, nil, body("UNAUTHENTICATED"), measure.Reading{Outcome: record.OutcomeUnauthenticated, Kind: measure.Untouched}},
		"policy":             {503, nil, body("RATE_LIMIT_CONFIGURATION_UNAVAILABLE"), measure.Reading{Outcome: record.OutcomeConfigUnavailable, Kind: measure.Untouched}},
		"capacity":           {402, limits(), body("CAPACITY_EXHAUSTED"), measure.Reading{Outcome: record.OutcomeOtherStatus, Kind: measure.Passed}},
		"proxy":              {502, nil, "bad gateway", measure.Reading{Outcome: record.OutcomeOtherStatus, Kind: measure.Unclear}},
		"proxy, unavailable": {503, nil, "", measure.Reading{Outcome: record.OutcomeOtherStatus, Kind: measure.Unclear}},
		"redirect":           {302, nil, "", measure.Reading{Outcome: record.OutcomeOtherStatus, Kind: measure.Unclear}},
	} {
		t.Run(name, func(t *testing.T) {
			got := measure.NewReader(contract.Wording{}).Read(c.status, c.header, []byte(c.body), 200)
			got.Headers = measure.Headers{} // see TestHeaderFaults
			require.Equal(t, c.want, got)
		})
	}
}

// FuzzRead looks for answers that crash or that accuse without grounds.
func FuzzRead(f *testing.F) {
	f.Add(429, "10", "6", `{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"m"}`)
	f.Add(200, "", "", "")
	f.Add(503, "1", "x", `{"errorCode":`)
	f.Fuzz(func(t *testing.T, status int, limit, wait, body string) {
		h := http.Header{}
		if limit != "" {
			h.Set("RateLimit-Limit", limit)
		}
		h.Set("Retry-After", wait)
		r := measure.NewReader(contract.Wording{}).Read(status, h, []byte(body), 200)
		require.Contains(t, record.Outcomes(), r.Outcome)
		require.GreaterOrEqual(t, r.Wait, time.Duration(0))
		if r.Kind == measure.RefusedRate || r.Kind == measure.RefusedConcurrency {
			require.Equal(t, 429, status)
			require.NotEmpty(t, limit)
		}
	})
}

// 429s that nobody can judge hit users all the same.
func TestRejectionsThatAreNotJudged(t *testing.T) {
	m := measure.NewMeter(subjects(3, "free", "free"), func() time.Duration { return 0 })
	m.Answered(measure.Answer{User: 0, Outcome: record.OutcomeOtherStatus, Status: 429, Attempts: 1})
	m.Answered(measure.Answer{User: 0, Outcome: record.OutcomeOtherStatus, Status: 404, Attempts: 1})
	m.Answered(measure.Answer{User: 1, Outcome: record.OutcomeRejectedAnonymous, Attempts: 1})
	for range 3 {
		m.Unsent(0)
	}
	r := record.Run{Schema: record.RunSchema}
	require.NoError(t, m.Fill(&r, time.Second))
	require.EqualValues(t, 2, r.Plans[0].UsersAffected)
	require.EqualValues(t, 1, r.Users[0].RejectedOtherwise)
	require.EqualValues(t, 1, r.Users[1].RejectedOtherwise)
	require.NoError(t, r.Check())
}
