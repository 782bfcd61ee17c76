package target

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"

	"github.com/invoicespec/brimline/conformance/contract"
)

// ResetStream sends half of a request over HTTP/2 and resets its stream once it
// is seen to be in flight; its connection goes on for a moment and is closed
// then. An exchange without status and error is one that was reset; where the
// request was answered instead, it is the answer, judged like that of
// [Target.Send].
func (t *Target) ResetStream(ctx context.Context, u *User, r Request) Exchange {
	f := &flight{t: t, exchange: Exchange{Method: r.Method, Path: r.Path}}
	e := &f.exchange
	if !t.Has(contract.NeedHTTP2) || len(r.Body) < 2 {
		e.Err = fmt.Errorf("%w: to reset a stream of HTTP/2", ErrUnsupported)
		return *e
	}
	r = r.named()
	base := t.bases[int(t.next.Add(1)-1)%len(t.bases)]
	t.CatchUp(u)
	credential, err := t.credential(u, r)
	if err == nil {
		err = t.time.check()
	}
	if err == nil {
		err = t.budget.reserve()
		f.reserved = err == nil
	}
	if err != nil {
		e.Err = err
		return *e
	}
	network := t.overHTTP2(r)
	defer network.CloseIdleConnections()
	f.sent = true
	t.sent.Add(1)
	e.Span.From = t.time.atLeast()
	a, inFlight, err := t.halfSent(ctx, network, base, r, credential)
	e.Span.To = cmp.Or(a.headAt, t.time.atMost())
	switch {
	case inFlight:
		f.settle()
		if t.torn(u, e.Span) {
			e.Err = ErrTorn
			return *e
		}
		_, e.Findings = u.Bucket.Spend(e.Span)
		t.linger(ctx, network, base)
	case err != nil:
		f.take(a, err)
		u.Bucket.Lose(e.Span)
	default:
		f.take(a, nil)
		if t.torn(u, e.Span) {
			e.Err = ErrTorn
		} else {
			e.Findings = u.Bucket.Judge(e.Answer, e.Span)
		}
	}
	return *e
}

// overHTTP2 speaks HTTP/2 alone.
func (t *Target) overHTTP2(r Request) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols: p, TLSClientConfig: t.trust.Clone(), ForceAttemptHTTP2: true, DisableCompression: true,
		DialContext:           (&net.Dialer{Timeout: t.patience.dial(), LocalAddr: localAddr(r.source())}).DialContext,
		ExpectContinueTimeout: 2 * t.patience.witness(), // never by itself
	}
}

// halfSent sends half of a request. In flight, its stream has been reset; else a
// is what came.
func (t *Target) halfSent(ctx context.Context, network *http.Transport, base *url.URL, r Request, credential [][2]string) (a answer, inFlight bool, err error) {
	within, cancel := context.WithTimeout(ctx, t.patience.witness())
	defer cancel()
	body, more := io.Pipe()
	defer more.Close()
	continued := make(chan struct{}, 1)
	asked := httptrace.WithClientTrace(within, &httptrace.ClientTrace{Got100Continue: func() { continued <- struct{}{} }})
	req, err := http.NewRequestWithContext(asked, r.Method, base.String(), body)
	if err != nil {
		return answer{}, false, err
	}
	req.URL.Opaque = "//" + base.Host + r.Path // neither cleaned nor encoded anew
	req.ContentLength = int64(len(r.Body))
	req.Header = r.Header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	for _, c := range credential {
		req.Header.Add(c[0], c[1])
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", t.agent)
	}
	req.Header.Set("Expect", "100-continue")
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	type reply struct {
		a   answer
		err error
	}
	ended := make(chan reply, 1)
	go func() {
		resp, err := network.RoundTrip(req)
		if err != nil {
			ended <- reply{err: err}
			return
		}
		defer resp.Body.Close()
		a := answer{status: resp.StatusCode, header: resp.Header, headAt: t.time.atMost()}
		a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
		ended <- reply{a, err}
	}()
	select {
	case got := <-ended:
		return got.a, false, got.err
	case <-continued:
		_, _ = io.Copy(more, bytes.NewReader(r.Body[:len(r.Body)/2])) // ends early if an answer comes
		cancel()
		got := <-ended
		return got.a, got.a.status == 0, got.err
	}
}

// linger asks something that costs nothing on the same connection: the reset has
// been sent before it.
func (t *Target) linger(ctx context.Context, network *http.Transport, base *url.URL) {
	if len(t.file.OutsideQuotas) == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, t.patience.dial())
	defer cancel()
	u := *base
	u.Path = t.file.OutsideQuotas[0]
	req, err := http.NewRequestWithContext(within, get, u.String(), nil)
	if err != nil {
		return
	}
	if resp, err := network.RoundTrip(req); err == nil {
		io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
		resp.Body.Close()
	}
}
