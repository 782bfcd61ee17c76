package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/bucket/buckettest"
	"github.com/invoicespec/brimline/reference/policy"
)

func allowance(t require.TestingT, rpm, burst, concurrency int64) policy.Allowance {
	a, err := policy.NewAllowance(rpm, burst, concurrency)
	require.NoError(t, err)
	return a
}

// First the token, then the permit: what each order of the two would do differently.
func TestDecide(t *testing.T) {
	const second = 1_000_000
	a := allowance(t, 60, 20, 5)
	holding := func(tokens int64) bucket.State {
		return bucket.State{Level: tokens * bucket.Token, At: 7 * second, Rate: 60, Burst: 20}
	}
	for _, tc := range []struct {
		name     string
		tokens   int64
		inFlight int64
		outcome  admission.Outcome
		left     int64
		counted  int64 // in flight, as the decision says
		toToken  int64
		toFull   int64
	}{
		{"a token and a slot", 20, 0, admission.Admitted, 19, 0, 0, 1 * second},
		{"the last token and the last slot", 1, 4, admission.Admitted, 0, 4, 1 * second, 20 * second},
		{"no slot: the token is spent all the same", 20, 5, admission.ConcurrencyRejected, 19, 5, 0, 1 * second},
		{"no slot, more in flight than a lowered cap", 20, 9, admission.ConcurrencyRejected, 19, 9, 0, 1 * second},
		{"no slot and the last token", 1, 5, admission.ConcurrencyRejected, 0, 5, 1 * second, 20 * second},
		{"no token: slots are not asked about", 0, 0, admission.RateRejected, 0, 0, 1 * second, 20 * second},
		{"no token and no slot: the token comes first", 0, 5, admission.RateRejected, 0, 0, 1 * second, 20 * second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			next, d := admission.Decide(holding(tc.tokens), tc.inFlight, a, 7*second)
			require.Equal(t, holding(tc.left), next, "the bucket afterwards")
			require.Equal(t, admission.Decision{
				Outcome: tc.outcome, Allowance: a, At: 7 * second,
				Level: tc.left * bucket.Token, InFlight: tc.counted, ToToken: tc.toToken, ToFull: tc.toFull,
			}, d)
			require.Equal(t, tc.left, d.Remaining())
		})
	}
}

func TestOutcomeNames(t *testing.T) {
	for outcome, name := range map[admission.Outcome]string{
		0: "none", admission.Admitted: "admitted", admission.RateRejected: "rate", admission.ConcurrencyRejected: "concurrency",
	} {
		require.Equal(t, name, outcome.String())
	}
}

// Whatever is in flight, the bucket goes as if nothing were (CONC-3, RATE-6).
func TestConcurrencyNeverTouchesTheBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := allowance(t,
			rapid.Int64Range(1, 1_000_000).Draw(t, "requests per minute"),
			rapid.Int64Range(1, 50).Draw(t, "burst"),
			rapid.Int64Range(1, 100_000).Draw(t, "concurrency"))
		var state bucket.State
		var model buckettest.Model
		now := bucket.Instant(0)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += bucket.Instant(rapid.Int64Range(-1_000_000, 10_000_000).Draw(t, "pause"))
			inFlight := rapid.Int64Range(0, 2*a.Concurrency()).Draw(t, "in flight")
			taken := model.Take(a.RequestsPerMinute(), a.Burst(), int64(now))
			want := admission.RateRejected
			if taken {
				want = admission.ConcurrencyRejected
				if inFlight < a.Concurrency() {
					want = admission.Admitted
				}
			}
			var d admission.Decision
			state, d = admission.Decide(state, inFlight, a, now)
			require.Equal(t, want, d.Outcome)
			require.Equal(t, model.Remaining(), d.Remaining())
		}
	})
}
