package conformance_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/slownet"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// farAway is the reference on a real clock, behind a network that takes a round
// trip for every answer.
func farAway(t *testing.T, roundTrip time.Duration, alter func(*wiring.Parts)) reference {
	t.Helper()
	r := start(t, control.ClockReal, alter)
	each := slownet.Delay{Least: roundTrip * 2 / 5, Jitter: roundTrip / 5}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(r.URL(), "http://"))
	require.NoError(t, err)
	p, err := slownet.Start(host, net.JoinHostPort(host, port), each, each)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	r.file.BaseURLs = []string{"http://" + p.Addr()}
	return r
}

// Far away less can be told, and what is told is right.
func TestACorrectServerFarAwayIsNotBlamed(t *testing.T) {
	for roundTrip, clauses := range map[time.Duration][]string{
		200 * time.Millisecond: {"RATE-5", "RATE-8", "HDR-1", "HDR-3", "HDR-5", "CONC-1", "CONC-3", "PERMIT-2", "POOL-1", "SCOPE-3", "ERR-3", "ANON-4"},
		2 * time.Second:        {"HDR-2", "ERR-3", "CONC-2", "POOL-1"},
	} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			t.Parallel()
			c, err := conformance.Run(t.Context(), farAway(t, roundTrip, nil).open(t), conformance.Options{Clauses: clauses, Workers: 64})
			require.NoError(t, err)
			for _, cl := range c.Clauses {
				for _, s := range cl.Scenarios {
					switch s.Verdict {
					case record.Pass, record.NotRun:
					case record.Inconclusive:
						require.NotEmpty(t, s.Reason)
						t.Logf("%s %s: %s", cl.ID, s.Name, s.Reason)
					default:
						t.Errorf("%s %s: %s %s %+v", cl.ID, s.Name, s.Verdict, s.Reason, s.Findings)
					}
				}
			}
			require.Greater(t, c.Counts.Pass, len(clauses)/2, "%+v", c.Counts)
		})
	}
}

// Where an answer takes its time, paths that are in scope take tokens
// which come back while others are tried.
func TestSpellingsMayTakeWhatComesBack(t *testing.T) {
	t.Parallel()
	r := onOnePlan(t, control.ClockReal, target.Allowance{RequestsPerMinute: 60, Burst: 5, Concurrency: 2}, nil)
	tgt := behindSlowNetwork(t, r, slownet.Delay{Least: 200 * time.Millisecond}).open(t)
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"SCOPE-4"}, Strict: true})
	require.NoError(t, err)
	require.Zero(t, falseAlarms(t, c))
	require.NotZero(t, c.Charged)
}

func TestFaultsFarAwayAreStillSeen(t *testing.T) {
	for _, name := range []string{"cost-two", "refund-on-validation", "retry-after-plus-one", "cap-plus-one", "per-key-bucket", "leak-on-success"} {
		f, err := fault.ByName(name)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := conformance.Run(t.Context(), farAway(t, 200*time.Millisecond, f.Apply).open(t), conformance.Options{Clauses: []string{f.Clause}, Workers: 64})
			require.NoError(t, err)
			for _, cl := range c.Clauses {
				if cl.ID == f.Clause {
					require.Contains(t, []record.Verdict{record.Fail, record.Differs}, cl.Verdict, cl.Reason)
				}
			}
		})
	}
}
