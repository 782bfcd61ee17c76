package accesslog

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// reason says why a line is no entry.
type reason uint8

const (
	kept reason = iota
	blank
	comment
	tooLong
	fragment
	badTime
	truncated
	noClient
	badJSON
	badFields
	badEntry
	duplicate
	reasons
)

func (r reason) String() string {
	return [...]string{
		kept: "kept", blank: "blank", comment: "heading", tooLong: "longer than 1 MiB", fragment: "no client and time at its start",
		badTime: "invalid time", truncated: "ends before a status", noClient: "no client", badJSON: "invalid JSON",
		badFields: "other fields than the format has",
		badEntry:  "not a whole entry of the API log", duplicate: "entry delivered twice",
	}[r]
}

// notAttempt says why an entry is no attempt.
type notAttempt uint8

const (
	outOfScope notAttempt = iota
	unauthenticated
	unresolved
	undecided
	notAttempts
)

func (n notAttempt) String() string {
	return [...]string{
		outOfScope: "out of scope", unauthenticated: "unauthenticated", unresolved: "policy unresolved",
		undecided: "no decision of a user's limiter",
	}[n]
}

// example is where a reason was met first, and what the line looks like.
type example struct {
	line  int64
	looks string
}

// tally counts lines while they are read.
type tally struct {
	lines, entries int64
	dropped        [reasons]int64
	examples       [reasons]example
	not            [notAttempts]int64
	malformed      int64
	shapes         [extra + 1]int64
	lists, named   int64
	held           int64 // entries that say how long they took
	finest         int64 // microseconds; 0: whole seconds
	minutes        [60]int64
	seconds        [61]int64
	statuses       [1000]int64
	methods        [methodCount]int64
}

// add adds what somebody else counted.
func (t *tally) add(o *tally) {
	t.lines += o.lines
	t.entries += o.entries
	for i, n := range o.dropped {
		t.dropped[i] += n
		if e := o.examples[i]; e.line > 0 && (t.examples[i].line == 0 || e.line < t.examples[i].line) {
			t.examples[i] = e
		}
	}
	for i, n := range o.not {
		t.not[i] += n
	}
	t.malformed += o.malformed
	for i, n := range o.shapes {
		t.shapes[i] += n
	}
	t.lists += o.lists
	t.named += o.named
	t.held += o.held
	if o.finest > 0 && (t.finest == 0 || o.finest < t.finest) {
		t.finest = o.finest
	}
	for i, n := range o.minutes {
		t.minutes[i] += n
	}
	for i, n := range o.seconds {
		t.seconds[i] += n
	}
	for i, n := range o.statuses {
		t.statuses[i] += n
	}
	for i, n := range o.methods {
		t.methods[i] += n
	}
}

// reasons lists why lines were dropped.
func (t *tally) reasons() string {
	var b strings.Builder
	for i, n := range t.dropped {
		if n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, reason(i))
		}
	}
	return b.String()
}

// hasher sums up a line.
type hasher struct{ seed maphash.Seed }

func (h hasher) of(line []byte) uint64 { return maphash.Bytes(h.seed, line) }

// sums tell whether two sources hold the same lines in the same order, whatever
// pieces they were read in.
type sums struct{ lines, ordered, n uint64 }

// add takes the line of a number.
func (s *sums) add(hash uint64, number int64) {
	s.lines += hash
	s.ordered += hash * uint64(number)
	s.n++
}

func (s *sums) join(o sums) {
	s.lines += o.lines
	s.ordered += o.ordered
	s.n += o.n
}
