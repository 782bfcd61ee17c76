package target

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// Request is one request. Get one from [Target.Valid] or [Target.Invalid] and
// change what the scenario is about.
type Request struct {
	Method        string
	Path          string      // the request target, sent as it is spelled
	Header        http.Header // sent as spelled, beside Host, Content-Length and the credential
	Body          []byte
	Key           int      // which of the user's keys, from 0
	Authorization []string // if not nil, these credential lines instead of a key; empty: none
	From          *Address // nil: [Target.OwnAddress]

	bodyFile string
}

// Exchange is a request and what came back.
type Exchange struct {
	Method   string
	Path     string
	Key      int         // which of the user's keys, from 0
	Curl     string      // a command that repeats the request, its key masked
	Span     oracle.Span // where on the target's timeline the decision fell
	Status   int         // 0: no answer
	Header   http.Header
	Body     []byte // at most 1 MiB
	Answer   contract.Answer
	Findings []oracle.Finding // what the oracle holds against the answer
	Beside   bool             // it was held, and answered, while requests were on their way that were to see it in flight
	Asker    string           // whose key was sent, and where that is; empty: none
	Unread   bool             // two credential lines, and the parser did not even hand them to a handler
	Err      error            // why there is no whole answer; nil: there is one
}

func (r Request) clone() Request {
	r.Header, r.Body = r.Header.Clone(), slices.Clone(r.Body)
	return r
}

// source is where the request is sent from.
func (r Request) source() netip.Addr {
	if r.From == nil {
		return netip.Addr{}
	}
	return r.From.from
}

// named is the request with the lines in which a proxy names its client, unless
// it has such lines of its own.
func (r Request) named() Request {
	if r.From == nil {
		return r
	}
	for name, lines := range r.From.lines {
		if len(r.Header.Values(name)) == 0 {
			r.Header = r.Header.Clone()
			if r.Header == nil {
				r.Header = http.Header{}
			}
			r.Header[name] = lines
		}
	}
	return r
}

// Send sends a request with a key of u and lets the oracle judge the answer
// against u's bucket. Wait for its answer before sending the next one for u.
func (t *Target) Send(ctx context.Context, u *User, r Request) Exchange {
	f := t.exchange(ctx, u, r)
	for tries := 0; f.turnedAway() && tries < mostTurnedAway; tries++ {
		u.Bucket.Lose(f.exchange.Span) // or it was the user's cap after all, and cost a token
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		f = t.exchange(ctx, u, r)
	}
	switch e := &f.exchange; {
	case f.sent && t.torn(u, e.Span):
		e.Err = cmp.Or(e.Err, ErrTorn)
	case e.Err == nil:
		e.Findings = u.Bucket.Judge(e.Answer, e.Span)
	case f.sent:
		u.Bucket.Lose(e.Span)
	}
	return f.exchange
}

// mostTurnedAway is how often a first use of a key is tried again.
const mostTurnedAway = 3

// turnedAway reports whether the answer may be that of the client address's cap,
// which holds for a key until it is known to be good (ANON-3, ANON-7): others use
// theirs for the first time at the same moment.
func (f *flight) turnedAway() bool {
	a := f.exchange.Answer
	if f.key == "" || f.exchange.Err != nil || a.Limit.State != contract.Absent || a.Body.ErrorCode.Value != contract.CodeConcurrencyLimited {
		return false
	}
	_, good := f.t.good.Load(f.key)
	return !good
}

// SendApart is Send for a request that u's bucket must not hear of: one outside
// the quotas, or one that must not authenticate. u may be nil when no key is
// sent.
func (t *Target) SendApart(ctx context.Context, u *User, r Request) Exchange {
	return t.exchange(ctx, u, r).exchange
}

// SendUntold is Send for a request of which nobody knows whether it is in scope: it
// may take a token or not, and its answer is not judged.
func (t *Target) SendUntold(ctx context.Context, u *User, r Request) Exchange {
	f := t.exchange(ctx, u, r)
	if f.sent {
		u.Bucket.Lose(f.exchange.Span)
	}
	return f.exchange
}

// SendTogether sends requests of one user at one moment and lets the oracle
// judge them as a whole. The exchanges are in the order of rs.
func (t *Target) SendTogether(ctx context.Context, u *User, rs []Request) ([]Exchange, []oracle.Finding) {
	flights := make([]*flight, len(rs))
	each(len(rs), func(i int) { flights[i] = t.prepare(ctx, u, rs[i], false, t.protocol) })
	each(len(rs), func(i int) { flights[i].leave(len(rs[i].Body)); flights[i].arrive() })

	exchanges := make([]Exchange, len(rs))
	var samples []oracle.Sample
	for i, f := range flights {
		exchanges[i] = f.exchange
		if f.exchange.Err == nil {
			samples = append(samples, oracle.Sample{Answer: &exchanges[i].Answer, Span: f.exchange.Span})
		}
	}
	_, findings := u.Bucket.JudgeParallel(samples)
	for _, f := range flights {
		if f.exchange.Err != nil && f.sent {
			u.Bucket.Lose(f.exchange.Span)
		}
	}
	return exchanges, findings
}

// each calls f for 0 to n-1, all at one moment, and waits for all.
func each(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// exchange sends a request and waits for its answer.
func (t *Target) exchange(ctx context.Context, u *User, r Request) *flight {
	f := t.prepare(ctx, u, r, false, t.protocol)
	f.leave(len(r.Body))
	f.arrive()
	return f
}

// flight is one request on its way: prepared, gone, answered.
type flight struct {
	t        *Target
	exchange Exchange
	message  message
	conn     conversation // nil: it cannot leave, see exchange.Err
	left     time.Time    // when it was sent
	sent     bool         // its first byte may have left
	reserved bool         // an operation of the budget
	key      string       // that is sent; empty: none of a user's
}

// prepare does all that comes before the first byte of a request in a protocol.
// With expect, it will ask for 100 Continue.
func (t *Target) prepare(ctx context.Context, u *User, r Request, expect bool, in Protocol) *flight {
	r = r.named()
	base := t.bases[int(t.next.Add(1)-1)%len(t.bases)]
	f := &flight{t: t, exchange: Exchange{Method: r.Method, Path: r.Path, Key: r.Key}}
	if u != nil {
		t.CatchUp(u)
		if r.Key > 0 {
			u.several.Store(true)
		}
	}
	credential, err := t.credential(u, r)
	if err == nil && r.Authorization == nil {
		f.exchange.Asker, f.key = u.whose(r.Key), u.keys[r.Key].text
	}
	f.exchange.Curl = t.curl(base, r, credential, in)
	if err == nil {
		err = t.time.check()
	}
	if err == nil {
		err = t.silence.away()
	}
	if err == nil {
		f.message, err = compose(base, r, credential, t.agent, expect, in)
	}
	if err == nil && len(credential) > 0 {
		err = t.budget.reserve()
		f.reserved = err == nil
	}
	if err == nil {
		f.conn, err = dial(ctx, base, t.trust, r.source(), t.patience, in)
		t.missed(err)
	}
	if err == nil && u != nil {
		u.changing.Lock()
		t.sinceGone(&u.gone, u.Bucket.Forget)
		u.changing.Unlock()
	}
	if err != nil {
		f.settle()
		f.exchange.Err = err
	}
	return f
}

// leave sends the request, with so many bytes of its body.
func (f *flight) leave(body int) {
	if f.conn == nil {
		return
	}
	f.exchange.Span.From = f.t.time.atLeast()
	f.exchange.Span.To = f.exchange.Span.From
	f.sent, f.left = true, time.Now()
	f.t.sent.Add(1)
	f.conn.ask(f.message, body)
}

// arrive waits for the answer.
func (f *flight) arrive() {
	if f.conn == nil {
		return
	}
	a, err := f.conn.read(f.t.time.atMost, func(int) {})
	f.t.silence.heard(a.status != 0, time.Since(f.left) >= f.t.patience.silence())
	if a.closes {
		f.conn.awaitClose()
	}
	f.conn.Close()
	f.take(a, err)
}

// take makes an exchange of what came back.
func (f *flight) take(a answer, err error) {
	e := &f.exchange
	e.Span.To = a.headAt
	if a.status == 0 {
		e.Span.To = f.t.time.atMost()
	}
	e.Status, e.Header, e.Body = a.status, a.header, a.body
	if a.status != 0 {
		e.Answer = f.t.wording.Parse(a.status, a.header, a.body)
		e.Answer.Bodiless = e.Method == http.MethodHead
		e.Answer.Reset = e.Answer.Reset.Earlier(time.Duration(e.Span.To-e.Span.From) * time.Microsecond)
	}
	if f.key != "" && (e.Answer.Limit.State == contract.Good || a.status/100 == 2) {
		f.t.good.Store(f.key, true)
	}
	if err != nil {
		e.Err = fmt.Errorf("no whole answer to %s %s: %w", e.Method, e.Path, err)
	}
	f.settle()
}

// settle settles the budget: only a success, or what got no answer though it was
// sent, can have been charged.
func (f *flight) settle() {
	if f.reserved && (!f.sent || f.exchange.Status >= http.StatusMultipleChoices) {
		f.t.budget.giveBack()
	}
	f.reserved = false
}

// credential is the credential lines of a request.
func (t *Target) credential(u *User, r Request) ([][2]string, error) {
	var lines [][2]string
	if r.Authorization != nil {
		for _, v := range r.Authorization {
			lines = append(lines, [2]string{t.file.Credential.Header, v})
		}
		return lines, nil
	}
	if u == nil || r.Key < 0 || r.Key >= len(u.keys) {
		return nil, fmt.Errorf("%w: %d", errNoKey, r.Key)
	}
	return append(lines, [2]string{t.file.Credential.Header, t.Credential(u.keys[r.Key].Reveal())}), nil
}

// Credential is the value of the credential line for a key, good or not: for
// requests that must not authenticate.
func (t *Target) Credential(key string) string {
	return strings.Replace(t.file.Credential.Template, "{key}", key, 1)
}

// CredentialHeader is the header that a key goes into.
func (t *Target) CredentialHeader() string { return t.file.Credential.Header }

func (t *Target) curl(base *url.URL, r Request, credential [][2]string, in Protocol) string {
	masked := slices.Clone(credential)
	for i := range masked {
		masked[i][1] = t.maskCredential(masked[i][1])
	}
	file := r.bodyFile
	if !slices.ContainsFunc([]Request{t.valid, t.invalid, t.failing, t.slow}, func(own Request) bool { return own.bodyFile == file && slices.Equal(own.Body, r.Body) }) {
		file = ""
	}
	return t.Mask(curl(base, r, masked, file, in))
}
