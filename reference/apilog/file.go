package apilog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
)

// File appends entries to a file. It is safe for concurrent use.
type File struct {
	mu    sync.Mutex
	lines appender
}

// OpenFile opens or creates the log at path, readable by its owner alone. A line
// that a killed process left unfinished is closed, so that it spoils no other.
func OpenFile(path string) (*File, error) {
	lines, err := openAppender(path)
	if err != nil {
		return nil, fmt.Errorf("open the API log: %w", err)
	}
	return &File{lines: lines}, nil
}

// Write appends one entry. When it returns, the operating system has it.
func (l *File) Write(_ context.Context, e contract.LogEntry) error {
	line, err := Encode(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.lines.append(line); err != nil {
		return fmt.Errorf("write to the API log: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *File) Close() error { return l.lines.file.Close() }

// appender adds lines to a file, one write each.
type appender struct {
	file *os.File
	torn bool // the last line in the file has no end
}

func openAppender(path string) (appender, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return appender{}, err
	}
	torn, err := endsTorn(f)
	if err != nil {
		f.Close()
		return appender{}, fmt.Errorf("read its end: %w", err)
	}
	return appender{file: f, torn: torn}, nil
}

// endsTorn reports whether the last byte of f is something but a newline. What
// has no end that can be looked at, such as a pipe, is taken as it is.
func endsTorn(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return last[0] != '\n', nil
}

// append writes a line that ends in a newline, after the end of one that was
// torn. It returns by how many bytes the file has grown.
func (a *appender) append(line []byte) (int, error) {
	if a.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := a.file.Write(line)
	if n > 0 {
		a.torn = !bytes.HasSuffix(line[:n], []byte{'\n'})
	}
	return n, err
}
