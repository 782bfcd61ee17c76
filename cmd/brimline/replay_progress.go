package main

import (
	"fmt"
	"io"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
)

// replayProgress shows how far a long replay is: a line that is redrawn on a
// terminal, else a line now and then. What is done within the first interval
// leaves no trace.
type replayProgress struct {
	w        io.Writer
	screen   *screen // nil: no terminal
	interval time.Duration
	shown    time.Time
	now      func() time.Time
}

func newReplayProgress(w io.Writer) *replayProgress {
	p := &replayProgress{w: w, interval: inALog, now: time.Now}
	if s, ok := terminal(w); ok {
		p.screen, p.interval = s, onTerminal
	}
	p.shown = p.now()
	return p
}

// show is told how many attempts of a reading are done.
func (p *replayProgress) show(done, of int64) {
	now := p.now()
	if now.Sub(p.shown) < p.interval {
		return
	}
	p.shown = now
	line := fmt.Sprintf("replayed %s of %s attempts", figure.Grouped(done), figure.Grouped(of))
	if p.screen != nil {
		p.screen.draw([]string{line})
		return
	}
	fmt.Fprintln(p.w, line)
}

// end takes the line off a terminal.
func (p *replayProgress) end() {
	if p.screen != nil {
		p.screen.clear()
	}
}
