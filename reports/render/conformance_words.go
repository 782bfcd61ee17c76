package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// verdictWords is how a verdict is shown.
type verdictWords struct {
	mark   string // one character
	word   string // alone
	counts string // behind a number
	colour string // of a terminal
}

func wordsOf(v record.Verdict) verdictWords {
	return map[record.Verdict]verdictWords{
		record.Pass:         {"✓", "pass", "pass", "32"},
		record.Fail:         {"✗", "fail", "fail", "1;31"},
		record.Untrue:       {"‡", "declared and untrue", "declared and untrue", "1;33"},
		record.KnownFails:   {"~", "known to fail", "known to fail", "35"},
		record.Stale:        {"+", "stale entry", "stale", "1;31"},
		record.Differs:      {"≠", "differs", "differ", "33"},
		record.Inconclusive: {"?", "inconclusive", "inconclusive", "36"},
		record.SetupFailed:  {"!", "not set up", "not set up", "36"},
		record.NotRun:       {"·", "not run", "not run", "2"},
	}[v]
}

func mark(v record.Verdict) string { return wordsOf(v).mark }
func word(v record.Verdict) string { return wordsOf(v).word }

// unkept reports whether a verdict says that something is not as it has to be.
func unkept(v record.Verdict) bool {
	return v == record.Fail || v == record.Stale || v == record.Differs || v == record.Untrue
}

// unjudged reports whether a verdict says nothing of the deployment.
func unjudged(v record.Verdict) bool {
	return v == record.NotRun || v == record.Inconclusive || v == record.SetupFailed || v == record.Untrue
}

// lastLine says in a line what was judged, what not, and how long it took.
func lastLine(c record.Conformance) string {
	var told, untold []string
	for _, v := range []record.Verdict{
		record.Pass, record.Fail, record.Stale, record.KnownFails, record.Differs, record.Untrue, record.Inconclusive, record.SetupFailed, record.NotRun,
	} {
		n := c.Counts.Get(v)
		if v == record.NotRun {
			n -= len(nobodyAsked(c))
		}
		switch text := fmt.Sprintf("%d %s", n, wordsOf(v).counts); {
		case n == 0:
		case unjudged(v):
			untold = append(untold, text)
		default:
			told = append(told, text)
		}
	}
	text := fmt.Sprintf("%s: %s", c.Result, cmp.Or(strings.Join(told, ", "), "nothing judged"))
	if len(untold) > 0 {
		text += "; not judged: " + strings.Join(untold, ", ")
	}
	if c.Aborted != "" {
		text += "; ended early: " + Visible(c.Aborted)
	}
	if p := c.Power; p.Known > 0 {
		text += fmt.Sprintf("; can detect %d of %s", p.Detectable, figure.Count(int64(p.Known), "known fault"))
	}
	return text + "; " + tookText(c.DurationMS)
}

// legend says what the marks of a result stand for.
func legend(c record.Conformance) string {
	var parts []string
	for _, v := range record.Verdicts() {
		if c.Counts.Get(v) > 0 {
			parts = append(parts, mark(v)+" "+word(v))
		}
	}
	return strings.Join(parts, ", ")
}

// remark is a text and the reason for it, if there is one.
func remark(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + Visible(reason)
}

// untoldKnown says of a clause that is known to fail that it was not told.
func untoldKnown(c record.Clause) string {
	if c.Verdict == record.Pass {
		return "listed as known to fail, and not judged in full: " + Visible(c.Reason)
	}
	return remark("listed as known to fail, and not judged", cmp.Or(c.Reason, word(c.Verdict)))
}

func kindWord(k record.ChangeKind) string {
	return map[record.ChangeKind]string{
		record.NewlyFailing: "newly failing", record.NewlyDiffers: "newly differs", record.Mended: "mended",
		record.NewlyJudged: "newly judged", record.NoLongerJudged: "no longer judged",
	}[k]
}

// fromTo is what a clause was found and is.
func fromTo(x record.Change) string { return fmt.Sprintf("%s → %s", word(x.Was), word(x.Is)) }

// inOrder is changes by their kind, those that want a reader most first.
func inOrder(list []record.Change) []record.Change {
	kinds := record.ChangeKinds()
	return slices.SortedStableFunc(slices.Values(list), func(a, b record.Change) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
}

// changesInAll counts changes by their kind.
func changesInAll(c *record.Changes) string {
	var parts []string
	for _, k := range record.ChangeKinds() {
		n := 0
		for _, x := range c.List {
			if x.Kind == k {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kindWord(k)))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing has changed")
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// briefly is the duration of a scenario.
func briefly(ms int64) string {
	if ms < 1000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return tookText(ms)
}

// tookText is a duration for people.
func tookText(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// nobodyAsked lists the clauses that were left out of a selection.
func nobodyAsked(c record.Conformance) (ids []string) {
	for _, cl := range c.Clauses {
		if len(c.Selected) > 0 && !slices.Contains(c.Selected, cl.ID) && cl.Verdict == record.NotRun {
			ids = append(ids, cl.ID)
		}
	}
	return ids
}

// unjudgedGroup is the clauses that were not judged for one reason.
type unjudgedGroup struct {
	Verdict record.Verdict
	Reason  string
	Clauses []string
}

// unjudgedGroups sorts what was not judged by reason, the commonest first.
// Clauses that nobody asked for are not among it.
func unjudgedGroups(c record.Conformance) (list []unjudgedGroup) {
	left := nobodyAsked(c)
	for _, cl := range c.Clauses {
		if !unjudged(cl.Verdict) || slices.Contains(left, cl.ID) {
			continue
		}
		i := slices.IndexFunc(list, func(g unjudgedGroup) bool { return g.Verdict == cl.Verdict && g.Reason == cl.Reason })
		if i < 0 {
			i, list = len(list), append(list, unjudgedGroup{Verdict: cl.Verdict, Reason: cl.Reason})
		}
		list[i].Clauses = append(list[i].Clauses, cl.ID)
	}
	slices.SortStableFunc(list, func(a, b unjudgedGroup) int { return cmp.Compare(len(b.Clauses), len(a.Clauses)) })
	return list
}

// groupOf is the clauses under one heading.
type groupOf struct {
	Name    string
	Clauses []record.Clause
}

// clauseGroups is the clauses under their headings, without those nobody asked
// for.
func clauseGroups(c record.Conformance) (list []groupOf) {
	left := nobodyAsked(c)
	for _, cl := range c.Clauses {
		if slices.Contains(left, cl.ID) {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Name != cl.Group {
			list = append(list, groupOf{Name: cl.Group})
		}
		g := &list[len(list)-1]
		g.Clauses = append(g.Clauses, cl)
	}
	return list
}

// facts is where a result comes from.
func facts(c record.Conformance) []fact {
	list := []fact{
		{"target", []string{c.Target.Description}},
		{"judged", []string{fmt.Sprintf("%s, by brimline %s", day(c.Started), c.Brimline)}},
	}
	if c.Target.Server != "" {
		list = append(list, fact{"server", []string{c.Target.Server}})
	}
	if c.Run != "" {
		list = append(list, fact{"run", []string{c.Run + ", in the User-Agent of every request"}})
	}
	list = append(list, fact{"charged", []string{figure.Count(c.Charged, "operation") + " at most"}})
	if c.Aborted != "" {
		list = append(list, fact{"ended early", []string{c.Aborted}})
	}
	return list
}
