package httpapi

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/clientip"
)

// Bounds of what a log entry tells of a request.
const (
	maxPath        = 256
	maxMethod      = 32
	maxCorrelation = 128
)

// requestID carries out ERR-2 and ERR-5: every request in scope gets an id of
// the server's own making, whatever the client sends. Being the outermost link,
// it also sees the request out: a client that was answered while still sending
// is read from a little longer, or closing the connection would reset it before
// it has seen the answer. HTTP/2 could reset the stream alone instead, but there
// are proxies that lose the answer then.
func requestID(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &Exchange{
			ID:       p.MintID(),
			Received: p.Clock.Now(),
			Start:    p.Clock.Instant(),
			Method:   cut(r.Method, maxMethod),
			Path:     cut(r.URL.Path, maxPath),
			Client:   p.Clients.Client(r),
			unread:   r.ContentLength != 0,
			shared:   r.ProtoMajor > 1,
		}
		if p.Clients.Trusts(clientip.Peer(r)) {
			x.Correlation = correlation(r.Header)
		}
		next.ServeHTTP(w, r.WithContext(With(r.Context(), x)))
		if x.unread {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.Bounds.Linger))
			io.Copy(io.Discard, r.Body)
		}
	})
}

// correlation is the one id in h, if it has the form of one; else empty.
func correlation(h http.Header) string {
	ids := h[contract.HeaderRequestID]
	if len(ids) != 1 || len(ids[0]) > maxCorrelation || strings.ContainsFunc(ids[0], func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
	}) {
		return ""
	}
	return ids[0]
}

// cut is the first bytes of s, whole characters only.
func cut(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}
