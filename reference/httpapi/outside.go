package httpapi

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

// ReadyPath is where a load balancer asks whether to send requests here.
const ReadyPath = "/ready"

// Outside are the routes outside the quotas (SCOPE-2): they know no user, and
// nothing here is counted.
func Outside() map[string]http.Handler {
	ok := fixed([]byte(`{"status":"ok"}`))
	return map[string]http.Handler{
		"/health":       ok,
		ReadyPath:       ok,
		"/openapi.json": fixed(openAPI),
	}
}

// fixed answers GET and HEAD with body.
func fixed(body []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})
}
