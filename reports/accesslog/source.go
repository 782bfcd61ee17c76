package accesslog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"

	"github.com/invoicespec/brimline/reports/record"
)

// Source is a named stream of log lines, plain or gzip.
type Source struct {
	name string
	open func() (io.ReadCloser, error)
	info os.FileInfo // of a file
	err  error       // why it cannot be read
}

// File is the log in the file at path, opened when its turn comes.
func File(path string) Source {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		err = errors.New("a folder, not a file")
	}
	return Source{name: path, info: info, err: bare(err), open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// bare is err without the path that it names: errors here name the source.
func bare(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Stream is the log that r yields; the caller closes it.
func Stream(name string, r io.Reader) Source {
	return Source{name: name, open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
}

func (s Source) same(o Source) bool {
	if s.info == nil || o.info == nil {
		return s.name == o.name
	}
	return os.SameFile(s.info, o.info)
}

// lines opens the source and tells by its first bytes whether it is compressed.
func (s Source) lines() (l *lines, compressed bool, done func() error, err error) {
	f, err := s.open()
	if err != nil {
		return nil, false, nil, err
	}
	raw := bufio.NewReaderSize(f, bufferSize)
	magic, err := raw.Peek(2)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, false, nil, err
	}
	if string(magic) != "\x1f\x8b" {
		return newLines(raw), false, f.Close, nil
	}
	z, err := gzip.NewReader(raw)
	if err != nil {
		f.Close()
		return nil, false, nil, err
	}
	return newLines(bufio.NewReaderSize(z, bufferSize)), true, f.Close, nil
}

// Recognise tells whether a file's lines are those of an access log, for which
// the answer is [record.FormatCommon], or of our own API log. It reads no
// further than it must.
func Recognise(ctx context.Context, s Source) (record.LogFormat, error) {
	format, err := recognise(ctx, s)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.name, err)
	}
	return format, nil
}

func recognise(ctx context.Context, s Source) (record.LogFormat, error) {
	if s.err != nil {
		return "", s.err
	}
	lines, _, done, err := s.lines()
	if err != nil {
		return "", bare(err)
	}
	defer done()
	r := newReading(Options{})
	for n := 1; ; n++ {
		line, whole, err := lines.next()
		switch {
		case err == io.EOF:
			return "", fmt.Errorf("%w in %d lines; accepted: Common or Combined format, brimline's API log", ErrNothing, n-1)
		case err != nil:
			return "", fmt.Errorf("after %d lines: %w", n-1, err)
		case n%4096 == 0 && ctx.Err() != nil:
			return "", ctx.Err()
		case !whole || blankLine(line):
			continue
		}
		keep, err := r.recognise(line)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		if keep != nil {
			return r.format, nil
		}
	}
}

// source reads one source to its end. Its format is that of the first line of
// which the format can be told.
func (r *reading) source(ctx context.Context, s Source) error {
	lines, compressed, done, err := s.lines()
	if err != nil {
		return bare(err)
	}
	defer done()
	before := r.tally
	var content maphash.Hash
	content.SetSeed(r.seed)
	var keep func([]byte) reason
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, whole, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d lines: %w", n, err)
		}
		r.tally.lines++
		content.Write(line)
		content.WriteByte('\n')
		switch {
		case !whole:
			r.tally.dropped[tooLong]++
			continue
		case blankLine(line):
			r.tally.dropped[blank]++
			continue
		case keep == nil:
			if keep, err = r.recognise(line); err != nil {
				return fmt.Errorf("line %d: %w", n+1, err)
			}
			if keep == nil {
				r.tally.dropped[fragment]++
				continue
			}
		}
		why := keep(line)
		if r.err != nil {
			return r.err
		}
		if why != kept {
			r.tally.dropped[why]++
			continue
		}
		if r.tally.entries++; r.tally.entries > MaxEntries || len(r.decided) > MaxDecided {
			return fmt.Errorf("more than %d entries or %d decisions: replay a part of the log", MaxEntries, MaxDecided)
		}
	}
	f := record.LogFile{
		Name: s.name, Compressed: compressed,
		Lines: r.tally.lines - before.lines, Entries: r.tally.entries - before.entries,
	}
	if f.Lines > 0 && f.Entries == 0 {
		return fmt.Errorf("%w in %d lines%s", ErrNothing, f.Lines, r.tally.since(before))
	}
	if f.Lines > 0 {
		if earlier, ok := r.contents[content.Sum64()]; ok {
			return fmt.Errorf("holds the same lines as %s, which would count twice", earlier)
		}
		r.contents[content.Sum64()] = s.name
	}
	r.files = append(r.files, f)
	return nil
}

func blankLine(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}
