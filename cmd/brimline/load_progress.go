package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// loadProgress shows how far a run is: a block that is redrawn on a terminal,
// else a line now and then.
type loadProgress struct {
	w        io.Writer
	columns  int // of the terminal; 0: it is none
	duration time.Duration
	drawn    int // lines that stand on the screen
}

// watchLoad shows a run until its end is called.
func watchLoad(w io.Writer, m *measure.Meter, d time.Duration) (end func()) {
	p := &loadProgress{w: w, duration: d}
	interval := 5 * time.Second
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.columns, interval = 80, 500*time.Millisecond
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			p.columns = columns
		}
	}
	began, quit, done := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show(min(time.Since(began), d), m.Snapshot())
			case <-quit:
				p.clear()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (p *loadProgress) show(elapsed time.Duration, plans []record.RunPlan) {
	clock := fmt.Sprintf("%s / %s", clockText(elapsed), clockText(p.duration))
	if p.columns == 0 {
		fmt.Fprintf(p.w, "%s  %s\n", clock, render.LoadSums(plans))
		return
	}
	p.clear()
	const length = 20
	bar := strings.Repeat("━", int(length*elapsed/p.duration)) + "╸"
	block := fmt.Sprintf("%s  %-*s  %s\n\n%s", clock, length+1, bar, render.LoadSums(plans), render.LoadTable(plans))
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	for _, line := range lines {
		// A line that wraps could not be taken back.
		if runes := []rune(line); len(runes) >= p.columns {
			line = string(runes[:p.columns-1])
		}
		fmt.Fprintf(p.w, "%s\n", line)
	}
	p.drawn = len(lines)
}

// clear takes the block off the screen.
func (p *loadProgress) clear() {
	if p.drawn > 0 {
		fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.drawn)
	}
	p.drawn = 0
}

func clockText(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
