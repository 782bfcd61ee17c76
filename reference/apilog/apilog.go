// Package apilog keeps the API log: one line of JSON for each request in scope,
// appended with one write (LOG-1, LOG-3, LOG-5). Most callers want [OpenFile].
//
// The line format is [contract.LogEntry], which cannot hold a key or a body.
package apilog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Encode is e as a line, the newline included.
func Encode(e contract.LogEntry) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode the entry of request %q: %w", e.RequestID, err)
	}
	return append(line, '\n'), nil
}

// File appends entries to a file. It is safe for concurrent use.
type File struct {
	mu   sync.Mutex
	file *os.File
	torn bool // the last line in the file has no end
}

// OpenFile opens or creates the log at path, readable by its owner alone. A line
// that a killed process left unfinished is closed, so that it spoils no other.
func OpenFile(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the API log: %w", err)
	}
	torn, err := endsTorn(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read the end of the API log: %w", err)
	}
	return &File{file: f, torn: torn}, nil
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

// Write appends one entry. When it returns, the operating system has it.
func (l *File) Write(_ context.Context, e contract.LogEntry) error {
	line, err := Encode(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(line)
	if n > 0 {
		l.torn = !bytes.HasSuffix(line[:n], []byte{'\n'})
	}
	if err != nil {
		return fmt.Errorf("write to the API log: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *File) Close() error { return l.file.Close() }

// Discard takes entries and keeps none.
type Discard struct{}

// Write does nothing.
func (Discard) Write(context.Context, contract.LogEntry) error { return nil }
