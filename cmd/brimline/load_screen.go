package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is a block of lines on a terminal that is drawn again and again, and
// taken off in the end. It asks for the terminal's size each time.
type screen struct {
	w     io.Writer
	size  func() (columns, rows int)
	drawn []int // how long the lines are that stand there
}

// terminal is the screen of a terminal; ok: w is one.
func terminal(w io.Writer) (_ *screen, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return &screen{w: w, size: func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}}, true
}

// draw puts lines where the last ones were, as many and as much of them as fit: a
// line that wraps, or scrolls away, could not be taken back.
func (s *screen) draw(lines []string) {
	columns, rows := s.size()
	var b bytes.Buffer
	s.up(&b, columns, rows)
	for _, line := range lines[:min(len(lines), rows-1)] {
		if text := []rune(line); len(text) >= columns {
			line = string(text[:columns-1])
		}
		b.WriteString(line + "\n")
		s.drawn = append(s.drawn, utf8.RuneCountInString(line))
	}
	_, _ = s.w.Write(b.Bytes()) // a terminal that is gone ends no run
}

// clear takes the block off.
func (s *screen) clear() {
	columns, rows := s.size()
	var b bytes.Buffer
	s.up(&b, columns, rows)
	_, _ = s.w.Write(b.Bytes())
}

// up takes off what stands there. Since it was drawn the terminal may have become
// narrower, and have wrapped it.
func (s *screen) up(b *bytes.Buffer, columns, rows int) {
	n := 0
	for _, length := range s.drawn {
		n += max(1, (length+columns-1)/columns)
	}
	if n = min(n, rows-1); n > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", n)
	}
	s.drawn = s.drawn[:0]
}
