package apilog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// segment is one file of a spool. Only the last is written to.
type segment struct {
	number uint64
	size   int64
}

const (
	segmentSuffix = ".jsonl"
	positionFile  = "position"
	refusedFile   = "refused.jsonl"
)

func segmentPath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", number, segmentSuffix))
}

// listSegments finds the segments in dir, oldest first.
func listSegments(dir string) ([]segment, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []segment
	for _, f := range files {
		number, err := strconv.ParseUint(strings.TrimSuffix(f.Name(), segmentSuffix), 10, 64)
		if err != nil || filepath.Base(segmentPath(dir, number)) != f.Name() {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		found = append(found, segment{number: number, size: info.Size()})
	}
	slices.SortFunc(found, func(a, b segment) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}

// position is up to where a spool has been delivered: all segments before this
// one, and so many bytes of it.
type position struct {
	segment uint64
	offset  int64
}

// positionFormat is of one length and written when a spool is opened, so that
// saving a position needs no room on a disk that is full.
const positionFormat = "%020d %020d\n"

// openPosition reads what was saved last. What cannot be read is as good as
// nothing: what is delivered again is stored once.
func openPosition(dir string) (*os.File, position, error) {
	f, err := os.OpenFile(filepath.Join(dir, positionFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, position{}, err
	}
	var p position
	if _, err := fmt.Fscanf(f, "%d %d\n", &p.segment, &p.offset); err != nil || p.offset < 0 {
		p = position{}
	}
	if err := savePosition(f, p); err != nil {
		f.Close()
		return nil, position{}, err
	}
	return f, p, nil
}

func savePosition(f *os.File, p position) error {
	_, err := f.WriteAt(fmt.Appendf(nil, positionFormat, p.segment, p.offset), 0)
	return err
}

// lines is what was read from a segment.
type lines struct {
	entries []contract.LogEntry
	size    int64 // bytes that they take, with what was skipped
	torn    int64 // lines skipped: they are no entry
}

// readLines reads up to so many entries. An unfinished line at the end is left
// for later, unless nothing will be written to the segment any more.
func readLines(r io.Reader, most int, ended bool) (lines, error) {
	var read lines
	b := bufio.NewReaderSize(r, maxLine)
	for len(read.entries) < most {
		line, size, err := nextLine(b)
		switch {
		case errors.Is(err, io.EOF):
			if ended && size > 0 {
				read.size += size
				read.torn++
			}
			return read, nil
		case err != nil:
			return read, err
		}
		read.size += size
		if line = bytes.TrimSpace(line); len(line) == 0 && size < maxLine {
			continue
		}
		var e contract.LogEntry
		if json.Unmarshal(line, &e) != nil || e.RequestID == "" {
			read.torn++
			continue
		}
		read.entries = append(read.entries, e)
	}
	return read, nil
}

// nextLine reads a line and tells how many bytes it took. A line that is longer
// than any that is written comes back empty. At the end of what can be read the
// error is io.EOF, and size is that of a line without an end.
func nextLine(b *bufio.Reader) (line []byte, size int64, err error) {
	for {
		line, err = b.ReadSlice('\n')
		size += int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if size > maxLine {
			line = nil
		}
		return line, size, err
	}
}
