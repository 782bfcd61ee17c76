package render_test

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func scenario(name, at string, v record.Verdict, reason string, findings ...record.Finding) record.Scenario {
	return record.Scenario{Name: name, At: at, Verdict: v, Reason: reason, DurationMS: 12, Findings: findings}
}

// judged is a run with an end of every kind.
func judged() record.Conformance {
	late := record.Finding{
		Clause: "HDR-5", Step: "they are rejected at odd moments until the next token is due",
		Field: "Retry-After", Expected: "6", Ground: "the bucket held 0.000 to 0.013 of a token, 10 a minute",
		Got: "5", Consequence: "the client would come back too early and be refused again",
		Exchange: "curl -i -X POST http://127.0.0.1:8080/v1/invoice/calculate -H 'Authorization: Bearer isk_free_…' -d @ok.json",
		Answer:   "429 Too Many Requests\nRetry-After: 5\n{\"errorCode\":\"RATE_LIMIT_EXCEEDED\"}",
	}
	passing := scenario("an emptied user who obeys is admitted", "features/headers.feature:60", record.Fail, "", late)
	passing.InPassing = true
	cached := record.Finding{Clause: "ERR-4", Step: "they send a request at an empty bucket", Field: "Cache-Control", Expected: "no-store", Got: "absent"}
	c := record.Conformance{
		Schema:  record.ConformanceSchema,
		Target:  record.Target{Description: "127.0.0.1:8080  HTTP/1.1  24 users on 4 plans  clock: real  can: hold, keys, plans", Clock: "real"},
		Started: time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC), DurationMS: 98_400, Charged: 1412, Brimline: "1.0",
		Reproduce: record.Reproduce{Command: "brimline check --target staging.yaml"}, Run: "xrhoohq3plep",
		Clauses: []record.Clause{
			{ID: "SCOPE-1", Level: "MUST", Group: "scope", Sentence: "All below is limited.", Verdict: record.Pass,
				Scenarios: []record.Scenario{scenario("requests end in a rejection", "features/scope.feature:8", record.Pass, "")}},
			{ID: "SCOPE-2", Level: "MUST", Group: "scope", Sentence: "Health is not.", Verdict: record.Pass, Reason: "partly: 1 of 2 scenarios not run: needs hold",
				Scenarios: []record.Scenario{
					scenario("it costs nothing", "features/scope.feature:20", record.Pass, ""),
					scenario("a full cap does not matter", "features/scope.feature:25", record.NotRun, "needs hold"),
				}},
			{ID: "RATE-9", Level: "MUST", Group: "request rate", Sentence: "At once.", Verdict: record.Inconclusive, Reason: "a timeout",
				Scenarios: []record.Scenario{scenario("more at once", "features/request_rate.feature:90", record.Inconclusive, "a timeout")}},
			{ID: "RATE-10", Level: "DECIDED", Group: "request rate", Sentence: "Refill.", Verdict: record.SetupFailed, Reason: "no user left",
				Scenarios: []record.Scenario{scenario("tokens come back", "features/request_rate.feature:99", record.SetupFailed, "no user left")}},
			{ID: "HDR-5", Level: "MUST", Group: "headers", Sentence: "A rate 429 carries Retry-After: the seconds until one token, rounded up, at least 1.", Verdict: record.Fail,
				Scenarios: []record.Scenario{passing, scenario("an emptied user is told when to come back", "features/headers.feature:41", record.Fail, "", late)}},
			{ID: "ERR-4", Level: "DECIDED", Group: "errors", Sentence: "A 429 says no-store.", Decision: "The reference says no-store. A cached rejection would reach others.", Verdict: record.Differs,
				Scenarios: []record.Scenario{scenario("a rate rejection", "features/errors.feature:70", record.Differs, "", cached)}},
			{ID: "OVR-1", Level: "MUST", Group: "overrides", Sentence: "An override replaces.", Verdict: record.NotRun, Reason: "needs policy", Scenarios: []record.Scenario{}},
			{ID: "OVR-2", Level: "MUST", Group: "overrides", Sentence: "It may raise or lower.", Verdict: record.NotRun, Reason: "needs policy", Scenarios: []record.Scenario{}},
		},
	}
	return c.Summed()
}

// kept is a run without a failure.
func kept() record.Conformance {
	c := judged()
	c.Aborted, c.Charged, c.DurationMS = "interrupted", 1, 4321
	c.Clauses = []record.Clause{c.Clauses[0], c.Clauses[1], c.Clauses[6]}
	c.Selected = []string{"SCOPE-1", "SCOPE-2"}
	return c.Summed()
}

// expected is a run that was held against a list of known failures and against
// an earlier run.
func expected() record.Conformance {
	old := judged()
	old.Started = old.Started.Add(-24 * time.Hour)
	old.Clauses[2].Verdict, old.Clauses[4].Verdict, old.Clauses[5].Verdict, old.Clauses[6].Verdict = record.Pass, record.Pass, record.Pass, record.Pass
	old.Clauses[0].Verdict, old.Clauses[1].Verdict = record.Fail, record.NotRun
	c := judged()
	untrue := "declared and not so: policy"
	c.Clauses[6].Verdict, c.Clauses[6].Reason = record.Untrue, untrue
	c.Clauses[6].Scenarios = []record.Scenario{scenario("a raised burst", "features/overrides.feature:9", record.Untrue, untrue)}
	c.Clauses = append(c.Clauses, record.Clause{ID: "CONC-1", Level: "MUST", Group: "concurrency", Sentence: "The cap holds.", Verdict: record.Fail,
		Scenarios: []record.Scenario{scenario("one more", "features/concurrency.feature:8", record.Fail, "", c.Clauses[4].Scenarios[1].Findings[0])}})
	c.Power = record.Power{Known: 161, Detectable: 104, Measured: record.RealClock, Further: []record.Further{{Needs: []string{"policy"}, Faults: 57}}}
	return c.WithKnown([]record.KnownFailing{
		{Clause: "HDR-5", Reason: "rounds down until 2027 | #812"}, {Clause: "SCOPE-1"}, {Clause: "RATE-9", Reason: "flaky"},
	}).Against(old)
}

func TestConformance(t *testing.T) {
	for name, tc := range map[string]struct {
		c    record.Conformance
		text render.Text
	}{
		"conformance-fail.txt":     {judged(), render.Text{}},
		"conformance-pass.txt":     {kept(), render.Text{Report: "out/index.html  (conformance.json beside it)"}},
		"conformance-expected.txt": {expected(), render.Text{}},
		"conformance-quiet.txt":    {expected(), render.Text{Detail: render.Quiet}},
		"conformance-verbose.txt":  {expected(), render.Text{Detail: render.Verbose}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, render.Conformance(&b, tc.c, tc.text))
			golden(t, name, b.Bytes())
			require.NotContains(t, b.String(), "\x1b")

			plain := b.String()
			b.Reset()
			tc.text.Colour = true
			require.NoError(t, render.Conformance(&b, tc.c, tc.text))
			require.Contains(t, b.String(), "\x1b[")
			require.Equal(t, plain, regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(b.String(), ""), "colour is all that colour adds")
		})
	}
}

func TestQuietOfARunThatIsKept(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, render.Conformance(&b, kept(), render.Text{Detail: render.Quiet}))
	require.Equal(t, "partial: 2 pass; ended early: interrupted; 4.3 s\n", b.String())
}

func TestConformanceQuotesWhatWouldNotPrint(t *testing.T) {
	c := judged()
	c.Clauses[4].Scenarios[1].Findings[0].Got = "\x1b[31mred"
	var b bytes.Buffer
	require.NoError(t, render.Conformance(&b, c, render.Text{}))
	require.NotContains(t, b.String(), "\x1b")
}

func TestSelfTest(t *testing.T) {
	st := record.SelfTest{
		Caught: 1, DurationMS: 61_000,
		Faults: []record.Fault{
			{Name: "retry-after-zero", Clause: "HDR-5", Caught: true, By: []record.CaughtBy{
				{Clause: "HDR-6", Scenario: "an emptied user who obeys is admitted", At: "features/headers.feature:60", Carries: true},
				{Clause: "HDR-5", Scenario: "an emptied user is told when to come back", At: "features/headers.feature:41", Carries: true},
			}},
			{Name: "cap-plus-one", Clause: "CONC-1", Reason: "CONC-1 was found pass"},
		},
		Correct: []record.CaughtBy{{Clause: "RATE-9", Scenario: "more at once", At: "features/request_rate.feature:90"}},
	}
	var b bytes.Buffer
	require.NoError(t, render.SelfTest(&b, st))
	golden(t, "selftest.txt", b.Bytes())
	b.Reset()
	require.NoError(t, render.SelfTestMarkdown(&b, st))
	golden(t, "selftest.md", b.Bytes())
}
