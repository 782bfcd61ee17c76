package fault_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

func configurationTrials() map[string]trial {
	const refused = "503 RATE_LIMIT_CONFIGURATION_UNAVAILABLE"
	missing := func(fields string) func(*site) string {
		return of("free", func(u *user) string { return u.breaks("burst").all(fields, valid) })
	}
	text := func(text string) func(*site) string {
		return of("free", func(u *user) string { return u.breaks("burst", text).all("status "+limit, valid) })
	}
	// mended breaks a half spent bucket's user, waits, and mends.
	mended := func(wait time.Duration) func(*site) string {
		return of("free", func(u *user) string {
			u.spends(5).breaks("burst").spends(1)
			u.advance(wait)
			u.mends()
			return u.all("status "+remaining, valid)
		})
	}
	left := of("free", func(u *user) string {
		id := u.breaks("burst").asks(valid)
		a := u.audit()
		return fmt.Sprintf("%d calls, %d charges, %s", a.EngineCalls, a.Charges, u.entries(id))
	})
	const right = "0 calls, 0 charges, " + "503 false RATE_LIMIT_CONFIGURATION_UNAVAILABLE"
	override := func(text string) func(*site) string {
		return of("free", func(u *user) string {
			u.stores("burst", text, 0)
			return u.all("status "+limit, valid)
		})
	}
	return map[string]trial{
		"missing-entitlement-500": {missing("status"), "503", "500"},
		"missing-entitlement-429": {missing("status"), "503", "429"},
		"missing-entitlement-403": {missing("status"), "503", "403"},
		"config-503-wrong-code":   {missing("status code"), refused, "503 SERVICE_UNAVAILABLE"},
		"config-503-text":         {missing("status code"), refused, "503 <nil>"},
		"xrid-missing-503":        {missing("status " + requestID + "?"), "503 true", "503 false"},

		"empty-entitlement-is-one":      {text(""), "503 -", "200 1"},
		"zero-entitlement-is-one":       {text("0"), "503 -", "200 1"},
		"negative-entitlement-absolute": {text("-5"), "503 -", "200 5"},
		"plus-sign-accepted":            {text("+5"), "503 -", "200 5"},
		"leading-zero-accepted":         {text("010"), "503 -", "200 10"},
		"spaces-trimmed":                {text("5 "), "503 -", "200 5"},
		"fraction-truncated":            {text("1.5"), "503 -", "200 1"},
		"exponent-accepted":             {text("1e3"), "503 -", "200 1000"},
		"out-of-range-clamped":          {text("1000001"), "503 -", "200 1000000"},

		"missing-entitlement-free":        {missing("status " + limit), "503 -", "200 10"},
		"missing-entitlement-unlimited":   {missing("status " + limit), "503 -", "200 1000000"},
		"malformed-entitlement-unlimited": {text("unlimited"), "503 -", "200 1000000"},
		"config-503-free-caps": {of("pro", func(u *user) string {
			defer u.frees(wire.PlaceEngine)
			return u.fills(2).breaks("burst").all("status", valid)
		}), "503", "429"},
		"config-503-at-empty-429": {of("free", func(u *user) string {
			return u.spends(10).breaks("burst").all("status", valid)
		}), "503", "429"},

		"config-503-charges":      {left, right, strings.Replace(right, "0 charges", "1 charges", 1)},
		"config-503-runs-engine":  {left, right, strings.Replace(right, "0 calls", "1 calls", 1)},
		"config-503-not-logged":   {left, right, "0 calls, 0 charges, "},
		"config-503-logged-twice": {left, right, right + ", 503 false RATE_LIMIT_CONFIGURATION_UNAVAILABLE"},

		"config-503-headers":        {missing("status " + limit + "?"), "503 false", "503 true"},
		"config-503-spends":         {mended(0), "200 4", "200 3"},
		"config-503-fills-bucket":   {mended(0), "200 4", "200 9"},
		"config-503-stops-refill":   {mended(6 * time.Second), "200 5", "200 4"},
		"mended-entitlement-unseen": {mended(0), "200 4", "503 -"},

		"malformed-override-ignored":      {override("x"), "503 -", "200 10"},
		"malformed-override-unlimited":    {override("x"), "503 -", "200 1000000"},
		"malformed-override-read-loosely": {override("+07"), "503 -", "200 7"},
		"expired-malformed-override-counts": {of("free", func(u *user) string {
			u.stores("burst", "x", time.Minute)
			seen := u.all("status", valid)
			u.advance(time.Minute)
			return seen + ", " + u.all("status", valid)
		}), "503, 200", "503, 503"},
		"ended-malformed-override-counts": {of("free", func(u *user) string {
			u.stores("burst", "x", 0)
			seen := u.all("status", valid)
			u.ends("burst")
			return seen + ", " + u.all("status", valid)
		}), "503, 200", "503, 503"},
	}
}

func capacityTrials() map[string]trial {
	gone := of("free", func(u *user) string {
		u.gate(http.MethodPut, wire.PlaceResponse)
		c := u.conn(u.head("/v1/invoice/calculate", len(invoiceText)) + invoiceText)
		u.until("the response is held", func() bool { return u.gate(http.MethodGet, wire.PlaceResponse).Waiting == 1 })
		c.Close()
		u.until("the request has ended", func() bool { return u.active.Load() == 0 })
		u.gate(http.MethodDelete, wire.PlaceResponse)
		return fmt.Sprint(u.audit().Charges)
	})
	ending := func(b wire.Behaviour) func(*site) string {
		return of("free", func(u *user) string {
			u.hasOperations(1).behaves(b).spends(1).behaves(wire.EngineOK)
			return u.all("status", valid)
		})
	}
	return map[string]trial{
		"failure-keeps-operation": {ending(wire.EngineFail), "200", "402"},
		"timeout-keeps-operation": {ending(wire.EngineTimeout), "200", "402"},
		"validation-keeps-operation": {of("free", func(u *user) string {
			return u.hasOperations(1).all("status", invalid, valid)
		}), "422, 200", "422, 402"},
		"operation-not-reserved": {of("free", func(u *user) string {
			defer u.frees(wire.PlaceEngine)
			seen := u.hasOperations(1).fills(1).tries(wire.PlaceEngine, 0)
			return seen
		}), "402", "in"},
		"charged-on-delivery": {gone, "1", "0"},
		"parser-refusal-logged": {of("free", func(u *user) string {
			c := u.conn(u.head("/v1/invoice/calculate", 0, "X-Filler: "+strings.Repeat("x", 32<<10)))
			return u.byHand(c).show("status", requestID+"?")
		}), "431 false", "431 true"},
	}
}

func pageTrials() map[string]trial {
	// shows is which of some texts the page of a user with a burst of 977 holds.
	shows := func(change func(*user), texts ...string) func(*site) string {
		return of("free", func(u *user) string {
			u.control(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: 977, Reason: "a-contract", Author: "kim-lee"}, nil)
			change(u)
			in := u.send(ask{path: "/dashboard/sign-in", body: "key=" + u.Keys[0], header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}, "")
			cookie, _, _ := strings.Cut(in.header.Get("Set-Cookie"), ";")
			page := u.send(ask{method: http.MethodGet, path: "/dashboard/billing", header: http.Header{"Cookie": {cookie}}}, "")
			seen := []string{fmt.Sprint(page.status)}
			for _, text := range texts {
				seen = append(seen, fmt.Sprint(strings.Count(page.text, text)))
			}
			return strings.Join(seen, " ")
		})
	}
	asIs := func(*user) {}
	return map[string]trial{
		"page-shows-plan-values":      {shows(asIs, ">977<", ">negotiated<"), "200 1 1", "200 0 0"},
		"page-hides-negotiation":      {shows(asIs, ">977<", ">negotiated<"), "200 1 1", "200 1 0"},
		"page-calls-all-negotiated":   {shows(asIs, ">977<", ">negotiated<"), "200 1 1", "200 1 3"},
		"page-keeps-ended-value":      {shows(func(u *user) { u.ends("burst") }, ">977<", ">negotiated<"), "200 0 0", "200 1 1"},
		"page-shows-reason":           {shows(asIs, "a-contract", "kim-lee"), "200 0 0", "200 1 0"},
		"page-hides-author-in-source": {shows(asIs, "a-contract", "kim-lee"), "200 0 0", "200 0 1"},
	}
}
