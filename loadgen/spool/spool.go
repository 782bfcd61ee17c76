// Package spool writes a line for each request of a load run into a file beside
// its record, without ever being in the run's way.
//
// Most callers [Create] a spool with an encoding, [Rows] or [Vegeta], let it
// [Spool.Add] every answer and [Spool.Close] it when the run is over.
//
// Answers are collected in batches, and written by a goroutine of their own once
// there are [Batch] of them or a second has gone by, each batch whole. A disk
// that is slower than the run makes it lose batches once [Queue] of them wait:
// they are counted, and the run goes on as it was planned. A disk that refuses a
// write ends the file after the last whole batch.
package spool

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// Bounds of what waits for the disk: at most 32,768 answers, a few megabytes.
const (
	Batch = 1024
	Queue = 32
)

// Encode is answers as what the file holds. It is called on one goroutine.
type Encode func([]measure.Answer) ([]byte, error)

// File is what a spool writes to; an *os.File is one.
type File interface {
	io.WriteCloser
	Truncate(size int64) error
	Name() string
}

// Spool is one file. Its zero value is none: see [Create].
type Spool struct {
	file   File
	encode Encode
	queue  chan []measure.Answer
	spare  chan []measure.Answer
	quit   chan struct{}
	done   chan struct{}

	mu    sync.Mutex
	batch []measure.Answer
	lost  int64

	// Of the goroutine that writes.
	rows, size int64
	failed     error
}

// Create makes a file that must not be there.
func Create(path string, encode Encode) (*Spool, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, errors.New(filepath.Base(path) + " of an earlier run is there")
	}
	if err != nil {
		return nil, err
	}
	return New(f, encode), nil
}

// New is a spool into an empty file, which it closes.
func New(f File, encode Encode) *Spool {
	s := &Spool{
		file: f, encode: encode, queue: make(chan []measure.Answer, Queue), spare: make(chan []measure.Answer, Queue+2),
		quit: make(chan struct{}), done: make(chan struct{}), batch: make([]measure.Answer, 0, Batch),
	}
	go s.write()
	return s
}

// Add takes an answer. It never waits for the disk.
func (s *Spool) Add(a measure.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batch = append(s.batch, a)
	if len(s.batch) < Batch {
		return
	}
	select {
	case s.queue <- s.batch:
		s.batch = s.empty()
	default:
		s.lost += int64(len(s.batch))
		s.batch = s.batch[:0]
	}
}

// empty is room for a batch.
func (s *Spool) empty() []measure.Answer {
	select {
	case b := <-s.spare:
		return b
	default:
		return make([]measure.Answer, 0, Batch)
	}
}

// write is the goroutine that writes.
func (s *Spool) write() {
	defer close(s.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case b := <-s.queue:
			s.put(b)
		case <-tick.C:
			s.flush()
		case <-s.quit:
			s.flush()
			return
		}
	}
}

// flush writes everything that there is, in its order.
func (s *Spool) flush() {
	s.mu.Lock()
	last := s.batch
	s.batch = s.empty()
	waiting := len(s.queue) // before last, since only Add fills it
	s.mu.Unlock()
	for range waiting {
		s.put(<-s.queue)
	}
	s.put(last)
}

// put writes a batch, or counts it as lost.
func (s *Spool) put(b []measure.Answer) {
	n := int64(len(b))
	if n > 0 && s.failed == nil {
		s.failed = s.append(b)
	}
	if s.failed == nil {
		s.rows += n
	} else {
		s.mu.Lock()
		s.lost += n
		s.mu.Unlock()
	}
	select {
	case s.spare <- b[:0]:
	default:
	}
}

// append writes a batch whole, or leaves the file as it was.
func (s *Spool) append(b []measure.Answer) error {
	text, err := s.encode(b)
	if err != nil {
		return err
	}
	if _, err := s.file.Write(text); err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(text))
	return nil
}

// Close writes what is left and says what became of everything.
func (s *Spool) Close() record.RunExport {
	close(s.quit)
	<-s.done
	err := errors.Join(s.failed, s.file.Close())
	e := record.RunExport{File: filepath.Base(s.file.Name()), Rows: s.rows, Lost: s.lost}
	if err != nil {
		e.Error = reason(err)
	}
	return e
}

// reason is an error without the path that it names.
func reason(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
