package apilog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
)

// A batch is as many entries as the sink takes well in one go, or what has come
// together in a short while.
const (
	batchSize    = 500
	batchWait    = 50 * time.Millisecond
	firstRetry   = 50 * time.Millisecond
	longestRetry = time.Second
	attemptTime  = 10 * time.Second // for one batch, however the sink hangs
)

// deliver runs until the spool is closed and empty, or ctx ends.
func (s *Spool) deliver(ctx context.Context) {
	defer close(s.done)
	wait := backOff(firstRetry)
	for ctx.Err() == nil {
		more, err := s.deliverBatch(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.logger.Error("the API log spool cannot be read", "error", err)
			wait = wait.sleep(ctx)
			continue
		}
		wait = backOff(firstRetry)
		if !more && !s.gather(ctx) {
			return
		}
	}
}

// gather waits for a batch. It is false once no more will come.
func (s *Spool) gather(ctx context.Context) bool {
	select {
	case <-s.written:
	case <-s.closing:
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.segments) > 0
	case <-ctx.Done():
		return false
	}
	t := time.NewTimer(batchWait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.batch:
	case <-s.closing:
	case <-ctx.Done():
	}
	return true
}

// deliverBatch delivers what comes next in the oldest segment, and removes it
// once all of it is delivered. It reports whether there may be more.
func (s *Spool) deliverBatch(ctx context.Context) (more bool, err error) {
	g, from, ended, ok := s.oldest()
	if !ok {
		return false, nil
	}
	read, err := s.read(g, from, ended)
	if errors.Is(err, fs.ErrNotExist) {
		s.logger.Error("somebody has removed a segment of the API log spool", "error", err)
		return true, s.removeOldest()
	}
	if err != nil {
		return false, err
	}
	if err := s.insert(ctx, read.entries); err != nil {
		return false, err
	}
	s.advance(position{segment: g.number, offset: from + read.size}, read.torn)
	switch whole := len(read.entries) == batchSize; {
	case whole:
		return true, nil
	case ended:
		return true, s.removeOldest()
	}
	return false, s.reclaim(g)
}

// reclaim empties the last segment when the file system has no more room and all
// that it took is delivered: nothing else in the spool can be given back. What it
// drops is the beginning of a line that failed.
func (s *Spool) reclaim(g segment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := &s.segments[len(s.segments)-1]
	if !s.full || *last != g {
		return nil
	}
	s.at.offset = 0
	if err := savePosition(s.saved, s.at); err != nil {
		return err
	}
	if err := s.lines.file.Truncate(0); err != nil {
		return err
	}
	s.used -= last.size
	last.size, s.lines.torn, s.full = 0, false, false
	return nil
}

// oldest is the segment that delivery is at, with the size that is safe to read;
// ended: nothing will be written to it any more.
func (s *Spool) oldest() (g segment, from int64, ended, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = 0
	if len(s.segments) == 0 {
		return segment{}, 0, false, false
	}
	return s.segments[0], s.at.offset, s.closed || len(s.segments) > 1, true
}

func (s *Spool) read(g segment, from int64, ended bool) (lines, error) {
	f, err := os.Open(segmentPath(s.dir, g.number))
	if err != nil {
		return lines{}, err
	}
	defer f.Close()
	return readLines(io.NewSectionReader(f, from, g.size-from), batchSize, ended)
}

// advance goes on also where the position cannot be saved: then the next to open
// the spool delivers some entries again.
func (s *Spool) advance(to position, torn int64) {
	s.mu.Lock()
	moved := s.at != to
	s.at = to
	s.stats.Torn += torn
	s.mu.Unlock()
	if !moved {
		return
	}
	if err := savePosition(s.saved, to); err != nil {
		s.logger.Warn("the position in the API log spool cannot be saved", "error", err)
	}
}

// removeOldest removes a segment that is delivered.
func (s *Spool) removeOldest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.segments) == 1 && !s.closed {
		if err := s.startSegment(); err != nil {
			return err
		}
	}
	g := s.segments[0]
	if err := os.Remove(segmentPath(s.dir, g.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.segments = s.segments[1:]
	s.used -= g.size
	s.at = position{segment: g.number + 1}
	if len(s.segments) > 0 {
		s.at.segment = s.segments[0].number
	}
	return nil
}

// insert has the sink take entries, however long that takes. An entry that it
// refuses by itself is found by halving and set aside.
func (s *Spool) insert(ctx context.Context, entries []contract.LogEntry) error {
	if len(entries) == 0 {
		return nil
	}
	err := s.attempt(ctx, entries)
	switch {
	case err == nil:
		s.count(func(st *Stats) { st.Delivered += int64(len(entries)) })
		return nil
	case !errors.Is(err, ErrRefused):
		return err
	case len(entries) == 1:
		s.setAside(entries[0], err)
		return nil
	}
	half := len(entries) / 2
	if err := s.insert(ctx, entries[:half]); err != nil {
		return err
	}
	return s.insert(ctx, entries[half:])
}

// attempt tries until the sink has taken the entries or refused them, or ctx ends.
func (s *Spool) attempt(ctx context.Context, entries []contract.LogEntry) error {
	var away time.Time
	for wait := backOff(firstRetry); ; wait = wait.sleep(ctx) {
		once, cancel := context.WithTimeout(ctx, attemptTime)
		err := s.sink.Insert(once, entries)
		cancel()
		if err != nil && !errors.Is(err, ErrRefused) && ctx.Err() == nil {
			if away.IsZero() {
				away = time.Now()
				s.logger.Warn("the API log cannot be delivered and waits in its spool", "error", err)
			}
			continue
		}
		if !away.IsZero() && ctx.Err() == nil {
			s.logger.Info("the API log is delivered again", "away", time.Since(away).Round(time.Millisecond))
		}
		return err
	}
}

// setAside keeps an entry that the sink will not have where an operator can look
// at it, as long as such entries are few.
func (s *Spool) setAside(e contract.LogEntry, why error) {
	s.count(func(st *Stats) { st.Refused++ })
	path := filepath.Join(s.dir, refusedFile)
	if err := appendRefused(path, e, s.size/8); err != nil {
		s.logger.Error("an API log entry was refused and lost", "request_id", e.RequestID, "refused", why, "error", err)
		return
	}
	s.logger.Error("an API log entry was refused and set aside", "request_id", e.RequestID, "refused", why, "file", path)
}

func appendRefused(path string, e contract.LogEntry, most int64) error {
	line, err := Encode(e)
	if err != nil {
		return err
	}
	a, err := openAppender(path)
	if err != nil {
		return err
	}
	defer a.file.Close()
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	if info.Size()+int64(len(line)) > most {
		return fmt.Errorf("%s is full", path)
	}
	_, err = a.append(line)
	return err
}

func (s *Spool) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// backOff is how long to wait at most before the next try.
type backOff time.Duration

// sleep waits a random while, so that servers do not come back all at once, and
// returns the next back-off.
func (b backOff) sleep(ctx context.Context) backOff {
	t := time.NewTimer(time.Duration(b)/2 + rand.N(time.Duration(b)/2))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return min(2*b, backOff(longestRetry))
}
