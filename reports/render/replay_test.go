package render_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
	"github.com/invoicespec/brimline/reports/replay"
)

// demo is the demonstration's log under several allowances.
func demo(t *testing.T, q replay.Question) record.Replay {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, accesslog.Generate(&text, 1))
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("demo.log", &text)}, accesslog.Options{})
	require.NoError(t, err)
	r, err := replay.Run(t.Context(), log, q)
	require.NoError(t, err)
	return r
}

// ours is a small log of our own, made up to the last figure.
func ours() record.Replay {
	return record.Replay{
		Schema: record.ReplaySchema, Pool: record.PoolUser, Scope: "/v1/invoice",
		Log: record.LogQuality{
			Stamp: record.StampUnknown, Zones: []record.Count{}, Examples: []record.LogExample{},
			Format: record.FormatAPI, Files: []record.LogFile{{Name: "api.jsonl", Lines: 13, Entries: 12}, {Name: "odd\x1b[31m.jsonl", Compressed: true}},
			Lines: 13, Entries: 12, Dropped: []record.Count{{Name: "not a whole entry of the API log", N: 1}},
			Clients: 2, EntriesPerClient: 5, EffectiveClients: 1.92, BusiestEntries: 6, ResolutionMicros: 1, BackwardSteps: 1,
			First: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), Last: time.Date(2026, 3, 2, 8, 1, 30, 0, time.UTC),
			TieShare: 0.5, MostPerSecond: 4, LargestGap: 0.25, ConstantMinute: 0.75,
			Statuses: []record.Count{{Name: "200", N: 8}, {Name: "429", N: 2}, {Name: "401", N: 2}}, Methods: []record.Count{{Name: "POST", N: 12}},
		},
		Assumed: []string{"a request is in flight from its decision for as long as it took to answer"}, Missing: []string{}, Warnings: []string{},
		Entries: 12, Attempts: 10, NotAttempts: []record.Count{{Name: "unauthenticated", N: 2}}, AlreadyRefused: 2, Users: 2,
	}
}

var someRejections = record.Rejections{
	RejectedRate: 1, RejectedConcurrency: 1, Rejected: 2, RejectedShare: 0.2, UsersAffected: 1, UsersAffectedShare: 0.5,
	UsersAffected95: [2]float64{0.0945, 0.9055}, UsersOK: 1, UsersOKShare: 0.5, UsersOK95: [2]float64{0.0945, 0.9055},
	TopRejected: 2, TopShare: 1, TopRank: 2,
}

func TestReplay(t *testing.T) {
	recorded, wrong, untold, refused, cells := ours(), ours(), ours(), ours(), ours()

	recorded.Agreement = &record.Agreed{Compared: 10, Agreed: 10, Runs: 1}
	recorded.Cell = &record.Cell{Rejections: someRejections}

	wrong.Agreement = &record.Agreed{Compared: 10, Agreed: 8, Disagreed: 2, Runs: 2, First: &record.Disagreement{
		RequestID: "req_\x1b[2J", Order: 7, Grounds: "10 requests/minute, burst 10, concurrency 2, 0 in flight",
		Recorded: record.Decision{Outcome: "admitted"}, Decided: record.Decision{Outcome: "rate", Level: 59_999_999},
	}}
	wrong.Cell = recorded.Cell

	untold.Agreement = &record.Agreed{Compared: 10, Agreed: 9, Untold: 1, Missing: 3, Runs: 1}
	untold.Cell = recorded.Cell

	refused.Refused = "the log has no durations, so nothing can be said on concurrency"
	refused.Warnings = []string{"5 clients made 16062 entries: these may be proxies, each of which merges many users into one pool"}

	without := record.Rejections{}
	for _, concurrency := range []int64{2, 100} {
		cells.Cells = append(cells.Cells, record.Cell{Rate: 1200, Burst: 10, Concurrency: concurrency, Rejections: someRejections, WithoutRefused: &without})
	}

	closed := ours()
	closed.Cells = cells.Cells
	for _, c := range cells.Cells {
		closed.ClosedLoop = append(closed.ClosedLoop, record.ReportClosed{
			Rate: c.Rate, Burst: c.Burst, Concurrency: c.Concurrency, Rejected: 1200, Sendings: 1210, UsersAffected: 1,
			Delay: record.ReportQuart{P95: 0.5, P99: 6, Max: 7200}, Unserved: 3,
		})
	}
	plans := ours()
	plans.LeftOut = 4
	plans.Plans = []record.ReplayPlan{
		{
			Plan: "free\x1b[2J", Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}, Users: 1, Attempts: 1200, LeftOut: 2,
			Cells:       []record.Cell{{Rate: 10, Burst: 10, Rejections: someRejections}},
			BurstNeeded: []record.Needs{{Rate: 10, P50: 1, P90: 2, P95: 3, P99: 4, Max: 5.5}},
			ClosedLoop:  []record.ReportClosed{{Rate: 10, Burst: 10, Rejected: 1, Sendings: 5, UsersAffected: 1, Delay: record.ReportQuart{Max: 6}}},
		},
		{Plan: "pro"},
	}

	for name, r := range map[string]record.Replay{
		"replay-closed.txt":   closed,
		"replay-plans.txt":    plans,
		"replay-one.txt":      demo(t, replay.Question{Rates: []int64{10}, Bursts: []int64{10}}),
		"replay-row.txt":      demo(t, replay.Question{Rates: []int64{10, 60, 300}, Bursts: []int64{20}}),
		"replay-grid.txt":     demo(t, replay.Question{Rates: []int64{10, 60, 300}, Bursts: []int64{10, 20, 100}}),
		"replay-recorded.txt": recorded,
		"replay-wrong.txt":    wrong,
		"replay-untold.txt":   untold,
		"replay-refused.txt":  refused,
		"replay-cells.txt":    cells,
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, render.Replay(&b, r))
			golden(t, name, b.Bytes())
			require.NotContains(t, b.String(), "\x1b", "text of a log must not reach the terminal raw")
			for line := range strings.Lines(b.String()) {
				require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "space at the end of a line")
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestReplayReportsThatItCannotWrite(t *testing.T) {
	r := ours()
	r.Refused = "so"
	require.ErrorContains(t, render.Replay(full{}, r), "disk full")
}
