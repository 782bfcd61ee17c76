package accesslog

import (
	"bytes"
	"io"
)

const (
	bufferSize = 256 << 10
	maxLine    = 1 << 20
	pieceSize  = 1 << 20
)

// piece is some whole lines of a stream, and what was read from them.
type piece struct {
	text    []byte
	first   int64 // the number of its first line in the source, from 1
	long    bool  // it stands for one line that was too long, and is skipped
	entries []entry
	sums    sums
	done    chan struct{} // closed once it has been read from
}

// pieces cuts a stream at the ends of lines. It never holds more of a line than
// maxLine, and goes on after one that is longer.
type pieces struct {
	in   io.Reader
	rest []byte // the beginning of a line whose end did not fit
	line int64  // lines so far
	skip bool   // what comes up to the next end belongs to a line that was too long
	err  error
}

// next fills p, whose text is used again. The last line need not end in a newline.
func (s *pieces) next(p *piece) error {
	p.long, p.entries, p.sums = false, p.entries[:0], sums{}
	p.first = s.line + 1
	buffer := p.text[:0]
	if cap(buffer) < pieceSize+maxLine {
		buffer = make([]byte, 0, pieceSize+maxLine)
	}
	buffer = append(buffer, s.rest...)
	s.rest = s.rest[:0]
	for {
		if s.skip {
			if i := bytes.IndexByte(buffer, '\n'); i >= 0 {
				s.rest = append(s.rest[:0], buffer[i+1:]...)
				s.skip = false
				s.line++
				p.text, p.long = buffer[:0], true
				return nil
			}
			if s.err != nil {
				return s.lastLong(p, buffer)
			}
			buffer = buffer[:0]
		}
		if end := bytes.LastIndexByte(buffer, '\n'); end >= 0 && (len(buffer) >= pieceSize || s.err != nil) {
			s.rest = append(s.rest, buffer[end+1:]...)
			p.text = buffer[:end+1]
			s.line += int64(bytes.Count(p.text, []byte{'\n'}))
			return nil
		}
		if len(buffer) > maxLine {
			s.skip = true
			continue
		}
		if s.err != nil {
			if len(buffer) == 0 || s.err != io.EOF {
				p.text = buffer[:0]
				return s.err
			}
			p.text = buffer
			s.line++
			return nil
		}
		var n int
		n, s.err = s.in.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
	}
}

// lastLong is a line that is too long and without an end.
func (s *pieces) lastLong(p *piece, buffer []byte) error {
	p.text, s.skip = buffer[:0], false
	if s.err != io.EOF {
		return s.err
	}
	s.line++
	p.long = true
	return nil
}

// lines calls each with every line of a text, without its end.
func lines(text []byte, each func(line []byte)) {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		each(line)
	}
}

func blankLine(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}
