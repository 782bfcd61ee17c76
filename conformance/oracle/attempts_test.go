package oracle_test

import (
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

var perAddress = oracle.Allowance{RequestsPerMinute: 30, Burst: 10, Concurrency: 5}

// authenticated stands for the answer to a good key.
const authenticated = "200"

func attempt(code string) contract.Answer {
	switch code {
	case "":
		return contract.Answer{Status: http.StatusUnauthorized}
	case authenticated:
		return contract.Answer{Status: http.StatusOK}
	}
	return contract.Answer{Status: http.StatusTooManyRequests, Body: contract.ErrorBody{ErrorCode: contract.Text{State: contract.Good, Value: code}}}
}

// Each step is an attempt in a span, its answer, and what is wrong with that.
func TestAttempts(t *testing.T) {
	const rate, places = contract.CodeRateLimited, contract.CodeConcurrencyLimited
	type step struct {
		from, to int64 // microseconds
		n        int
		answer   string
		expected string // of the finding; empty: none
	}
	for name, steps := range map[string][]step{
		"ten at once, then none":          {{0, 0, 10, "", ""}, {0, 0, 3, rate, ""}},
		"an eleventh":                     {{0, 0, 10, "", ""}, {0, 0, 1, "", "429 RATE_LIMIT_EXCEEDED"}},
		"a tenth refused":                 {{0, 0, 9, "", ""}, {0, 0, 1, rate, "no rejection"}},
		"a token in two seconds":          {{0, 0, 10, "", ""}, {1_999_999, 1_999_999, 1, rate, ""}, {2_000_000, 2_000_000, 1, "", ""}, {2_000_000, 2_000_000, 1, rate, ""}},
		"a token too soon":                {{0, 0, 10, "", ""}, {1_999_999, 1_999_999, 1, "", "429 RATE_LIMIT_EXCEEDED"}},
		"a token too late":                {{0, 0, 10, "", ""}, {2_000_000, 2_000_000, 1, rate, "no rejection"}},
		"either, within a span":           {{0, 0, 10, "", ""}, {1_000_000, 3_000_000, 1, "", ""}, {3_000_000, 3_000_000, 1, rate, ""}},
		"no place costs nothing":          {{0, 0, 9, "", ""}, {0, 0, 5, places, ""}, {0, 0, 1, "", ""}, {0, 0, 1, rate, ""}},
		"a good key gives its token back": {{0, 0, 10, "", ""}, {2_000_000, 2_000_000, 1, authenticated, ""}, {2_000_000, 2_000_000, 1, "", ""}, {2_000_000, 2_000_000, 1, rate, ""}},
		"or has it taken":                 {{0, 0, 10, "", ""}, {2_000_000, 2_000_000, 1, authenticated, ""}, {2_000_000, 2_000_000, 1, rate, ""}},
		"and gives no more than that":     {{0, 0, 10, "", ""}, {2_000_000, 2_000_000, 1, authenticated, ""}, {2_000_000, 2_000_000, 1, "", ""}, {2_000_000, 2_000_000, 1, "", "429 RATE_LIMIT_EXCEEDED"}},
		"and has to have one":             {{0, 0, 10, "", ""}, {0, 0, 1, authenticated, "429 RATE_LIMIT_EXCEEDED"}},
		"a rejection that names no cause": {{0, 0, 10, "", ""}, {0, 0, 1, "another", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			a := oracle.NewRestedAttempts(perAddress)
			for i, s := range steps {
				for range s.n {
					findings := a.Judge(attempt(s.answer), oracle.Span{From: s.from, To: s.to})
					if s.expected == "" {
						require.Empty(t, findings, "step %d", i)
						continue
					}
					require.Len(t, findings, 1, "step %d", i)
					require.Equal(t, s.expected, findings[0].Expected)
					require.Equal(t, "ANON-1", findings[0].Clause)
				}
			}
		})
	}
}

// A pool that is right is never found wrong, however wide the spans are.
func TestAttemptsRaiseNoFalseAlarm(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		level, now, known := int64(r.IntN(11))*oracle.Token, int64(1000), oracle.NewUnknownAttempts(perAddress, 1000)
		full := perAddress.Burst * oracle.Token
		for range 200 {
			from := now
			wait := r.Int64N(4_000_000)
			now += wait
			level = min(full, level+wait*perAddress.RequestsPerMinute)
			answer := contract.CodeRateLimited
			switch {
			case level >= oracle.Token && r.IntN(4) == 0:
				answer = authenticated
			case level >= oracle.Token:
				level -= oracle.Token
				answer = ""
			}
			to := now + r.Int64N(1_000_000)
			from += r.Int64N(now - from + 1)
			require.Empty(t, known.Judge(attempt(answer), oracle.Span{From: from, To: to}), "seed %d", seed)
			level = min(full, level+(to-now)*perAddress.RequestsPerMinute)
			now = to
			require.False(t, known.Empty(now) && level >= oracle.Token)
		}
	}
}

func TestAttemptsReady(t *testing.T) {
	a := oracle.NewUnknownAttempts(perAddress, 7)
	require.EqualValues(t, 20_000_007, a.ReadyAt(10))
	require.EqualValues(t, 20_000_007, a.ReadyAt(11), "never more than the burst")
	require.False(t, a.Empty(7))
	a.Judge(attempt(contract.CodeRateLimited), oracle.Span{From: 7, To: 7})
	require.True(t, a.Empty(7))
	require.False(t, a.Empty(8), "a token may just have come back")
	require.EqualValues(t, 2_000_007, a.ReadyAt(1))
	a.Lose(oracle.Span{From: 7, To: 2_000_009})
	require.EqualValues(t, 4_000_007, a.ReadyAt(1))
}
