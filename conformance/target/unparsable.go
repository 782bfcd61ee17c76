package target

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Unparsable is a request that an HTTP parser refuses before any handler sees it.
type Unparsable struct {
	Name string
	head string // {path}, {host} and {credential} stand for what they say
}

// AllUnparsable lists those that this package can send. A server may let some of
// them through.
func AllUnparsable() []Unparsable {
	const line = "POST {path} HTTP/1.1\r\nHost: {host}\r\n{credential}\r\n"
	return []Unparsable{
		{"a length that is no number", line + "Content-Length: ten\r\n\r\n"},
		{"two hosts", line + "Host: elsewhere.example\r\nContent-Length: 0\r\n\r\n"},
		{"an unknown transfer coding", line + "Transfer-Encoding: rot13\r\n\r\n"},
		{"an unknown expectation", line + "Expect: the-unexpected\r\nContent-Length: 0\r\n\r\n"},
		{"an unknown version", strings.Replace(line, "HTTP/1.1", "HTTP/9.9", 1) + "Content-Length: 0\r\n\r\n"},
		{"a head of 64 KiB", line + strings.Repeat("X-Filler: "+strings.Repeat("x", 1012)+"\r\n", 64) + "Content-Length: 0\r\n\r\n"},
	}
}

// SendUnparsable sends one of them with u's first key. u's bucket hears of it
// only if the parser let it through: then it is a request like any other.
func (t *Target) SendUnparsable(ctx context.Context, u *User, x Unparsable) Exchange {
	base := t.bases[int(t.next.Add(1)-1)%len(t.bases)]
	head := strings.NewReplacer("{path}", t.valid.Path, "{host}", base.Host,
		"{credential}", t.file.Credential.Header+": "+t.Credential(u.keys[0].Reveal())).Replace(x.head)
	f := &flight{t: t, exchange: Exchange{Method: post, Path: t.valid.Path, Curl: fmt.Sprintf("POST %s with %s", t.valid.Path, x.Name)}}
	if f.exchange.Err = t.time.check(); f.exchange.Err != nil {
		return f.exchange
	}
	if f.exchange.Err = t.budget.reserve(); f.exchange.Err != nil { // what is let through is charged like any other
		return f.exchange
	}
	f.reserved = true
	f.message = message{spelled: []byte(head), method: post}
	if f.conn, f.exchange.Err = dial(ctx, base, t.trust, netip.Addr{}, t.patience, HTTP1); f.exchange.Err != nil {
		f.conn = nil
		f.settle()
		return f.exchange
	}
	f.leave(0)
	f.arrive()
	if e := &f.exchange; e.Err == nil && !e.RefusedByParser() {
		e.Findings = u.Bucket.Judge(e.Answer, e.Span)
	}
	return f.exchange
}

// RefusedByParser reports whether an answer has a status with which an HTTP
// parser refuses what it does not hand to a handler (LOG-8), and tells of no
// bucket, as the answer to a request that a proxy has put right does.
func (e Exchange) RefusedByParser() bool {
	if e.Answer.Limit.State != contract.Absent {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return true
	}
	return false
}
