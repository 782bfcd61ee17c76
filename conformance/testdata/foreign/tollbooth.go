package main

import (
	"net/http"

	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
)

// didipTollbooth uses LimitHandler: a bucket of golang.org/x/time/rate for each
// address together with the header's value. By default each path would have a
// bucket of its own as well, and X-Forwarded-For would be believed.
func didipTollbooth(l limit) middleware {
	lmt := tollbooth.NewLimiter(float64(l.requests)/l.window.Seconds(), &limiter.ExpirableOptions{}).
		SetBurst(l.requests).
		SetIPLookups([]string{"RemoteAddr"}).
		SetIgnoreURL(true).
		SetOnLimitReached(l.refuse)
	lmt.SetOverrideDefaultResponseWriter(true)
	if l.header != "" {
		lmt.SetHeader(l.header, nil) // whatever its value
	}
	return func(next http.Handler) http.Handler { return tollbooth.LimitHandler(lmt, next) }
}
