package fault_test

import (
	"strings"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

func concurrencyTrials() map[string]trial {
	inEngine := of("free", func(u *user) string { return u.room(wire.PlaceEngine, 5, 0) })
	atFullCap := func(fields string) func(*site) string { return crowded("status "+fields, valid) }
	return map[string]trial{
		"no-concurrency-cap": {inEngine, "2", "5"},
		"cap-plus-one":       {inEngine, "2", "3"},
		"cap-minus-one":      {inEngine, "2", "1"},
		"conc-wrong-code":    {atFullCap("code"), "429 CONCURRENCY_LIMIT_EXCEEDED", "429 RATE_LIMIT_EXCEEDED"},
		"conc-503":           {atFullCap("code"), "429 CONCURRENCY_LIMIT_EXCEEDED", "503 CONCURRENCY_LIMIT_EXCEEDED"},

		"conc-no-retry-after": {atFullCap(retryAfter), "429 1", "429 -"},
		"conc-retry-after-0":  {atFullCap(retryAfter), "429 1", "429 0"},
		"conc-retry-after-5":  {atFullCap(retryAfter), "429 1", "429 5"},
		"no-headers-conc-429": {atFullCap(limit + " " + remaining + " " + reset), "429 10 7 18", "429 - - -"},

		"token-refund-on-conc": {crowded("status "+remaining, valid, valid), "429 7, 429 6", "429 8, 429 8"},

		"permit-after-body": {crowded("status "+remaining, valid, invalid), "429 7, 429 6", "429 7, 422 6"},
		"permit-after-capacity": {of("free", func(u *user) string {
			u.fills(2).hasOperations(0)
			return u.all("status "+remaining, valid)
		}), "429 7", "402 7"},
		"cap-race": {of("free", func(u *user) string {
			u.gate("PUT", wire.PlaceEngine)
			defer u.frees(wire.PlaceEngine)
			answered := make(chan answer, 8)
			for range cap(answered) {
				u.starts(0, answered)
			}
			waiting := 0
			u.until("all are held or answered", func() bool {
				waiting = u.gate("GET", wire.PlaceEngine).Waiting
				return waiting+len(answered) == cap(answered)
			})
			if waiting > 2 {
				return "more than the cap"
			}
			return "the cap"
		}), "the cap", "more than the cap"},
	}
}

func permitTrials() map[string]trial {
	// left is how many places there are after something ended.
	left := func(plan string, end func(u *user)) func(*site) string {
		return of(plan, func(u *user) string {
			end(u)
			return u.room(wire.PlaceEngine, 5, 0)
		})
	}
	ending := func(b wire.Behaviour) func(*site) string {
		return left("free", func(u *user) { u.behaves(b).spends(1).behaves(wire.EngineOK) })
	}
	// leaving holds a request at a gate and closes its connection there.
	leaving := func(place wire.Place) func(*site) string {
		return left("free", func(u *user) {
			u.gate("PUT", place)
			c := u.conn(u.head("/v1/invoice/calculate", len(invoiceText)) + invoiceText)
			u.until("the request is held", func() bool { return u.gate("GET", place).Waiting == 1 })
			c.Close()
			u.settle()
			u.gate("DELETE", place)
		})
	}
	return map[string]trial{
		"release-before-body": {of("free", func(u *user) string { return u.room(wire.PlaceResponse, 5, 0) }), "2", "5"},
		"leak-on-success":     {left("free", func(u *user) { u.spends(1) }), "2", "1"},
		"leak-on-validation":  {left("free", func(u *user) { u.asks(invalid) }), "2", "1"},
		"leak-on-capacity": {left("free", func(u *user) { u.hasOperations(0).spends(1).hasOperations(100) }),
			"2", "1"},
		"leak-on-engine-failure": {ending(wire.EngineFail), "2", "1"},
		"leak-on-panic":          {ending(wire.EnginePanic), "2", "1"},
		"leak-on-timeout":        {ending(wire.EngineTimeout), "2", "1"},
		"release-at-timeout": {of("free", func(u *user) string {
			u.behaves(wire.EngineStubborn).gate("PUT", wire.PlaceEngine)
			defer u.frees(wire.PlaceEngine)
			seen := []string{}
			for range 3 {
				u.held++ // the work goes on after its answer
				seen = append(seen, u.asks(valid).show("status"))
			}
			return strings.Join(seen, " ")
		}), "504 504 429", "504 504 504"},

		"leak-on-disconnect-upload": {left("free", func(u *user) {
			c := u.conn(u.head("/v1/invoice/calculate", 1000, "Expect: 100-continue"))
			if got := u.firstLine(c); got != "HTTP/1.1 100 Continue" {
				u.Fatalf("a half-sent request got %s", got)
			}
			c.Close()
			u.settle()
		}), "2", "1"},
		"h2-reset-leaks": {left("free", func(u *user) {
			u.resets()
			u.settle()
		}), "2", "1"},
		"leak-on-disconnect-engine":   {leaving(wire.PlaceEngine), "2", "1"},
		"leak-on-disconnect-response": {leaving(wire.PlaceResponse), "2", "1"},
		"conc-reject-releases": {of("free", func(u *user) string {
			u.fills(2)
			defer u.frees(wire.PlaceEngine)
			return u.tries(wire.PlaceEngine, 0) + " " + u.tries(wire.PlaceEngine, 0)
		}), "429 429", "429 in"},
		"double-release": {left("free", func(u *user) { u.spends(2) }), "2", "4"},
	}
}
