package merge_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/merge"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// event is one request of a run that was made up.
type event struct {
	user            int
	due, sent, done time.Duration
	outcome         record.Outcome
	fate            string // dropped, held or unsent; empty: sent
}

var kinds = map[record.Outcome]measure.Kind{
	record.OutcomeAdmitted: measure.Passed, record.OutcomeRejectedRate: measure.RefusedRate,
	record.OutcomeUnauthenticated: measure.Untouched, record.OutcomeOtherStatus: measure.Unclear, record.OutcomeTransportError: measure.Lost,
}

var start = time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC)

// subjects are twelve free users and five pro ones, in two populations.
func subjects() (list []measure.Subject) {
	for i := range 17 {
		s := measure.Subject{Name: fmt.Sprintf("free-%03d", i+1), Plan: "free", Allowance: oracle.Allowance{RequestsPerMinute: 600, Burst: 3, Concurrency: 2}, Rested: true}
		if i >= 12 {
			s.Name, s.Plan, s.Population = fmt.Sprintf("pro-%03d", i-11), "pro", 1
		}
		list = append(list, s)
	}
	return list
}

// events are requests of these users one after the other.
func events(r *rand.Rand, n int) (list []event) {
	outcomes := []record.Outcome{record.OutcomeAdmitted, record.OutcomeAdmitted, record.OutcomeRejectedRate, record.OutcomeUnauthenticated, record.OutcomeOtherStatus, record.OutcomeTransportError}
	at := time.Duration(0)
	for range n {
		e := event{user: r.IntN(17), outcome: outcomes[r.IntN(len(outcomes))]}
		e.due = at + time.Duration(r.ExpFloat64()*float64(20*time.Millisecond))
		e.sent = e.due + time.Duration(r.ExpFloat64()*float64(time.Millisecond))
		e.done = e.sent + time.Duration(r.ExpFloat64()*float64(30*time.Millisecond))
		e.fate = []string{"", "", "", "", "dropped", "held", "unsent"}[r.IntN(7)]
		at = e.done
		list = append(list, e)
	}
	return list
}

// calm are events of which none was dropped.
func calm(seed uint64) []event {
	return slices.DeleteFunc(events(rand.New(rand.NewPCG(seed, 1)), 300), func(e event) bool { return e.fate == "dropped" })
}

// measured is the record of those of the events that belong to a shard.
func measured(t require.TestingT, shard traffic.Shard, list []event) record.Run {
	now := time.Duration(0)
	var own []measure.Subject
	place := map[int]int{}
	for i, s := range subjects() {
		if !shard.Has(s.Name) {
			continue
		}
		for _, e := range list {
			if e.user == i {
				s.Planned++
			}
		}
		place[i] = len(own)
		own = append(own, s)
	}
	m := measure.NewMeter(own, func() time.Duration { return now })
	for _, e := range list {
		user, here := place[e.user]
		switch {
		case !here:
		case e.fate == "dropped":
			m.Dropped(user, e.due, e.done%2 == 0)
		case e.fate == "held":
			m.HeldOff(user, e.due)
		case e.fate == "unsent":
			m.Unsent(user)
		default:
			now = e.sent
			x, _ := m.Judge(user).Begin()
			now = e.done
			m.Judge(user).End(x, kinds[e.outcome], 1)
			m.Answered(measure.Answer{User: user, Due: e.due, Sent: e.sent, Done: e.done, Attempts: 1, Outcome: e.outcome, Status: 500 + e.user%3, Error: "reset"})
		}
	}
	r := record.Run{
		Schema: record.RunSchema, Brimline: "test", Started: start, PlannedMS: 60_000, ActualMS: 60_100,
		Scenario: record.RunScenario{DurationMS: 60_000, Seed: 7, Populations: []record.RunPopulation{{Plan: "free", Users: 12}, {Plan: "pro", Users: 5}}},
		Target:   record.RunTarget{Hosts: []string{"127.0.0.1:8080"}, Allowances: map[string]record.RunAllowance{"free": {RequestsPerMinute: 600, Burst: 3, Concurrency: 2}}},
	}
	require.NoError(t, m.Fill(&r, 61*time.Second))
	r.Limits, r.Untold = m.Limits(r), r.Doubts()
	if !shard.Whole() {
		r.Shard = &record.RunShard{Index: int64(shard.Index), Of: int64(shard.Of), Start: start, Attempt: start.Add(-time.Minute), Traffic: "abc"}
	}
	require.NoError(t, r.Check())
	return r
}

func shards(t require.TestingT, of int, list []event) (parts []merge.Part) {
	for i := range of {
		parts = append(parts, merge.Part{Folder: fmt.Sprintf("shard-%d", i), Run: measured(t, traffic.Shard{Index: i, Of: of}, list)})
	}
	return parts
}

// TestMergedIsTheWhole: every figure of the merged shards is that of one machine
// that had made all the requests, histograms included.
func TestMergedIsTheWhole(t *testing.T) {
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		list, of := events(r, 1+r.IntN(400)), 2+r.IntN(3) // so few that each shard has somebody
		parts := shards(t, of, list)
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		merged, err := merge.Runs(parts)
		require.NoError(t, err)
		whole := measured(t, traffic.Shard{}, list)
		for i := range whole.Plans { // no second's quantiles can be told from those of its parts
			whole.Plans[i].PerSecond.P50US, whole.Plans[i].PerSecond.P99US = nil, nil
		}
		require.Equal(t, whole.Plans, merged.Plans)
		require.Equal(t, whole.Users, merged.Users)
		require.Equal(t, whole.Generator, merged.Generator)
		require.Equal(t, whole.Scenario, merged.Scenario)
		require.Equal(t, start, merged.Started)
		require.Len(t, merged.Merged.Parts, of)
		require.Empty(t, merged.Merged.Missing)
	}
}

func TestRefusesWhatIsNotOfOneRun(t *testing.T) {
	list := events(rand.New(rand.NewPCG(1, 1)), 100)
	for name, c := range map[string]struct {
		change func(*record.Run)
		want   string
	}{
		"a run that is no shard": {func(r *record.Run) { r.Shard = nil }, "shard-1: not a shard: it was made without --shard"},
		"another version":        {func(r *record.Run) { r.Brimline = "other" }, "another version of brimline, test and other"},
		"another seed":           {func(r *record.Run) { r.Scenario.Seed++ }, "another seed, 7 and 8"},
		"another duration":       {func(r *record.Run) { r.PlannedMS++ }, "another scenario"},
		"another population":     {func(r *record.Run) { r.Scenario.Populations = r.Scenario.Populations[:1] }, "another scenario"},
		"another target":         {func(r *record.Run) { r.Target.Hosts = []string{"127.0.0.1:8081"} }, "another target"},
		"other thresholds": {func(r *record.Run) {
			r.Thresholds = []record.RunThreshold{{Threshold: "undue-429 == 0", Verdict: record.ThresholdHolds}}
		}, "another list of thresholds"},
		"another number":       {func(r *record.Run) { r.Shard.Of++ }, "another number of shards, 3 and 4"},
		"another start":        {func(r *record.Run) { r.Started, r.Shard.Start = start.Add(1), start.Add(1) }, "another start, 2026-11-30"},
		"another traffic":      {func(r *record.Run) { r.Shard.Traffic = "abd" }, "another traffic, though the scenarios read alike"},
		"the same try":         {func(r *record.Run) { r.Shard.Index = 0 }, "shard-0 and shard-1 are the same try at shard 0"},
		"another's user":       {func(r *record.Run) { r.Users[0].User = "free-001" }, "user free-001 is in shard-"},
		"a histogram's damage": {func(r *record.Run) { r.Plans[0].Latency[0].FromDue.Histogram = "AAAA" }, "shard-1: plan free: "},
	} {
		t.Run(name, func(t *testing.T) {
			parts := shards(t, 3, list)
			c.change(&parts[1].Run)
			_, err := merge.Runs(parts)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := merge.Runs(nil)
	require.ErrorContains(t, err, "no run")
}

func TestALaterTryReplaces(t *testing.T) {
	list := events(rand.New(rand.NewPCG(2, 1)), 200)
	parts := shards(t, 3, list)
	again := merge.Part{Folder: "again", Run: measured(t, traffic.Shard{Index: 1, Of: 3}, list[:150])}
	again.Run.Shard.Attempt = parts[1].Run.Shard.Attempt.Add(time.Second)
	want, err := merge.Runs([]merge.Part{parts[0], again, parts[2]})
	require.NoError(t, err)
	got, err := merge.Runs(append([]merge.Part{again}, parts...))
	require.NoError(t, err)
	require.Equal(t, want.Plans, got.Plans)
	sent := parts[1].Run.Generator.Results
	require.Equal(t, []record.RunReplaced{{Index: 1, Attempt: start.Add(-time.Minute), Sent: sent}}, got.Merged.Replaced)
	require.Contains(t, got.Limits, fmt.Sprintf("A try at shard 1 was replaced by a later one; the %d requests that it sent came to the target all the same.", sent))
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	parts := shards(t, 4, calm(3))
	parts[3].Run.Interrupted, parts[3].Run.ActualMS = true, 12_000
	parts[3].Run.Shard.Clock = record.RunClock{Known: true, Synchronised: true, MostOffUS: 1500}
	parts[3].Run.Generator.StartLateUS = 700
	r, err := merge.Runs([]merge.Part{parts[0], parts[3]})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, r.Merged.Missing)
	require.True(t, r.Interrupted)
	require.EqualValues(t, 700, r.Generator.StartLateUS)
	require.Equal(t, []record.RunDoubt{{Why: "shard 1 of 4 is missing"}, {Why: "shard 2 of 4 is missing"}}, r.Untold)
	require.Contains(t, r.Limits, "Shard 3 stopped after 12s of 1m0s: nothing of its users is in the seconds after.")
	require.Contains(t, r.Limits, "The shards' seconds lie beside each other as well as their clocks agree; the last began 700 µs after the start. Of shards [0] it is not known that their clocks are synchronised.")
}

// TestOneUnfitShardMakesTheWholeUnfit: its users might have met anything.
func TestOneUnfitShardMakesTheWholeUnfit(t *testing.T) {
	parts := shards(t, 3, calm(4))
	parts[2].Run.Untold = []record.RunDoubt{{Why: "this machine was too slow"}, {Plan: "pro", Why: "none of 3 requests was admitted"}}
	r, err := merge.Runs(parts)
	require.NoError(t, err)
	require.Equal(t, []record.RunDoubt{{Why: "shard 2: this machine was too slow"}}, r.Untold)
}

func TestThresholdsAreHeldAgainstTheWhole(t *testing.T) {
	parts := shards(t, 3, calm(5))
	whole := int64(0)
	for i := range parts {
		parts[i].Run.Thresholds = []record.RunThreshold{{Threshold: "admitted >= 1", Verdict: record.ThresholdBroken, Seen: "0"}}
		whole += parts[i].Run.Plans[0].Admitted
	}
	r, err := merge.Runs(parts)
	require.NoError(t, err)
	require.Positive(t, whole)
	require.Equal(t, record.ThresholdHolds, r.Thresholds[0].Verdict)
}

// TestNoFigureIsForgotten: a counter that the generator's record is given later is
// added as well.
func TestNoFigureIsForgotten(t *testing.T) {
	parts := shards(t, 2, calm(6))
	for i := range parts {
		for f, v := 0, reflect.ValueOf(&parts[i].Run.Generator).Elem(); f < v.NumField(); f++ {
			switch f := v.Field(f); f.Kind() {
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(i + 1))
			case reflect.Float64:
				f.SetFloat(float64(i + 1))
			}
		}
	}
	r, err := merge.Runs(parts)
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Generator.StartLateUS, "the latest")
	require.EqualValues(t, 2, r.Generator.GCPauseMaxMS, "the longest")
	r.Generator.StartLateUS, r.Generator.GCPauseMaxMS = 3, 3
	for f, v := 0, reflect.ValueOf(r.Generator); f < v.NumField(); f++ {
		switch name := v.Type().Field(f).Name; v.Field(f).Kind() {
		case reflect.Int, reflect.Int64:
			require.EqualValues(t, 3, v.Field(f).Int(), name)
		case reflect.Float64:
			require.EqualValues(t, 3, v.Field(f).Float(), name)
		}
	}
}

func TestRead(t *testing.T) {
	parts := shards(t, 3, calm(7))
	dir := t.TempDir()
	for i, p := range parts {
		require.NoError(t, record.WriteRun(filepath.Join(dir, "runs", fmt.Sprint(i)), p.Run))
	}
	read, left, err := merge.Read(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	require.Len(t, read, 3)
	require.Empty(t, left)
	one, _, err := merge.Read(filepath.Join(dir, "runs", "1"), filepath.Join(dir, "runs", "0"))
	require.NoError(t, err)
	require.Equal(t, []merge.Part{read[1], read[0]}, one)

	unfinished := filepath.Join(dir, "runs", "3")
	require.NoError(t, os.Mkdir(unfinished, 0o700))
	read, left, err = merge.Read(filepath.Join(dir, "runs"))
	require.NoError(t, err)
	require.Len(t, read, 3)
	require.Equal(t, []string{unfinished}, left)
	require.NoError(t, os.WriteFile(filepath.Join(unfinished, "run.json"), []byte(`{"schema": "brimline.run/1", "brim`), 0o600))
	_, _, err = merge.Read(filepath.Join(dir, "runs"))
	require.ErrorContains(t, err, filepath.Join(unfinished, "run.json")+": line 1")
	_, _, err = merge.Read(t.TempDir())
	require.ErrorContains(t, err, "neither a run nor a folder of runs")
	_, _, err = merge.Read(filepath.Join(dir, "gone"))
	require.ErrorContains(t, err, "gone: no such file")
}
