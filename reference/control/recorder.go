package control

import (
	"strings"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/apilog"
)

// Bounds of what is remembered.
const (
	maxRecords = 20_000 // requests, of all users together
	maxEntries = 10_000 // log entries in one answer
)

// recorder remembers, for the latest requests, what became of them. Counts of a
// user are kept for good, so they stay right when its requests are forgotten.
type recorder struct {
	mu      sync.Mutex
	records map[string]*record
	order   []string // request ids, a ring
	next    int
	totals  map[string]*counts
}

// record is what is known of one request.
type record struct {
	counts
	user    string
	entries []wire.Entry
	charged map[string]bool // by the ledger's id: charging twice under one is charging once
}

type counts struct{ calls, charges, lookups int64 }

func newRecorder() *recorder {
	return &recorder{records: map[string]*record{}, totals: map[string]*counts{}}
}

// of is the record of a request; it requires that r.mu is held.
func (r *recorder) of(request string) *record {
	if rec, ok := r.records[request]; ok {
		return rec
	}
	rec := &record{}
	r.records[request] = rec
	if len(r.order) < maxRecords {
		r.order = append(r.order, request)
		return rec
	}
	delete(r.records, r.order[r.next])
	r.order[r.next] = request
	r.next = (r.next + 1) % maxRecords
	return rec
}

// count adds to a request's counts and to its user's.
func (r *recorder) count(request, user string, add func(*counts)) {
	if user != "" {
		total, ok := r.totals[user]
		if !ok {
			total = &counts{}
			r.totals[user] = total
		}
		add(total)
	}
	if request != "" {
		rec := r.of(request)
		add(&rec.counts)
		if user != "" {
			rec.user = user
		}
	}
}

func (r *recorder) lookup(request, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(request, user, func(c *counts) { c.lookups++ })
}

func (r *recorder) call(request, user string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(request, user, func(c *counts) { c.calls++ })
}

func (r *recorder) charge(request, user, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if request != "" {
		rec := r.of(request)
		if rec.charged[id] {
			return
		}
		if rec.charged == nil {
			rec.charged = map[string]bool{}
		}
		rec.charged[id] = true
	}
	r.count(request, user, func(c *counts) { c.charges++ })
}

func (r *recorder) entry(e contract.LogEntry) {
	x, err := entryOf(e)
	if err != nil {
		return // the log itself fails likewise, and says so
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.of(e.RequestID)
	if e.User != "" {
		rec.user = e.User
	}
	rec.entries = append(rec.entries, x)
}

// entryOf is a log entry in the protocol's words.
func entryOf(e contract.LogEntry) (wire.Entry, error) {
	line, err := apilog.Encode(e)
	return wire.Entry{
		RequestID: e.RequestID,
		User:      e.User,
		Status:    e.Status,
		Rejected:  e.Outcome == contract.LogRejected,
		ErrorCode: e.ErrorCode,
		Raw:       strings.TrimSuffix(string(line), "\n"),
	}, err
}

// request is what is known of one request, if anything is.
func (r *recorder) request(id string) (a wire.Audit, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, ok := r.records[id]
	if !ok {
		return audit(nil, counts{}), false
	}
	return audit(rec.entries, rec.counts), true
}

// user is what is known of all requests of a user.
func (r *recorder) user(id string) wire.Audit {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []wire.Entry
	for i := range r.order {
		// From the oldest on: the ring's next place, once it is full.
		rec := r.records[r.order[(r.next+i)%len(r.order)]]
		if rec.user == id {
			all = append(all, rec.entries...)
		}
	}
	all = all[max(0, len(all)-maxEntries):]
	total := counts{}
	if t, ok := r.totals[id]; ok {
		total = *t
	}
	return audit(all, total)
}

func audit(entries []wire.Entry, c counts) wire.Audit {
	out := wire.Audit{Entries: []wire.Entry{}, EngineCalls: c.calls, Charges: c.charges, KeyLookups: c.lookups}
	out.Entries = append(out.Entries, entries...)
	return out
}
