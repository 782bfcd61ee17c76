package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// paper is a terminal as far as a block of lines needs one: what is on it and
// what has scrolled away.
type paper struct {
	columns, rows int
	lines         []string
	at            int // the line of the cursor
}

// Write carries out what a screen writes: text, line ends, "up" and "clear".
func (p *paper) Write(text []byte) (int, error) {
	for rest := string(text); rest != ""; {
		var n int
		switch {
		case strings.HasPrefix(rest, "\x1b[J"):
			p.lines = p.lines[:p.at]
			rest = rest[3:]
		case strings.HasPrefix(rest, "\x1b["):
			digits, after, _ := strings.Cut(rest[2:], "A")
			if _, err := fmt.Sscanf(digits, "%d", &n); err != nil {
				return 0, fmt.Errorf("not understood: %q", rest)
			}
			p.at = max(p.at-n, len(p.lines)+1-p.rows, 0) // never above the top
			rest = after
		case rest[0] == '\r':
			rest = rest[1:]
		default:
			line, after, _ := strings.Cut(rest, "\n")
			line = strings.TrimSuffix(line, "\r")
			for text := []rune(line); ; text = text[p.columns:] {
				p.lines = append(p.lines[:p.at], string(text[:min(len(text), p.columns)]))
				if p.at++; len(text) <= p.columns {
					break
				}
			}
			rest = after
		}
	}
	return len(text), nil
}

// resize makes it so wide, and wraps what is there anew.
func (p *paper) resize(columns, rows int) {
	was := p.lines
	p.columns, p.rows, p.lines, p.at = columns, rows, nil, 0
	for _, line := range was {
		fmt.Fprintln(p, line)
	}
}

func somePlans() []record.RunPlan {
	return []record.RunPlan{
		{Plan: "free", Users: 2, Slots: record.Slots{Offered: 12, Sent: 11, Dropped: 1}, Answers: record.Answers{Admitted: 8, RejectedRate: 2, RejectedConcurrency: 1}},
		{Plan: "enterprise", Users: 2, Slots: record.Slots{Offered: 12, Sent: 12}, Answers: record.Answers{Admitted: 12}},
	}
}

func TestProgressInALog(t *testing.T) {
	var b bytes.Buffer
	p := &loadProgress{w: &b, duration: 2 * time.Minute}
	p.show(47*time.Second, somePlans())
	require.Equal(t, "0:47 / 2:00  23 sent of 24 due, 1 dropped; 20 admitted, 429s: 2 rate, 1 concurrency\n", b.String())
}

// TestProgressOnATerminal: one block stands there however often it is drawn, and
// nothing of it is left in the end, whatever sizes the terminal takes, unless it
// becomes so narrow at once that lines wrap over its top.
func TestProgressOnATerminal(t *testing.T) {
	for _, sizes := range [][][2]int{
		{{80, 24}}, {{200, 50}}, {{80, 24}, {40, 24}, {120, 24}}, {{100, 20}, {99, 20}, {30, 20}}, {{20, 4}}, {{10, 2}}, {{2, 3}}, {{1, 1}}, {{80, 1}},
	} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			p := &paper{columns: sizes[0][0], rows: sizes[0][1]}
			fmt.Fprintln(p, "$")
			before := p.lines
			s := &screen{w: p, size: func() (int, int) { return p.columns, p.rows }}
			show := &loadProgress{screen: s, duration: 2 * time.Minute}
			for _, size := range sizes {
				p.resize(size[0], size[1])
				for elapsed := range 3 {
					show.show(time.Duration(elapsed)*time.Minute, somePlans())
					require.LessOrEqual(t, len(p.lines), len(before)+max(0, size[1]-1), "no line has scrolled away")
				}
				if size[0] >= 40 && size[1] >= 6 {
					text := strings.Join(p.lines, "\n")
					require.Equal(t, 1, strings.Count(text, "2:00 / 2:00"), "one block: %q", p.lines)
					require.Contains(t, text, "enterprise")
					require.Contains(t, strings.Join(strings.Fields(text), " "), "23 sent of 24 due, 1 dropped", "no word is cut")
				}
			}
			s.clear()
			require.Equal(t, before, p.lines)
		})
	}
}
