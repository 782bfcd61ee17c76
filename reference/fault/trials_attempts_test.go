package fault_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
)

// Where attempts come from: anybody, and one of the proxies that sites trust.
const (
	anybody = "127.0.0.2"
	proxy   = "127.0.9.1"
)

// wrongKey is a key of the right form that nobody has.
func (s *site) wrongKey() string {
	k, err := account.NewKey("free")
	require.NoError(s, err)
	return k.Reveal()
}

// from sends a valid operation by hand, with a key unless it is empty.
func (s *site) from(address, key string, lines ...string) answer {
	s.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: patience}
	c, err := dialer.Dial("tcp", s.server.Addr().String())
	require.NoError(s, err)
	defer c.Close()
	require.NoError(s, c.SetDeadline(time.Now().Add(patience)))
	if key != "" {
		lines = append(lines, "Authorization: Bearer "+key)
	}
	_, err = fmt.Fprintf(c, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s",
		len(invoiceText), strings.Join(append(lines, ""), "\r\n"), invoiceText)
	require.NoError(s, err)
	return s.byHand(c)
}

// tries makes n attempts with wrong keys and counts runs of equal statuses; lines
// may hold %d for the number of the attempt.
func (s *site) tries(n int, address string, lines ...string) string {
	s.Helper()
	return runs(n, func(i int) int {
		var these []string
		for _, l := range lines {
			if strings.Contains(l, "%d") {
				l = fmt.Sprintf(l, i)
			}
			these = append(these, l)
		}
		return s.from(address, s.wrongKey(), these...).status
	})
}

// runs is n statuses in a row, as in "401×10 429×2".
func runs(n int, status func(i int) int) string {
	var out []string
	for i, last, length := 0, 0, 0; i <= n; i++ {
		now := 0
		if i < n {
			now = status(i)
		}
		if now != last && length > 0 {
			out = append(out, strconv.Itoa(last)+"×"+strconv.Itoa(length))
			length = 0
		}
		last, length = now, length+1
	}
	return strings.Join(out, " ")
}

// spent leaves an address without attempts.
func (s *site) spent() *site {
	s.Helper()
	s.tries(10, anybody)
	return s
}

// many is a user with so many keys.
func (s *site) many(keys int) *user {
	s.Helper()
	u := &user{site: s}
	s.control(http.MethodPost, "/users", wire.NewUser{Plan: "pro", Keys: keys}, &u.User)
	return u
}

// validating holds first uses of n keys in their validation, calls then while
// they are, and lets them go.
func (u *user) validating(n int, then func() string) string {
	u.Helper()
	place := "/users/" + u.ID + "/gates/" + string(wire.PlaceAuthentication)
	u.control(http.MethodPut, place, nil, nil)
	done := make(chan struct{}, n)
	for key := range n {
		u.held++
		go func() {
			defer func() { done <- struct{}{} }()
			if _, err := u.exchange(valid, "Bearer "+u.Keys[key%len(u.Keys)]); err != nil {
				u.Errorf("a request in the background: %v", err)
			}
		}()
	}
	u.until("they are all there", func() bool {
		return u.active.Load() >= u.held && (n > len(u.Keys) || u.waiting() == n)
	})
	out := then()
	u.control(http.MethodDelete, place, nil, nil)
	for range n {
		<-done
	}
	u.held = 0
	u.settle()
	return out
}

// waiting is how many of the user's keys are in validation.
func (u *user) waiting() int {
	u.Helper()
	var g wire.Gate
	u.control(http.MethodGet, "/users/"+u.ID+"/gates/"+string(wire.PlaceAuthentication), nil, &g)
	return g.Waiting
}

func attemptTrials() map[string]trial {
	burst := func(s *site) string { return s.tries(12, anybody) }
	rate := func(s *site) string {
		s.spent().advance(4 * time.Second)
		return s.tries(5, anybody)
	}
	noKey := func(s *site) string { return runs(12, func(int) int { return s.from(anybody, "").status }) }
	refused := func(fields ...string) func(*site) string {
		return func(s *site) string { return s.spent().from(anybody, s.wrongKey()).show(fields...) }
	}
	// The sixth key of a user, whose five others are in validation.
	placeless := func(fields ...string) func(*site) string {
		return func(s *site) string {
			u := s.many(6)
			return u.validating(5, func() string { return u.send(valid, "Bearer "+u.Keys[5]).show(fields...) })
		}
	}
	inFlight := func(n int) func(*site) string {
		return func(s *site) string {
			u := s.many(8)
			return u.validating(n, s.fromNobody)
		}
	}
	audited := func(what func(wire.Audit) string) func(*site) string {
		return func(s *site) string {
			id := s.spent().from(anybody, s.wrongKey()).header.Get(requestID)
			var a wire.Audit
			s.control(http.MethodGet, "/audit/requests/"+id, nil, &a)
			return what(a)
		}
	}
	logged := audited(func(a wire.Audit) string {
		var out []string
		for _, e := range a.Entries {
			out = append(out, fmt.Sprintf("rejected %t key %t", e.Rejected, strings.Contains(e.Raw, "isk_")))
		}
		return strings.Join(out, ", ")
	})
	outside := func(path string) func(*site) string {
		return func(s *site) string {
			for range 10 {
				s.send(ask{method: http.MethodGet, path: path}, "")
			}
			return s.send(ask{method: http.MethodGet, path: path}, "").show("status") + " " + runs(1, func(int) int { return s.from("127.0.0.1", "").status })
		}
	}
	const ten, all = "401×10 429×2", "401×12"
	return map[string]trial{
		"anon-missing":             {burst, ten, all},
		"anon-burst-11":            {burst, ten, "401×11 429×1"},
		"anon-burst-9":             {burst, ten, "401×9 429×3"},
		"anon-rate-60":             {rate, "401×2 429×3", "401×4 429×1"},
		"anon-rate-15":             {rate, "401×2 429×3", "401×1 429×4"},
		"anon-keyed-by-credential": {burst, ten, all},
		"anon-missing-key-free":    {noKey, ten, all},
		"anon-wrong-key-free":      {burst, ten, all},

		"anon-concurrency-missing": {inFlight(5), "429", "401"},
		"anon-concurrency-6":       {inFlight(5), "429", "401"},
		"anon-concurrency-4":       {inFlight(4), "401", "429"},
		"anon-place-kept": {func(s *site) string {
			u := s.many(6)
			u.validating(5, func() string { return "" })
			return u.send(valid, "Bearer "+u.Keys[5]).show("status")
		}, "200", "429"},

		"anon-no-retry-after":     {refused("status", retryAfter), "429 2", "429 -"},
		"anon-retry-after-zero":   {refused("status", retryAfter), "429 2", "429 0"},
		"anon-429-leaks-headers":  {refused("status", remaining+"?"), "429 false", "429 true"},
		"anon-conc-leaks-headers": {placeless("status", remaining+"?"), "429 false", "429 true"},
		"anon-body-leaks-plan":    {refused("message"), "too many attempts: wait as long as Retry-After says", "too many attempts: wait as long as Retry-After says; the free plan has more"},
		"anon-own-code":           {refused("status", "code"), "429 " + contract.CodeRateLimited, "429 TOO_MANY_ATTEMPTS"},
		"anon-429-runs-engine":    {audited(func(a wire.Audit) string { return fmt.Sprint(a.EngineCalls) }), "0", "1"},

		"anon-shares-user-pool": {func(s *site) string {
			u := s.user("free")
			s.from(anybody, u.Keys[0])
			s.tries(3, anybody)
			return s.from(anybody, u.Keys[0]).show(remaining)
		}, "8", "5"},
		"valid-consumes-anon": {func(s *site) string {
			u := s.user("free")
			for range 5 {
				s.from(anybody, u.Keys[0])
			}
			return s.tries(12, anybody)
		}, ten, "401×5 429×7"},
		"users-take-places": {func(s *site) string {
			u := s.user("pro").fills(5)
			defer u.settle()
			return s.fromNobody()
		}, "401", "429"},

		"anon-after-hash": {audited(func(a wire.Audit) string { return fmt.Sprint(a.KeyLookups) }), "0", "1"},

		"known-key-needs-pool": {func(s *site) string {
			u := s.user("free")
			s.from(anybody, u.Keys[0])
			return s.spent().from(anybody, u.Keys[0]).show("status")
		}, "200", "429"},
		"first-use-consumes-anon": {func(s *site) string {
			s.from(anybody, s.user("free").Keys[0])
			return s.tries(12, anybody)
		}, ten, "401×9 429×3"},
		"unknown-key-passes": {func(s *site) string {
			return s.spent().from(anybody, s.user("free").Keys[0]).show("status")
		}, "429", "200"},
		"first-uses-validated-each": {func(s *site) string {
			u := s.many(1)
			return u.validating(3, func() string {
				for range 50 { // whether or not, nothing else shows that all have come
					if u.waiting() > 1 {
						return "several"
					}
					time.Sleep(2 * time.Millisecond)
				}
				return "one"
			})
		}, "one", "several"},

		"anon-429-not-logged":    {logged, "rejected true key false", ""},
		"anon-429-logged-twice":  {logged, "rejected true key false", "rejected true key false, rejected true key false"},
		"anon-429-logged-as-401": {logged, "rejected true key false", "rejected false key false"},
		"anon-log-credential":    {logged, "rejected true key false", "rejected true key true"},

		"health-anon-throttled": {outside("/health"), "200 401×1", "429 429×1"},
		"openapi-throttled":     {outside("/openapi.json"), "200 401×1", "429 429×1"},
	}
}

// fromNobody is what an attempt without a key gets where sites' users ask from.
func (s *site) fromNobody() string {
	s.Helper()
	c, err := net.Dial("tcp", s.server.Addr().String())
	require.NoError(s, err)
	defer c.Close()
	require.NoError(s, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, "GET /v1/invoice HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.NoError(s, err)
	_, status, _ := strings.Cut(s.firstLine(c), " ")
	return status[:3]
}

func clientTrials() map[string]trial {
	// Whether a client behind a proxy who has nothing left gets more in this way.
	held := func(lines ...string) func(*site) string {
		return func(s *site) string {
			s.tries(10, proxy, "X-Forwarded-For: 198.51.100.7")
			return s.tries(2, proxy, lines...)
		}
	}
	held6 := func(lines ...string) func(*site) string {
		return func(s *site) string {
			s.tries(10, proxy, "X-Forwarded-For: 2001:db8::7")
			return s.tries(2, proxy, lines...)
		}
	}
	direct := func(lines ...string) func(*site) string {
		return func(s *site) string { return s.spent().tries(2, anybody, lines...) }
	}
	nobody := func(lines ...string) func(*site) string {
		return func(s *site) string {
			s.tries(10, proxy)
			return s.tries(2, proxy, lines...)
		}
	}
	ids := func(address string) func(*site) string {
		return func(s *site) string {
			a := s.from(address, "nonsense", "X-Request-Id: hop-1")
			id := a.header.Get(requestID)
			var audit wire.Audit
			s.control(http.MethodGet, "/audit/requests/"+id, nil, &audit)
			return fmt.Sprint(id == "hop-1", len(audit.Entries) == 1 && strings.Contains(audit.Entries[0].Raw, `"hop-1"`))
		}
	}
	const refused, let = "429×2", "401×2"
	return map[string]trial{
		"anon-one-pool":  {func(s *site) string { return s.spent().tries(2, "127.0.0.3") }, let, refused},
		"anon-ipv6-each": {held6("X-Forwarded-For: 2001:db8::8"), refused, let},
		"anon-ipv6-wide": {held6("X-Forwarded-For: 2001:db8:1::7"), let, refused},

		"xff-from-anyone":            {direct("X-Forwarded-For: 203.0.113.%d"), refused, let},
		"realip-from-anyone":         {direct("X-Real-IP: 203.0.113.%d"), refused, let},
		"forwarded-from-anyone":      {direct("Forwarded: for=203.0.113.%d"), refused, let},
		"true-client-ip-from-anyone": {direct("True-Client-IP: 203.0.113.%d"), refused, let},

		"xff-never": {func(s *site) string {
			s.tries(10, proxy, "X-Forwarded-For: 198.51.100.7")
			return s.tries(2, proxy, "X-Forwarded-For: 203.0.113.%d")
		}, let, refused},
		"xff-no-skip-trusted": {held("X-Forwarded-For: 198.51.100.7, 127.0.9.2"), refused, let},
		"cidr-as-text": {func(s *site) string {
			s.tries(10, proxy, "X-Forwarded-For: 127.0.97.1")
			return s.tries(2, proxy, "X-Forwarded-For: 203.0.113.%d, 127.0.97.1")
		}, refused, let},
		"cidr-too-wide": {func(s *site) string {
			s.tries(10, proxy, "X-Forwarded-For: 127.0.10.0")
			return s.tries(2, proxy, "X-Forwarded-For: 203.0.113.%d, 127.0.10.0")
		}, refused, let},

		"xff-leftmost": {held("X-Forwarded-For: 203.0.113.%d, 198.51.100.7"), refused, let},

		"xff-first-line":           {held("X-Forwarded-For: 203.0.113.%d", "X-Forwarded-For: 198.51.100.7"), refused, let},
		"xff-last-line":            {held("X-Forwarded-For: 198.51.100.7", "X-Forwarded-For: 127.0.9.2"), refused, let},
		"xff-no-trim":              {held("X-Forwarded-For: 203.0.113.%d,  198.51.100.7"), refused, let},
		"xff-port-kept":            {held("X-Forwarded-For: 198.51.100.7:400%d"), refused, let},
		"xff-port-is-garbage":      {held("X-Forwarded-For: 198.51.100.7:400%d"), refused, let},
		"xff-quotes-are-garbage":   {held(`X-Forwarded-For: "198.51.100.7"`), refused, let},
		"xff-brackets-are-garbage": {held6("X-Forwarded-For: [2001:db8::7]:443"), refused, let},
		"xff-mapped-is-ipv6":       {held("X-Forwarded-For: ::ffff:198.51.100.7"), refused, let},
		"xff-zone-kept":            {held6("X-Forwarded-For: 2001:db8::7%%eth%d"), refused, let},
		"xff-garbage-identity":     {held("X-Forwarded-For: 198.51.100.7, unknown%d"), refused, let},
		"xff-garbage-stops":        {held("X-Forwarded-For: 198.51.100.7, unknown%d"), refused, let},
		"xff-empty-stops":          {held("X-Forwarded-For: 198.51.100.7, ,"), refused, let},

		"realip-over-xff":      {held("X-Forwarded-For: 198.51.100.7", "X-Real-IP: 203.0.113.%d"), refused, let},
		"forwarded-over-xff":   {held("X-Forwarded-For: 198.51.100.7", "Forwarded: for=203.0.113.%d"), refused, let},
		"realip-fallback":      {nobody("X-Real-IP: 203.0.113.%d"), refused, let},
		"all-trusted-leftmost": {nobody("X-Forwarded-For: 127.0.9.2, 127.0.9.3"), refused, let},

		"correlation-from-anyone": {ids(anybody), "false false", "false true"},
		"correlation-dropped":     {ids(proxy), "false true", "false false"},
		"request-id-of-proxy":     {ids(proxy), "false true", "true true"},
	}
}
