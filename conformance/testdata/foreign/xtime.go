package main

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// xTime is what most people write around golang.org/x/time/rate: a limiter for
// each key in a map, and Allow. The package knows nothing of HTTP, so there are
// no headers.
func xTime(l limit) middleware {
	var mu sync.Mutex
	limiters := map[string]*rate.Limiter{}
	allow := func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		if limiters[key] == nil {
			limiters[key] = rate.NewLimiter(rate.Limit(float64(l.requests)/l.window.Seconds()), l.requests)
		}
		return limiters[key].Allow()
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !allow(l.key(r)) {
				l.refuse(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
