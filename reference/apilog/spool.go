package apilog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Sizes of a spool in bytes.
const (
	DefaultSpoolSize = 256 << 20
	MinSpoolSize     = 1 << 20
	maxSegment       = 4 << 20
	maxLine          = 64 << 10
)

// Sink is where entries are delivered to. It may be given an entry again that it
// has already taken, and keeps it once (LOG-6). It takes all entries or none: an
// error that wraps [ErrRefused] says that one of them can never be taken, any
// other that it is worth trying again. It obeys ctx.
type Sink interface {
	Insert(ctx context.Context, entries []contract.LogEntry) error
}

// ErrRefused: the sink is there and will not have the entry itself.
var ErrRefused = errors.New("log entry refused")

// ErrClosed: the spool takes no more entries.
var ErrClosed = errors.New("the API log spool is closed")

// SpoolConfig says where entries wait and where they go. Every field but Size is
// required.
type SpoolConfig struct {
	Dir    string // for this spool alone; made where it is missing
	Size   int64  // bytes that may wait; 0: DefaultSpoolSize. Refused entries may take an eighth more
	Sink   Sink
	Logger *slog.Logger
}

// Stats is what has happened since the spool was opened, and what waits now.
type Stats struct {
	Written   int64 // entries spooled
	Delivered int64 // entries that the sink has taken, some perhaps again after a crash
	Refused   int64 // entries that the sink would not have
	Torn      int64 // lines that a killed process left unfinished
	Dropped   Dropped
	Waiting   int64 // bytes on disk that the sink has not taken yet
}

// Dropped counts the entries that were not spooled, by kind.
type Dropped struct {
	Anonymous int64 // rejections before authentication, dropped while the spool was nearly full
	Full      int64 // all others, dropped once it was full
	Failed    int64 // the file system would not have them
}

// Spool is a log whose entries wait in a directory until a sink has taken them.
// An entry is with the operating system when Write returns, and is delivered
// after any outage of the sink and any death of the process (LOG-5, LOG-6). It is
// safe for concurrent use; one process at a time has a directory.
type Spool struct {
	dir    string
	size   int64
	sink   Sink
	logger *slog.Logger
	lock   *os.File
	saved  *os.File // the position

	mu       sync.Mutex
	lines    appender  // of the last segment
	segments []segment // oldest first; entries are written to the last
	used     int64     // bytes of all segments
	at       position  // up to where they are delivered
	fresh    int       // lines since delivery last looked
	full     bool      // the file system would not have the last line
	closed   bool
	stats    Stats
	said     time.Time // when drops were last spoken of

	written chan struct{} // a line is there
	batch   chan struct{} // a whole batch is there
	closing chan struct{}
	done    chan struct{} // delivery has ended
	abandon context.CancelFunc
}

// OpenSpool opens the spool in a directory and begins to deliver what waits
// there. The caller closes it.
func OpenSpool(cfg SpoolConfig) (*Spool, error) {
	if cfg.Size == 0 {
		cfg.Size = DefaultSpoolSize
	}
	if cfg.Size < MinSpoolSize {
		return nil, fmt.Errorf("size %d of the API log spool: want at least %d bytes", cfg.Size, MinSpoolSize)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the API log spool: %w", err)
	}
	s := &Spool{
		dir: cfg.Dir, size: cfg.Size, sink: cfg.Sink, logger: cfg.Logger,
		written: make(chan struct{}, 1), batch: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open the API log spool: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.abandon = cancel
	go s.deliver(ctx)
	return s, nil
}

// open takes hold of the directory and begins a segment of its own, so that what
// a killed process left unfinished stays at the end of an old one.
func (s *Spool) open() (err error) {
	if s.lock, err = lockDirectory(s.dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.saved, s.at, err = openPosition(s.dir); err != nil {
		return err
	}
	if s.segments, err = listSegments(s.dir); err != nil {
		return err
	}
	for _, g := range s.segments {
		s.used += g.size
	}
	if err := s.startSegment(); err != nil {
		return err
	}
	if g := s.segments[0]; s.at.segment != g.number || s.at.offset > g.size {
		s.at = position{segment: g.number}
	}
	return nil
}

// release lets go of the directory.
func (s *Spool) release() error {
	var errs []error
	for _, f := range []*os.File{s.lines.file, s.saved, s.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// startSegment ends the last segment and begins the next.
func (s *Spool) startSegment() error {
	number := s.at.segment + 1
	if n := len(s.segments); n > 0 {
		number = s.segments[n-1].number + 1
	}
	lines, err := openAppender(segmentPath(s.dir, number))
	if err != nil {
		return err
	}
	if s.lines.file != nil {
		s.lines.file.Close()
	}
	s.lines = lines
	s.segments = append(s.segments, segment{number: number})
	return nil
}

// Write spools one entry. An entry for which there is no room is dropped and
// counted, which is no error: the log must not fail because it is asked much.
func (s *Spool) Write(_ context.Context, e contract.LogEntry) error {
	line, err := Encode(e)
	if err != nil {
		return err
	}
	if len(line) > maxLine {
		return fmt.Errorf("log entry of request %q: %d bytes, more than %d", e.RequestID, len(line), maxLine)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	err = s.append(line, e)
	dropped, say := s.stats.Dropped, false
	if now := time.Now(); err != nil && now.Sub(s.said) > 10*time.Second {
		s.said, say = now, true
	}
	s.mu.Unlock()
	if say {
		s.logger.Error("API log entries are dropped", "error", err, "anonymous", dropped.Anonymous, "full", dropped.Full, "failed", dropped.Failed)
	}
	return nil
}

var errFull = errors.New("the spool is full")

// append is an error if the entry has been dropped.
func (s *Spool) append(line []byte, e contract.LogEntry) error {
	need := s.used + int64(len(line))
	if anonymous := e.User == "" && e.Outcome == contract.LogRejected; anonymous && need > s.size-s.size/8 {
		s.stats.Dropped.Anonymous++
		return errFull
	}
	if need > s.size {
		s.stats.Dropped.Full++
		return errFull
	}
	last := &s.segments[len(s.segments)-1]
	if last.size >= min(s.size/16, maxSegment) {
		if err := s.startSegment(); err != nil {
			s.stats.Dropped.Failed++
			return err
		}
		last = &s.segments[len(s.segments)-1]
	}
	n, err := s.lines.append(line)
	last.size += int64(n)
	s.used += int64(n)
	if err != nil {
		s.stats.Dropped.Failed++
		s.full = true
		signal(s.written) // delivery may have room to give back
		return err
	}
	s.stats.Written++
	s.fresh++
	signal(s.written)
	if s.fresh >= batchSize {
		signal(s.batch)
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Stats is what has happened so far.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Waiting = s.used - s.at.offset
	return stats
}

// Close takes no more entries and delivers what waits until ctx ends; the rest
// stays in the directory for the next to open it.
func (s *Spool) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		<-s.done
		return nil
	}
	close(s.closing)
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	s.abandon()
	<-s.done
	if waiting := s.Stats().Waiting; waiting > 0 {
		s.logger.Warn("API log entries stay in the spool until the next start", "bytes", waiting, "directory", s.dir)
	}
	return s.release()
}
