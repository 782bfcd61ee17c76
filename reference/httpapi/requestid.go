package httpapi

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Bounds of what a log entry tells of a request line.
const (
	maxPath   = 256
	maxMethod = 32
)

// requestID carries out ERR-2 and ERR-5: every request in scope gets an id of
// the server's own making, whatever the client sends. Being the outermost link,
// it also sees the request out: a client that was answered while still sending
// is read from a little longer, or closing the connection would reset it before
// it has seen the answer.
func requestID(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &Exchange{
			ID:       p.MintID(),
			Received: p.Clock.Now(),
			Start:    p.Clock.Instant(),
			Method:   cut(r.Method, maxMethod),
			Path:     cut(r.URL.Path, maxPath),
			Remote:   r.RemoteAddr,
			unread:   r.ContentLength != 0,
		}
		next.ServeHTTP(w, r.WithContext(With(r.Context(), x)))
		if x.unread {
			http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.Bounds.Linger))
			io.CopyN(io.Discard, r.Body, p.Bounds.Body)
		}
	})
}

// cut is the first bytes of s, whole characters only.
func cut(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "")
}
