package httpapi

import (
	"context"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/limiter"
)

// logSchema is the version of the log's line format.
const logSchema = 1

// apiLog carries out LOG-1, LOG-3 and LOG-5: one entry for every request in
// scope, spooled before the first byte of its answer is written.
func apiLog(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := From(r.Context())
		logged := &loggingWriter{ResponseWriter: w}
		logged.before = func() {
			// The entry is due also when the client has gone.
			if err := p.Log.Write(context.WithoutCancel(r.Context()), p.entry(x)); err != nil {
				p.Logger.Error("an API log entry was lost", "request_id", x.ID, "error", err)
			}
		}
		// A link that panics has answered nothing: the connection ends, and the
		// entry says so.
		defer func() {
			if !logged.begun {
				x.Status = http.StatusInternalServerError
				logged.begin()
			}
		}()
		next.ServeHTTP(logged, r)
	})
}

// loggingWriter calls before once, when the final head is about to be written.
type loggingWriter struct {
	http.ResponseWriter
	before func()
	begun  bool
}

func (w *loggingWriter) begin() {
	if !w.begun {
		w.begun = true
		w.before()
	}
}

func (w *loggingWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *loggingWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// Unwrap lets deadlines and flushes through.
func (w *loggingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// entry is the log entry of a request whose answer has been composed. It holds
// no key: not even one that a client put into the path.
func (p *Ports) entry(x *Exchange) contract.LogEntry {
	e := contract.LogEntry{
		Schema:    logSchema,
		RequestID: x.ID,
		Received:  x.Received.UTC(),
		Duration:  int64(p.Clock.Instant() - x.Start),
		Method:    x.Method,
		Path:      account.MaskKeys(x.Path),
		Status:    x.Status,
		ErrorCode: x.Code,
		Outcome:   x.Outcome,
		User:      x.Account.User,
		Plan:      x.Effective.Plan,
		Charged:   x.Charged,

		Correlation: x.Correlation,
	}
	if e.User == "" {
		e.Client = p.Clients.Logged(x.Client)
	}
	if x.Decision != nil {
		e.Decision = logDecision(*x.Decision)
	}
	return e
}

func logDecision(d limiter.Decision) *contract.LogDecision {
	return &contract.LogDecision{
		Order:             d.Order,
		Instant:           int64(d.At),
		Outcome:           d.Outcome.String(),
		RequestsPerMinute: d.Allowance.RequestsPerMinute(),
		Burst:             d.Allowance.Burst(),
		Concurrency:       d.Allowance.Concurrency(),
		InFlight:          d.InFlight,
		Level:             d.Level,
	}
}
