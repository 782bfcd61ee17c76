package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// An answer to HEAD has no body that could say which limit it met: its headers do,
// or it stays open.
func TestRejectionsWithoutABody(t *testing.T) {
	silent := func(remaining, reset, retry int64) contract.Answer {
		a := says(429, "", 10, remaining, reset, retry)
		a.Body, a.Bodiless = contract.ErrorBody{}, true
		return a
	}
	for name, tc := range map[string]struct {
		spent  int // before
		answer contract.Answer
		want   []string
		lo, hi int64 // tokens left
	}{
		"the cap, though nothing is known to be in flight": {0, silent(9, 6, 1), []string{}, 9, 9},
		"the cap, with another Remaining":                  {0, silent(8, 12, 1), []string{"RATE-1 RateLimit-Remaining: 9, 8"}, 8, 8},
		"an empty bucket":                                  {10, silent(0, 60, 6), []string{}, 0, 0},
		"a bucket that is not empty":                       {5, silent(0, 60, 6), []string{"RATE-1 status: no rate rejection, 429 without an errorCode"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := oracle.NewFull(free)
			for i := range tc.spent {
				left := int64(9 - i)
				require.Empty(t, b.Judge(says(200, "", 10, left, 6*(10-left), -1), at(0)))
			}
			require.Equal(t, tc.want, clauses(b.Judge(tc.answer, at(0))))
			lo, hi := b.Level()
			require.LessOrEqual(t, tc.lo, hi/oracle.Token)
			require.GreaterOrEqual(t, tc.hi, lo/oracle.Token)
		})
	}
}

// Where neither header tells, beside others, nothing is held against anybody.
func TestRejectionThatTellsNothing(t *testing.T) {
	b := oracle.NewUnknown(free, 0)
	b.Lose(at(0)) // and the cap may be full
	a := says(429, "", 10, 0, 60, 1)
	a.Body, a.Bodiless = contract.ErrorBody{}, true
	a.Remaining = contract.Number{}
	require.Equal(t, []string{"HDR-1 RateLimit-Remaining: present, absent"}, clauses(b.Judge(a, at(0))))
}

func TestForgottenBucketMayHoldAnything(t *testing.T) {
	b := oracle.NewFull(free)
	require.Empty(t, b.Judge(says(200, "", 10, 9, 6, -1), at(0)))
	b.Forget(0)
	lo, hi := b.Level()
	require.Equal(t, []int64{0, 10 * oracle.Token}, []int64{lo, hi})
	require.Empty(t, b.Judge(says(200, "", 10, 2, 48, -1), at(0)))
	lo, hi = b.Level()
	require.GreaterOrEqual(t, lo, 2*oracle.Token)
	require.Less(t, hi, 3*oracle.Token)
}
