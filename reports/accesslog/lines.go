package accesslog

import (
	"bufio"
	"io"
)

const (
	bufferSize = 256 << 10
	maxLine    = 1 << 20
)

// lines splits a stream at newlines. Unlike [bufio.Scanner] it goes on after a
// line that is too long, and it never holds more than maxLine of one.
type lines struct {
	r    *bufio.Reader
	long []byte // the beginning of a line that outgrew the reader's buffer
}

func newLines(r *bufio.Reader) *lines { return &lines{r: r} }

// next returns the next line without its end, valid until the following call.
// Where whole is false the line was longer than maxLine and is skipped. The
// last line need not end in a newline.
func (l *lines) next() (line []byte, whole bool, err error) {
	part, err := l.r.ReadSlice('\n')
	if err == nil {
		return trimEnd(part), len(part) <= maxLine, nil
	}
	l.long = l.long[:0]
	size := 0
	for err == bufio.ErrBufferFull {
		size += len(part)
		if size <= maxLine {
			l.long = append(l.long, part...)
		}
		part, err = l.r.ReadSlice('\n')
	}
	size += len(part)
	if err != nil && (err != io.EOF || size == 0) {
		return nil, false, err
	}
	if size > maxLine {
		return nil, false, nil
	}
	l.long = append(l.long, part...)
	return trimEnd(l.long), true, nil
}

func trimEnd(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b
}
