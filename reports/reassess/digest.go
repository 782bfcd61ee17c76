package reassess

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/invoicespec/brimline/internal/files"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// logFiles are the files of one log.
type logFiles struct {
	files []*digest
	kind  record.InputKind
	to    []*record.ReportInput
}

func (l *logFiles) add(d *digest, kind record.InputKind, to *record.ReportInput) {
	l.kind = kind
	l.files, l.to = append(l.files, d), append(l.to, to)
}

func (l *logFiles) names() (names []string) {
	for _, f := range l.files {
		names = append(names, f.path)
	}
	return names
}

// read reads the files as one log, and nothing of them twice: what is hashed is
// what was read, also while the log is still being written.
func (l *logFiles) read(ctx context.Context, opt accesslog.Options) (*accesslog.Log, error) {
	if len(l.files) == 0 {
		return nil, nil
	}
	var sources []accesslog.Source
	for _, f := range l.files {
		defer f.Close()
		sources = append(sources, accesslog.Stream(f.path, f))
	}
	log, err := accesslog.Read(ctx, sources, opt)
	if err != nil {
		return nil, err
	}
	for i, f := range l.files {
		if _, err := io.Copy(io.Discard, f); err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		*l.to[i] = f.input(f.path, l.kind)
	}
	return log, nil
}

// digest reads a file, opened when its turn comes, and sums up what was read.
type digest struct {
	path string
	from *bufio.Reader // in place of a file
	file *os.File
	sum  summing
	err  error // of opening
}

// newPeeked is a stream of which the beginning can be looked at.
func newPeeked(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 1<<20) }

// look is the source to be recognised, of which nothing is used up.
func (d *digest) look() accesslog.Source {
	if d.from == nil {
		return accesslog.File(d.path)
	}
	head, _ := d.from.Peek(maxHead) // an error shows when it is read
	return accesslog.Stream(d.path, bytes.NewReader(head))
}

func (d *digest) Read(p []byte) (int, error) {
	if d.from != nil {
		n, err := d.from.Read(p)
		d.sum.Write(p[:n])
		return n, err
	}
	if d.file == nil && d.err == nil {
		d.file, d.err = os.Open(d.path)
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.file.Read(p)
	d.sum.Write(p[:n])
	return n, err
}

func (d *digest) Close() error {
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file, d.err = nil, errors.Join(d.err, os.ErrClosed)
	return err
}

func (d *digest) input(name string, kind record.InputKind) record.ReportInput {
	return d.sum.input(name, kind)
}

// readWhole reads a file of at most so many bytes, and sums it up.
func readWhole(path string, most int64, kind record.InputKind) ([]byte, record.ReportInput, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, record.ReportInput{}, fmt.Errorf("%s: %w", path, bare(err))
	}
	defer f.Close()
	sum := &summing{}
	data, err := io.ReadAll(io.TeeReader(io.LimitReader(f, most+1), sum))
	if err != nil {
		return nil, record.ReportInput{}, fmt.Errorf("%s: %w", path, bare(err))
	}
	if int64(len(data)) > most {
		return nil, record.ReportInput{}, fmt.Errorf("%s: more than %d bytes", path, most)
	}
	return data, sum.input(path, kind), nil
}

// summing counts and hashes what is written to it.
type summing struct {
	hash  hash.Hash
	bytes int64
}

func (s *summing) Write(p []byte) (int, error) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.bytes += int64(len(p))
	return s.hash.Write(p)
}

func (s *summing) input(name string, kind record.InputKind) record.ReportInput {
	_, _ = s.Write(nil)
	return record.ReportInput{Name: name, Kind: kind, Bytes: s.bytes, SHA256: hex.EncodeToString(s.hash.Sum(nil))}
}
