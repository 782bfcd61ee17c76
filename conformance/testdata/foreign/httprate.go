package main

import (
	"net/http"

	"github.com/go-chi/httprate"
)

// chiHTTPRate uses LimitBy with a limit handler: two windows, the older one
// weighed by what is left of it.
func chiHTTPRate(l limit) middleware {
	key := func(r *http.Request) (string, error) { return l.key(r), nil }
	return httprate.LimitBy(l.requests, l.window, key, httprate.WithLimitHandler(l.refuse))
}
