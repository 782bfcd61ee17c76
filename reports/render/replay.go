package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// Replay writes a replay for a terminal: what was read and taken for granted,
// then what each allowance does. Text that came out of a log is quoted where it
// is not plain.
func Replay(w io.Writer, r record.Replay) error {
	var b strings.Builder
	replayLog(&b, r)
	if r.Agreement != nil {
		replayAgreement(&b, *r.Agreement)
	}
	if r.Refused == "" {
		cells := r.Cells
		if r.Cell != nil {
			cells = []record.Cell{*r.Cell}
		}
		replayPart(&b, cells, r.BurstNeeded, r.ClosedLoop)
		replayPlans(&b, r.Plans)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func replayLog(b *strings.Builder, r record.Replay) {
	l := r.Log
	for _, f := range l.Files {
		fmt.Fprintf(b, "%s  %s\n", plainText(f.Name), formatName(l.Format, f.Compressed))
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("lines", "%s: %s entries%s", figure.Grouped(l.Lines), figure.Grouped(l.Entries), dropped(l))
	if kept := keptOddly(l); kept != "" {
		line("kept", "%s", kept)
	}
	line("clients", "%s, %.1f entries each, worth %.2f equal ones (Kish); the busiest made %s", figure.Grouped(int64(l.Clients)),
		l.EntriesPerClient, l.EffectiveClients, percent(share(l.BusiestEntries, l.Entries)))
	const date = "2006-01-02 15:04:05"
	line("span", "%s to %s UTC, %s; largest gap %s", l.First.Format(date), l.Last.Format(date),
		length(l.Last.Sub(l.First).Seconds()), length(l.LargestGap))
	line("stamps", "of %s, %s back in time; %s share their second with another, at most %d in one", resolution(l.ResolutionMicros),
		figure.Count(l.BackwardSteps, "step"), percent(l.TieShare), l.MostPerSecond)
	line("minutes", "%s of the entries in the fullest minute of the hour", percent(l.ConstantMinute))
	line("status", "%s", countList(l.Statuses))
	line("methods", "%s", countList(l.Methods))
	line("attempts", "%s", attempts(r))
	for _, list := range []struct {
		name  string
		lines []string
	}{{"assumed", r.Assumed}, {"missing", r.Missing}, {"warning", r.Warnings}} {
		for _, text := range list.lines {
			line(list.name, "%s", text)
			list.name = strings.TrimSpace(strings.Repeat(" ", len(list.name)))
		}
	}
}

func formatName(f record.LogFormat, compressed bool) string {
	name := map[record.LogFormat]string{
		record.FormatCommon: "Common Log Format", record.FormatCombined: "Combined Log Format", record.FormatAPI: "brimline's API log",
	}[f]
	if compressed {
		name += ", gzip"
	}
	return name
}

func dropped(l record.LogQuality) string {
	if len(l.Dropped) == 0 {
		return ", none dropped"
	}
	return fmt.Sprintf(", %s dropped (%s)", figure.Grouped(l.Lines-l.Entries), countList(l.Dropped))
}

func keptOddly(l record.LogQuality) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{l.Malformed, "with a malformed request"}, {l.Extra, "with unusual fields after the status"},
		{l.Lists, "with a list of addresses"}, {l.Named, "with a user's name"},
	} {
		if p.n > 0 {
			parts = append(parts, figure.Grouped(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

func attempts(r record.Replay) string {
	text := figure.Grouped(r.Attempts)
	if r.Users > 0 {
		text += " by " + figure.Count(int64(r.Users), "user")
	}
	if r.Scope != "" {
		text += " below " + plainText(r.Scope)
	}
	if len(r.NotAttempts) > 0 {
		text += fmt.Sprintf("; %s entries are none (%s)", figure.Grouped(r.Entries-r.Attempts), countList(r.NotAttempts))
	}
	if r.AlreadyRefused > 0 {
		text += fmt.Sprintf("; %s were refused with a 429 at the time", figure.Grouped(r.AlreadyRefused))
	}
	if r.LeftOut > 0 {
		text += fmt.Sprintf("; %s by clients whose plan nobody knows are left out", figure.Grouped(r.LeftOut))
	}
	return text
}

func replayAgreement(b *strings.Builder, a record.Agreed) {
	fmt.Fprintf(b, "\n%s of %s come out as recorded, in outcome and exact level", figure.Grouped(a.Agreed), figure.Count(a.Compared, "decision"))
	if a.Runs > 1 {
		fmt.Fprintf(b, " (%d server processes)", a.Runs)
	}
	b.WriteString("\n")
	if a.Missing > 0 {
		fmt.Fprintf(b, "  missing   %s decisions are not in the log\n", figure.Grouped(a.Missing))
	}
	if a.Untold > 0 {
		fmt.Fprintf(b, "  untold    %s come out differently, but the missing decisions may be the reason\n", figure.Grouped(a.Untold))
	}
	if f := a.First; f != nil {
		fmt.Fprintf(b, "  differs   %s; the first is request %s, decision %d\n", figure.Grouped(a.Disagreed), plainText(f.RequestID), f.Order)
		fmt.Fprintf(b, "  grounds   %s\n", f.Grounds)
		fmt.Fprintf(b, "  recorded  %s\n", decision(f.Recorded))
		fmt.Fprintf(b, "  decided   %s\n", decision(f.Decided))
	}
}

func decision(d record.Decision) string {
	return fmt.Sprintf("%s, %s units left (60,000,000 are one token)", d.Outcome, figure.Grouped(d.Level))
}

func resolution(micros int64) string {
	if micros == 1e6 {
		return "whole seconds"
	}
	return "microseconds"
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// length is a span of seconds in the unit that suits it.
func length(seconds float64) string {
	switch {
	case seconds >= 3600:
		return fmt.Sprintf("%.1f h", seconds/3600)
	case seconds >= 60:
		return fmt.Sprintf("%.1f min", seconds/60)
	}
	return fmt.Sprintf("%.3g s", seconds)
}

func countList(list []record.Count) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = figure.Grouped(c.N) + " × " + c.Name
	}
	return strings.Join(parts, ", ")
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// plainText quotes what a terminal might take for more than text.
func plainText(s string) string {
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
