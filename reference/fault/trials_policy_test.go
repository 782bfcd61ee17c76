package fault_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

func scheduleTrials() map[string]trial {
	early := of("free", func(u *user) string {
		u.schedules("pro")
		return u.all(limit, valid)
	})
	late := of("free", func(u *user) string {
		d := u.schedules("pro")
		seen := u.all(limit, valid)
		u.advance(d)
		return seen + ", " + u.all(limit, valid)
	})
	return map[string]trial{
		"future-plan-early": {early, "10", "100"},
		"future-plan-late":  {late, "10, 100", "10, 10"},
		"future-plan-never": {late, "10, 100", "10, 10"},
		"future-plan-old-rate": {of("free", func(u *user) string {
			d := u.schedules("pro")
			u.spends(1).advance(d)
			return u.spends(10).all(reset, valid)
		}), "3", "66"},
		"future-plan-old-cap": {of("free", func(u *user) string {
			d := u.schedules("starter")
			u.spends(1).advance(d)
			return u.room(wire.PlaceEngine, 9, 0)
		}), "5", "2"},
		"exhausted-empties-bucket": {of("free", func(u *user) string {
			return u.hasOperations(0).all("status "+remaining, valid, valid)
		}), "402 9, 402 8", "402 9, 429 0"},
		"period-end-ignored": {of("free", func(u *user) string {
			u.schedules("pro")
			u.control(http.MethodPost, "/users/"+u.ID+"/period/end", nil, nil)
			return u.all(limit, valid)
		}), "100", "10"},
		"bought-operations-fill-bucket": {of("free", func(u *user) string {
			return u.spends(5).hasOperations(50).all(remaining, valid)
		}), "4", "9"},
		"override-costs-operation": {of("free", func(u *user) string {
			u.overrides("burst", 20)
			return u.usage()
		}), "100 left, 0 used", "99 left, 0 used"},
		"bought-operations-widen-cap": {of("free", func(u *user) string {
			return u.hasOperations(50).room(wire.PlaceEngine, 9, 0)
		}), "2", "3"},
	}
}

func overrideTrials() map[string]trial {
	set := func(dimension string, value int64, fields string, asks ...ask) func(*site) string {
		return of("free", func(u *user) string {
			u.overrides(dimension, value)
			return u.all(fields, asks...)
		})
	}
	expires := func(after time.Duration) func(*site) string {
		return of("free", func(u *user) string {
			u.overridesFor("burst", 20, time.Minute)
			seen := u.all(limit, valid)
			u.advance(after)
			return seen + ", " + u.all(limit, valid)
		})
	}
	// half spends half of a burst of 20 and then changes something.
	half := func(change func(u *user)) func(*site) string {
		return of("free", func(u *user) string {
			u.overrides("burst", 20)
			u.spends(10)
			change(u)
			return u.all(remaining, valid)
		})
	}
	added := of("free", func(u *user) string {
		u.spends(5).overrides("burst", 20)
		return u.all(remaining, valid)
	})
	ended := half(func(u *user) { u.ends("burst") })
	return map[string]trial{
		"override-ignored": {set("burst", 20, limit, valid), "20", "10"},
		"override-skips-cap": {of("free", func(u *user) string {
			u.overrides("concurrency", 4)
			return u.room(wire.PlaceEngine, 9, 0)
		}), "4", "2"},
		"partial-override-clobbers": {set("requests-per-minute", 20, limit, valid), "10", "20"},
		"override-for-everybody": {func(s *site) string {
			one, other := s.user("free"), s.user("free")
			one.overrides("burst", 20)
			return one.all(limit, valid) + ", " + other.all(limit, valid)
		}, "20, 10", "20, 20"},
		"override-raise-only": {set("burst", 5, limit, valid), "5", "10"},
		"override-lower-only": {set("burst", 20, limit, valid), "20", "10"},

		"expired-override-active": {expires(time.Minute), "20, 10", "20, 20"},
		"override-expires-late":   {expires(time.Minute), "20, 10", "20, 20"},
		"override-expires-early":  {expires(time.Minute - time.Millisecond), "20, 20", "20, 10"},
		"expiry-needs-poke": {of("free", func(u *user) string {
			u.overridesFor("burst", 20, time.Minute)
			u.spends(1).advance(time.Minute)
			seen := u.all(limit, valid)
			u.asks(ask{method: http.MethodGet, path: "/health"})
			return seen + ", " + u.all(limit, valid)
		}), "10, 10", "20, 10"},

		"override-fills":            {added, "9", "19"},
		"override-keeps-tokens":     {added, "9", "4"},
		"override-change-empties":   {half(func(u *user) { u.overrides("burst", 40) }), "19", "0"},
		"override-end-keeps-tokens": {ended, "4", "9"},
		"expiry-resets-full":        {ended, "4", "9"},

		"override-again-fills": {half(func(u *user) { u.overrides("burst", 20) }), "9", "19"},

		"overrides-stack": {of("free", func(u *user) string {
			u.overrides("burst", 20)
			u.spends(1).overrides("burst", 40)
			u.spends(1).ends("burst")
			return u.all(limit, valid)
		}), "10", "20"},
		"override-enterprise-only": {set("burst", 20, limit, valid), "20", "10"},
		"plan-change-drops-override": {of("free", func(u *user) string {
			u.overrides("burst", 20)
			u.spends(1).changesTo("pro")
			return u.all(limit, valid)
		}), "20", "100"},
	}
}

func boundaryTrials() map[string]trial {
	// write says what became of a value that is none, and of the limit.
	write := func(value any) func(*site) string {
		return of("free", func(u *user) string {
			status := u.tryControl(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: value})
			return fmt.Sprintf("%d %s", status, u.all(limit, valid))
		})
	}
	history := of("free", func(u *user) string {
		for _, value := range []int{20, 40} {
			u.control(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: value, Reason: "why", Author: "who"}, nil)
		}
		var h wire.History
		u.control(http.MethodGet, "/users/"+u.ID+"/overrides", nil, &h)
		var seen []string
		for _, e := range h.Entries {
			ended := map[bool]string{true: "ended"}[e.Ended != ""]
			seen = append(seen, strings.Join([]string{e.Value, e.Reason, e.Author, ended}, " "))
		}
		return strings.Join(seen, ", ")
	})
	intruder := func(path string) func(*site) string {
		return of("free", func(u *user) string {
			a := u.asks(ask{method: http.MethodPut, path: strings.ReplaceAll(path, "{user}", u.ID), body: `{"value":50}`})
			return fmt.Sprintf("%v %s", a.status < 300, u.all(limit, valid))
		})
	}
	return map[string]trial{
		"nonpositive-override-unlimited": {write(-1), "422 10", "204 1000000"},
		"null-override-ends": {of("free", func(u *user) string {
			u.overrides("burst", 20)
			u.tryControl(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: nil})
			return u.all(limit, valid)
		}), "20", "10"},
		"fraction-override-truncated":   {write(15.5), "422 10", "204 15"},
		"huge-override-clamped":         {write(1_000_001), "422 10", "204 1000000"},
		"word-override-unlimited":       {write("unlimited"), "422 10", "204 1000000"},
		"quoted-override-accepted":      {write("15"), "422 10", "204 15"},
		"override-refused-in-silence":   {write(0), "422 10", "204 10"},
		"override-refused-as-a-failure": {write(0), "422 10", "500 10"},
		"refused-override-ends-old": {of("free", func(u *user) string {
			u.overrides("burst", 20)
			u.tryControl(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: 0})
			return u.all(limit, valid)
		}), "20", "10"},

		"control-path-open":   {intruder("/control/v1/users/{user}/overrides/burst"), "false 10", "true 50"},
		"internal-route-open": {intruder("/internal/billing/users/{user}/overrides/burst"), "false 10", "true 50"},
		"internal-route-limited": {of("free", func(u *user) string {
			return u.asks(ask{method: http.MethodPut, path: "/internal/billing/users/" + u.ID + "/overrides/burst"}).show(remaining + "?")
		}), "false", "true"},

		"history-forgets-replaced": {history, "20 why who ended, 40 why who ", "40 why who "},
		"history-without-reason":   {history, "20 why who ended, 40 why who ", "20  who ended, 40  who "},
		"history-without-author":   {history, "20 why who ended, 40 why who ", "20 why  ended, 40 why  "},
		"history-without-end":      {history, "20 why who ended, 40 why who ", "20 why who , 40 why who "},
	}
}
