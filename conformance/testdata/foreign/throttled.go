package main

import (
	"net/http"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

// throttledGCRA uses the HTTP limiter on a store in memory: the generic cell rate
// algorithm. MaxBurst is what goes beyond the one request that is always allowed.
func throttledGCRA(l limit) middleware {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(l.requests, l.window), MaxBurst: l.requests - 1}
	limiter := throttled.HTTPRateLimiterCtx{
		RateLimiter:   must(throttled.NewGCRARateLimiterCtx(must(memstore.NewCtx(65536)), quota)),
		VaryBy:        varyBy(l.key),
		DeniedHandler: l.refuse,
	}
	return limiter.RateLimit
}

type varyBy func(*http.Request) string

func (v varyBy) Key(r *http.Request) string { return v(r) }
