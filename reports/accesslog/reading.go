package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// reason says why a line is no entry.
type reason uint8

const (
	kept reason = iota
	blank
	tooLong
	fragment
	badTime
	truncated
	noClient
	badEntry
	duplicate
	reasons
)

func (r reason) String() string {
	return [...]string{
		kept: "kept", blank: "blank", tooLong: "longer than 1 MiB", fragment: "no client and time at its start",
		badTime: "invalid time", truncated: "ends before a status", noClient: "no client",
		badEntry: "not a whole entry of the API log", duplicate: "entry delivered twice",
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

// tally counts lines while they are read.
type tally struct {
	lines, entries int64
	dropped        [reasons]int64
	not            [notAttempts]int64
	malformed      int64
	shapes         [extra + 1]int64
	lists, named   int64
	minutes        [60]int64
	statuses       [1000]int64
	methods        map[string]int64
}

// since lists why lines were dropped after an earlier count.
func (t *tally) since(before tally) string {
	var b strings.Builder
	for i, n := range t.dropped {
		if n -= before.dropped[i]; n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, reason(i))
		}
	}
	return b.String()
}

// reading is a log while it is being read.
type reading struct {
	prefix   string // of Options.Scope, without its slash at the end
	opt      Options
	format   record.LogFormat // what the first source turned out to be; an access log is Common until the end
	files    []record.LogFile
	seed     maphash.Seed
	contents map[uint64]string // names of sources by what they hold
	tally    tally
	pools    map[string]uint32
	plans    map[string]string // one text for all entries of a plan
	stamps   stamps
	made     []int64          // entries by pool
	last     int64            // the time of the entry before
	backward int64            // entries stamped before the one above them
	attempts timeline.Builder // an access log's as they are read, an API log's in the end
	every    timeline.Builder // all entries, where attempts are others
	err      error            // of keeping attempts
	decided  []Decided
	run      int
	runFirst int               // the place in decided at which this run begins
	orders   map[uint64]string // request ids by order, of this run
}

func newReading(opt Options) *reading {
	return &reading{
		opt: opt, prefix: strings.TrimRight(opt.Scope, "/"), seed: maphash.MakeSeed(), contents: map[uint64]string{},
		pools: map[string]uint32{}, plans: map[string]string{}, orders: map[uint64]string{}, tally: tally{methods: map[string]int64{}},
	}
}

// recognise tells the format by a line and returns what keeps such lines, or nil
// where the line is of no known format: the beginning of a rotated file can be
// half an entry.
func (r *reading) recognise(line []byte) (func([]byte) reason, error) {
	var format record.LogFormat
	var keep func([]byte) reason
	switch {
	case line[0] == '{' && json.Valid(line):
		if err := ours(line); err != nil {
			return nil, err
		}
		format, keep = record.FormatAPI, r.keepAPI
	case stampAt(line) > 0:
		format, keep = record.FormatCommon, r.keepCLF
	default:
		return nil, nil
	}
	if r.format != "" && r.format != format {
		return nil, errors.New("an access log and an API log do not make one log; replay them apart")
	}
	r.format = format
	return keep, nil
}

// ours reports why a JSON object is no entry of an API log that can be read.
func ours(line []byte) error {
	var probe struct {
		Schema  int    `json:"schema"`
		ID      string `json:"request_id"`
		Outcome string `json:"outcome"`
	}
	if json.Unmarshal(line, &probe) != nil || probe.ID == "" || probe.Outcome == "" {
		return errors.New("JSON, but not brimline's API log; accepted: Common or Combined format, brimline's API log")
	}
	if probe.Schema != apiSchema {
		return fmt.Errorf("API log of schema %d; accepted: %d", probe.Schema, apiSchema)
	}
	return nil
}

// pool returns the number of a client or user, the next one for a new name.
func (r *reading) pool(name []byte) uint32 {
	if id, ok := r.pools[string(name)]; ok {
		return id
	}
	id := uint32(len(r.pools))
	r.pools[string(name)] = id
	r.made = append(r.made, 0)
	return id
}

// stamped notes when an entry was, and whose it is.
func (r *reading) stamped(a timeline.Attempt, outside bool) {
	if r.tally.entries > 0 && a.At < r.last {
		r.backward++
	}
	r.last = a.At
	if a.Pool != NoPool {
		r.made[a.Pool]++
	}
	if r.apart() && r.err == nil {
		r.err = r.every.Add(a)
	}
}

// apart reports whether there are entries that are no attempts.
func (r *reading) apart() bool { return r.opt.Scope != "" || r.format == record.FormatAPI }

// close gives up what was read.
func (r *reading) close() error { return errors.Join(r.attempts.Close(), r.every.Close()) }

// fateOf is what a status tells of what a limiter did.
func fateOf(status int) timeline.Fate {
	if status == 429 {
		return timeline.RefusedSomehow
	}
	return timeline.Passed
}

// plan returns the text that all entries of a plan share.
func (r *reading) plan(name string) string {
	if kept, ok := r.plans[name]; ok {
		return kept
	}
	r.plans[name] = name
	return name
}

// keepCLF keeps a line of Common or Combined format.
func (r *reading) keepCLF(b []byte) reason {
	line, why := r.stamps.parseCLF(b)
	if why != kept {
		return why
	}
	client, list := clientOf(line.head, r.opt.TrustedProxies)
	if client == nil {
		return noClient
	}
	t := &r.tally
	t.shapes[line.shape]++
	t.minutes[line.minute]++
	t.statuses[line.status]++
	if list {
		t.lists++
	}
	if !bytes.HasSuffix(line.head, []byte(" -")) {
		t.named++
	}
	if line.method == nil {
		t.malformed++
	}
	t.methods[methodName(line.method)]++
	outside := r.opt.Scope != "" && (line.method == nil || !inScope(line.target, r.prefix))
	if outside {
		t.not[outOfScope]++
	}
	a := timeline.Attempt{At: line.seconds * 1e6, Hold: timeline.NoHold, Pool: r.pool(client), Status: uint16(line.status), Fate: fateOf(line.status)}
	r.stamped(a, outside)
	if !outside && r.err == nil {
		r.err = r.attempts.Add(a)
	}
	return kept
}

// methodName keeps the number of names small, whatever clients send.
func methodName(b []byte) string {
	switch string(b) {
	case "":
		return "malformed"
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE":
		return string(b)
	}
	return "other"
}
