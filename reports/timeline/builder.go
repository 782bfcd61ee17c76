package timeline

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Builder takes attempts in the order of a log and makes a timeline of them. What
// is in memory never exceeds some 50 MB: what is more goes, sorted, into a
// temporary file. The zero value is ready; whoever does not come to
// [Builder.Timeline] calls [Builder.Close].
type Builder struct {
	run      []Attempt // not yet written
	disorder bool      // run is not in order
	file     *os.File  // nil: everything is in memory
	out      *bufio.Writer
	runs     []stretch // written
	n        int64
	first    int64
	last     int64
	most     int // of run, before it is written; 0: runLen
}

// runLen is how many attempts are sorted in memory.
const runLen = 2 << 20

// recordLen is what an attempt takes in the file.
const recordLen = 24

// stretch is a sorted part of the file.
type stretch struct {
	begin, n    int64 // records
	first, last int64 // instants
}

// Add takes the next attempt of the log.
func (b *Builder) Add(a Attempt) error {
	if n := len(b.run); n > 0 && a.At < b.run[n-1].At {
		b.disorder = true
	}
	if b.n == 0 {
		b.first, b.last = a.At, a.At
	}
	b.first, b.last = min(b.first, a.At), max(b.last, a.At)
	b.run = append(b.run, a)
	b.n++
	most := b.most
	if most == 0 {
		most = runLen
	}
	if len(b.run) < most {
		return nil
	}
	return b.spill()
}

// Len is how many attempts were taken.
func (b *Builder) Len() int64 { return b.n }

// sorted puts the run in order; of one time the order stays.
func (b *Builder) sorted() {
	if b.disorder {
		slices.SortStableFunc(b.run, func(a, o Attempt) int { return cmp.Compare(a.At, o.At) })
		b.disorder = false
	}
}

// spill writes the run to the file.
func (b *Builder) spill() error {
	if len(b.run) == 0 {
		return nil
	}
	if b.file == nil {
		f, err := os.CreateTemp("", "brimline-timeline-*")
		if err != nil {
			return fmt.Errorf("room for recorded attempts: %w", err)
		}
		_ = os.Remove(f.Name()) // where a file can go while it is open, a killed process leaves none
		b.file, b.out = f, bufio.NewWriterSize(f, 1<<20)
	}
	b.sorted()
	var begin int64
	if n := len(b.runs); n > 0 {
		begin = b.runs[n-1].begin + b.runs[n-1].n
	}
	b.runs = append(b.runs, stretch{begin: begin, n: int64(len(b.run)), first: b.run[0].At, last: b.run[len(b.run)-1].At})
	var text [recordLen]byte
	for _, a := range b.run {
		put(&text, a)
		if _, err := b.out.Write(text[:]); err != nil {
			return fmt.Errorf("room for recorded attempts: %w", err)
		}
	}
	b.run = b.run[:0]
	return nil
}

// Timeline is what was taken. The builder is not to be used again.
func (b *Builder) Timeline() (*Timeline, error) {
	if b.file == nil {
		b.sorted()
		return &Timeline{attempts: b.run, n: b.n, first: b.first, last: b.last}, nil
	}
	err := b.spill()
	if err == nil {
		err = b.out.Flush()
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return &Timeline{file: b.file, runs: joined(b.runs), n: b.n, first: b.first, last: b.last}, nil
}

// Close gives up what was taken.
func (b *Builder) Close() error {
	b.run = nil
	return remove(b.file)
}

// joined makes one stretch of those that follow each other in time as well.
func joined(runs []stretch) (list []stretch) {
	for _, r := range runs {
		if n := len(list); n > 0 && r.first >= list[n-1].last {
			list[n-1].n += r.n
			list[n-1].last = r.last
			continue
		}
		list = append(list, r)
	}
	return list
}

func remove(f *os.File) error {
	if f == nil {
		return nil
	}
	err := os.Remove(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(f.Close(), err)
}

func put(to *[recordLen]byte, a Attempt) {
	binary.LittleEndian.PutUint64(to[0:], uint64(a.At))
	binary.LittleEndian.PutUint64(to[8:], uint64(a.Hold))
	binary.LittleEndian.PutUint32(to[16:], a.Pool)
	binary.LittleEndian.PutUint16(to[20:], a.Status)
	to[22], to[23] = byte(a.Fate), 0
}

func get(from []byte) Attempt {
	return Attempt{
		At: int64(binary.LittleEndian.Uint64(from[0:])), Hold: int64(binary.LittleEndian.Uint64(from[8:])),
		Pool: binary.LittleEndian.Uint32(from[16:]), Status: binary.LittleEndian.Uint16(from[20:]), Fate: Fate(from[22]),
	}
}

// reader reads a stretch of the file.
type reader struct {
	in   *bufio.Reader
	next Attempt
	left int64
	text [recordLen]byte
}

// readerSize is what each stretch is read ahead by: few of them are many.
func readerSize(stretches int) int { return max(4<<10, (4<<20)/max(1, stretches)) }

func newReader(f *os.File, s stretch, size int) (*reader, error) {
	r := &reader{in: bufio.NewReaderSize(io.NewSectionReader(f, s.begin*recordLen, s.n*recordLen), size), left: s.n}
	return r, r.advance()
}

// advance reads the next attempt into next; false in more says that there is none.
func (r *reader) advance() error {
	if r.left == 0 {
		r.left = -1
		return nil
	}
	r.left--
	if _, err := io.ReadFull(r.in, r.text[:]); err != nil {
		return fmt.Errorf("recorded attempts: %w", err)
	}
	r.next = get(r.text[:])
	return nil
}

func (r *reader) done() bool { return r.left < 0 }
