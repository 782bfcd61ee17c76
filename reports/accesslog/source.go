package accesslog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/invoicespec/brimline/reports/record"
)

// Source is a named stream of log lines, plain, gzip or zstd.
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

// stream opens the source and tells by its first bytes whether it is compressed.
func (s Source) stream() (in io.Reader, compressed bool, done func() error, err error) {
	f, err := s.open()
	if err != nil {
		return nil, false, nil, err
	}
	raw := bufio.NewReaderSize(f, bufferSize)
	magic, err := raw.Peek(4)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, false, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(raw)
		if err != nil {
			f.Close()
			return nil, false, nil, err
		}
		return whole{z}, true, f.Close, nil
	case bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			f.Close()
			return nil, false, nil, err
		}
		return whole{z}, true, func() error { z.Close(); return f.Close() }, nil
	}
	return raw, false, f.Close, nil
}

// mostWindow bounds what a compressed log may make us hold: that of "zstd --long".
const mostWindow = 128 << 20

// whole says of a compressed stream that ends early that it does.
type whole struct{ in io.Reader }

func (w whole) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the compressed file ends before its end: it was cut off, or is still being written")
	}
	return n, err
}

// Recognise tells the format of a source by its lines. For Common and Combined
// alike the answer is [record.FormatCommon]. It reads no further than it must.
func Recognise(ctx context.Context, s Source, opt Options) (record.LogFormat, error) {
	format, err := recognise(ctx, s, opt)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.name, err)
	}
	return format, nil
}

func recognise(ctx context.Context, s Source, opt Options) (record.LogFormat, error) {
	if s.err != nil {
		return "", s.err
	}
	in, _, done, err := s.stream()
	if err != nil {
		return "", bare(err)
	}
	defer done()
	r := newReading(opt)
	b := &book{reading: r, from: &pieces{in: in}, clerk: r.clerk()}
	for p := (&piece{}); ; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err := b.from.next(p); err == io.EOF {
			return "", fmt.Errorf("%w in %d lines; accepted: %s", ErrNothing, b.from.line, accepted)
		} else if err != nil {
			return "", fmt.Errorf("after %d lines: %w", b.from.line, err)
		}
		known, _, err := b.recognise(p)
		if err != nil {
			return "", err
		}
		if known != nil {
			return known.format, nil
		}
	}
}
