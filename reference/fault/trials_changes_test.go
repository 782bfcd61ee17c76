package fault_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

func changeTrials() map[string]trial {
	change := func(from string, spent int, to string) func(*site) string {
		return of(from, func(u *user) string {
			u.spends(spent).changesTo(to)
			return u.all("status "+limit+" "+remaining, valid)
		})
	}
	upgrade, downgrade := change("free", 5, "pro"), change("pro", 50, "free")
	// halfBurst halves the burst of a user who has five and a half tokens, then
	// takes that back.
	halfBurst := of("free", func(u *user) string {
		u.spends(5)
		u.advance(3 * time.Second)
		u.overrides("burst", 5)
		seen := u.all(remaining, valid)
		u.control(http.MethodDelete, "/users/"+u.ID+"/overrides/burst", nil, nil)
		return seen + ", " + u.all(remaining, valid)
	})
	// busy changes the cap of a user of four who has so many in flight.
	busy := func(inFlight int, to int64, tries int) func(*site) string {
		return of("free", func(u *user) string {
			if inFlight > 2 {
				u.overrides("concurrency", 4)
			}
			u.fills(inFlight).overrides("concurrency", to)
			defer u.frees(wire.PlaceEngine)
			seen := []string{}
			for range tries {
				seen = append(seen, u.tries(wire.PlaceEngine, 0))
			}
			return strings.Join(seen, " ")
		})
	}
	return map[string]trial{
		"enterprise-unlimited": {of("enterprise", func(u *user) string { return u.spends(100).all("status", valid) }), "429", "200"},
		"plus-is-starter":      {of("plus", func(u *user) string { return u.all(limit, valid) }), "40", "20"},

		"plan-change-full":     {upgrade, "200 100 49", "200 100 99"},
		"plan-change-absolute": {upgrade, "200 100 49", "200 100 4"},
		"plan-change-deficit":  {upgrade, "200 100 49", "200 100 94"},
		"plan-change-empty":    {upgrade, "200 100 49", "429 100 0"},
		"plan-change-ignored":  {upgrade, "200 100 49", "200 10 4"},

		"downgrade-keeps-tokens": {downgrade, "200 10 4", "200 10 49"},
		"downgrade-clips":        {downgrade, "200 10 4", "200 10 9"},
		"downgrade-empties":      {downgrade, "200 10 4", "429 10 0"},

		"rate-change-refills": {of("free", func(u *user) string {
			u.spends(5).overrides("requests-per-minute", 20)
			return u.all(remaining, valid)
		}), "4", "9"},
		"change-pays-new-rate": {of("free", func(u *user) string {
			u.spends(10)
			u.advance(6 * time.Second)
			u.overrides("requests-per-minute", 60)
			return u.all("status "+remaining, valid)
		}), "200 0", "200 5"},
		"change-comes-late": {of("free", func(u *user) string {
			u.spends(1).changesTo("pro")
			return u.all(limit, valid, valid)
		}), "100, 100", "10, 100"},
		"proportion-truncates": {halfBurst, "1, 2", "1, 1"},
		"flip-flop-mints":      {halfBurst, "1, 2", "2, 3"},

		"cap-lowered-late":   {busy(3, 2, 1), "429", "in"},
		"cap-raised-late":    {busy(2, 3, 1), "in", "429"},
		"cap-change-forgets": {busy(2, 3, 2), "in 429", "in in"},
	}
}

func sideEffectTrials() map[string]trial {
	effects := func(u *user) string {
		a := u.audit()
		return fmt.Sprintf("%d calls, %d charges", a.EngineCalls, a.Charges)
	}
	onEmpty := of("free", func(u *user) string { return effects(u.spends(11)) })
	onFull := of("free", func(u *user) string {
		u.fills(2).spends(1).frees(wire.PlaceEngine)
		return effects(u)
	})
	logged := func(prepare func(u *user), a ask) func(*site) string {
		return of("free", func(u *user) string {
			prepare(u)
			return u.entries(u.asks(a))
		})
	}
	rested := func(*user) {}
	empty := func(u *user) { u.spends(10) }
	full := func(u *user) { u.fills(2) }
	raw := func(secret func(u *user) string) func(*site) string {
		return of("free", func(u *user) string {
			u.spends(1)
			for _, e := range u.audit().Entries {
				if strings.Contains(e.Raw, secret(u)) {
					return "in the log"
				}
			}
			return "not in the log"
		})
	}
	charged := func(b wire.Behaviour) func(*site) string {
		return of("free", func(u *user) string { return effects(u.behaves(b).spends(1)) })
	}
	return map[string]trial{
		"rate-429-runs-engine": {onEmpty, "10 calls, 10 charges", "11 calls, 10 charges"},
		"rate-429-charges":     {onEmpty, "10 calls, 10 charges", "10 calls, 11 charges"},
		"conc-429-runs-engine": {onFull, "2 calls, 2 charges", "3 calls, 2 charges"},
		"conc-429-charges":     {onFull, "2 calls, 2 charges", "2 calls, 3 charges"},

		"rate-429-not-logged":     {logged(empty, valid), "429 true RATE_LIMIT_EXCEEDED", ""},
		"rate-429-logged-twice":   {logged(empty, valid), "429 true RATE_LIMIT_EXCEEDED", "429 true RATE_LIMIT_EXCEEDED, 429 true RATE_LIMIT_EXCEEDED"},
		"rate-429-logged-success": {logged(empty, valid), "429 true RATE_LIMIT_EXCEEDED", "200 false"},
		"rate-429-logged-bare":    {logged(empty, valid), "429 true RATE_LIMIT_EXCEEDED", "429 true"},
		"conc-429-not-logged":     {logged(full, valid), "429 true CONCURRENCY_LIMIT_EXCEEDED", ""},
		"conc-429-logged-twice":   {logged(full, valid), "429 true CONCURRENCY_LIMIT_EXCEEDED", "429 true CONCURRENCY_LIMIT_EXCEEDED, 429 true CONCURRENCY_LIMIT_EXCEEDED"},
		"conc-429-logged-success": {logged(full, valid), "429 true CONCURRENCY_LIMIT_EXCEEDED", "200 false"},

		"success-not-logged": {logged(rested, valid), "200 false", ""},
		"error-not-logged":   {logged(rested, invalid), "422 false VALIDATION_FAILED", ""},
		"404-not-logged":     {logged(rested, unknown), "404 false NOT_FOUND", ""},
		"401-not-logged": {func(s *site) string { return s.entries(s.send(valid, "Bearer nobody")) },
			"401 false UNAUTHENTICATED", ""},
		"log-credential": {raw(func(u *user) string { return u.Keys[0] }), "not in the log", "in the log"},
		"log-body":       {raw(func(*user) string { return "Consulting" }), "not in the log", "in the log"},

		"charged-twice": {charged(wire.EngineOK), "1 calls, 1 charges", "1 calls, 2 charges"},
		"charged-never": {charged(wire.EngineOK), "1 calls, 1 charges", "1 calls, 0 charges"},
		"charged-on-validation": {of("free", func(u *user) string {
			u.asks(invalid)
			return effects(u)
		}), "0 calls, 0 charges", "0 calls, 1 charges"},
		"charged-on-failure": {charged(wire.EngineFail), "1 calls, 0 charges", "1 calls, 1 charges"},
		"charged-on-timeout": {charged(wire.EngineTimeout), "1 calls, 0 charges", "1 calls, 1 charges"},
	}
}
