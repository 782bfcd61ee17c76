package accesslog_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// entry is an entry of our own log, changed as a test needs it.
func entry(t *testing.T, id string, order uint64, change func(*contract.LogEntry)) string {
	t.Helper()
	e := contract.LogEntry{
		Schema: 1, RequestID: id, Received: time.Date(2026, 3, 2, 8, 0, 0, int(order)*1000, time.UTC), Duration: 500,
		Method: "POST", Path: "/v1/invoice/calculate", Status: 200, Outcome: contract.LogAdmitted, User: "u1", Plan: "free",
		Decision: &contract.LogDecision{
			Order: order, Instant: int64(order), Outcome: "admitted", RequestsPerMinute: 10, Burst: 10, Concurrency: 2, Level: 1,
		},
	}
	if change != nil {
		change(&e)
	}
	line, err := json.Marshal(e)
	require.NoError(t, err)
	return string(line)
}

func TestAPILog(t *testing.T) {
	log := read(t, accesslog.Options{},
		entry(t, "third", 3, func(e *contract.LogEntry) {
			e.Decision.Outcome, e.Outcome, e.Status = "concurrency", contract.LogRejected, 429
			e.User = "u2"
		}),
		entry(t, "first", 1, nil),
		entry(t, "401", 0, func(e *contract.LogEntry) {
			e.Decision, e.User, e.Outcome, e.Status = nil, "", contract.LogUnauthenticated, 401
		}),
		entry(t, "503", 0, func(e *contract.LogEntry) {
			e.Decision, e.Outcome, e.Status = nil, contract.LogUnresolved, 503
		}),
		entry(t, "anonymous", 4, func(e *contract.LogEntry) { e.User = "" }),
		entry(t, "second", 2, func(e *contract.LogEntry) { e.Path = "/v1/invoicex" }),
	)
	q := log.Quality
	require.Equal(t, record.FormatAPI, q.Format)
	require.EqualValues(t, 6, q.Entries)
	require.EqualValues(t, 1, q.ResolutionMicros)
	require.Equal(t, 2, q.Clients)
	require.Equal(t, []record.Count{
		{Name: "unauthenticated", N: 1}, {Name: "policy unresolved", N: 1}, {Name: "no decision of a user's limiter", N: 1},
	}, log.NotAttempts)

	var ids []string
	for _, d := range log.Decided {
		ids = append(ids, d.RequestID)
	}
	require.Equal(t, []string{"first", "second", "third", "anonymous"}, ids, "in the order of deciding")
	base := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).UnixMicro()
	require.Equal(t, []timeline.Attempt{
		{At: base + 1, Pool: 1, Hold: 500, Status: 200}, {At: base + 2, Pool: 1, Hold: 500, Status: 200},
		{At: base + 3, Pool: 0, Hold: 500, Status: 429, Fate: timeline.RefusedConcurrency},
	}, attempts(t, log))
	require.True(t, log.Durations)
	require.Equal(t, []string{"u2", "u1"}, log.Names)
}

func TestScopeOfAnAPILogNarrowsAttemptsAlone(t *testing.T) {
	log := read(t, accesslog.Options{Scope: "/v1/invoice"},
		entry(t, "a", 1, nil), entry(t, "b", 2, func(e *contract.LogEntry) { e.Path = "/v1/invoicex" }))
	require.Len(t, attempts(t, log), 1)
	require.Len(t, log.Decided, 2, "a decision out of scope has spent a token too")
	require.True(t, log.Decided[0].Attempt)
	require.False(t, log.Decided[1].Attempt)
}

// A restarted server counts from 1 again; its timeline begins anew.
func TestRunsOfAnAPILog(t *testing.T) {
	at := func(hour, micros int) func(*contract.LogEntry) {
		return func(e *contract.LogEntry) {
			e.Received = time.Date(2026, 3, 2, hour, 0, 0, micros*1000, time.UTC)
			e.Decision.Instant = int64(micros)
		}
	}
	log := read(t, accesslog.Options{},
		entry(t, "b", 2, at(8, 70)), entry(t, "a", 1, at(8, 60)),
		entry(t, "c", 1, at(9, 10)), entry(t, "d", 2, at(9, 20)),
		entry(t, "e", 1, at(7, 5)), // the date was set back in between
	)
	var runs []int
	for _, d := range log.Decided {
		runs = append(runs, d.Run)
	}
	require.Equal(t, []int{0, 0, 1, 1, 2}, runs)
	start := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).UnixMicro()
	const hour = 3600 * 1e6
	var times []int64
	for _, a := range attempts(t, log) {
		times = append(times, a.At-start)
	}
	require.Equal(t, []int64{60, 70, hour + 10, hour + 20, hour + 20}, times, "a run begins at its date, but not before the one before ended")
}

// Entries are in the order in which requests ended: the first of a new run need
// not be its decision 1, and the old run may have been short.
func TestRunThatBeginsOutOfOrder(t *testing.T) {
	at := func(minute, micros int) func(*contract.LogEntry) {
		return func(e *contract.LogEntry) {
			e.Received = time.Date(2026, 3, 2, 8, minute, 0, micros*1000, time.UTC)
			e.Decision.Instant = int64(micros)
		}
	}
	log := read(t, accesslog.Options{},
		entry(t, "a", 1, at(0, 900)), entry(t, "b", 2, at(0, 950)),
		entry(t, "e", 4, at(5, 30)), entry(t, "d", 3, at(5, 20)), entry(t, "c", 1, at(5, 10)), entry(t, "f", 2, at(5, 15)))
	runs := map[string]int{}
	for _, d := range log.Decided {
		runs[d.RequestID] = d.Run
	}
	require.Equal(t, map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 1, "f": 1}, runs)
}

func TestEntryDeliveredTwiceCountsOnce(t *testing.T) {
	log := read(t, accesslog.Options{}, entry(t, "a", 1, nil), entry(t, "b", 2, nil), entry(t, "a", 1, nil), entry(t, "c", 3, nil))
	require.EqualValues(t, 1, count(log.Quality.Dropped, "entry delivered twice"))
	require.Len(t, attempts(t, log), 3)
	require.Zero(t, log.Decided[2].Run)
}

func TestLinesThatAreNoWholeEntry(t *testing.T) {
	whole := entry(t, "a", 1, nil)
	lines := []string{whole, whole[:len(whole)-20], "{}", "null", "[1]", `{"schema":1}`, good("192.0.2.7", 0)}
	for i, change := range []func(*contract.LogEntry){
		func(e *contract.LogEntry) { e.Schema = 2 },
		func(e *contract.LogEntry) { e.RequestID = "" },
		func(e *contract.LogEntry) { e.Received = time.Time{} },
		func(e *contract.LogEntry) { e.Duration = -1 },
		func(e *contract.LogEntry) { e.Status = 1000 },
		func(e *contract.LogEntry) { e.Status = -1 },
		func(e *contract.LogEntry) { e.Outcome = "maybe" },
		func(e *contract.LogEntry) { e.Decision.Outcome = "maybe" },
		func(e *contract.LogEntry) { e.Decision.Order = 0 },
		func(e *contract.LogEntry) { e.Decision.Order = 1 << 63 },
		func(e *contract.LogEntry) { e.Decision.InFlight = -1 },
		func(e *contract.LogEntry) { e.Decision.Level = -1 },
	} {
		lines = append(lines, entry(t, "x", uint64(10+i), change))
	}
	q := read(t, accesslog.Options{}, lines...).Quality
	require.EqualValues(t, 1, q.Entries)
	require.EqualValues(t, len(lines)-1, count(q.Dropped, "not a whole entry of the API log"))
}
