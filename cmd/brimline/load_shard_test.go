package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

const shardedLoad = `duration: 4s
seed: 7
populations:
  - { plan: free, users: 20, arrival: poisson, rate: 25x, on-429: ignore }
  - { plan: starter, users: 8, arrival: { bursts: 15, every: 900ms }, on-429: ignore }
  - { plan: free, users: 5, arrival: constant, rate: 400, on-429: ignore }
`

// TestFourProcessesAreOne makes the same run once by one process and once by
// four, each against a server that nobody has asked yet. What is planned is the
// same to the request. What gets past the rate limit cannot be, since no two runs
// ask at the same instants; so both are held to what the exact bucket can say to
// requests that are answered between when they are due and the longest time that
// any answer took.
func TestFourProcessesAreOne(t *testing.T) {
	one := openLoadSite(t, server.Config{Users: 25}, nil)
	code, _, errs := one.load(t.Context(), t, shardedLoad)
	requireMeasured(t, code, errs)
	whole := one.record(t)

	four := openLoadSite(t, server.Config{Users: 25}, nil)
	scenario := filepath.Join(four.dir, "load.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(shardedLoad), 0o600))
	start := time.Now().Add(12 * time.Second).Truncate(time.Second).UTC().Format(time.RFC3339)
	var shards [4]*exec.Cmd
	var said [4]bytes.Buffer
	for i := range shards {
		c := exec.Command(os.Args[0], "load", scenario, "--target", four.target, "--shard", fmt.Sprintf("%d/4", i), "--start-at", start, "--out", filepath.Join(four.dir, "runs", fmt.Sprint(i)))
		c.Env, c.Stderr = append(os.Environ(), asProcess+"=1"), &said[i]
		require.NoError(t, c.Start())
		t.Cleanup(func() { c.Process.Kill() })
		shards[i] = c
	}
	for i, c := range shards {
		_ = c.Wait()
		requireMeasured(t, c.ProcessState.ExitCode(), said[i].String())
		require.Contains(t, said[i].String(), "ready; the run begins at "+start)
	}
	code, out, errs := call(t, "load", "merge", "--out", filepath.Join(four.dir, "run"), filepath.Join(four.dir, "runs"))
	requireMeasured(t, code, errs)
	require.Contains(t, out, "shard")
	merged := four.record(t)
	requireSchemaOf(t, filepath.Join(four.dir, "run", "run.json"), "../../docs/run.schema.json")

	s, err := traffic.Parse("load.yaml", []byte(shardedLoad))
	require.NoError(t, err)
	file, err := target.ReadFile(one.target)
	require.NoError(t, err)
	cast, err := s.Cast(file.Allowances)
	require.NoError(t, err)
	require.Equal(t, traffic.Fingerprint(s.Seed, cast), merged.Merged.Traffic)
	require.Equal(t, whole.Scenario, merged.Scenario)
	for i, p := range merged.Plans {
		w := whole.Plans[i]
		require.Equal(t, w.Plan, p.Plan)
		require.Equal(t, [3]int64{w.Planned, w.Offered, w.Users}, [3]int64{p.Planned, p.Offered, p.Users})
		n := s.Duration / time.Second // what is beyond comes of answers that took long
		require.Equal(t, w.PerSecond.Due[:n], p.PerSecond.Due[:n])
		for _, judged := range []record.RunPlan{w, p} {
			require.Zero(t, judged.RateJudged.Undue+judged.ConcurrencyJudged.Undue+judged.Missing, "the reference is right")
		}
	}
	latest := max(slowest(whole), slowest(merged))
	apart := int64(0)
	for i, m := range cast {
		least, most := past(m, s, latest)
		apart += most - least
		for _, r := range []record.Run{whole, merged} {
			u := r.Users[i]
			require.Equal(t, m.Name, u.User)
			got := u.Sent - u.RejectedRate
			require.GreaterOrEqual(t, got, least-(m.Planned-u.Sent), "%s past the rate limit, of %d sent, %v late at most", u.User, u.Sent, latest)
			require.LessOrEqual(t, got, most, "%s past the rate limit, of %d sent, %v late at most", u.User, u.Sent, latest)
		}
	}
	t.Logf("%d and %d of %d past the rate limit; the clock explains %d", passed(whole), passed(merged), traffic.Planned(cast), apart)
}

// past is how many of a member's requests the exact bucket lets past, at least
// and at most, if each is decided no later than so long after it is due. Had each
// been decided when it was due, a bucket that holds what comes back in that time
// less would have let no more past, and one that holds as much more no fewer.
func past(m traffic.Member, s traffic.Scenario, late time.Duration) (least, most int64) {
	const token = oracle.Token * 1000 // in nanoseconds' units
	perNS := m.Allowance.RequestsPerMinute
	spread := perNS * int64(late)
	count := func(full int64) (n int64) {
		level, at := full, time.Duration(0)
		for schedule, due := m.Process.Schedule(s.Seed, m.Name), time.Duration(0); ; {
			if due = schedule.Next(); due >= s.Duration {
				return n
			}
			level, at = min(full, level+perNS*int64(due-at)), due
			if level >= token {
				level -= token
				n++
			}
		}
	}
	full := m.Allowance.Burst * token
	return count(full - spread), count(full + spread)
}

// slowest is the longest time from when a request was due to its answer.
func slowest(r record.Run) time.Duration {
	us := int64(0)
	for _, p := range r.Plans {
		for _, l := range p.Latency {
			us = max(us, l.FromDue.MaxUS+1)
		}
	}
	return time.Duration(us) * time.Microsecond
}

func passed(r record.Run) (n int64) {
	for _, u := range r.Users {
		n += u.Sent - u.RejectedRate
	}
	return n
}

// call carries out a command line.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	return code, out.String(), errs.String()
}

func requireSchemaOf(t *testing.T, path, schema string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	compiled, err := jsonschema.NewCompiler().Compile(schema)
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(v))
	require.NotRegexp(t, apiKey, string(text))
}

func TestShardsAreRefused(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"no start":           {[]string{"--shard", "0/2"}, "--shard needs --start-at TIME, the same for every shard"},
		"counted from one":   {[]string{"--shard", "2/2"}, `"2/2" is no shard; accepted: i/n such as 0/4`},
		"a start without":    {[]string{"--start-at", "21:00"}, "accepted: an instant with its zone, such as 2026-11-30T21:00:00Z"},
		"a start that is by": {[]string{"--start-at", at(-time.Minute)}, "has passed: by this machine's clock it is"},
		"a start far away":   {[]string{"--start-at", at(2 * time.Hour)}, "is more than 1h ahead: by this machine's clock it is"},
		"more than users":    {[]string{"--shard", "0/300", "--start-at", at(time.Minute)}, "load.yaml: its 8 users leave shard 0/300 with nobody; accepted: fewer shards"},
		"a seed of letters":  {[]string{"--seed", "x"}, `invalid argument "x" for "--seed" flag`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := site.load(t.Context(), t, shortLoad, c.flags...)
			require.Equal(t, exitUsage, code, errs)
			require.Contains(t, errs, c.want)
			require.Empty(t, out)
		})
	}
}

func TestAWaitForTheStartIsInterrupted(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := &stopper{stop: stop}
	scenario := filepath.Join(site.dir, "load.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(shortLoad), 0o600))
	code := run(ctx, []string{
		"load", scenario, "--target", site.target, "--out", filepath.Join(site.dir, "run"), "--start-at", time.Now().Add(50 * time.Minute).UTC().Format(time.RFC3339), "--rows", "--vegeta",
	}, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: said})
	require.Equal(t, exitCannotTell, code)
	require.Contains(t, said.String(), "interrupted before the start: nothing was sent")
	left, err := os.ReadDir(filepath.Join(site.dir, "run"))
	require.NoError(t, err)
	require.Empty(t, left, "nothing is in the way of the next run")
}

// stopper stops what is being waited for once it is told of it.
type stopper struct {
	bytes.Buffer
	stop func()
}

func (s *stopper) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "the run begins at") {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// TestASeedOfTheCommandLine: the scenario's own gives way.
func TestASeedOfTheCommandLine(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	code, _, errs := site.load(t.Context(), t, strings.Replace(shortLoad, "2s", "1s", 1), "--seed", "11")
	requireMeasured(t, code, errs)
	r := site.record(t)
	require.EqualValues(t, 11, r.Scenario.Seed)
	require.Nil(t, r.Shard)

	dir := filepath.Join(site.dir, "merged")
	code, _, errs = call(t, "load", "merge", "--out", dir, filepath.Join(site.dir, "run"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "not a shard: it was made without --shard")
	require.NoDirExists(t, dir)
	for want, args := range map[string][]string{
		"load merge needs run folders":       {"load", "merge", "--out", dir},
		"load merge needs --out DIR":         {"load", "merge", filepath.Join(site.dir, "run")},
		"neither a run nor a folder of runs": {"load", "merge", "--out", dir, t.TempDir()},
	} {
		code, _, errs = call(t, args...)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errs, want)
	}
}

// TestAMissingShardIsSaid: what is there is left, and no figure stands for what
// is not.
func TestAMissingShardIsSaid(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	start := time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339)
	code, _, errs := site.load(t.Context(), t, strings.Replace(shortLoad, "2s", "1s", 1), "--shard", "1/2", "--start-at", start)
	requireMeasured(t, code, errs)
	part := site.record(t)
	require.Equal(t, start, part.Started.Format(time.RFC3339))
	dir := filepath.Join(site.dir, "merged")
	code, out, errs := call(t, "load", "merge", "--out", dir, filepath.Join(site.dir, "run"))
	require.Equal(t, exitCannotTell, code)
	require.Contains(t, out, "!! shard 0 of 2 is missing")
	require.Contains(t, errs, "shard 0 of 2 is missing")
	merged, err := record.ReadRun(dir)
	require.NoError(t, err)
	require.Equal(t, []int64{0}, merged.Merged.Missing)
	require.Equal(t, part.Users, merged.Users)
	code, _, errs = call(t, "load", "merge", "--out", dir, filepath.Join(site.dir, "run"))
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "holds a run already")
}
