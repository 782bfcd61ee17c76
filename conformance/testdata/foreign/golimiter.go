package main

import (
	"net/http"

	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
)

// goLimiter uses httplimit on a store in memory: a fixed window that begins with
// a key's first request. It writes its refusals itself.
func goLimiter(l limit) middleware {
	store := must(memorystore.New(&memorystore.Config{Tokens: uint64(l.requests), Interval: l.window}))
	key := func(r *http.Request) (string, error) { return l.key(r), nil }
	return must(httplimit.NewMiddleware(store, key)).Handle
}
