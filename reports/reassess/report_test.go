package reassess_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// week is an access log of 400 clients on seven days, of whom the first so many
// send 14 requests in one second and the others one.
func week(many, status int) string {
	var b strings.Builder
	for client := range 400 {
		n := 1
		if client < many {
			n = 14
		}
		for i := range n {
			code := 200
			if i >= 10 {
				code = status
			}
			fmt.Fprintf(&b, "198.18.%d.%d - - [%02d/Mar/2026:10:%02d:00 +0000] \"POST /v1/invoice/calculate HTTP/1.1\" %d 5\n",
				client/200, client%200, 1+client%7, client%60, code)
		}
	}
	return b.String()
}

// decided is an entry of our own log.
type decided struct {
	user, plan, outcome string
	rate, burst         int64
	at                  time.Duration
	took                int64
	status              int
}

func apiLog(t *testing.T, list ...decided) string {
	t.Helper()
	var b strings.Builder
	for i, d := range list {
		e := contract.LogEntry{
			Schema: 1, RequestID: fmt.Sprintf("req_%d", i), Received: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC).Add(d.at), Duration: d.took,
			Method: "POST", Path: "/v1/invoice/calculate", Status: 200, Outcome: contract.LogAdmitted, User: d.user, Plan: d.plan,
			Decision: &contract.LogDecision{
				Order: uint64(i + 1), Instant: d.at.Microseconds(), Outcome: d.outcome, RequestsPerMinute: d.rate, Burst: d.burst, Concurrency: 2, Level: 1,
			},
		}
		if d.outcome != accesslog.Admitted {
			e.Status, e.Outcome = 429, contract.LogRejected
		}
		if d.status != 0 {
			e.Status = d.status
		}
		line, err := json.Marshal(e)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

// runFolder is what a load run on a plan left behind.
func runFolder(t *testing.T, plan string, undue int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	q := record.Quantiles{Count: 5, P50US: 2_000, P99US: 9_000}
	require.NoError(t, record.WriteRun(dir, record.Run{
		Schema: record.RunSchema, Brimline: "1.0", Started: time.Date(2026, 3, 3, 1, 2, 3, 0, time.UTC), PlannedMS: 30_000, ActualMS: 30_100,
		Scenario: record.RunScenario{DurationMS: 30_000, Seed: 7, Populations: []record.RunPopulation{{Plan: plan, Users: 2, Arrival: "poisson", PerMinute: 12, On429: "ignore"}}},
		Target: record.RunTarget{
			Description: "127.0.0.1:1", Hosts: []string{"127.0.0.1:1"}, Clock: "real", Operation: "POST /v1/invoice/calculate",
			Allowances: map[string]record.RunAllowance{plan: {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
		},
		Plans: []record.RunPlan{{
			Plan: plan, Users: 3, UsersAffected: 1, Slots: record.Slots{Planned: 9, Offered: 9, Sent: 9},
			Answers: record.Answers{
				Admitted: 5, RejectedRate: 2, RejectedConcurrency: 1, OtherStatuses: []record.Count{{Name: "402", N: 1}}, TransportErrors: []record.Count{},
			},
			RateJudged: record.Judged{Due: 2 - undue, Undue: undue}, ConcurrencyJudged: record.Judged{Undecided: 1},
			Latency: []record.RunLatency{
				{Outcome: record.OutcomeAdmitted, FromDue: q, FromSend: q},
				{Outcome: record.OutcomeRejectedRate, FromDue: record.Quantiles{Count: 4, P50US: 1}, FromSend: record.Quantiles{Count: 4, P50US: 1}},
			},
			PerSecond: record.RunSeconds{Due: []int64{9}, Sent: []int64{9}, Admitted: []int64{5}, RejectedRate: []int64{2}, RejectedConcurrency: []int64{1}, Dropped: []int64{0}},
		}},
		Users: []record.RunUser{
			{User: "a", Plan: plan, Sent: 6, Admitted: 2, RejectedRate: 2, RejectedConcurrency: 1, Undue: undue},
			{User: "b", Plan: plan, Sent: 3, Admitted: 3}, {User: "c", Plan: plan},
		},
		Limits: []string{"a sentence"}, Untold: []record.RunDoubt{},
	}))
	return dir
}

func TestAccessLogAlone(t *testing.T) {
	allowed := reassess.Options{Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}}
	p := weighed(t, allowed, file(t, "access.log", week(40, 200))).Plans[0]
	require.Equal(t, "raise to 15 a minute, burst 15", p.Verdict.Headline)
	require.Equal(t, 40, p.Verdict.Moved)
	require.Len(t, p.Scores, 1, "a log without a 429 says nothing of how it was")
	require.EqualValues(t, 160, *p.Scores[0].RejectedRate)
	require.Nil(t, p.Scores[0].RejectedConcurrency)
	require.EqualValues(t, 400+13*40-160, *p.Scores[0].Admitted)

	p = weighed(t, allowed, file(t, "access.log", week(2, 200))).Plans[0]
	require.Equal(t, record.KeepTooFew, p.Verdict.Keep)

	p = weighed(t, reassess.Options{}, file(t, "access.log", week(40, 200))).Plans[0]
	require.Equal(t, record.NotEnoughEvidence, p.Verdict.Word)
	require.Equal(t, "Today's allowance is unknown: the log does not name it, --allowance RATE/BURST or --plan-map does.", p.Verdict.Because[0])
	require.NotEmpty(t, p.WhatIf.Grid, "what other allowances would do is told all the same")
	require.Nil(t, p.Allowance)
}

// Who is hit whatever is tried is not spared by a raise.
func TestNothingIsEnough(t *testing.T) {
	text := strings.Repeat(week(0, 200), 300)
	p := weighed(t, reassess.Options{Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}}, file(t, "access.log", text)).Plans[0]
	require.Equal(t, "keep 10 a minute, burst 10; nothing that was tried is enough", p.Verdict.Headline)
	require.Contains(t, p.Verdict.Because, "No allowance that was tried, up to 200/200, meets the goal, that 99 % of its clients are OK: whoever needs so much is to be looked at one by one.")
}

// Requests that a limiter refused at the time may have been retries: where the
// answer hangs on them there is none.
func TestAccessLogWithRefusals(t *testing.T) {
	p := weighed(t, reassess.Options{Plan: "free", Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}},
		file(t, "access.log", week(40, 429))).Plans[0]
	require.Equal(t, "free", p.Plan)
	require.Equal(t, record.NotEnoughEvidence, p.Verdict.Word)
	require.Contains(t, p.Verdict.Because[0], "It is unknown whether the 160 attempts refused at the time would have been made anyway: "+
		"with them 90 % of the clients are OK, without them 100 %")
	require.Len(t, p.Scores, 2)
	require.Equal(t, record.BasisRecorded, p.Scores[0].Basis)
	require.EqualValues(t, 160, p.Scores[0].Rejected)
	require.Nil(t, p.Scores[0].RejectedRate, "a status does not tell the cause")
	require.Nil(t, p.Scores[0].Admitted)
	require.Equal(t, record.BasisReplayed, p.Scores[1].Basis)
}

// Times that are not those of the requests carry no verdict and no what-if.
func TestLogThatIsRefused(t *testing.T) {
	text := regexp.MustCompile(`:10:\d\d:00 `).ReplaceAllString(week(40, 200), ":10:05:00 ")
	r := weighed(t, reassess.Options{Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}}, file(t, "access.log", text))
	p := r.Plans[0]
	require.Equal(t, record.NotEnoughEvidence, p.Verdict.Word)
	require.Contains(t, p.Verdict.Because[0], "one and the same minute of the hour")
	require.Equal(t, p.WhatIf.Refused, r.Logs[0].Refused)
	require.Empty(t, p.WhatIf.Grid)
}

func TestAPILogByPlan(t *testing.T) {
	r := weighed(t, reassess.Options{}, file(t, "api.jsonl", apiLog(t,
		decided{user: "u1", plan: "free", outcome: "admitted", rate: 10, burst: 10, took: 300},
		decided{user: "u1", plan: "free", outcome: "rate", rate: 10, burst: 10, at: time.Second, took: 9},
		decided{user: "u2", plan: "free", outcome: "admitted", rate: 10, burst: 10, at: time.Second, took: 500},
		decided{user: "u3", plan: "free", outcome: "admitted", rate: 40, burst: 10, at: time.Second, took: 7}, // an override
		decided{user: "u4", plan: "free", outcome: "admitted", rate: 10, burst: 10, at: time.Second, took: 8},
		decided{user: "u4", plan: "free", outcome: "admitted", rate: 20, burst: 20, at: 2 * time.Second, took: 8}, // changed
		decided{user: "u5", plan: "pro", outcome: "concurrency", rate: 300, burst: 100, at: 2 * time.Second, took: 8},
		decided{user: "u6", plan: "pro", outcome: "admitted", rate: 300, burst: 100, at: 3 * time.Second, took: 8, status: 402},
	)))
	require.Len(t, r.Plans, 2)
	byPlan := map[string]record.ReportPlan{}
	for _, p := range r.Plans {
		byPlan[p.Plan] = p
	}
	free, pro := byPlan["free"], byPlan["pro"]
	require.Equal(t, &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}, free.Allowance)
	require.Equal(t, "the API log", free.AllowanceFrom)
	require.Equal(t, 2, free.WhatIf.LeftOut, "who had an allowance of their own")
	s := free.Scores[0]
	require.Equal(t, 3, s.Users, "one of them for as long as the plan's allowance was theirs")
	require.EqualValues(t, 4, s.Attempts)
	require.EqualValues(t, 1, *s.RejectedRate)
	require.EqualValues(t, 3, *s.Admitted)
	require.True(t, free.Scores[1].Override, "and the others apart")
	require.Equal(t, 2, free.Scores[1].Users)
	require.Equal(t, &record.ReportLatency{P50US: 300, P99US: 500, From: "received"}, s.Latency)
	require.Contains(t, free.Verdict.Because[0], "1 s of traffic, where 7 days are needed")
	require.EqualValues(t, 1, *pro.Scores[0].RejectedConcurrency)
	require.Contains(t, pro.Evidence[4].Found[0], "1 request of all plans found no paid operation left")
	require.EqualValues(t, 8, r.Logs[0].Agreement.Compared)
}

func TestRunAlone(t *testing.T) {
	dir := runFolder(t, "free", 0)
	p := weighed(t, reassess.Options{}, dir).Plans[0]
	require.Equal(t, record.NotEnoughEvidence, p.Verdict.Word)
	require.Equal(t, []string{"No recorded traffic: a load run shows what the server does, not what users need."}, p.Verdict.Because)
	require.Nil(t, p.WhatIf)
	require.Equal(t, dir, p.AllowanceFrom)
	s := p.Scores[0]
	require.Equal(t, record.BasisMeasured, s.Basis)
	require.Equal(t, 2, s.Users, "who sent nothing met nothing")
	require.Equal(t, 1, s.UsersAffected.N)
	require.Equal(t, &record.ReportLatency{P50US: 2_000, P99US: 9_000, From: "due"}, s.Latency, "of what was admitted alone")
	require.Equal(t, &record.Judged{Due: 2}, s.RateJudged)
	require.Len(t, p.Evidence, 6)
	for i, missing := range []bool{true, false, true, false, false, true} {
		require.Equal(t, missing, p.Evidence[i].Missing != "", p.Evidence[i].Kind)
		require.Equal(t, missing, len(p.Evidence[i].Found) == 0, p.Evidence[i].Kind)
	}
}

// A wrong decision is the biggest news, whatever else there is.
func TestNewsComesFirst(t *testing.T) {
	wrong := runFolder(t, "starter", 1)
	log := file(t, "access.log", week(40, 200))
	r := weighed(t, reassess.Options{Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}}, log, runFolder(t, "pro", 0), wrong)
	var order []string
	for _, p := range r.Plans {
		order = append(order, p.Plan)
	}
	require.Equal(t, []string{"starter", reassess.Everybody, "pro"}, order)
	require.Equal(t, wrong+": 1 rejection for the rate though there surely was a token.", r.Plans[0].Verdict.Because[0])
	require.Len(t, r.Runs, 2)
}

func TestRunUnderAnotherAllowance(t *testing.T) {
	dir := runFolder(t, "free", 0)
	p := weighed(t, reassess.Options{Plan: "free", Allowance: &record.ReportAllowance{RequestsPerMinute: 15, Burst: 15}}, file(t, "access.log", week(40, 200)), dir).Plans[0]
	require.Equal(t, record.Keep, p.Verdict.Word)
	require.Contains(t, p.Verdict.Because, dir+" was made at 10/10 and not at today's 15/15.")
}

// The plan of a run says what is allowed where the command line does not.
func TestRunNamesTheAllowance(t *testing.T) {
	p := weighed(t, reassess.Options{Plan: "free"}, file(t, "access.log", week(40, 200)), runFolder(t, "free", 0)).Plans[0]
	require.Equal(t, record.Raise, p.Verdict.Word)
	require.Len(t, p.Scores, 2)
}

func TestOptionsThatFitNothing(t *testing.T) {
	api := file(t, "api.jsonl", apiLog(t, decided{user: "u1", plan: "free", outcome: "admitted", rate: 10, burst: 10}))
	e, err := reassess.Read(t.Context(), reassess.Files(api), accesslog.Options{})
	require.NoError(t, err)
	_, err = e.Report(t.Context(), reassess.Options{Gates: reassess.Gates{Rules: reassess.Rules()}, Plan: "free"})
	require.ErrorContains(t, err, "for an access log, and none was given")

	e, err = reassess.Read(t.Context(), reassess.Files(api), accesslog.Options{Scope: "/nowhere"})
	require.NoError(t, err)
	_, err = e.Report(t.Context(), reassess.Options{Gates: reassess.Gates{Rules: reassess.Rules()}})
	require.ErrorContains(t, err, "none of the 1 entries is an attempt below /nowhere")
}

// Of two logs on one plan the one with more days is replayed, and the other says
// how it was.
func TestTwoLogsOnOnePlan(t *testing.T) {
	api := file(t, "api.jsonl", apiLog(t, decided{user: "u1", plan: "free", outcome: "admitted", rate: 10, burst: 10, took: 300}))
	log := file(t, "access.log", week(40, 200))
	p := weighed(t, reassess.Options{Plan: "free"}, api, log).Plans[0]
	require.Equal(t, log, p.WhatIf.Source)
	require.Equal(t, "the API log", p.AllowanceFrom)
	require.Equal(t, record.Raise, p.Verdict.Word)
	require.Len(t, p.Scores, 2)
	require.Equal(t, api, p.Scores[1].Source)
	require.Equal(t, record.BasisRecorded, p.Scores[1].Basis)
	require.Empty(t, p.Evidence[3].Missing, "the API log has durations")
}

// A run that tells nothing has no row of figures that look well, and is named.
func TestRunThatTellsNothing(t *testing.T) {
	run, err := record.ReadRun(runFolder(t, "free", 0))
	require.NoError(t, err)
	p := &run.Plans[0]
	p.Admitted, p.OtherStatuses[0].N, p.PerSecond.Admitted[0] = 0, 6, 0
	run.Users[0].Admitted, run.Users[1].Admitted = 0, 0
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, record.WriteRun(dir, run))
	r := weighed(t, reassess.Options{Plan: "free"}, file(t, "access.log", week(40, 200)), dir)
	require.Len(t, r.Plans[0].Scores, 1)
	require.Equal(t, record.BasisReplayed, r.Plans[0].Scores[0].Basis)
	require.Contains(t, r.Plans[0].Verdict.Because, dir+" says nothing of this plan: none of 9 requests was admitted.")
	require.Equal(t, []record.RunDoubt{{Plan: "free", Why: "none of 9 requests was admitted"}}, r.Runs[0].Untold)
}

// A run that measured the machine it was run on is no evidence, even beside what
// is, and even if it does not say so itself.
func TestInvalidRunIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*record.Run){
		"as it says": func(r *record.Run) { r.Untold = []record.RunDoubt{{Why: "this machine was too slow"}} },
		"as its figures say": func(r *record.Run) {
			r.Generator.Late = record.Quantiles{Count: 9, P95US: 70_000}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := record.ReadRun(runFolder(t, "free", 0))
			require.NoError(t, err)
			spoil(&run)
			dir := filepath.Join(t.TempDir(), "run")
			require.NoError(t, record.WriteRun(dir, run))
			_, err = reassess.Read(t.Context(), reassess.Files(file(t, "access.log", week(40, 200)), dir), accesslog.Options{})
			require.ErrorIs(t, err, reassess.ErrNoEvidence)
			require.ErrorContains(t, err, dir+"/run.json: the run says nothing of its target: this machine was too slow")
		})
	}
}

// 429s without a cause are rejections all the same, and no clean slate.
func TestRunWithUnnamedRejections(t *testing.T) {
	run, err := record.ReadRun(runFolder(t, "free", 0))
	require.NoError(t, err)
	p := &run.Plans[0]
	p.RejectedRate, p.RejectedConcurrency, p.RateJudged, p.ConcurrencyJudged = 0, 0, record.Judged{}, record.Judged{}
	p.OtherStatuses = []record.Count{{Name: "402", N: 1}, {Name: "429", N: 3}}
	p.PerSecond.RejectedRate[0], p.PerSecond.RejectedConcurrency[0] = 0, 0
	run.Users[0] = record.RunUser{User: "a", Plan: "free", Sent: 6, Admitted: 2, RejectedOtherwise: 3}
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, record.WriteRun(dir, run))
	got := weighed(t, reassess.Options{}, dir).Plans[0]
	s := got.Scores[0]
	require.Equal(t, 1, s.UsersAffected.N)
	require.Equal(t, 1, s.UsersOK.N)
	require.EqualValues(t, 3, s.Rejected)
	require.Nil(t, s.RejectedRate, "their cause is not known")
	require.Contains(t, got.Verdict.Because, dir+": 3 429s could not be judged: they name no known cause, or came as before authentication.")
}

// What is said to be needed is what is asked.
func TestUsersNeededAreThoseAskedFor(t *testing.T) {
	require.Equal(t, 300, reassess.Rules().MinUsers)
	e, err := reassess.Read(t.Context(), reassess.Files(file(t, "access.log", week(40, 200))), accesslog.Options{})
	require.NoError(t, err)
	rules := reassess.Rules()
	rules.MinUsers, rules.UsersOK = 300, 0.999
	r, err := e.Report(t.Context(), reassess.Options{Gates: reassess.Gates{Rules: rules}, Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}})
	require.NoError(t, err)
	require.Equal(t, 3000, r.Rules.MinUsers)
	require.Contains(t, r.Plans[0].Verdict.Missing[0], "400 clients, where 3000 are needed")
}
