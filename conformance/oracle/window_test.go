package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// window counts requests in fixed windows: within one nothing comes back, then all
// at once. Every request costs one, and what it says of what is left is true.
type window struct {
	oracle.Allowance
	length, ends int64 // microseconds
	count        int64
}

func (w *window) answer(at int64, status int) contract.Answer {
	if at >= w.ends {
		w.ends, w.count = at+w.length, 0
	}
	wait := (w.ends - at + second - 1) / second
	if w.count == w.Burst {
		return says(429, contract.CodeRateLimited, w.Burst, 0, wait, wait)
	}
	w.count++
	return says(status, "", w.Burst, w.Burst-w.count, wait, -1)
}

// What a window gives late, or at once, is the refill's matter, at any moment and
// from any start: no request cost more or less than a token.
func TestAWindowIsNotBlamedForWhatRequestsCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom([]oracle.Allowance{free, starter, pro}).Draw(t, "plan")
		w := &window{Allowance: a, length: a.Burst * 60 * second / a.RequestsPerMinute}
		now := rapid.Int64Range(0, 1e12).Draw(t, "begin")
		for range rapid.IntRange(0, int(a.Burst)).Draw(t, "requests before we came") {
			w.answer(now, 200)
		}
		b := oracle.NewUnknown(a, now)
		for range 60 {
			now += rapid.OneOf(rapid.Int64Range(0, second), rapid.Int64Range(0, 2*w.length)).Draw(t, "wait")
			from := now
			now += rapid.Int64Range(0, second/2).Draw(t, "there")
			answer := w.answer(now, rapid.SampledFrom([]int{200, 200, 404, 422}).Draw(t, "status"))
			now += rapid.Int64Range(0, second/2).Draw(t, "back")
			for _, f := range b.Judge(answer, oracle.Span{From: from, To: now}) {
				for _, clause := range append([]string{f.Clause}, f.Also...) {
					if clause == "RATE-4" || clause == "CONC-3" {
						t.Fatalf("%+v", f)
					}
				}
			}
		}
	})
}

func TestRemainingAboveLimit(t *testing.T) {
	above := func(a contract.Answer) []string {
		var found []string
		for _, f := range oracle.NewFull(starter).Judge(a, at(0)) {
			for _, clause := range append([]string{f.Clause}, f.Also...) {
				if clause == "HDR-8" {
					found = append(found, f.Field+" "+f.Expected+" "+f.Got)
				}
			}
		}
		return found
	}
	require.Equal(t, []string{"RateLimit-Remaining at most 2 19"}, above(says(200, "", 2, 19, 1, -1)), "Remaining is right and Limit is not")
	require.Equal(t, []string{"RateLimit-Remaining 19 21"}, above(says(200, "", 20, 21, 1, -1)), "Remaining is wrong anyway")
	require.Empty(t, above(says(200, "", 20, 19, 1, -1)))
}
