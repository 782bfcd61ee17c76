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
		text += "; ended early: " + visible(c.Aborted)
	}
	if p := c.Power; p.Known > 0 {
		text += fmt.Sprintf("; can detect %d of %s", p.Detectable, figure.Count(int64(p.Known), "known fault"))
	}
	return text + "; " + tookText(c.DurationMS)
}

// remark is a text and the reason for it, if there is one.
func remark(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + visible(reason)
}

// untoldKnown says of a clause that is known to fail that it was not told.
func untoldKnown(c record.Clause) string {
	if c.Verdict == record.Pass {
		return "listed as known to fail, and not judged in full: " + visible(c.Reason)
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
