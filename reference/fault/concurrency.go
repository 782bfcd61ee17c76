package fault

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/wiring"
)

func concurrencyFaults() []Fault {
	const retryAfter = contract.HeaderRetryAfter
	return []Fault{
		{"no-concurrency-cap", "CONC-1", "there is no cap", limiting(func(l *steps) { l.permits = noCap{} })},
		{"cap-plus-one", "CONC-1", "the cap is one higher", capped(func(_ string, limit int64) int64 { return limit + 1 })},
		{"conc-wrong-code", "CONC-1", "a concurrency rejection has the code of a rate rejection",
			answers(onCap, body(func(m map[string]any) { m[contract.MemberErrorCode] = contract.CodeRateLimited }))},
		{"conc-503", "CONC-1", "a concurrency rejection is a 503", answers(onCap, status(http.StatusServiceUnavailable))},

		{"conc-no-retry-after", "CONC-2", "a concurrency rejection has no Retry-After", answers(onCap, without(retryAfter))},
		{"conc-retry-after-0", "CONC-2", "a concurrency rejection says Retry-After: 0", answers(onCap, with(retryAfter, "0"))},
		{"conc-retry-after-5", "CONC-2", "a concurrency rejection says Retry-After: 5", answers(onCap, with(retryAfter, "5"))},
		{"no-headers-conc-429", "CONC-2", "a concurrency rejection lacks the RateLimit headers", answers(onCap, withoutBucket)},

		{"token-refund-on-conc", "CONC-3", "a concurrency rejection gives its token back", refunds(onCap)},

		{"permit-after-body", "CONC-4", "the permit is taken once the body was read and validated", permitAfter(httpapi.LinkValidate)},
		{"permit-after-capacity", "CONC-5", "the permit is taken once an operation was reserved", permitAfter(httpapi.LinkCapacity)},

		{"cap-minus-one", "CONC-6", "the cap is one lower where it is above one",
			capped(func(_ string, limit int64) int64 { return max(1, limit-1) })},
		{"cap-race", "CONC-6", "simultaneous requests can all take the last permit",
			func(p *wiring.Parts) {
				tokens, permits := halves(p)
				permits.buckets = unlocked{permits.buckets}
				permits.permits = tornTable{permit.New()}
				p.Links = p.Links.After(httpapi.LinkLimit, by(permits, p)).Replace(httpapi.LinkLimit, by(tokens, p))
			}},

		{"release-before-body", "PERMIT-1", "the permit is free once the response's head is sent",
			releasingAtHead(func(int) bool { return true })},
		{"leak-on-success", "PERMIT-2", "a success never gives its permit back",
			leaking(func(_ context.Context, x *httpapi.Exchange) bool { return x.Status == http.StatusOK })},
		{"leak-on-validation", "PERMIT-3", "a validation failure never gives its permit back", leakingOn(contract.CodeValidationFailed)},
		{"leak-on-capacity", "PERMIT-4", "a capacity rejection never gives its permit back", leakingOn(contract.CodeCapacityExhausted)},
		{"leak-on-engine-failure", "PERMIT-5", "an engine failure never gives its permit back", leakingOn(contract.CodeEngineFailure)},
		{"leak-on-panic", "PERMIT-5", "a panic in the engine never gives its permit back", leakOnPanic()},
		{"leak-on-timeout", "PERMIT-6", "a timeout never gives its permit back", leakingOn(contract.CodeEngineTimeout)},
		{"release-at-timeout", "PERMIT-6", "a timeout gives its permit back while the work goes on",
			releasingAtHead(func(status int) bool { return status == http.StatusGatewayTimeout })},
		{"leak-on-disconnect-upload", "PERMIT-7", "a client that goes away in its upload never gives its permit back", leakingLeft(inUpload)},
		{"leak-on-disconnect-engine", "PERMIT-7", "a client that goes away before its response never gives its permit back", leakingLeft(beforeResponse)},
		{"leak-on-disconnect-response", "PERMIT-7", "a client that goes away in its response never gives its permit back", leakingLeft(inResponse)},
		{"h2-reset-leaks", "PERMIT-7", "a stream of HTTP/2 that is reset never gives its permit back", leakOnReset()},
		{"conc-reject-releases", "PERMIT-8", "a concurrency rejection gives back a permit that it never took",
			limiting(func(l *steps) { l.permits = &counts{inFlight: map[string]int64{}, release: 1, refuse: 1} })},
		{"double-release", "PERMIT-8", "each permit is given back twice",
			limiting(func(l *steps) { l.permits = &counts{inFlight: map[string]int64{}, release: 2} })},
	}
}

// permitAfter splits the limiter: the token is spent where it should be, the
// permit taken just inside the link called name.
func permitAfter(name string) alteration {
	return func(p *wiring.Parts) {
		tokens, permits := halves(p)
		p.Links = p.Links.After(name, by(permits, p)).Replace(httpapi.LinkLimit, by(tokens, p))
	}
}

// capped takes permits under another cap.
func capped(limit func(subject string, limit int64) int64) alteration {
	return limiting(func(l *steps) { l.permits = cappedTable{l.permits, limit} })
}

type cappedTable struct {
	permits
	limit func(subject string, limit int64) int64
}

func (t cappedTable) Take(subject, id string, limit int64) (int64, bool) {
	return t.permits.Take(subject, id, t.limit(subject, limit))
}

// unlocked is a store to read from: what a step does meanwhile holds nobody up,
// and changes nothing.
type unlocked struct{ buckets }

func (u unlocked) Update(subject string, f func(bucket.State) bucket.State) {
	var read bucket.State
	u.buckets.Update(subject, func(s bucket.State) bucket.State { read = s; return s })
	f(read)
}

// tornTable looks for the last place and takes it in two steps.
type tornTable struct{ *permit.Table }

func (t tornTable) Take(subject, id string, limit int64) (int64, bool) {
	switch n := t.InFlight(subject); {
	case n >= limit:
		return n, false
	case n == limit-1:
		time.Sleep(window)
	}
	return t.Table.Take(subject, id, math.MaxInt64)
}

// counts is a table that does not know who holds a permit, only how many are
// held: what a release and a refusal give back.
type counts struct {
	mu              sync.Mutex
	inFlight        map[string]int64
	release, refuse int64
}

func (c *counts) Take(subject, _ string, limit int64) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.inFlight[subject]
	if n >= limit {
		c.inFlight[subject] -= c.refuse
		return n, false
	}
	c.inFlight[subject]++
	return max(n, 0), true
}

func (c *counts) Release(subject, _ string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight[subject] -= c.release
	return true
}

// releasingAtHead gives a permit back as soon as the head of an answer with one
// of these statuses is written.
func releasingAtHead(on func(status int) bool) alteration {
	return heads(func(p *httpapi.Ports, _ http.ResponseWriter, r *http.Request, status int) {
		if on(status) {
			x := httpapi.From(r.Context())
			p.Limiter.Release(context.WithoutCancel(r.Context()), x.Subject, x.ID)
		}
	})
}

// leaking keeps the permits of some requests for ever.
func leaking(keep func(context.Context, *httpapi.Exchange) bool) alteration {
	return func(p *wiring.Parts) { p.Limiter = leakingLimiter{p.Limiter, keep} }
}

type leakingLimiter struct {
	limiter.Limiter
	keep func(context.Context, *httpapi.Exchange) bool
}

func (l leakingLimiter) Release(ctx context.Context, subject, id string) error {
	if l.keep(ctx, httpapi.From(ctx)) {
		return nil
	}
	return l.Limiter.Release(ctx, subject, id)
}

func leakingOn(code string) alteration {
	return leaking(func(_ context.Context, x *httpapi.Exchange) bool { return x.Code == code })
}

// leakOnReset keeps the permits of requests that share their connection and have
// lost their client.
func leakOnReset() alteration {
	type key struct{}
	return both(
		leaking(func(ctx context.Context, _ *httpapi.Exchange) bool {
			client, ok := ctx.Value(key{}).(context.Context)
			return ok && client.Err() != nil
		}),
		before(httpapi.LinkLimit, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor > 1 {
					r = r.WithContext(context.WithValue(r.Context(), key{}, r.Context()))
				}
				next.ServeHTTP(w, r)
			}
		}))
}

// leakOnPanic tells a panic of the engine from its other failures.
func leakOnPanic() alteration {
	return func(p *wiring.Parts) {
		var panicked sync.Map // request id
		p.Engine = panicking{p.Engine, &panicked}
		leaking(func(_ context.Context, x *httpapi.Exchange) bool {
			_, yes := panicked.LoadAndDelete(x.ID)
			return yes
		})(p)
	}
}

type panicking struct {
	httpapi.Engine
	who *sync.Map
}

func (e panicking) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	defer func() {
		if v := recover(); v != nil {
			e.who.Store(httpapi.From(ctx).ID, true)
			panic(v)
		}
	}()
	return e.Engine.Calculate(ctx, in)
}

// departure is the moment at which a client went away.
type departure int32

const (
	stayed departure = iota
	inUpload
	beforeResponse
	inResponse
)

// leakingLeft keeps the permits of clients that went away at one moment.
func leakingLeft(at departure) alteration {
	type key struct{}
	return both(
		leaking(func(ctx context.Context, _ *httpapi.Exchange) bool {
			left, ok := ctx.Value(key{}).(*atomic.Int32)
			return ok && departure(left.Load()) == at
		}),
		before(httpapi.LinkLimit, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				left := &atomic.Int32{}
				ctx := context.WithValue(r.Context(), key{}, left)
				r = r.WithContext(ctx)
				r.Body = watchedBody{r.Body, left}
				next.ServeHTTP(&watchedWriter{w, ctx, left}, r)
			}
		}))
}

type watchedBody struct {
	io.ReadCloser
	left *atomic.Int32
}

func (b watchedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
		b.left.CompareAndSwap(int32(stayed), int32(inUpload))
	}
	return n, err
}

type watchedWriter struct {
	http.ResponseWriter
	ctx  context.Context
	left *atomic.Int32
}

func (w *watchedWriter) see(at departure) {
	if w.ctx.Err() != nil {
		w.left.CompareAndSwap(int32(stayed), int32(at))
	}
}

func (w *watchedWriter) WriteHeader(status int) {
	w.see(beforeResponse)
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	w.see(inResponse)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets deadlines and flushes through.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
