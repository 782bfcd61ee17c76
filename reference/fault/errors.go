package fault

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/httpapi"
)

func errorFaults() []Fault {
	const (
		requestID, code, message = contract.MemberRequestID, contract.MemberErrorCode, contract.MemberMessage
		noStore                  = "Cache-Control"
	)
	return []Fault{
		{"body-code-key", "ERR-1", "the error code is called code", answers(onError, body(func(m map[string]any) {
			m["code"] = m[code]
			delete(m, code)
		}))},
		{"body-no-requestid", "ERR-1", "an error body has no requestId",
			answers(onError, body(func(m map[string]any) { delete(m, requestID) }))},
		{"body-empty-message", "ERR-1", "the message is empty",
			answers(onError, body(func(m map[string]any) { m[message] = "" }))},
		{"body-text", "ERR-1", "a rejection is plain text", answers(onRejection, plainText)},
		{"body-media-type", "ERR-1", "a rejection's JSON is sent as text/html",
			answers(onRejection, with("Content-Type", "text/html; charset=utf-8"))},

		{"body-wrong-requestid", "ERR-2", "requestId is not what X-Request-Id says",
			answers(onError, body(func(m map[string]any) { m[requestID] = "req_0" }))},
		{"requestid-constant", "ERR-2", "all rejections have the same request id", answers(onRejection, func(x *httpapi.Exchange, a *httpapi.Answer) {
			with(contract.HeaderRequestID, "req_0")(x, a)
			body(func(m map[string]any) { m[requestID] = "req_0" })(x, a)
		})},
		{"xrid-missing", "ERR-2", "there is no X-Request-Id",
			answers(always, without(contract.HeaderRequestID))},
		{"xrid-missing-200", "ERR-2", "a success has no X-Request-Id", answers(onSuccess, without(contract.HeaderRequestID))},

		{"rate-wrong-code", "ERR-3", "a rate rejection has another error code",
			answers(onRate, body(func(m map[string]any) { m[code] = "TOO_MANY_REQUESTS" }))},
		{"rate-503", "ERR-3", "a rate rejection is a 503", answers(onRate, status(http.StatusServiceUnavailable))},
		{"late-429", "ERR-3", "a rejection waits until the whole request body is there",
			heads(func(p *httpapi.Ports, w http.ResponseWriter, r *http.Request, status int) {
				if status == http.StatusTooManyRequests {
					http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.Bounds.Upload))
					io.CopyN(io.Discard, r.Body, p.Bounds.Body)
				}
			})},

		{"reset-mid-body", "ERR-3", "a rejection tears the connection of a client that sends much, so that the answer is lost",
			heads(func(_ *httpapi.Ports, _ http.ResponseWriter, r *http.Request, status int) {
				if status == http.StatusTooManyRequests && r.ContentLength > 64<<10 {
					panic(http.ErrAbortHandler)
				}
			})},

		{"rate-429-cacheable", "ERR-4", "a rate rejection does not forbid caching", answers(onRate, without(noStore))},
		{"conc-429-cacheable", "ERR-4", "a concurrency rejection does not forbid caching", answers(onCap, without(noStore))},

		{"requestid-adopted", "ERR-5", "a client's own X-Request-Id is taken for the request's id",
			requests(httpapi.LinkAPILog, func(r *http.Request) {
				if id := r.Header.Get(contract.HeaderRequestID); id != "" && len(id) <= 128 {
					httpapi.From(r.Context()).ID = id
				}
			})},
	}
}

// plainText sends an error's message instead of its body.
func plainText(_ *httpapi.Exchange, a *httpapi.Answer) {
	members := map[string]any{}
	if json.Unmarshal(a.Body, &members) == nil {
		a.Body = fmt.Append(nil, members[contract.MemberMessage])
	}
	a.Header.Set("Content-Type", "text/plain; charset=utf-8")
}
