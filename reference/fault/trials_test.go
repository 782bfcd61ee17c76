package fault_test

import (
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
)

// trial is a short probe and what it sees on a correct server and on the wrong
// one.
type trial struct {
	probe        func(*site) string
	right, wrong string
}

// trials has one for each fault, by its name.
func trials() map[string]trial {
	all := map[string]trial{}
	for _, some := range []map[string]trial{
		scopeTrials(), accessTrials(), bucketTrials(), fieldTrials(), errorTrials(),
		poolTrials(), concurrencyTrials(), permitTrials(), changeTrials(), sideEffectTrials(),
		scheduleTrials(), overrideTrials(), boundaryTrials(), configurationTrials(), capacityTrials(), pageTrials(), meterTrials(), attemptTrials(), clientTrials(), restartTrials(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// of is a probe of a new user of plan.
func of(plan string, probe func(u *user) string) func(*site) string {
	return func(s *site) string { return probe(s.user(plan)) }
}

// rested asks a new Free user's questions.
func rested(fields string, asks ...ask) func(*site) string {
	return of("free", func(u *user) string { return u.all(fields, asks...) })
}

// emptied asks them when the bucket is empty.
func emptied(fields string, asks ...ask) func(*site) string {
	return of("free", func(u *user) string { return u.spends(10).all(fields, asks...) })
}

// crowded asks them when the cap is full, two tokens of ten being spent.
func crowded(fields string, asks ...ask) func(*site) string {
	return of("free", func(u *user) string { return u.fills(2).all(fields, asks...) })
}

// Fields that many probes show.
const (
	limit, remaining, reset = contract.HeaderLimit, contract.HeaderRemaining, contract.HeaderReset
	retryAfter, requestID   = contract.HeaderRetryAfter, contract.HeaderRequestID
)

func scopeTrials() map[string]trial {
	health := func(with func(*user)) func(*site) string {
		return of("free", func(u *user) string {
			with(u)
			a := u.asks(ask{method: http.MethodGet, path: "/health"})
			return a.show("status") + " " + u.asks(valid).show(remaining)
		})
	}
	spelled := func(path string) func(*site) string { return rested("status "+remaining, ask{path: path}) }
	target := func(target func(s *site) string) func(*site) string {
		return of("free", func(u *user) string {
			c := u.conn(u.head(target(u.site), len(invoiceText)) + invoiceText)
			return u.byHand(c).show("status", remaining)
		})
	}
	return map[string]trial{
		"limits-off":        {rested("status "+remaining, valid), "200 9", "200 -"},
		"scope-needs-slash": {spelled("/v1/invoice"), "404 9", "404 -"},
		"scope-one-level":   {spelled("/v1/invoice/a/b"), "404 9", "404 -"},

		"health-uses-user-token": {health(func(*user) {}), "200 9", "200 8"},
		"health-limited":         {health(func(u *user) { u.spends(10) }), "200 0", "429 0"},
		"health-in-cap":          {health(func(u *user) { u.fills(2) }), "200 7", "429 7"},
		"health-rl-headers": {func(s *site) string {
			return s.send(ask{method: http.MethodGet, path: "/health"}, "").show("status", remaining+"?")
		}, "200 false", "200 true"},

		"404-free":       {rested("status "+remaining, unknown, valid), "404 9, 200 8", "404 10, 200 9"},
		"405-free":       {rested("status "+remaining, ask{method: http.MethodPut}, valid), "405 9, 200 8", "405 10, 200 9"},
		"no-headers-404": {rested("status "+remaining, unknown, valid), "404 9, 200 8", "404 -, 200 8"},
		"404-text":       {rested("status Content-Type code", unknown), "404 application/json NOT_FOUND", "404 text/plain; charset=utf-8 <nil>"},

		"trailing-slash-bypass": {spelled("/v1/invoice/calculate/"), "404 9", "200 -"},
		"dot-segment-bypass":    {spelled("/v1/invoice/x/../calculate"), "404 9", "200 -"},
		"upper-case-bypass":     {spelled("/v1/Invoice/Calculate"), "404 -", "200 -"},
		"encoded-bypass":        {target(func(*site) string { return "/v1/%69nvoice/calculate" }), "200 9", "200 -"},
		"absolute-form-bypass": {target(func(s *site) string { return s.server.URL() + "/v1/invoice/calculate" }),
			"200 9", "200 -"},
		"head-free":    {rested(remaining, ask{method: http.MethodHead}, valid), "9, 8", "10, 9"},
		"options-free": {rested(remaining, ask{method: http.MethodOptions}, valid), "9, 8", "10, 9"},
	}
}

func accessTrials() map[string]trial {
	const unknownKey = "Bearer isk_free_0123456789abcdefghijABCDEFGHIJ01"
	bad := func(fields ...string) func(*site) string {
		return func(s *site) string { return s.send(valid, unknownKey).show(fields...) }
	}
	credentials := func(lines ...string) ask { return ask{header: http.Header{"Authorization": lines}} }
	messages := func(s *site, credentials ...string) string {
		seen := map[string]bool{}
		for _, c := range credentials {
			seen[s.send(valid, c).show("status", "code", "message")] = true
		}
		if len(seen) == 1 {
			return "alike"
		}
		return "different"
	}
	return map[string]trial{
		"401-is-403":        {bad("status", "code"), "401 UNAUTHENTICATED", "403 UNAUTHENTICATED"},
		"401-text":          {bad("status", "code"), "401 UNAUTHENTICATED", "401 <nil>"},
		"401-leaks-headers": {bad("status", limit, remaining, reset), "401 - - -", "401 10 9 6"},
		"401-says-why":      {func(s *site) string { return messages(s, "", unknownKey) }, "alike", "different"},
		"key-prefix-leak": {of("free", func(u *user) string {
			key := u.Keys[0]
			last := "0"
			if strings.HasSuffix(key, last) {
				last = "1"
			}
			return messages(u.site, "Bearer "+key[:len(key)-1]+last, unknownKey)
		}), "alike", "different"},
		"401-spends": {of("free", func(u *user) string {
			key := "Bearer " + u.Keys[0]
			return u.all("status "+remaining, credentials(key, key), valid)
		}), "401 -, 200 9", "401 -, 200 8"},
		"second-credential-accepted": {of("free", func(u *user) string {
			return u.all("status", credentials("Bearer "+u.Keys[0], "Bearer "+u.Keys[1]))
		}), "401", "200"},
		"any-scheme-accepted": {of("free", func(u *user) string {
			basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+u.Keys[0]))
			return u.all("status", credentials("Token "+u.Keys[0]), credentials(basic))
		}), "401, 401", "200, 200"},
		"other-header-accepted": {of("free", func(u *user) string {
			return u.send(ask{header: http.Header{"X-Api-Key": {u.Keys[0]}}}, "").show("status")
		}), "401", "200"},
		"revoked-key-works": {of("free", func(u *user) string {
			u.spends(1)
			u.revokes(0)
			return u.all("status", valid)
		}), "401", "200"},
	}
}

func bucketTrials() map[string]trial {
	// after lets time pass for an emptied user, then asks.
	after := func(d time.Duration, fields string, asks ...ask) func(*site) string {
		return of("free", func(u *user) string {
			u.spends(10)
			u.advance(d)
			return u.all(fields, asks...)
		})
	}
	past := func(warm int) func(*site) string {
		return of("free", func(u *user) string {
			u.spends(warm)
			passed := 0
			for _, a := range u.together(30) {
				if a.show("code") != contract.CodeRateLimited {
					passed++
				}
			}
			if passed > 10-warm {
				return "more than the burst"
			}
			return "the burst"
		})
	}
	costs := func(prepare func(*user), a ask) func(*site) string {
		return of("free", func(u *user) string {
			prepare(u)
			return u.all("status "+remaining, a, a)
		})
	}
	emptyAndFull := of("free", func(u *user) string {
		return u.fills(2).spends(8).all("status code "+remaining, valid)
	})
	return map[string]trial{
		"burst-is-rpm":     {of("starter", func(u *user) string { return u.all(limit+" "+remaining, valid) }), "20 19", "60 59"},
		"starts-one-short": {rested(remaining, valid), "9", "8"},
		"refill-double":    {after(6*time.Second, "status", valid, valid, valid), "200, 429, 429", "200, 200, 429"},
		"refill-half":      {after(6*time.Second, "status", valid), "200", "429"},
		"refill-never":     {after(time.Hour, "status", valid), "200", "429"},
		"overfill": {of("free", func(u *user) string {
			u.spends(1)
			u.advance(time.Hour)
			return u.all(remaining, valid)
		}), "9", "19"},

		"cost-two":                 {rested(remaining, valid, valid), "9, 8", "8, 6"},
		"refund-on-validation":     {costs(func(*user) {}, invalid), "422 9, 422 8", "422 10, 422 10"},
		"refund-on-capacity":       {costs(func(u *user) { u.hasOperations(0) }, valid), "402 9, 402 8", "402 10, 402 10"},
		"refund-on-engine-failure": {costs(func(u *user) { u.behaves("fail") }, valid), "500 9, 500 8", "500 10, 500 10"},
		"refund-on-timeout":        {costs(func(u *user) { u.behaves("timeout") }, valid), "504 9, 504 8", "504 10, 504 10"},

		"validation-before-token":  {emptied("status "+remaining, invalid, valid, unknown), "429 0, 429 0, 429 0", "422 0, 429 0, 429 0"},
		"concurrency-before-token": {emptyAndFull, "429 RATE_LIMIT_EXCEEDED 0", "429 CONCURRENCY_LIMIT_EXCEEDED 8"},
		"cap-hides-empty-bucket":   {emptyAndFull, "429 RATE_LIMIT_EXCEEDED 0", "429 CONCURRENCY_LIMIT_EXCEEDED 0"},
		"rate-429-takes-permit": {of("free", func(u *user) string {
			u.spends(11)
			u.advance(time.Hour)
			return u.room("engine", 5, 0)
		}), "2", "1"},

		"reject-penalises": {emptied(retryAfter, valid, valid, valid), "6, 6, 6", "7, 8, 9"},
		"reject-loses-fraction": {of("free", func(u *user) string {
			u.spends(10)
			u.advance(3 * time.Second)
			u.spends(1)
			u.advance(3 * time.Second)
			return u.all("status", valid)
		}), "200", "429"},
		"lost-update":        {past(1), "the burst", "more than the burst"},
		"first-request-race": {past(0), "the burst", "more than the burst"},
		"refill-by-second": {of("pro", func(u *user) string {
			u.spends(100)
			u.advance(200 * time.Millisecond)
			return u.all("status", valid)
		}), "200", "429"},
		"early-token": {after(5400*time.Millisecond, "status", valid), "429", "200"},
	}
}

func poolTrials() map[string]trial {
	two := func(probe func(a, b *user) string) func(*site) string {
		return func(s *site) string { return probe(s.user("free"), s.user("free")) }
	}
	neighbour := two(func(a, b *user) string {
		a.spends(3)
		return b.all(remaining, valid)
	})
	return map[string]trial{
		"per-key-bucket": {of("free", func(u *user) string {
			return u.asksWith(0, valid).show(remaining) + ", " + u.asksWith(1, valid).show(remaining)
		}), "9, 8", "9, 9"},
		"per-path-bucket":     {rested(remaining, valid, unknown), "9, 8", "9, 9"},
		"per-method-bucket":   {rested(remaining, valid, ask{method: http.MethodGet}), "9, 8", "9, 9"},
		"per-key-concurrency": {of("free", func(u *user) string { return u.room("engine", 5, 0, 1) }), "2", "4"},
		"global-bucket":       {neighbour, "9", "6"},
		"per-ip-bucket":       {neighbour, "9", "6"},
		"global-concurrency": {two(func(a, b *user) string {
			a.fills(2)
			b.held = a.held
			return b.all("status", valid)
		}), "200", "429"},
	}
}

func errorTrials() map[string]trial {
	twoRejections := of("free", func(u *user) string {
		u.spends(10)
		if first := u.asks(valid); first.show(requestID) == u.asks(valid).show(requestID) {
			return "the same"
		}
		return "two"
	})
	return map[string]trial{
		"body-code-key":      {rested("members", invalid), "errorCode+message+requestId", "code+message+requestId"},
		"body-no-requestid":  {rested("members", invalid), "errorCode+message+requestId", "errorCode+message"},
		"body-empty-message": {emptied("message", valid), "too many requests: wait as long as Retry-After says", ""},
		"body-text":          {emptied("members Content-Type", valid), "errorCode+message+requestId application/json", " text/plain; charset=utf-8"},
		"body-media-type":    {emptied("members Content-Type", valid), "errorCode+message+requestId application/json", "errorCode+message+requestId text/html; charset=utf-8"},

		"body-wrong-requestid": {of("free", func(u *user) string { return u.asks(invalid).show("same id") }), "true", "false"},
		"requestid-constant":   {twoRejections, "two", "the same"},
		"xrid-missing":         {rested(requestID+"?", valid, invalid), "true, true", "false, false"},
		"xrid-missing-200":     {rested(requestID+"?", valid, invalid), "true, true", "false, true"},

		"rate-wrong-code": {emptied("status code", valid), "429 RATE_LIMIT_EXCEEDED", "429 TOO_MANY_REQUESTS"},
		"rate-503":        {emptied("status code", valid), "429 RATE_LIMIT_EXCEEDED", "503 RATE_LIMIT_EXCEEDED"},
		"late-429": {of("free", func(u *user) string {
			u.spends(10)
			return u.firstLine(u.conn(u.head("/v1/invoice/calculate", 100, "Expect: 100-continue")))
		}), "HTTP/1.1 429 Too Many Requests", "HTTP/1.1 100 Continue"},
		"reset-mid-body": {of("free", func(u *user) string {
			u.spends(10)
			c := u.conn(u.head("/v1/invoice/calculate", 1<<20))
			io.CopyN(c, zeros{}, 1<<20) // it may be cut short
			if _, err := c.Read(make([]byte, 1)); err != nil {
				return "torn"
			}
			return "answered"
		}), "answered", "torn"},

		"rate-429-cacheable": {emptied("status Cache-Control", valid), "429 no-store", "429 -"},
		"conc-429-cacheable": {crowded("status Cache-Control", valid), "429 no-store", "429 -"},
		"requestid-adopted": {of("free", func(u *user) string {
			a := u.asks(ask{header: http.Header{requestID: {"mine"}}})
			return strings.Repeat("adopted", strings.Count(a.show(requestID), "mine"))
		}), "", "adopted"},
	}
}
