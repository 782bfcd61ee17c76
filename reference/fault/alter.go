package fault

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// alteration is a fault at work.
type alteration = func(*wiring.Parts)

// both is two alterations, the second on top of the first.
func both(a, b alteration) alteration {
	return func(p *wiring.Parts) { a(p); b(p) }
}

// when says which replies something is done to.
type when func(x *httpapi.Exchange, r httpapi.Reply) bool

func always(*httpapi.Exchange, httpapi.Reply) bool        { return true }
func onSuccess(_ *httpapi.Exchange, r httpapi.Reply) bool { return r.Status == http.StatusOK }
func onError(_ *httpapi.Exchange, r httpapi.Reply) bool   { return r.Code != "" }

func onRate(_ *httpapi.Exchange, r httpapi.Reply) bool { return r.Code == contract.CodeRateLimited }
func onCap(_ *httpapi.Exchange, r httpapi.Reply) bool {
	return r.Code == contract.CodeConcurrencyLimited
}

func onRejection(x *httpapi.Exchange, r httpapi.Reply) bool { return onRate(x, r) || onCap(x, r) }

// onDecision is every answer that describes a bucket.
func onDecision(x *httpapi.Exchange, _ httpapi.Reply) bool { return x.Decision != nil }

// onAdmission is those of them that a token was spent for.
func onAdmission(x *httpapi.Exchange, r httpapi.Reply) bool { return onDecision(x, r) && !onRate(x, r) }

func onCode(code string) when {
	return func(_ *httpapi.Exchange, r httpapi.Reply) bool { return r.Code == code }
}

// replies changes what a link has to say, before it is composed.
func replies(on when, change func(x *httpapi.Exchange, r *httpapi.Reply)) alteration {
	return func(p *wiring.Parts) {
		compose := p.Compose
		p.Compose = func(x *httpapi.Exchange, r httpapi.Reply) httpapi.Answer {
			if on(x, r) {
				change(x, &r)
			}
			return compose(x, r)
		}
	}
}

// edit changes a composed answer.
type edit func(x *httpapi.Exchange, a *httpapi.Answer)

// answers changes what is sent.
func answers(on when, change edit) alteration {
	return func(p *wiring.Parts) {
		compose := p.Compose
		p.Compose = func(x *httpapi.Exchange, r httpapi.Reply) httpapi.Answer {
			a := compose(x, r)
			if on(x, r) {
				change(x, &a)
			}
			return a
		}
	}
}

// without drops headers.
func without(names ...string) edit {
	return func(_ *httpapi.Exchange, a *httpapi.Answer) {
		for _, n := range names {
			a.Header.Del(n)
		}
	}
}

// withoutBucket drops the three headers of the bucket.
func withoutBucket(x *httpapi.Exchange, a *httpapi.Answer) {
	without(contract.HeaderLimit, contract.HeaderRemaining, contract.HeaderReset)(x, a)
}

// with sets a header.
func with(name, value string) edit {
	return func(_ *httpapi.Exchange, a *httpapi.Answer) { a.Header.Set(name, value) }
}

// number sets a header to what the decision makes it. An answer from before any
// decision, as to a wrong key, stays as it is.
func number(name string, of func(d *limiter.Decision) int64) edit {
	return func(x *httpapi.Exchange, a *httpapi.Answer) {
		if x.Decision != nil {
			a.Header.Set(name, strconv.FormatInt(of(x.Decision), 10))
		}
	}
}

// status answers with another status.
func status(code int) edit {
	return func(_ *httpapi.Exchange, a *httpapi.Answer) { a.Status = code }
}

// body changes the members of an error body.
func body(change func(members map[string]any)) edit {
	return func(_ *httpapi.Exchange, a *httpapi.Answer) {
		members := map[string]any{}
		if json.Unmarshal(a.Body, &members) == nil {
			change(members)
			a.Body, _ = json.Marshal(members) // what was decoded encodes
		}
	}
}

// lines changes the log entry of a request into any number of entries.
func lines(change func(ctx context.Context, e contract.LogEntry) []contract.LogEntry) alteration {
	return func(p *wiring.Parts) { p.Log = rewrittenLog{p.Log, change} }
}

type rewrittenLog struct {
	httpapi.Log
	change func(context.Context, contract.LogEntry) []contract.LogEntry
}

func (l rewrittenLog) Write(ctx context.Context, e contract.LogEntry) error {
	for _, e := range l.change(ctx, e) {
		if err := l.Log.Write(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// entries changes the log entries of one kind: none, two, or another.
func entries(of func(contract.LogEntry) bool, change func(contract.LogEntry) []contract.LogEntry) alteration {
	return lines(func(_ context.Context, e contract.LogEntry) []contract.LogEntry {
		if of(e) {
			return change(e)
		}
		return []contract.LogEntry{e}
	})
}

// decisions has a look at every decision, and may change it.
func decisions(f func(ctx context.Context, p *wiring.Parts, x *httpapi.Exchange, d *limiter.Decision)) alteration {
	return func(p *wiring.Parts) {
		p.Limiter = overseen{p.Limiter, func(ctx context.Context, d *limiter.Decision) {
			f(ctx, p, httpapi.From(ctx), d)
		}}
	}
}

type overseen struct {
	limiter.Limiter
	look func(context.Context, *limiter.Decision)
}

func (o overseen) Admit(ctx context.Context, subject string, a policy.Allowance, id string) (limiter.Decision, error) {
	d, err := o.Limiter.Admit(ctx, subject, a, id)
	if err == nil {
		o.look(ctx, &d)
	}
	return d, err
}

// allowances admits by another allowance than the user's.
func allowances(of func(x *httpapi.Exchange, a policy.Allowance) policy.Allowance) alteration {
	return func(p *wiring.Parts) { p.Limiter = generous{p.Limiter, of} }
}

type generous struct {
	limiter.Limiter
	of func(*httpapi.Exchange, policy.Allowance) policy.Allowance
}

func (g generous) Admit(ctx context.Context, subject string, a policy.Allowance, id string) (limiter.Decision, error) {
	return g.Limiter.Admit(ctx, subject, g.of(httpapi.From(ctx), a), id)
}

// link is a link of a fault's own.
func link(f func(p *httpapi.Ports, next http.Handler) http.HandlerFunc) httpapi.Link {
	return httpapi.Link{Name: "fault", Wrap: func(p *httpapi.Ports, next http.Handler) http.Handler { return f(p, next) }}
}

// before inserts a link that sees each request just outside the link called name.
func before(name string, f func(p *httpapi.Ports, next http.Handler) http.HandlerFunc) alteration {
	return func(p *wiring.Parts) { p.Links = p.Links.Before(name, link(f)) }
}

// requests changes what a request says, just outside the link called name.
func requests(name string, change func(r *http.Request)) alteration {
	return before(name, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			change(r)
			next.ServeHTTP(w, r)
		}
	})
}

// headWriter calls begin when the final head of an answer is about to be
// written.
type headWriter struct {
	http.ResponseWriter
	begin func(status int)
}

func (w *headWriter) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets deadlines and flushes through.
func (w *headWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// heads calls f before the head of an answer is written; the permit is still
// held then.
func heads(f func(p *httpapi.Ports, w http.ResponseWriter, r *http.Request, status int)) alteration {
	return before(httpapi.LinkLimit, func(p *httpapi.Ports, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&headWriter{w, func(status int) { f(p, w, r, status) }}, r)
		}
	})
}
