package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/reports/render"
)

// waits are what scenarios wait for, where every wait in a line of its own would
// bury the rest.
type waits struct {
	n       int // begun since the last line
	longest conformance.Wait
	sums    map[string]time.Duration // by what is waited for
}

// long is how long a wait lasts that gets a line of its own at once.
const long = time.Minute

// wait shows that a scenario waits: in place on a terminal, else in a line of its
// own if it is long, and folded into the next line if it is not.
func (c *counter) wait(w conformance.Wait) {
	c.waits.add(w)
	switch {
	case c.terminal:
		fmt.Fprintf(c.w, "\r\x1b[K%s", render.Visible(tellWait(w)))
	case w.For >= long:
		fmt.Fprintln(c.w, render.Visible(tellWait(w)))
	case time.Since(c.said) >= quiet:
		c.said = time.Now()
		fmt.Fprintln(c.w, render.Visible(strings.TrimPrefix(c.waits.fold(), "; ")))
	}
}

func (s *waits) add(w conformance.Wait) {
	if s.sums == nil {
		s.sums = map[string]time.Duration{}
	}
	s.sums[w.What] += w.For
	if s.n++; s.n == 1 || w.For > s.longest.For {
		s.longest = w
	}
}

// fold is the waits that began since it was last asked; empty: none.
func (s *waits) fold() string {
	n := s.n
	if s.n = 0; n == 0 {
		return ""
	}
	return fmt.Sprintf("; waits begun: %d, the longest: %s", n, tellWait(s.longest))
}

// reasons is how long was waited in all, and what for, the longest three first;
// empty: not at all.
func (s *waits) reasons() string {
	if len(s.sums) == 0 {
		return ""
	}
	var sum time.Duration
	var parts []string
	what := slices.SortedFunc(maps.Keys(s.sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.sums[b], s.sums[a]), cmp.Compare(a, b))
	})
	for i, w := range what {
		if sum += s.sums[w]; i < 3 && s.sums[w] > 0 {
			parts = append(parts, fmt.Sprintf("%s for %s", s.sums[w].Round(time.Second), w))
		}
	}
	if sum == 0 {
		return ""
	}
	return fmt.Sprintf("scenarios waited %s, side by side: %s", sum.Round(time.Second), strings.Join(parts, "; "))
}

func tellWait(w conformance.Wait) string {
	who, howLong := "", "until others are done"
	if w.User != "" {
		who = ", user " + w.User
	}
	if w.For > 0 {
		howLong = w.For.Round(time.Second).String()
	}
	return fmt.Sprintf("waits %s for %s (%s%s)", howLong, w.What, w.Scenario, who)
}
