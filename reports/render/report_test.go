package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// reportCell is an allowance under which so many of 917 clients are affected.
func reportCell(rate, burst int64, affected int) record.Cell {
	share := float64(affected) / 917
	return record.Cell{Rate: rate, Burst: burst, Rejections: record.Rejections{
		RejectedRate: 20 * int64(affected), Rejected: 20 * int64(affected), RejectedShare: 20 * float64(affected) / 10_479,
		UsersAffected: affected, UsersAffectedShare: share, UsersAffected95: [2]float64{share / 2, share*1.6 + 0.004},
		UsersOK: 917 - affected, UsersOKShare: 1 - share, UsersOK95: [2]float64{1 - share*1.6 - 0.004, 1 - share/2},
		TopRejected: int64(affected), TopShare: 0.62, TopRank: 1,
	}}
}

// reported is a report with an end of every kind.
func reported() record.Report {
	ten, eleven, none := int64(10), int64(11), int64(0)
	top := 0.62
	today, target := reportCell(10, 10, 17), reportCell(20, 20, 3)
	ours := record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	raise := record.ReportPlan{
		Plan: "all clients", Allowance: &ours, AllowanceFrom: "--allowance",
		Verdict: record.ReportVerdict{
			Word: record.Raise, Headline: "raise to 20 a minute, burst 20", Because: []string{"At today's 10/10, 1.85 % of its clients meet a 429.", "Not weighed against capacity."},
			Missing: []string{}, Today: &today, Target: &target, Moved: 14,
		},
		Gates: []record.ReportGate{
			{Name: "users", Need: "at least 381", Found: "917", State: record.GateHolds},
			{Name: "users OK today, 10/10", Need: "99 %, by the lower bound too", Found: "98.15 %, at least 97.05 %", State: record.GateFails},
			{Name: "engine at the peak", Need: "70 % of its capacity at most", Found: "not measured", State: record.GateMissing},
		},
		Evidence: []record.ReportEvidence{
			{Kind: "429 frequency", Found: []string{"340 of 10,479 attempts rejected."}},
			{Kind: "engine saturation", Found: []string{}, Missing: "it takes a load run"},
		},
		Scores: []record.ReportScore{{
			Source: "logs/access.log", Basis: record.BasisReplayed, Allowance: &ours, Pool: record.PoolClient, Users: 917,
			UsersAffected:  record.UserShare{N: 17, Share: today.UsersAffectedShare, Share95: today.UsersAffected95},
			UsersOK:        record.UserShare{N: 900, Share: today.UsersOKShare, Share95: today.UsersOK95},
			EffectiveUsers: 4.57, Attempts: 10_479, Admitted: &eleven, Rejected: 340, RejectedRate: &today.RejectedRate, RejectedShare: today.RejectedShare, TopShare: &top,
		}},
		WhatIf: &record.ReportWhatIf{
			Source: "logs/access.log", Pool: record.PoolClient, Days: 9, SpanS: 700_000, Users: 917, Attempts: 10_479, Policy: 1,
			Rates: []int64{10, 20}, Bursts: []int64{10, 20},
			Grid: []record.Cell{today, reportCell(10, 20, 12), reportCell(20, 10, 14), target},
			Lines: []record.ReportLine{
				{Divisor: 1, Cells: []record.Cell{reportCell(5, 5, 25), today, target, reportCell(60, 60, 0)}},
				{Divisor: 3, Cells: []record.Cell{reportCell(5, 1, 60), reportCell(10, 3, 27), reportCell(20, 6, 15), reportCell(60, 20, 3)}},
			},
			BurstNeeded: []record.Needs{},
		},
	}
	tell(&raise)
	measured := record.ReportPlan{
		Plan: "pro", Allowance: &record.ReportAllowance{RequestsPerMinute: 300, Burst: 100, Concurrency: 20}, AllowanceFrom: "runs/one",
		Verdict: record.ReportVerdict{Word: record.NotEnoughEvidence, Headline: "not enough evidence", Because: []string{"runs/one: 3 rejections for the rate though there surely was a token."}, Missing: []string{"no recorded traffic"}},
		Gates:   []record.ReportGate{}, Evidence: []record.ReportEvidence{},
		Scores: []record.ReportScore{{
			Source: "runs/one", Basis: record.BasisMeasured, Pool: record.PoolUser, Users: 5, UsersAffected: record.UserShare{N: 5, Share: 1, Share95: [2]float64{0.5655, 1}},
			UsersOK: record.UserShare{Share95: [2]float64{0, 0.4345}}, EffectiveUsers: 4.9, Attempts: 1_504, Admitted: &eleven, Rejected: 10, RejectedRate: &ten, RejectedConcurrency: &none,
			RejectedShare: 0.0066, TopShare: &top, RateJudged: &record.Judged{Due: 7, Undue: 3}, ConcurrencyJudged: &record.Judged{}, WithoutToken: &none,
			Latency: &record.ReportLatency{P50US: 2_100, P99US: 98_000, From: "due"},
		}},
	}
	refused := record.ReportPlan{
		Plan: "free", Verdict: record.ReportVerdict{Word: record.NotEnoughEvidence, Headline: "not enough evidence", Because: []string{"The times are false."}, Missing: []string{}},
		Gates: []record.ReportGate{}, Evidence: []record.ReportEvidence{}, Scores: []record.ReportScore{},
		WhatIf: &record.ReportWhatIf{Source: "api.jsonl", Pool: record.PoolUser, Days: 1, Users: 3, Attempts: 9, Refused: "the times are false", Policy: 1},
	}
	return record.Report{
		Schema: record.ReportSchema, Brimline: "1.0",
		Rules:  record.ReportRules{UsersOK: 0.99, MinDays: 7, MinUsers: 381, TopShare: 0.5, MinMoved: 3},
		Plans:  []record.ReportPlan{measured, raise, refused},
		Inputs: []record.ReportInput{{Name: "logs/access.log", Kind: record.InputAccessLog, Bytes: 218_526, SHA256: strings.Repeat("8d", 32)}},
		Logs: []record.Replay{{
			Schema: record.ReplaySchema, Pool: record.PoolClient, Entries: 10_479, Attempts: 10_479, Users: 917,
			Log: record.LogQuality{
				Stamp: record.StampUnknown, Zones: []record.Count{}, Examples: []record.LogExample{},
				Format: record.FormatCombined, Files: []record.LogFile{{Name: "logs/access.log"}}, Lines: 10_679, Entries: 10_479, Clients: 917,
				Dropped: []record.Count{{Name: "no client and time at its start", N: 200}}, ResolutionMicros: 1e6,
				First: time.Date(2024, 5, 12, 0, 0, 17, 0, time.UTC), Last: time.Date(2024, 5, 20, 23, 54, 29, 0, time.UTC),
			},
			Assumed: []string{"every bucket is full when its client is first seen"}, Missing: []string{"durations"}, Warnings: []string{"5 clients made 900 entries"},
		}},
		Date: "2026-12-01", Seed: 1, Capacity: capacity(), Fairness: fairness(), Support: support(), Against: against(), Migration: migration(),
		Coverage: &record.ReportCoverage{From: "plans.yaml", Clients: 1000, ClientsKnown: 917, Attempts: 11_000, AttemptsKnown: 10_479, Users: 917, Pseudonyms: "by rank"},
		Gates:    []record.ReportGate{{Name: "engine at the peak", Need: "70 % at most", Found: "17.5 %", State: record.GateHolds}},
		Runs: []record.ReportRun{{
			Name: "runs/one", Brimline: "0.9", Started: time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC), ActualMS: 30_100, Interrupted: true, Seed: 7, Target: "127.0.0.1:8080",
			Clock: "real", LagP99US: 850, Limits: []string{"client and server shared a machine"},
			Untold:      []record.RunDoubt{{Plan: "free", Why: "none of 9 requests was admitted"}},
			Populations: []record.RunPopulation{{Plan: "pro", Users: 5, Arrival: "bursts of 40 every 10s", PerMinute: 240, On429: "obey-retry-after"}},
		}},
	}
}

func rendered(t *testing.T, write func(io.Writer, record.Report) error, r record.Report) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b, r))
	return b.String()
}

func TestReport(t *testing.T) {
	for name, write := range map[string]func(io.Writer, record.Report) error{
		"report.html.txt": render.ReportHTML, "report.md.txt": render.ReportMarkdown, "report.txt": render.Report,
		"report.json": func(w io.Writer, r record.Report) error {
			e := json.NewEncoder(w)
			e.SetIndent("", " ")
			return e.Encode(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := rendered(t, write, reported())
			golden(t, name, []byte(got))
			require.Equal(t, got, rendered(t, write, reported()), "the same report is the same bytes")
		})
	}
}

// The page allows itself nothing but its own style and script, and asks for
// nothing.
func TestReportHTMLIsOneFile(t *testing.T) {
	page := rendered(t, render.ReportHTML, reported())
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	require.Equal(t, "default-src 'none'; style-src "+digest(t, page, "style")+"; base-uri 'none'; form-action 'none'; script-src "+digest(t, page, "script"), html.UnescapeString(policy[1]))
	data := regexp.MustCompile(`<script type="application/json"[^>]*>[^<]*</script>`)
	require.Len(t, data.FindAllString(page, -1), 1)
	page = data.ReplaceAllString(page, "")
	require.NotRegexp(t, `(?i)\s(src|style|action|srcset|poster|data)\s*=\s*"`, page)
	require.NotRegexp(t, `(?i)\shref\s*=\s*"[^#]`, page, "links stay in the page")
	require.NotRegexp(t, `(?i)<(link|img|iframe|object|embed|base|form)\b`, page)
	require.NotRegexp(t, `(?i)url\(|@import|https?:`, page)
}

// digest is the hash of the one such element of a page, as a policy names it.
func digest(t *testing.T, page, element string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(page, -1)
	require.Len(t, found, 1)
	sum := sha256.Sum256([]byte(found[0][1]))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Without a grid there is nothing to move, and no script.
func TestReportWithoutAGridHasNoScript(t *testing.T) {
	r := reported()
	r.Plans[1].WhatIf.Grid = nil
	require.False(t, strings.Contains(rendered(t, render.ReportHTML, r), "<script"))
}

// hostileReport has text in every place that an input can reach.
func hostileReport(text string) record.Report {
	r := reported()
	for i := range r.Plans {
		p := &r.Plans[i]
		p.Plan, p.AllowanceFrom = text, text
		p.Verdict.Because = append(p.Verdict.Because, text)
		p.Verdict.Headline = text
		p.Evidence = append(p.Evidence, record.ReportEvidence{Kind: "x", Found: []string{text}}, record.ReportEvidence{Kind: "y", Missing: text})
		p.Gates = append(p.Gates, record.ReportGate{Name: "x", Need: "y", Found: text, State: record.GateHolds})
		for j := range p.Scores {
			p.Scores[j].Source = text
		}
		if p.WhatIf != nil {
			p.WhatIf.Source = text
		}
	}
	r.Plans[2].WhatIf.Refused = text
	hostileSections(&r, text)
	r.Inputs[0].Name = text
	r.Brimline = text
	l := &r.Logs[0]
	l.Log.Files[0].Name, l.Scope, l.Refused, l.Assumed, l.Warnings = text, text, text, []string{text}, []string{text}
	l.Log.Statuses = []record.Count{{Name: text, N: 1}}
	n := &r.Runs[0]
	n.Name, n.Brimline, n.Target, n.Limits = text, text, text, []string{text}
	n.Untold = []record.RunDoubt{{Plan: text, Why: text}}
	l.Log.Dropped[0].Name = text
	n.Populations[0].Plan, n.Populations[0].Arrival, n.Populations[0].On429 = text, text, text
	return r
}

const attack = "a|b\nc\r<script>alert(1)</script><img src=x onerror=alert(1)>\"'`${x}`[l](javascript:x)*_#\x1b[31m\x00\u202e\xff</title></style>--> &lt;"

// Text from inputs is text: in HTML no markup, in Markdown neither markup nor a
// cell or line of its own, on a terminal no sequence of control.
func TestReportOfHostileInputs(t *testing.T) {
	r, tame := hostileReport(attack), hostileReport("text")
	for name, write := range map[string]func(io.Writer, record.Report) error{
		"html": render.ReportHTML, "markdown": render.ReportMarkdown, "text": render.Report,
	} {
		t.Run(name, func(t *testing.T) {
			got, plain := rendered(t, write, r), rendered(t, write, tame)
			for _, control := range []string{"\x1b", "\x00", "\u202e", "\xff"} {
				at := strings.Index(got, control)
				require.Negative(t, at, "%q in %q", control, got[max(0, at-200):max(0, at)])
			}
			require.Equal(t, strings.Count(plain, "\n"), strings.Count(got, "\n"), "no line of its own")
			if name == "text" {
				return
			}
			grid := regexp.MustCompile(`(?s)<script.*?</script>`)
			require.Equal(t, len(grid.FindAllString(plain, -1)), len(grid.FindAllString(got, -1)))
			plain, got = grid.ReplaceAllString(plain, ""), grid.ReplaceAllString(got, "")
			tags := regexp.MustCompile(`</?[a-zA-Z!][^>]*`)
			require.Equal(t, len(tags.FindAllString(strings.ReplaceAll(plain, "<wbr>", ""), -1)),
				len(tags.FindAllString(strings.ReplaceAll(got, "<wbr>", ""), -1)), "no tag of its own")
			require.False(t, strings.Contains(got, "<script"))
			if name == "markdown" {
				require.Equal(t, bars(plain), bars(got), "no cell of its own")
				require.Empty(t, regexp.MustCompile("[^\\\\][`\\[$~]").FindAllString(got, -1), "no code, no link, no formula")
			}
		})
	}
}

// bars counts what divides cells.
func bars(s string) int { return strings.Count(strings.ReplaceAll(s, `\|`, ""), "|") }
