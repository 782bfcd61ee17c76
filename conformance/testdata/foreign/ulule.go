package main

import (
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

// ululeLimiter uses the middleware for net/http on a store in memory: a fixed
// window that begins with a key's first request.
func ululeLimiter(l limit) middleware {
	rate := limiter.Rate{Limit: int64(l.requests), Period: l.window}
	return stdlib.NewMiddleware(limiter.New(memory.NewStore(), rate),
		stdlib.WithKeyGetter(l.key), stdlib.WithLimitReachedHandler(stdlib.LimitReachedHandler(l.refuse))).Handler
}
