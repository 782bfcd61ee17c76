package fault_test

import (
	"net/http"
	"strconv"
	"time"
)

func fieldTrials() map[string]trial {
	three := limit + " " + remaining + " " + reset
	emptyBucket := func(fields string) func(*site) string { return emptied("status "+fields, valid) }
	// half is asked when half a token and a bit have come back since the first
	// request.
	half := func(field string) func(*site) string {
		return of("free", func(u *user) string {
			u.spends(1)
			u.advance(3*time.Second + time.Millisecond)
			return u.all(field, valid)
		})
	}
	// nearly is asked of an empty bucket, short of d after it was emptied.
	nearly := func(d time.Duration, field string) func(*site) string {
		return of("free", func(u *user) string {
			u.spends(10)
			u.advance(d)
			return u.all(field, valid)
		})
	}
	starter := func(fields string) func(*site) string {
		return of("starter", func(u *user) string { return u.all(fields, valid) })
	}
	return map[string]trial{
		"no-headers-200": {rested("status "+three, valid, invalid), "200 10 9 6, 422 10 8 12", "200 - - -, 422 10 8 12"},
		"no-headers-400": {rested("status "+three, valid, invalid), "200 10 9 6, 422 10 8 12", "200 10 9 6, 422 - - -"},
		"no-headers-402": {of("free", func(u *user) string { return u.hasOperations(0).all("status "+three, valid) }),
			"402 10 9 6", "402 - - -"},
		"no-headers-5xx": {of("free", func(u *user) string { return u.behaves("fail").all("status "+three, valid) }),
			"500 10 9 6", "500 - - -"},
		"no-headers-rate-429": {emptyBucket(three), "429 10 0 60", "429 - - -"},

		"limit-is-rpm": {starter(three), "20 19 1", "60 19 1"},

		"remaining-plus-one":     {rested(remaining, valid, valid), "9, 8", "10, 9"},
		"remaining-minus-one":    {rested(remaining, valid, valid), "9, 8", "8, 7"},
		"remaining-ceil":         {half(remaining), "8", "9"},
		"remaining-negative-429": {emptyBucket(remaining), "429 0", "429 -1"},
		"remaining-nonzero-429":  {emptyBucket(remaining), "429 0", "429 1"},

		"reset-one-token": {rested(reset, valid, valid), "6, 12", "6, 6"},
		"reset-floor":     {half(reset), "9", "8"},
		"reset-epoch": {of("free", func(u *user) string {
			if n, err := strconv.Atoi(u.asks(valid).show(reset)); err != nil || n > 1_000_000_000 {
				return "a date"
			}
			return "a wait"
		}), "a wait", "a date"},
		"reset-fixed-60": {rested(reset, valid, valid), "6, 12", "60, 60"},

		"no-retry-after": {emptyBucket(retryAfter), "429 6", "429 -"},
		"clock-back-retry-after": {of("free", func(u *user) string {
			u.spends(10).advance(-time.Hour)
			return u.asks(valid).show(retryAfter)
		}), "6", "3606"},
		"retry-after-floor":    {nearly(5*time.Second+time.Millisecond, retryAfter), "1", "0"},
		"retry-after-zero":     {emptyBucket(retryAfter), "429 6", "429 0"},
		"retry-after-const-1":  {emptyBucket(retryAfter), "429 6", "429 1"},
		"retry-after-60":       {emptyBucket(retryAfter), "429 6", "429 60"},
		"retry-after-plus-one": {emptyBucket(retryAfter), "429 6", "429 7"},
		"retry-after-is-reset": {emptyBucket(retryAfter), "429 6", "429 60"},

		"retry-too-soon": {of("free", func(u *user) string {
			seen := u.spends(10).all("status "+retryAfter, valid)
			u.advance(6 * time.Second)
			return seen + ", " + u.all("status", valid)
		}), "429 6, 200", "429 6, 429"},
		"never-quite-full": {of("free", func(u *user) string {
			seen := u.all(reset, valid)
			u.advance(6 * time.Second)
			return seen + ", " + u.all(remaining, valid)
		}), "6, 9", "6, 8"},

		"limit-policy-suffix": {rested(limit, valid), "10", "10, 10;w=60"},
		"fractional":          {rested(reset, valid), "6", "6.0"},
		"duplicate-headers":   {rested(remaining, valid), "9", "9 and 9"},
		"retry-after-date": {of("free", func(u *user) string {
			if _, err := http.ParseTime(u.spends(10).all(retryAfter, valid)); err != nil {
				return "no date"
			}
			return "a date"
		}), "no date", "a date"},

		"remaining-is-permits": {of("free", func(u *user) string { return u.fills(1).all("status "+remaining, unknown) }),
			"404 8", "404 0"},
		"conc-remaining-is-permits": {crowded("status "+remaining, valid), "429 7", "429 0"},
	}
}
