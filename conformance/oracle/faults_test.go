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

var (
	free    = oracle.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}
	starter = oracle.Allowance{RequestsPerMinute: 60, Burst: 20, Concurrency: 5}
	pro     = oracle.Allowance{RequestsPerMinute: 300, Burst: 100, Concurrency: 20}
)

// step is one thing that happens in a script: time passes, then a request or a
// change comes.
type step struct {
	wait   int64 // microseconds
	ask    ask
	change *oracle.Allowance
	times  int
}

func (s step) String() string { return fmt.Sprintf("%+v after %d µs", s.ask, s.wait) }

const second = 1_000_000

var (
	ok        = ask{status: 200}
	invalid   = ask{status: 422}
	unknown   = ask{status: 404}
	failing   = ask{status: 500}
	overCap   = ask{status: 200, capFull: true}
	nobody    = ask{status: 401}
	badPolicy = ask{status: 503}
)

// run plays a script against a server on a clock that stands still but for the
// script, and returns what the oracle found.
func run(s *server, script ...step) []oracle.Finding {
	b := oracle.NewFull(s.Allowance)
	var now int64 = 5 * second
	var found []oracle.Finding
	for _, st := range script {
		for range max(1, st.times) {
			now += st.wait
			if st.change != nil {
				s.Allowance = *st.change
				b.Change(*st.change)
				continue
			}
			found = append(found, b.Judge(s.answer(now, st.ask), oracle.Span{From: now, To: now})...)
		}
	}
	return found
}

// drain is enough requests to meet the first rejection and some more.
func drain(a oracle.Allowance) step { return step{ask: ok, times: int(a.Burst) + 3} }

// everything is a script in which each fault shows.
func everything(a oracle.Allowance) []step {
	token := 60 * second / a.RequestsPerMinute
	return []step{
		{ask: ok}, {ask: invalid}, {ask: ok}, {ask: unknown}, {ask: ok}, {ask: failing}, {ask: ok},
		{ask: overCap}, {ask: ok, wait: token / 7}, {ask: nobody}, {ask: badPolicy}, {ask: ok},
		drain(a), {ask: invalid}, {ask: overCap}, {ask: unknown},
		{ask: ok, wait: token / 3, times: 3}, {ask: ok, wait: token / 3}, // hammering
		{ask: ok, wait: token + second}, {ask: ok}, {ask: ok, wait: 2 * second},
		{ask: ok, wait: 4 * token * a.Burst}, drain(a), // after a long rest
		{ask: ok, wait: token * a.Burst * 7 / 10}, {ask: ok}, {ask: ok, wait: token}, {ask: ok},
	}
}

// faults maps each fault to the clause it breaks; see the table of deliberate
// faults in the documentation of the suite.
var faults = map[string]string{
	"token-refund-on-conc": "CONC-3", "refund-on-validation": "RATE-4", "refund-on-engine-failure": "RATE-4",
	"validation-before-token": "RATE-5", "concurrency-before-token": "RATE-6", "cost-two": "RATE-4", "404-free": "SCOPE-3",
	"reject-penalises": "RATE-8", "refill-double": "RATE-2", "refill-half": "RATE-2", "refill-never": "RATE-2",
	"overfill": "RATE-3", "burst-is-rpm": "RATE-1", "starts-one-short": "RATE-1",
	"remaining-plus-one": "HDR-3", "remaining-minus-one": "HDR-3", "remaining-ceil": "HDR-3",
	"remaining-negative-429": "HDR-8", "remaining-nonzero-429": "HDR-3",
	"reset-one-token": "HDR-4", "reset-floor": "HDR-4", "reset-epoch": "HDR-4", "reset-fixed-60": "HDR-4",
	"limit-is-rpm": "HDR-2", "limit-policy-suffix": "HDR-8", "fractional": "HDR-8", "duplicate-headers": "HDR-8",
	"retry-after-floor": "HDR-5", "retry-after-zero": "HDR-5", "retry-after-const-1": "HDR-5", "retry-after-60": "HDR-5",
	"retry-after-plus-one": "HDR-5", "retry-after-is-reset": "HDR-5", "retry-after-date": "HDR-8", "no-retry-after": "HDR-5",
	"conc-retry-after-0": "CONC-2", "conc-retry-after-5": "CONC-2", "conc-no-retry-after": "CONC-2",
	"conc-remaining-is-permits": "HDR-9", "no-headers-200": "HDR-1", "no-headers-400": "HDR-1", "no-headers-404": "HDR-1",
	"no-headers-5xx": "HDR-1", "no-headers-rate-429": "HDR-1", "no-headers-conc-429": "CONC-2",
	"rate-wrong-code": "ERR-3", "rate-503": "ERR-3", "conc-wrong-code": "CONC-1",
	"401-leaks-headers": "AUTH-1", "503-leaks-headers": "CFG-4",
}

// blind says why a fault cannot show on a plan.
func blind(fault string, a oracle.Allowance) bool {
	switch fault {
	case "burst-is-rpm", "limit-is-rpm":
		return a.Burst == a.RequestsPerMinute
	case "retry-after-const-1":
		return a.RequestsPerMinute >= 60
	}
	return false
}

func TestEachFaultIsBlamedOnItsClause(t *testing.T) {
	for plan, a := range map[string]oracle.Allowance{"free": free, "starter": starter, "pro": pro} {
		require.Empty(t, run(&server{Allowance: a}, everything(a)...), plan)
		for fault, clause := range faults {
			if blind(fault, a) {
				continue
			}
			t.Run(plan+"/"+fault, func(t *testing.T) {
				found := run(&server{Allowance: a, fault: fault}, everything(a)...)
				require.NotEmpty(t, found)
				blamed := map[string]int{}
				for _, f := range found {
					requireWellFormed(t, f)
					blamed[f.Clause]++
				}
				for other, n := range blamed {
					if other == "HDR-6" && strings.HasPrefix(fault, "refill-") {
						continue // the same observation, of a client that obeys
					}
					require.LessOrEqual(t, n, blamed[clause], "%s is blamed more than %s: %v", other, clause, blamed)
				}
			})
		}
	}
}

// What a finding says of RateLimit-Remaining stands on the answer it is shown
// with, or is said to stand on one before, also where a second look was needed.
func TestAFindingQuotesItsAnswer(t *testing.T) {
	looks := 0
	for fault := range faults {
		for _, width := range []int64{0, second / 10} {
			b := oracle.NewFull(pro)
			s := &server{Allowance: pro, fault: fault}
			now := int64(5 * second)
			for _, st := range everything(pro) {
				for range max(1, st.times) {
					now += st.wait + width
					a := s.answer(now, st.ask)
					for _, f := range b.Judge(a, oracle.Span{From: now - width/2, To: now + width/2}) {
						if f.Field != contract.HeaderRemaining || a.Remaining.State != contract.Good || strings.HasSuffix(f.Got, " on an answer before") {
							continue
						}
						looks++
						require.Equal(t, a.Remaining.String(), f.Got, "%s: %+v", fault, f)
					}
				}
			}
		}
	}
	require.Greater(t, looks, 50)
}

func TestChangeFaultsAreBlamedOnTheChange(t *testing.T) {
	for _, fault := range []string{"plan-change-full", "plan-change-absolute", "plan-change-deficit", "plan-change-empty", "plan-change-ignored"} {
		t.Run(fault, func(t *testing.T) {
			for from, to := range map[oracle.Allowance]oracle.Allowance{free: pro, pro: free} {
				script := []step{{ask: ok, times: int(from.Burst) / 2}, {change: &to}, {ask: ok}}
				require.Empty(t, run(&server{Allowance: from}, script...))
				found := run(&server{Allowance: from, fault: fault}, script...)
				require.True(t, slices.ContainsFunc(found, func(f oracle.Finding) bool { return strings.HasPrefix(f.Clause, "CHG-") }), "%v", found)
			}
		})
	}
}

func requireWellFormed(t *testing.T, f oracle.Finding) {
	t.Helper()
	_, known := contract.FindClause(f.Clause)
	require.True(t, known, "%+v", f)
	for _, c := range f.Also {
		_, known := contract.FindClause(c)
		require.True(t, known, "%+v", f)
		require.NotEqual(t, f.Clause, c, "%+v", f)
	}
	for _, text := range []string{f.Field, f.Expected, f.Ground, f.Got} {
		require.NotEmpty(t, text, "%+v", f)
	}
	require.NotEqual(t, f.Expected, f.Got, "%+v", f)
}
