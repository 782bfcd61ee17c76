package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"runtime"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// reading is a log while it is being read.
type reading struct {
	opt      Options
	prefix   string           // of Options.Scope, without its slash at the end
	format   record.LogFormat // what the first source turned out to be; an access log is Common until the end
	files    []record.LogFile
	seed     maphash.Seed
	contents map[sums]string // names of sources by what they hold
	tally    tally           // of all sources
	stamp    record.LogStamp
	pools    map[string]uint32
	names    []string
	counts   []int64 // entries by pool
	backward int64
	examples []record.LogExample
	zones    map[int32]int64
	attempts timeline.Builder

	api apiReading
}

func newReading(opt Options) *reading {
	return &reading{
		opt: opt, prefix: strings.TrimRight(opt.Scope, "/"), seed: maphash.MakeSeed(), contents: map[sums]string{},
		pools: map[string]uint32{}, zones: map[int32]int64{}, api: newAPIReading(),
	}
}

// source reads one source to its end. Its format is that of the first line of
// which the format can be told.
func (r *reading) source(ctx context.Context, s Source) error {
	in, compressed, done, err := s.stream()
	if err != nil {
		return bare(err)
	}
	defer done()
	b := &book{reading: r, from: &pieces{in: in}, clerk: r.clerk()}
	if err := b.read(ctx); err != nil {
		return err
	}
	t := &b.clerk.tally
	f := record.LogFile{Name: s.name, Compressed: compressed, Lines: t.lines, Entries: t.entries}
	if f.Lines > 0 && f.Entries == 0 {
		return fmt.Errorf("%w in %d lines%s", ErrNothing, f.Lines, t.reasons())
	}
	if f.Lines > 0 {
		if earlier, ok := r.contents[b.sums]; ok {
			return fmt.Errorf("holds the same lines as %s, which would count twice", earlier)
		}
		r.contents[b.sums] = s.name
	}
	r.files = append(r.files, f)
	for why, e := range t.examples {
		if e.line > 0 && r.tally.dropped[why] == 0 {
			r.examples = append(r.examples, record.LogExample{Reason: reason(why).String(), File: s.name, Line: e.line, Looks: e.looks})
		}
	}
	for zone, n := range b.clerk.zones {
		r.zones[zone] += n
	}
	r.tally.add(t)
	return nil
}

// clerk is one who knows no dialect yet.
func (r *reading) clerk() *clerk {
	return &clerk{scope: r.prefix, scoped: r.opt.Scope != "", hash: hasher{r.seed}, zones: map[int32]int64{}}
}

// book is one source while it is being read.
type book struct {
	*reading
	from  *pieces
	clerk *clerk // what was seen of the source
	told  []byte // the line that told the format
	sums  sums
	last  int64 // the instant of the entry before
	begun bool
}

func (b *book) read(ctx context.Context) error {
	p := &piece{}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.from.next(p); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("after %d lines: %w", b.from.line, err)
		}
		known, rest, err := b.recognise(p)
		if err != nil {
			return err
		}
		switch {
		case known == nil:
			continue
		case known.format == record.FormatAPI:
			return b.decisions(ctx, rest)
		}
		return b.entries(ctx, *known, rest)
	}
}

// recognise looks for a line whose format can be told, and counts those before
// it: the beginning of a rotated file can be half an entry. What is left of the
// piece begins with that line.
func (b *book) recognise(p *piece) (known *kind, rest *piece, err error) {
	before := p.first - 1
	if p.long {
		b.clerk.read(p)
		return nil, nil, nil
	}
	text := p.text
	offset := 0
	lines(text, func(one []byte) {
		if known != nil || err != nil {
			return
		}
		before++
		if !blankLine(one) && len(one) < maxLine {
			known, err = b.kindOf(one)
			if err != nil {
				err = fmt.Errorf("line %d: %w", before, err)
				return
			}
			if known != nil {
				offset = cap(text) - cap(one) // where the line begins
				b.told = bytes.Clone(one)
				if !known.skip {
					before--
					return
				}
			}
		}
		b.clerk.tally.lines++
		b.sums.add(b.clerk.hash.of(one), before)
		switch {
		case known != nil:
			b.clerk.drop(comment, before, nil)
		case len(one) >= maxLine:
			b.clerk.drop(tooLong, before, nil)
		case blankLine(one):
			b.clerk.drop(blank, before, nil)
		case one[0] == '#':
			b.clerk.drop(comment, before, nil)
		default:
			b.clerk.drop(fragment, before, one)
		}
	})
	if known == nil || err != nil {
		return nil, nil, err
	}
	left := p.text[offset:]
	if known.skip {
		_, left, _ = bytes.Cut(left, []byte{'\n'})
	}
	return known, &piece{text: left, first: before + 1}, nil
}

// kindOf tells the format by a line; nil: it is of no known one.
func (r *reading) kindOf(text []byte) (*kind, error) {
	var known *kind
	if text[0] == '{' && r.opt.Mapping == nil && json.Valid(text) {
		switch ours, err := isOurs(text); {
		case err != nil:
			return nil, err
		case ours:
			known = &kind{format: record.FormatAPI}
		}
	}
	for _, k := range kinds(r.opt) {
		if known == nil && k.is(text) {
			known = &k
		}
	}
	if known == nil {
		if text[0] == '{' && json.Valid(text) {
			return nil, fmt.Errorf("JSON of no known kind; accepted: %s", accepted)
		}
		return nil, nil
	}
	if r.format != "" && r.format != known.format {
		return nil, fmt.Errorf("a log of the kind %s does not make one log with %s, of the kind %s; read them apart", known.format, r.files[0].Name, r.format)
	}
	r.format = known.format
	r.stamp = cmp.Or(r.opt.Stamp, known.stamp)
	return known, nil
}

// workers is how many read at the same time.
func workers() int { return max(1, runtime.GOMAXPROCS(0)) }

// entries reads the rest of a source, several pieces at the same time, and keeps
// their entries in order.
func (b *book) entries(ctx context.Context, k kind, rest *piece) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := workers()
	order, jobs := make(chan *piece, 2*n), make(chan *piece, 2*n)
	free := make(chan *piece, 3*n)
	var end error
	go func() { // who reads the stream; it may wait for a terminal or a pipe for ever
		defer close(order)
		defer close(jobs)
		for p := rest; ; {
			p.done = make(chan struct{})
			for _, to := range []chan *piece{order, jobs} {
				select {
				case to <- p:
				case <-ctx.Done():
					end = ctx.Err()
					return
				}
			}
			select {
			case p = <-free:
			default:
				p = &piece{}
			}
			if err := b.from.next(p); err != nil {
				if err != io.EOF {
					end = fmt.Errorf("after %d lines: %w", b.from.line, err)
				}
				return
			}
		}
	}()
	clerks := make(chan *clerk, n)
	for i := range n {
		c := b.clerk
		if i > 0 {
			c = b.reading.clerk()
		}
		c.dialect, c.finished = k.new(b.told), b.stamp == record.StampFinished
		go func() {
			defer func() { clerks <- c }()
			for p := range jobs {
				c.read(p)
				close(p.done)
			}
		}()
	}
	for p := range order {
		select {
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.sums.join(p.sums)
		for i := range p.entries {
			if err := b.keep(&p.entries[i]); err != nil {
				return err
			}
		}
		select {
		case free <- p:
		default:
		}
	}
	for range n {
		if c := <-clerks; c != b.clerk {
			b.clerk.tally.add(&c.tally)
			for zone, n := range c.zones {
				b.clerk.zones[zone] += n
			}
		}
	}
	return end
}

// keep takes the next entry of the source.
func (b *book) keep(e *entry) error {
	r := b.reading
	if b.begun && e.at < b.last {
		r.backward++
	}
	b.last, b.begun = e.at, true
	pool := r.pool(e.pool)
	r.counts[pool]++
	if e.outside {
		return nil
	}
	if r.attempts.Len() >= MaxEntries {
		return fmt.Errorf("more than %d attempts: read a part of the log", int64(MaxEntries))
	}
	return r.attempts.Add(timeline.Attempt{At: e.at, Hold: e.hold, Pool: pool, Status: e.status, Fate: e.fate})
}

// pool returns the number of a client or user, the next one for a new name.
func (r *reading) pool(name []byte) uint32 {
	if id, ok := r.pools[string(name)]; ok {
		return id
	}
	id, text := uint32(len(r.names)), string(name)
	r.pools[text] = id
	r.names = append(r.names, text)
	r.counts = append(r.counts, 0)
	return id
}
