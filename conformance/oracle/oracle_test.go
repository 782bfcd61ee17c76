package oracle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// says is an answer with a bucket's headers; code is empty for a success.
func says(status int, code string, limit, remaining, reset, retry int64) contract.Answer {
	h := map[string]string{contract.HeaderLimit: fmt.Sprint(limit), contract.HeaderRemaining: fmt.Sprint(remaining), contract.HeaderReset: fmt.Sprint(reset)}
	if retry >= 0 {
		h[contract.HeaderRetryAfter] = fmt.Sprint(retry)
	}
	return render(status, code, h)
}

func at(instant int64) oracle.Span { return oracle.Span{From: instant, To: instant} }

// clauses is the findings as "CLAUSE Field: expected, got".
func clauses(found []oracle.Finding) []string {
	out := []string{}
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s: %s, %s", f.Clause, f.Field, f.Expected, f.Got))
	}
	return out
}

// TestInstants plays a free user (10 a minute, burst 10) second by second.
func TestInstants(t *testing.T) {
	const ms = 1_000
	steps := []struct {
		span   oracle.Span
		answer contract.Answer
		want   []string
	}{
		{at(0), says(200, "", 10, 9, 6, -1), nil},
		{at(0), says(200, "", 10, 8, 12, -1), nil},
		{at(0), says(200, "", 10, 7, 18, -1), nil},
		// Decided anywhere from half a second to nine tenths later: 23.1 to 23.5 s to go.
		{oracle.Span{From: 500 * ms, To: 900 * ms}, says(200, "", 10, 6, 24, -1), nil},
		{oracle.Span{From: 500 * ms, To: 900 * ms}, says(422, "", 10, 5, 30, -1), nil},
		{at(1000 * ms), says(404, "", 10, 4, 35, -1), nil},
		{at(1000 * ms), says(429, contract.CodeConcurrencyLimited, 10, 3, 41, 1), nil},
		{at(1000 * ms), says(500, "", 10, 2, 47, -1), nil},
		{at(1000 * ms), says(200, "", 10, 1, 53, -1), nil},
		{at(1000 * ms), says(200, "", 10, 0, 59, -1), nil},
		{at(1000 * ms), says(429, contract.CodeRateLimited, 10, 0, 59, 5), nil},
		{at(5999*ms + 999), says(429, contract.CodeRateLimited, 10, 0, 55, 1), nil},
		{at(6000 * ms), says(200, "", 10, 0, 60, -1), nil},
		{at(6000 * ms), says(200, "", 10, 0, 60, -1), []string{"RATE-2 status: 429 RATE_LIMIT_EXCEEDED, 200"}},
	}
	b := oracle.NewFull(free)
	for i, s := range steps {
		require.Equal(t, append([]string{}, s.want...), clauses(b.Judge(s.answer, s.span)), "step %d", i)
	}
}

// beside is a bucket of whose user something may be in flight.
func beside(b *oracle.Bucket) *oracle.Bucket {
	b.Lose(at(0))
	return b
}

// A 429 that names no cause is the bucket's where no cap can be full: refused
// with a token there, it is refused unduly. Beside others it may be the cap's.
func TestCauselessRejection(t *testing.T) {
	causeless := func() contract.Answer { return render(429, "SLOW_DOWN", nil) }
	undue := []string{"ERR-3 errorCode: RATE_LIMIT_EXCEEDED, SLOW_DOWN", "RATE-1 status: no rate rejection, 429 SLOW_DOWN"}
	either := []string{"CONC-1 errorCode: CONCURRENCY_LIMIT_EXCEEDED, SLOW_DOWN"}
	for name, c := range map[string]struct {
		first func(*oracle.Bucket)
		want  []string
	}{
		"alone":                       {func(*oracle.Bucket) {}, undue},
		"one in flight":               {func(b *oracle.Bucket) { b.Spend(at(0)) }, either},
		"several at once":             {func(b *oracle.Bucket) { b.JudgeParallel([]oracle.Sample{{Span: at(0)}, {Span: at(0)}}) }, either},
		"one lost":                    {func(b *oracle.Bucket) { b.Lose(at(0)) }, either},
		"work that failed":            {func(b *oracle.Bucket) { b.Judge(says(504, "", 10, 9, 6, -1), at(0)) }, either},
		"alone again":                 {func(b *oracle.Bucket) { b.Lose(at(0)); b.Alone() }, undue},
		"a request that was answered": {func(b *oracle.Bucket) { b.Judge(says(200, "", 10, 9, 6, -1), at(0)) }, undue},
	} {
		t.Run(name, func(t *testing.T) {
			b := oracle.NewFull(free)
			c.first(b)
			found := slices.DeleteFunc(clauses(b.Judge(causeless(), at(60*second))), func(f string) bool {
				return !strings.Contains(f, "errorCode") && !strings.Contains(f, "status")
			})
			require.Equal(t, c.want, found)
		})
	}
}

func TestFindings(t *testing.T) {
	empty := func() *oracle.Bucket { // after eleven requests within 78 ms
		b := oracle.NewFull(free)
		for i := range int64(10) {
			require.Empty(t, b.Judge(says(200, "", 10, 9-i, 6*(i+1), -1), oracle.Span{From: i * 7800, To: (i + 1) * 7800}))
		}
		return b
	}
	full := func() *oracle.Bucket { return oracle.NewFull(free) }
	for name, c := range map[string]struct {
		bucket *oracle.Bucket
		answer contract.Answer
		span   oracle.Span
		want   oracle.Finding
	}{
		"Retry-After too low": {empty(), says(429, contract.CodeRateLimited, 10, 0, 60, 5), oracle.Span{From: 78_000, To: 79_000},
			oracle.Finding{Clause: "HDR-5", Field: "Retry-After", Expected: "6", Ground: "the bucket held 0.011 to 0.014 of a token, 10 a minute", Got: "5",
				Consequence: "the client would come back too early and be refused again"}},
		"Remaining counts the request itself not": {full(), says(200, "", 10, 10, 6, -1), at(0),
			oracle.Finding{Clause: "HDR-3", Field: "RateLimit-Remaining", Expected: "9", Ground: "the bucket held exactly 9 tokens, 10 a minute", Got: "10",
				Consequence: "the client would count on tokens that are not there"}},
		"admitted though empty": {empty(), says(200, "", 10, 0, 60, -1), oracle.Span{From: 78_000, To: 79_000},
			oracle.Finding{Clause: "RATE-1", Also: []string{"RATE-2"}, Field: "status", Expected: "429 RATE_LIMIT_EXCEEDED",
				Ground: "the bucket held 0.011 to 0.014 of a token, 10 a minute", Got: "200", Consequence: "more gets in than the allowance says"}},
		"rejected though full": {full(), says(429, contract.CodeRateLimited, 10, 0, 60, 6), at(0),
			oracle.Finding{Clause: "RATE-1", Field: "status", Expected: "no rate rejection", Ground: "the bucket held exactly 10 tokens, 10 a minute",
				Got: "429 RATE_LIMIT_EXCEEDED", Consequence: "the client gets less than its allowance", Short: true}},
		"Limit is the rate": {oracle.NewFull(starter), says(200, "", 60, 19, 1, -1), at(0),
			oracle.Finding{Clause: "HDR-2", Field: "RateLimit-Limit", Expected: "20", Ground: "the allowance has a burst of 20", Got: "60",
				Consequence: "the client would plan with a burst that it does not have"}},
		"two headers missing": {full(), render(404, "", map[string]string{contract.HeaderLimit: "10"}), at(0),
			oracle.Finding{Clause: "HDR-1", Also: []string{"SCOPE-3"}, Field: "RateLimit-Remaining, RateLimit-Reset", Expected: "present",
				Ground: "the request was authenticated and its allowance resolved", Got: "absent", Consequence: "the client cannot see its bucket"}},
		"a header twice": {full(), render(200, "", map[string]string{contract.HeaderLimit: "10", contract.HeaderRemaining: "9", contract.HeaderReset: "6"}, contract.HeaderReset), at(0),
			oracle.Finding{Clause: "HDR-8", Field: "RateLimit-Reset", Expected: "one plain decimal integer", Ground: "a client parses it as such", Got: "doubled: 6 | 6"}},
		"headers on a 401": {full(), render(401, contract.CodeUnauthenticated, map[string]string{contract.HeaderLimit: "10"}), at(0),
			oracle.Finding{Clause: "AUTH-1", Field: "RateLimit-Limit", Expected: "absent", Ground: "nobody was authenticated", Got: "10",
				Consequence: "it describes a bucket that is not the caller's"}},
		"a range": {oracle.NewUnknown(free, 0), says(200, "", 10, 3, 99, -1), at(6_000_000),
			oracle.Finding{Clause: "HDR-4", Field: "RateLimit-Reset", Expected: "37 to 42", Ground: "the bucket held 3.000 to 4.000 tokens, 10 a minute", Got: "99",
				Consequence: "the client would wait longer than it has to"}},
		"a 429 that could be either": {beside(oracle.NewUnknown(free, 0)), says(429, "SLOW_DOWN", 10, 3, 42, 1), at(0),
			oracle.Finding{Clause: "ERR-3", Field: "errorCode", Expected: "RATE_LIMIT_EXCEEDED or CONCURRENCY_LIMIT_EXCEEDED",
				Ground: "the bucket held 0.000 to 10.000 tokens, 10 a minute", Got: "SLOW_DOWN", Consequence: "a client cannot tell which limit it met"}},
		"a 429 that can only be for the rate": {oracle.NewUnknown(free, 0), says(429, "SLOW_DOWN", 10, 0, 60, 6), at(0),
			oracle.Finding{Clause: "ERR-3", Field: "errorCode", Expected: "RATE_LIMIT_EXCEEDED",
				Ground: "the bucket held 0.000 to 10.000 tokens, 10 a minute", Got: "SLOW_DOWN", Consequence: "a client cannot tell which limit it met"}},
		"Remaining above Limit": {oracle.NewUnknown(free, 0), says(200, "", 10, 11, 0, -1), at(0),
			oracle.Finding{Clause: "RATE-3", Also: []string{"HDR-8"}, Field: "RateLimit-Remaining", Expected: "0 to 9",
				Ground: "the bucket held 0.000 to 9.000 tokens, 10 a minute", Got: "11", Consequence: "the bucket holds more than it should"}},
		"an empty bucket that pays for a rejection": {empty(), says(429, contract.CodeRateLimited, 10, 0, 66, 12), oracle.Span{From: 78_000, To: 79_000},
			oracle.Finding{Clause: "RATE-8", Field: "RateLimit-Reset", Expected: "60", Ground: "the bucket held 0.011 to 0.014 of a token, 10 a minute", Got: "66",
				Consequence: "the bucket holds less than it should", Short: true}},
		"a Remaining below zero": {empty(), render(429, contract.CodeRateLimited, map[string]string{contract.HeaderLimit: "10", contract.HeaderRemaining: "-1", contract.HeaderReset: "60", contract.HeaderRetryAfter: "6"}), at(78_000),
			oracle.Finding{Clause: "HDR-8", Also: []string{"HDR-3"}, Field: "RateLimit-Remaining", Expected: "one plain decimal integer", Ground: "a client parses it as such", Got: "malformed: -1"}},
		"a Remaining that is no number": {full(), render(200, "", map[string]string{contract.HeaderLimit: "10", contract.HeaderRemaining: "nine", contract.HeaderReset: "6"}), at(0),
			oracle.Finding{Clause: "HDR-8", Field: "RateLimit-Remaining", Expected: "one plain decimal integer", Ground: "a client parses it as such", Got: "malformed: nine"}},
		"a date to retry at": {empty(), render(429, contract.CodeRateLimited, map[string]string{contract.HeaderLimit: "10", contract.HeaderRemaining: "0", contract.HeaderReset: "60", contract.HeaderRetryAfter: "Mon"}), at(78_000),
			oracle.Finding{Clause: "HDR-8", Also: []string{"HDR-5"}, Field: "Retry-After", Expected: "one plain decimal integer", Ground: "a client parses it as such", Got: "malformed: Mon"}},
		"Retry-After twice": {empty(), render(429, contract.CodeRateLimited, map[string]string{contract.HeaderLimit: "10", contract.HeaderRemaining: "0", contract.HeaderReset: "60", contract.HeaderRetryAfter: "6"}, contract.HeaderRetryAfter), at(78_000),
			oracle.Finding{Clause: "HDR-8", Field: "Retry-After", Expected: "one plain decimal integer", Ground: "a client parses it as such", Got: "doubled: 6 | 6"}},
		"a cap that asks before the bucket": {empty(), says(429, contract.CodeConcurrencyLimited, 10, 0, 60, 1), at(78_000),
			oracle.Finding{Clause: "RATE-6", Field: "status", Expected: "429 RATE_LIMIT_EXCEEDED", Ground: "the bucket held 0.011 to 0.013 of a token, 10 a minute",
				Got: "429 CONCURRENCY_LIMIT_EXCEEDED", Consequence: "the cap is asked before the bucket"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := c.bucket.Judge(c.answer, c.span)
			require.Equal(t, []oracle.Finding{c.want}, found)
		})
	}
}

func TestObeyingRetryAfterToTheMicrosecond(t *testing.T) {
	drained := func() *oracle.Bucket {
		b := oracle.NewFull(free)
		for i := range int64(10) {
			require.Empty(t, b.Judge(says(200, "", 10, 9-i, 6*(i+1), -1), at(0)))
		}
		require.Empty(t, b.Judge(says(429, contract.CodeRateLimited, 10, 0, 60, 6), at(0)))
		return b
	}
	b := drained()
	require.Equal(t, int64(6_000_000), b.WaitFor(1))
	short, ok := b.ShortOf(1)
	require.True(t, ok)
	require.Equal(t, int64(5_999_999), short)

	require.Empty(t, b.Judge(says(429, contract.CodeRateLimited, 10, 0, 55, 1), at(5_999_999)))
	require.Empty(t, b.Judge(says(200, "", 10, 0, 60, -1), at(6_000_000)))

	found := drained().Judge(says(429, contract.CodeRateLimited, 10, 0, 54, 1), at(6_000_000))
	require.Equal(t, "HDR-6", found[0].Clause)
	require.Equal(t, []string{"RATE-2", "RATE-10"}, found[0].Also)
	found = drained().Judge(says(200, "", 10, 0, 60, -1), at(5_999_999))
	require.Equal(t, "RATE-2", found[0].Clause)
}

func TestWaits(t *testing.T) {
	full := oracle.NewFull(free)
	require.Zero(t, full.WaitFor(10))
	_, ok := full.ShortOf(10)
	require.False(t, ok)

	unknown := oracle.NewUnknown(free, 1_000)
	require.Equal(t, int64(60_000_000), unknown.WaitFor(10))
	require.Equal(t, int64(60_000_000), unknown.WaitFor(1_000), "more than the burst is never there")
	_, ok = unknown.ShortOf(1)
	require.False(t, ok)
	lo, hi := unknown.LevelAt(1_000 + 6_000_000)
	require.Equal(t, oracle.Token, lo)
	require.Equal(t, 10*oracle.Token, hi)
	require.Equal(t, 10*oracle.Token, unknown.Width())

	// Half of free's burst is gone when the plan becomes pro: what refills until
	// the next request does so at free's rate, and counts tenfold.
	for i := range int64(5) {
		require.Empty(t, full.Judge(says(200, "", 10, 9-i, 6*(i+1), -1), at(0)))
	}
	full.Change(pro)
	require.Equal(t, pro, full.Allowance())
	require.Zero(t, full.WaitFor(50))
	require.Equal(t, int64(600_000), full.WaitFor(51), "a tenth of free's token")
	lo, hi = full.LevelAt(600_000)
	require.Equal(t, 51*oracle.Token, lo)
	require.Equal(t, lo, hi)
}

func TestLevelOfAWideSpan(t *testing.T) {
	b := oracle.NewFull(free)
	require.Empty(t, b.Judge(says(200, "", 10, 9, 6, -1), oracle.Span{From: 0, To: 3_000_000}))
	lo, hi := b.Level()
	require.Equal(t, [2]int64{9 * oracle.Token, 9*oracle.Token + oracle.Token/2}, [2]int64{lo, hi}, "half a token may have come back")
	require.Equal(t, oracle.Token/2, b.Width())
	short, certain := b.ShortOf(10)
	require.True(t, certain)
	require.Equal(t, int64(2_999_999), short)
	require.Equal(t, int64(3_000_000+6_000_000), b.ReadyAt(10))

	// What is open does not grow with the number of wide spans.
	srv := &server{Allowance: free}
	b = oracle.NewFull(free)
	for i := range int64(20) {
		from := 3 * second * i
		require.Empty(t, b.Judge(srv.answer(from+second, ok), oracle.Span{From: from, To: from + 3*second}))
		require.LessOrEqual(t, b.Width(), oracle.Token/2)
	}
}

func TestPlanChanges(t *testing.T) {
	spendFive := func() *oracle.Bucket {
		b := oracle.NewFull(free)
		for i := range int64(5) {
			require.Empty(t, b.Judge(says(200, "", 10, 9-i, 6*(i+1), -1), at(0)))
		}
		return b
	}
	t.Run("up: the share is kept", func(t *testing.T) {
		b := spendFive()
		b.Change(pro)
		require.Empty(t, b.Judge(says(200, "", 100, 49, 11, -1), at(0)))
	})
	t.Run("up: a full bucket instead", func(t *testing.T) {
		b := spendFive()
		b.Change(pro)
		require.Equal(t, []string{"CHG-1 RateLimit-Remaining: 49, 99"}, clauses(b.Judge(says(200, "", 100, 99, 1, -1), at(0))))
	})
	t.Run("down and up again within no request: the bucket never hears of it", func(t *testing.T) {
		b := spendFive()
		b.Change(oracle.Allowance{RequestsPerMinute: 1, Burst: 1, Concurrency: 1})
		b.Change(free)
		require.Empty(t, b.Judge(says(200, "", 10, 4, 36, -1), at(0)))
	})
	t.Run("the old limits", func(t *testing.T) {
		b := spendFive()
		b.Change(pro)
		found := b.Judge(says(200, "", 10, 4, 36, -1), at(0))
		require.Equal(t, "CHG-1", found[0].Clause)
		require.Equal(t, "RateLimit-Limit", found[0].Field)
	})
	t.Run("only the rate: the tokens are kept", func(t *testing.T) {
		b := spendFive()
		b.Change(oracle.Allowance{RequestsPerMinute: 60, Burst: 10, Concurrency: 2})
		require.Empty(t, b.Judge(says(200, "", 10, 4, 6, -1), at(0)))
		b = spendFive()
		b.Change(oracle.Allowance{RequestsPerMinute: 60, Burst: 10, Concurrency: 2})
		require.Equal(t, []string{"CHG-3 RateLimit-Remaining: 4, 9"}, clauses(b.Judge(says(200, "", 10, 9, 1, -1), at(0))))
	})
}

// TestAnUnclearRejection: a 429 that could be of either kind leaves open whether
// a token was spent.
func TestAnUnclearRejection(t *testing.T) {
	unclear := render(429, "SLOW_DOWN", nil)
	for name, c := range map[string]struct {
		wait   int64 // after the bucket was empty, give or take half a token
		lo, hi int64
	}{
		"more than a token or less": {6 * second, oracle.Token / 2, oracle.Token - 1},
		"well more":                 {9 * second, 0, oracle.Token - 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := oracle.NewUnknown(oracle.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 1}, 0)
			require.Empty(t, b.Judge(says(200, "", 10, 0, 60, -1), oracle.Span{From: 0, To: 3 * second}))
			require.NotEmpty(t, b.Judge(unclear, at(3*second+c.wait-3*second)))
			lo, hi := b.Level()
			require.GreaterOrEqual(t, lo, int64(0))
			require.LessOrEqual(t, lo, c.lo)
			require.GreaterOrEqual(t, hi, c.hi)
		})
	}
}

// TestARemainingThatIsOff: where Reset is too coarse to contradict it, it may be
// the bucket that is off. Once the two stories part, the header is blamed, and
// from then on it alone.
func TestARemainingThatIsOff(t *testing.T) {
	for _, fault := range []string{"remaining-plus-one", "remaining-minus-one"} {
		found := run(&server{Allowance: pro, fault: fault}, step{ask: ok, wait: second / 50, times: 60})
		parted := slices.IndexFunc(found, func(f oracle.Finding) bool { return f.Clause == "HDR-3" })
		require.GreaterOrEqual(t, parted, 0, fault)
		require.LessOrEqual(t, parted, 2, fault)
		for _, f := range found[parted:] {
			require.Equal(t, "HDR-3", f.Clause, fault)
		}
		require.Greater(t, len(found), 40, "it is found again and again")
	}
}

func TestLose(t *testing.T) {
	b := oracle.NewFull(free)
	b.Lose(at(0))
	lo, hi := b.Level()
	require.Equal(t, [2]int64{9 * oracle.Token, 10 * oracle.Token}, [2]int64{lo, hi})
	require.Empty(t, b.Judge(says(200, "", 10, 9, 6, -1), at(0)), "it had not arrived")
	require.Zero(t, b.Width())
}

func Example() {
	// A free user: 10 requests a minute, a burst of 10, rested.
	b := oracle.NewFull(oracle.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2})

	// The first answer, decided somewhere within 3 ms, counts itself twice.
	answer := contract.ParseAnswer(200, map[string][]string{
		"Ratelimit-Limit": {"10"}, "Ratelimit-Remaining": {"8"}, "Ratelimit-Reset": {"6"},
	}, nil)
	for _, f := range b.Judge(answer, oracle.Span{From: 1_000, To: 4_000}) {
		fmt.Printf("%s %s: expected %s, got %s: %s\n", f.Clause, f.Field, f.Expected, f.Got, f.Consequence)
	}
	// Output:
	// HDR-3 RateLimit-Remaining: expected 9, got 8: the client would hold back requests that are allowed
}

// A rejection shows that there was no token. A Reset that speaks of more is
// wrong by itself, and no sign of another bucket.
func TestResetThatARejectionContradicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		reset int64
		want  string
	}{
		{"of a token that is there", 1, "HDR-4 RateLimit-Reset: 60, 1"},
		{"of a bucket that is only emptier", 70, "RATE-8 RateLimit-Reset: 60, 70"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := oracle.NewFull(free)
			for i := range int64(10) {
				require.Empty(t, b.Judge(says(200, "", 10, 9-i, 6*(i+1), -1), at(0)))
			}
			require.Contains(t, clauses(b.Judge(says(429, contract.CodeRateLimited, 10, 0, c.reset, -1), at(0))), c.want)
		})
	}
}
