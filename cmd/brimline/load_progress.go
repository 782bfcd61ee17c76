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
	lines := wrapped(fmt.Sprintf("%s  %-*s  %s", clock, length+1, bar, render.LoadSums(plans)), columns-1)
	lines = append(lines, "")
	lines = append(lines, strings.Split(strings.TrimRight(render.LoadTableWithin(plans, columns-1), "\n"), "\n")...)
	p.screen.draw(lines)
}

// wrapped breaks text at spaces into lines of at most so many columns, as far as
// its words allow.
func wrapped(text string, columns int) (lines []string) {
	runes := []rune(text)
	for len(runes) > columns {
		at := columns
		for at > 0 && runes[at] != ' ' {
			at--
		}
		if at == 0 {
			break
		}
		lines = append(lines, strings.TrimRight(string(runes[:at]), " "))
		for at < len(runes) && runes[at] == ' ' {
			at++
		}
		runes = runes[at:]
	}
	return append(lines, string(runes))
}

func clockText(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
