package fault

import (
	"context"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/wiring"
)

// logFaults are wrong about what is left in the log of a process that has ended.
func logFaults() []Fault {
	every := func(contract.LogEntry) bool { return true }
	rejections := func(e contract.LogEntry) bool { return e.Outcome == contract.LogRejected }
	return []Fault{
		{"entries-written-late", "LOG-5", "an entry waits in memory after its answer, and ends with its process", writtenLate(every)},
		{"rejections-written-late", "LOG-5", "the entry of a rejection waits in memory after its answer, and ends with its process", writtenLate(rejections)},
		{"log-begins-anew", "LOG-5", "a start does away with what an earlier process has logged", logged(func([]contract.LogEntry) []contract.LogEntry { return nil })},
		{"entry-delivered-twice", "LOG-6", "a start delivers again what an earlier process has logged, and all of it is kept", logged(func(e []contract.LogEntry) []contract.LogEntry { return append(e, e...) })},
	}
}

// late is longer than a process takes to end, and shorter than an entry is looked
// for: an audit of a server that goes on finds every entry.
const late = 1500 * time.Millisecond

// writtenLate keeps some entries in memory for a while before they are written.
func writtenLate(some func(contract.LogEntry) bool) alteration {
	return func(p *wiring.Parts) { p.Log = lateLog{p.Log, some} }
}

type lateLog struct {
	httpapi.Log
	some func(contract.LogEntry) bool
}

func (l lateLog) Write(ctx context.Context, e contract.LogEntry) error {
	if !l.some(e) {
		return l.Log.Write(ctx, e)
	}
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(late, func() { l.Log.Write(ctx, e) }) // in vain, once the log is closed
	return nil
}

// logged changes what the log holds of requests that an earlier process answered.
func logged(change func([]contract.LogEntry) []contract.LogEntry) alteration {
	return func(p *wiring.Parts) {
		find := p.Logged
		if find == nil {
			return // nothing outlives the process
		}
		own := newNotes[bool]()
		p.Log = notingLog{p.Log, own}
		p.Logged = func(ctx context.Context, requestID string) ([]contract.LogEntry, error) {
			found, err := find(ctx, requestID)
			if mine := own.change(requestID, func(mine bool) bool { return mine }); !mine {
				found = change(found)
			}
			return found, err
		}
	}
}

// notingLog takes note of the requests that this process logs.
type notingLog struct {
	httpapi.Log
	own *notes[bool]
}

func (l notingLog) Write(ctx context.Context, e contract.LogEntry) error {
	l.own.change(e.RequestID, func(bool) bool { return true })
	return l.Log.Write(ctx, e)
}
