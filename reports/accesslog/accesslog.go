// Package accesslog reads other people's logs: it recognises the format by
// content, keeps of each request who asked, when, for how long and what became of
// it, and says how far the log can carry a conclusion. It knows the Common and
// Combined formats, with the deviations that real servers write, the logs of
// nginx in JSON, Caddy, Traefik, Envoy, AWS load balancers and CloudFront, any CSV
// or JSON Lines by a [Mapping], and the API log of package contract.
//
// Most callers want [Read], then package replay. A line that cannot be used is
// counted under a reason, with its first example, and never ends the reading; a
// malformed request is still an entry, since it was still an attempt. [Generate]
// writes a plausible log for demonstrations.
//
// Attempts go into a timeline, so memory grows with clients and not with lines:
// some 100 bytes a client and what a timeline holds. An API log is the exception,
// since its decisions are compared one by one: some 300 bytes an entry. A line is
// at most 1 MiB; a longer one is counted and skipped.
package accesslog

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// The most that is read at once.
const (
	MaxEntries = 1_000_000_000
	MaxDecided = 20_000_000 // recorded decisions of an API log
)

// ErrNothing says that a log holds no entry.
var ErrNothing = errors.New("no entries")

// Options narrow and guide the reading. The zero value reads everything and takes
// a format for what it is by default.
type Options struct {
	// Scope narrows attempts to this path and what lies below it, in whole
	// segments: /v1/invoice does not match /v1/invoicex. Empty: every path,
	// malformed requests included.
	Scope string

	// TrustedProxies are skipped, from the right, where an entry holds a list of
	// addresses. Empty: the last address, which is the peer, is the client.
	TrustedProxies []netip.Prefix

	// Stamp says what an entry's time means, [record.StampReceived] or
	// [record.StampFinished]. Empty: what the format has it mean.
	Stamp record.LogStamp

	// Trailing is the unit of a whole number that ends a Common or Combined line,
	// as servers are told to write a duration there. Empty: a number with a decimal
	// point is seconds, and a whole one no duration, since nobody can know its unit.
	Trailing Unit

	// Mapping reads lines of no known format. Nil: there is none.
	Mapping *Mapping
}

// Log is what was read. Whoever has it closes it.
type Log struct {
	Scope       string // as in Options
	Quality     record.LogQuality
	NotAttempts []record.Count // entries that are no attempt, by reason
	Pools       int            // an attempt's Pool is below this

	// Names are the clients' addresses, or users' names where the log is by users,
	// by pool. They are for telling whose a pool is, never to be printed.
	Names []string

	// Attempts are in the order of their time; of one time, in that of the log.
	Attempts *timeline.Timeline

	// Durations: the log tells of nearly every request how long it was in flight,
	// and when, to a millisecond or better.
	Durations bool

	// Decided belongs to an API log: every recorded decision in the order in
	// which it was taken, run by run. Nil for other formats.
	Decided []Decided
}

// Close gives back what the log holds outside of memory.
func (l *Log) Close() error { return l.Attempts.Close() }

// Decided is one recorded decision of our own server.
type Decided struct {
	contract.LogDecision
	Run       int // which server process, from 0
	Pool      uint32
	Plan      string // of the user at the time
	Attempt   bool   // it is among the log's Attempts: a user's, and in scope
	At        int64  // of an attempt: its time there
	RequestID string

	received int64 // microseconds since 1970
	hold     int64
	status   int
}

// NoPool is the pool of an entry that names nobody.
const NoPool = ^uint32(0)

// Read reads the sources as one log, in whatever order: what two files both hold
// counts twice, unless it is a decision of our own server. Two that hold the same
// lines, such as a log and its compressed copy, are refused. Its error names the
// source, and is [ErrNothing] where one has lines but no entry, or all are empty.
func Read(ctx context.Context, sources []Source, opt Options) (*Log, error) {
	for i, s := range sources {
		if s.err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, s.err)
		}
		for _, earlier := range sources[:i] {
			if s.same(earlier) {
				return nil, fmt.Errorf("%s: given twice, first as %s", s.name, earlier.name)
			}
		}
	}
	r := newReading(opt)
	for _, s := range sources {
		if err := r.source(ctx, s); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", s.name, err), r.attempts.Close())
		}
	}
	if r.tally.entries == 0 {
		return nil, fmt.Errorf("%s: %w: the log is empty", names(sources), ErrNothing)
	}
	return r.log(ctx)
}

func names(sources []Source) string {
	list := make([]string, len(sources))
	for i, s := range sources {
		list[i] = s.name
	}
	return strings.Join(list, ", ")
}
