package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Reply is what a link has to say: a body for a success, a code and a message
// for an error, and headers that belong to this case alone.
type Reply struct {
	Status  int
	Code    string
	Message string
	Header  http.Header // may be nil
	Body    []byte      // JSON
}

// Answer is a reply as it goes out.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// errorBody is the error shape of the contract (ERR-1).
type errorBody struct {
	RequestID string `json:"requestId"`
	ErrorCode string `json:"errorCode"`
	Message   string `json:"message"`
}

// Compose makes the answer of a reply: the error shape, the request id (ERR-2)
// and, where the limiter decided, the headers of the bucket (HDR-1).
func Compose(x *Exchange, r Reply) Answer {
	a := Answer{Status: r.Status, Header: http.Header{}, Body: r.Body}
	for name, values := range r.Header {
		a.Header[name] = values
	}
	if r.Code != "" {
		// Three strings always encode.
		a.Body, _ = json.Marshal(errorBody{RequestID: x.ID, ErrorCode: r.Code, Message: r.Message})
	}
	a.Header.Set("Content-Type", "application/json")
	a.Header.Set(contract.HeaderRequestID, x.ID)
	if d := x.Decision; d != nil {
		setInt(a.Header, contract.HeaderLimit, d.Allowance.Burst())
		setInt(a.Header, contract.HeaderRemaining, d.Remaining())
		setInt(a.Header, contract.HeaderReset, seconds(d.ToFull))
	}
	return a
}

// seconds is microseconds in whole seconds, rounded up. The microseconds are
// themselves rounded up from the exact time, and rounding up twice is the same
// as once.
func seconds(us int64) int64 {
	s := us / 1_000_000
	if us%1_000_000 > 0 {
		s++
	}
	return s
}

// setInt writes a header under the contract's own spelling, which is not the
// canonical one of net/http ("Ratelimit-Limit"); names compare without case.
func setInt(h http.Header, name string, n int64) { h.Set(name, strconv.FormatInt(n, 10)) }

// statusClientGone marks the entry of a request whose client left before there
// was an answer. It is written to nobody.
const statusClientGone = 499

// clientGone ends a request that failed because its client left: nothing of ours
// has failed then, and nobody is to be alarmed.
func (p *Ports) clientGone(w http.ResponseWriter, r *http.Request, x *Exchange, cause error) bool {
	if r.Context().Err() == nil || !errors.Is(cause, context.Canceled) {
		return false
	}
	p.respond(w, x, Reply{Status: statusClientGone})
	return true
}

// respond is the only way in which a link answers: composed, then written (the
// API log spools its entry as the head is written), then flushed, so that a
// permit released afterwards is released after the response (PERMIT-1).
//
// A body that nobody will read would hold the answer back until it has arrived,
// so such an answer ends the connection, unless others share it: there it does
// not wait.
func (p *Ports) respond(w http.ResponseWriter, x *Exchange, reply Reply) {
	a := p.Compose(x, reply)
	x.Status, x.Code = a.Status, reply.Code
	h := w.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	if x.unread && !x.shared {
		h.Set("Connection", "close")
	}
	w.WriteHeader(a.Status)
	// A client that has gone is no error of ours: the request ends all the same.
	w.Write(a.Body)
	http.NewResponseController(w).Flush()
}
