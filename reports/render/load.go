package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// Load writes a load run for a terminal: how much of its plan it kept, what each
// plan's users met, what was wrong with it, and what limits all this.
func Load(w io.Writer, r record.Run) error {
	var b strings.Builder
	length := tookText(r.PlannedMS)
	switch {
	case r.Ended != "":
		length = fmt.Sprintf("ended after %s of %s", tookText(r.ActualMS), length)
	case r.Interrupted:
		length = fmt.Sprintf("interrupted after %s of %s", tookText(r.ActualMS), length)
	}
	fmt.Fprintf(&b, "%s against %s, seed %d: %s\n\n", length, plainText(strings.Join(r.Target.Hosts, ", ")), r.Scenario.Seed, LoadSums(r.Plans))
	b.WriteString(LoadTable(r.Plans))
	b.WriteString("  p50 and p99 are of admitted requests, from when they were due\n")
	if r.Generator.Transport != "" {
		fmt.Fprintf(&b, "  sent by %s, over %s\n", plainText(r.Generator.Transport), figure.Count(r.Generator.Connections, "connection"))
	}
	var findings, rest, thresholds []string
	if r.Ended != "" {
		findings = append(findings, "!! the run was ended: "+plainText(r.Ended))
	}
	if len(r.Thresholds) > 0 {
		thresholds = loadThresholds(r.Thresholds)
	}
	for _, d := range r.Untold {
		findings = append(findings, "!! "+LoadDoubt(d))
	}
	for _, p := range r.Plans {
		findings = append(findings, loadFindings(p)...)
		if others := loadRest(p); len(others) > 0 {
			rest = append(rest, fmt.Sprintf("%s, besides: %s", plainText(p.Plan), countList(others)))
		}
	}
	var limits []string
	for _, text := range r.Limits {
		limits = append(limits, "  - "+plainText(text))
	}
	for _, lines := range [][]string{thresholds, findings, rest, append([]string{"what limits this"}, limits...)} {
		if len(lines) > 0 {
			b.WriteString("\n" + strings.Join(lines, "\n") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// LoadSums says in one line what became of what came due.
func LoadSums(plans []record.RunPlan) string {
	var s record.Slots
	for _, p := range plans {
		s.Offered += p.Offered
		s.Sent += p.Sent
		s.Dropped += p.Dropped
		s.HeldOff += p.HeldOff
		s.Unsent += p.Unsent
	}
	text := fmt.Sprintf("%s sent of %s due, %s dropped", figure.Grouped(s.Sent), figure.Grouped(s.Offered), figure.Grouped(s.Dropped))
	if s.HeldOff > 0 {
		text += fmt.Sprintf(", %s held off after a 429", figure.Grouped(s.HeldOff))
	}
	if s.Unsent > 0 {
		text += fmt.Sprintf("; %s never came due", figure.Grouped(s.Unsent))
	}
	return text
}

// LoadAnswers says in one line what the answers were.
func LoadAnswers(plans []record.RunPlan) string {
	var a record.Answers
	for _, p := range plans {
		a.Admitted += p.Admitted
		a.RejectedRate += p.RejectedRate
		a.RejectedConcurrency += p.RejectedConcurrency
	}
	return fmt.Sprintf("%s admitted, 429s: %s rate, %s concurrency", figure.Grouped(a.Admitted), figure.Grouped(a.RejectedRate), figure.Grouped(a.RejectedConcurrency))
}

// LoadTable is a row for each plan.
func LoadTable(plans []record.RunPlan) string { return LoadTableWithin(plans, 0) }

// LoadTableWithin is a table no wider than so many columns, if that can be had by
// leaving out what is told elsewhere or matters least; 0: everything.
func LoadTableWithin(plans []record.RunPlan, width int) string {
	rows := [][]string{{"plan", "users", "due", "sent", "dropped", "admitted", "429 rate", "429 conc.", "undue", "p50", "p99"}}
	for _, p := range plans {
		var admitted record.Quantiles
		for _, l := range p.Latency {
			if l.Outcome == record.OutcomeAdmitted {
				admitted = l.FromDue
			}
		}
		row := []string{plainText(p.Plan)}
		for _, n := range []int64{p.Users, p.Offered, p.Sent, p.Dropped, p.Admitted} {
			row = append(row, figure.Grouped(n))
		}
		rows = append(rows, append(append(row, refusals(p)...), waited(admitted, admitted.P50US), waited(admitted, admitted.P99US)))
	}
	for _, name := range []string{"users", "due", "undue", "dropped", "p50"} {
		if width == 0 || columnsWidth(rows) <= width {
			break
		}
		rows = without(rows, name)
	}
	longest := 0
	for _, row := range rows {
		longest = max(longest, utf8.RuneCountInString(row[0]))
	}
	for _, row := range rows { // names flush left, figures right
		row[0] += strings.Repeat(" ", longest-utf8.RuneCountInString(row[0]))
	}
	var b strings.Builder
	writeColumns(&b, rows)
	return b.String()
}

// columnsWidth is how wide [writeColumns] makes rows.
func columnsWidth(rows [][]string) (width int) {
	for i := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		width += 2 + widest
	}
	return width
}

// without is rows without the column of that name.
func without(rows [][]string, name string) [][]string {
	at := slices.Index(rows[0], name)
	for i, row := range rows {
		rows[i] = slices.Delete(row, at, at+1)
	}
	return rows
}

// refusals are a plan's 429s by cause and how many were undue: a dash instead of
// a zero where 429s came that could not be sorted so.
func refusals(p record.RunPlan) []string {
	unnamed, anonymous := p.Unjudged()
	unsorted := unnamed+anonymous > 0
	cell := func(n int64, untold bool) string {
		if n == 0 && untold {
			return "–"
		}
		return figure.Grouped(n)
	}
	judged := p.RateJudged.Plus(p.ConcurrencyJudged)
	untold := unsorted || judged.Due == 0 && (p.RejectedRate+p.RejectedConcurrency > 0 || p.Sent > 0 && p.Admitted == 0)
	return []string{cell(p.RejectedRate, unsorted), cell(p.RejectedConcurrency, unsorted), cell(judged.Undue, untold)}
}

// LoadDoubt says why a run, or a plan of it, tells nothing.
func LoadDoubt(d record.RunDoubt) string {
	if d.Plan == "" {
		return plainText(d.Why) + ": the run says nothing of the target"
	}
	return plainText(d.Plan) + ": " + plainText(d.Why) + ": the run says nothing of this plan"
}

// waited is a time in the unit that suits it; of nothing it is a dash.
func waited(q record.Quantiles, us int64) string {
	switch d := time.Duration(us) * time.Microsecond; {
	case q.Count == 0:
		return "–"
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(us)/1000)
	default:
		return fmt.Sprintf("%.1f ms", float64(us)/1000)
	}
}

// loadFindings says in which direction a plan's limits were not kept.
func loadFindings(p record.RunPlan) []string {
	var list []string
	say := func(n, of int64, what, kind string) {
		if n > 0 {
			list = append(list, fmt.Sprintf("!! %s: %s: %s of %s %s", plainText(p.Plan), what, figure.Grouped(n), figure.Grouped(of), kind))
		}
	}
	say(p.RateJudged.Undue, p.RejectedRate, "refused though a token was there", "rate 429s")
	say(p.ConcurrencyJudged.Undue, p.RejectedConcurrency, "refused though a place was free", "concurrency 429s")
	say(p.Missing, p.Sent-p.RejectedRate, "let through though no token was there", "requests that passed the rate limit")
	for _, f := range p.HeaderFaults {
		say(f.N, p.Sent, "wrong headers: "+plainText(f.Name), "answers")
	}
	unnamed, anonymous := p.Unjudged()
	all := p.RejectedRate + p.RejectedConcurrency + unnamed + anonymous
	say(unnamed, all, "without an errorCode that names a known cause, so not judged", "429s")
	say(anonymous, all, "without RateLimit headers, as before authentication, so not judged", "429s")
	return list
}

// loadRest is what came beside admissions and 429s of a known kind.
func loadRest(p record.RunPlan) []record.Count {
	var list []record.Count
	for _, c := range []record.Count{
		{Name: "429 before authentication", N: p.RejectedAnonymous},
		{Name: "401", N: p.Unauthenticated},
		{Name: "503 for a policy that does not resolve", N: p.ConfigUnavailable},
	} {
		if c.N > 0 {
			list = append(list, c)
		}
	}
	list = append(list, p.OtherStatuses...)
	for _, c := range p.TransportErrors {
		list = append(list, record.Count{Name: "no answer (" + c.Name + ")", N: c.N})
	}
	return list
}
