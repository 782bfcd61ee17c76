package attack

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/loadgen/measure"
)

// watch is the context of a slot's requests, one after another, and sees when
// they leave and when their answers begin. It is used again as long as all goes
// well, so that a request costs no new one.
type watch struct {
	context.Context           // of every request, with the client trace
	deadline        time.Time // which the transports enforce

	judge    *measure.Judge // nil: nobody's bucket is asked
	exchange *measure.Exchange
	attempts int
	sent     time.Duration
	first    atomic.Int64 // noted on a goroutine of net/http's, maybe after we have given up
}

func newWatch(requests context.Context, now func() time.Duration) *watch {
	w := &watch{}
	w.Context = httptrace.WithClientTrace(requests, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { // before the first byte, on the sender's goroutine
			switch w.attempts++; {
			case w.attempts > 1:
			case w.judge == nil:
				w.sent = now()
			default:
				w.exchange, w.sent = w.judge.Begin()
			}
		},
		GotFirstResponseByte: func() { w.first.Store(int64(now())) },
	})
	return w
}

// Deadline carries out context.Context. The context does not end by it.
func (w *watch) Deadline() (time.Time, bool) { return w.deadline, true }
