package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// How often a run's progress is shown.
const (
	onTerminal = 500 * time.Millisecond
	inALog     = 5 * time.Second
)

// loadProgress shows how far a run is: a block that is redrawn on a terminal,
// else a line now and then.
type loadProgress struct {
	w        io.Writer
	screen   *screen // nil: no terminal
	duration time.Duration
}

// watchLoad shows a run until its end is called.
func watchLoad(w io.Writer, m *measure.Meter, d time.Duration) (end func()) {
	p := &loadProgress{w: w, duration: d}
	interval, resized, endResizes := inALog, (<-chan os.Signal)(nil), func() {}
	if s, ok := terminal(w); ok {
		p.screen, interval = s, onTerminal
		resized, endResizes = resizes()
	}
	began, quit, done := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer endResizes()
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-resized:
			case <-quit:
				if p.screen != nil {
					p.screen.clear()
				}
				return
			}
			p.show(min(time.Since(began), d), m.Snapshot())
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (p *loadProgress) show(elapsed time.Duration, plans []record.RunPlan) {
	clock := fmt.Sprintf("%s / %s", clockText(elapsed), clockText(p.duration))
	if p.screen == nil {
		fmt.Fprintf(p.w, "%s  %s; %s\n", clock, render.LoadSums(plans), render.LoadAnswers(plans))
		return
	}
	const length = 20
	bar := strings.Repeat("━", int(length*elapsed/p.duration)) + "╸"
	columns, _ := p.screen.size()
	block := fmt.Sprintf("%s  %-*s  %s\n\n%s", clock, length+1, bar, render.LoadSums(plans), render.LoadTableWithin(plans, columns-1))
	p.screen.draw(strings.Split(strings.TrimRight(block, "\n"), "\n"))
}

func clockText(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
