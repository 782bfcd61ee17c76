package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

func TestParallel(t *testing.T) {
	rejected := says(429, contract.CodeRateLimited, 10, 0, 60, 6)
	samples := func(a, r int, span oracle.Span) []oracle.Sample {
		var out []oracle.Sample
		for i := range int64(a) {
			admitted := says(200, "", 10, max(0, 9-i), min(60, 6*(i+1)), -1)
			out = append(out, oracle.Sample{Answer: &admitted, Span: span})
		}
		for range r {
			out = append(out, oracle.Sample{Answer: &rejected, Span: span})
		}
		return out
	}
	for name, c := range map[string]struct {
		admitted, rejected int
		span               oracle.Span
		want               []string
	}{
		"exactly the burst":                   {10, 4, at(0), nil},
		"one too many":                        {11, 3, at(0), []string{"RATE-9 tokens: at most 10 spent, 11 spent"}},
		"one too few":                         {9, 5, at(0), []string{"RATE-9 tokens: at least 10 spent before any rejection, 9 spent, 5 rejected"}},
		"fewer than the burst, none rejected": {7, 0, at(0), nil},
		"fewer than the burst, one rejected":  {6, 1, at(0), []string{"RATE-9 tokens: at least 10 spent before any rejection, 6 spent, 1 rejected"}},
		"one came back meanwhile":             {11, 3, oracle.Span{From: 0, To: 6_000_000}, nil},
		"one had not quite come back":         {11, 3, oracle.Span{From: 0, To: 5_999_999}, []string{"RATE-9 tokens: at most 10 spent, 11 spent"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := oracle.NewFull(free).JudgeParallel(samples(c.admitted, c.rejected, c.span))
			require.Equal(t, append([]string{}, c.want...), clauses(found))
		})
	}
	t.Run("a header that no order explains", func(t *testing.T) {
		all := samples(3, 0, at(0))
		ten := says(200, "", 10, 10, 0, -1)
		all[1].Answer = &ten
		_, found := oracle.NewFull(free).JudgeParallel(all)
		require.Equal(t, []string{"RATE-9 RateLimit-Remaining: 7 to 9, 10"}, clauses(found))
		lone := says(200, "", 10, 10, 12, -1)
		all[1].Answer = &lone
		_, found = oracle.NewFull(free).JudgeParallel(all)
		require.Equal(t, []string{"HDR-3 RateLimit-Remaining: 7 to 9, 10"}, clauses(found))
	})
	t.Run("nobody asked the bucket", func(t *testing.T) {
		b := oracle.NewFull(free)
		a := render(401, contract.CodeUnauthenticated, nil)
		_, found := b.JudgeParallel([]oracle.Sample{{Answer: &a, Span: at(9)}})
		require.Empty(t, found)
		require.Zero(t, b.Width())
		claims, found := b.JudgeParallel(nil)
		require.Empty(t, found)
		require.Empty(t, claims)
	})
	for name, c := range map[string]struct {
		admitted, rejected int
		span               oracle.Span
		lo, hi             int64 // when the last answer is there
	}{
		"what is left":                       {4, 0, at(0), 6 * oracle.Token, 6 * oracle.Token},
		"what is left and may have refilled": {4, 0, oracle.Span{From: 0, To: 6_000_000}, 6 * oracle.Token, 7 * oracle.Token},
		"less than a token":                  {10, 1, at(0), 0, 0},
		"less than a token, and a refill":    {10, 1, oracle.Span{From: 0, To: 3_000_000}, 0, oracle.Token / 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := oracle.NewFull(free)
			_, found := b.JudgeParallel(samples(c.admitted, c.rejected, c.span))
			require.Empty(t, found)
			lo, hi := b.Level()
			require.Equal(t, [2]int64{c.lo, c.hi}, [2]int64{lo, hi})
		})
	}
}

func TestClaims(t *testing.T) {
	b := oracle.NewFull(free)
	first, found := b.Spend(at(0))
	require.Empty(t, found)
	second, found := b.Spend(at(0))
	require.Empty(t, found)
	require.Empty(t, b.Judge(says(200, "", 10, 7, 18, -1), at(0)))

	// Each is judged by the bucket of its own moment, in whatever order they end.
	require.Empty(t, second.Judge(says(200, "", 10, 8, 12, -1)))
	require.Equal(t, []string{"HDR-3 RateLimit-Remaining: 9, 7"}, clauses(first.Judge(says(200, "", 10, 7, 6, -1))))

	// A rate rejection shows that the witness was none: one token more may be there.
	require.Empty(t, first.Judge(says(429, contract.CodeRateLimited, 10, 0, 60, 6)))
	lo, hi := b.Level()
	require.Equal(t, [2]int64{7 * oracle.Token, 8 * oracle.Token}, [2]int64{lo, hi})

	empty := oracle.NewFull(oracle.Allowance{RequestsPerMinute: 1, Burst: 1, Concurrency: 1})
	_, found = empty.Spend(at(0))
	require.Empty(t, found)
	_, found = empty.Spend(at(0))
	require.Equal(t, []string{"RATE-1 status: 429 RATE_LIMIT_EXCEEDED, in flight"}, clauses(found))
}
