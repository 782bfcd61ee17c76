package fault_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

// user is a user of a site.
type user struct {
	*site
	wire.User
	held int64 // requests of the probe that are in flight on purpose
}

func (s *site) user(plan string) *user {
	s.Helper()
	u := &user{site: s}
	s.control(http.MethodPost, "/users", wire.NewUser{Plan: plan, Keys: 2}, &u.User)
	return u
}

// asks sends a request with the user's first key.
func (u *user) asks(a ask) answer { u.Helper(); return u.asksWith(0, a) }

// asksWith sends a request, and returns once the server is done with it.
func (u *user) asksWith(key int, a ask) answer {
	u.Helper()
	out := u.send(a, "Bearer "+u.Keys[key])
	u.settle()
	return out
}

// settle waits until the server is done with all that is not held.
func (u *user) settle() {
	u.Helper()
	u.until("the server is done with a request", func() bool { return u.active.Load() <= u.held })
}

// spends sends n valid requests.
func (u *user) spends(n int) *user {
	u.Helper()
	for range n {
		u.asks(valid)
	}
	return u
}

// all is what a probe sees of several requests, one after the other.
func (u *user) all(fields string, asks ...ask) string {
	u.Helper()
	var seen []string
	for _, a := range asks {
		seen = append(seen, u.asks(a).show(strings.Fields(fields)...))
	}
	return strings.Join(seen, ", ")
}

// starts sends a valid request and does not wait for its answer. When the test
// ends the request is let go, wherever it is held.
func (u *user) starts(key int, answered chan<- answer) {
	done := make(chan struct{})
	u.Cleanup(func() {
		for _, place := range []wire.Place{wire.PlaceEngine, wire.PlaceResponse} {
			u.gate(http.MethodDelete, place)
		}
		<-done
	})
	go func() {
		defer close(done)
		a, err := u.exchange(valid, "Bearer "+u.Keys[key])
		if err != nil {
			u.Errorf("a request in the background: %v", err)
		}
		answered <- a
	}()
}

// together sends n valid requests at once, and returns the answers.
func (u *user) together(n int) []answer {
	u.Helper()
	answered := make(chan answer, n)
	for range n {
		u.starts(0, answered)
	}
	answers := make([]answer, n)
	for i := range answers {
		answers[i] = <-answered
	}
	u.settle()
	return answers
}

// behaves sets how the engine treats the user's calls.
func (u *user) behaves(b wire.Behaviour) *user {
	u.Helper()
	u.control(http.MethodPut, "/users/"+u.ID+"/engine", wire.Engine{Behaviour: b}, nil)
	return u
}

// overrides sets an override.
func (u *user) overrides(dimension string, value int64) {
	u.Helper()
	u.control(http.MethodPut, "/users/"+u.ID+"/overrides/"+dimension, wire.Override{Value: value}, nil)
}

// overridesFor sets an override that expires.
func (u *user) overridesFor(dimension string, value int64, d time.Duration) {
	u.Helper()
	u.control(http.MethodPut, "/users/"+u.ID+"/overrides/"+dimension, wire.Override{Value: value, Expires: u.in(d)}, nil)
}

// stores stores a broken override, to expire unless d is zero.
func (u *user) stores(dimension, text string, d time.Duration) {
	u.Helper()
	stored := wire.Stored{Text: text}
	if d > 0 {
		stored.Expires = u.in(d)
	}
	u.control(http.MethodPut, "/users/"+u.ID+"/overrides/"+dimension+"/stored", stored, nil)
}

// ends ends an override.
func (u *user) ends(dimension string) {
	u.Helper()
	u.control(http.MethodDelete, "/users/"+u.ID+"/overrides/"+dimension, nil, nil)
}

// breaks stores a text as an entitlement; none removes it.
func (u *user) breaks(dimension string, text ...string) *user {
	u.Helper()
	if len(text) == 0 {
		u.control(http.MethodDelete, "/users/"+u.ID+"/entitlements/"+dimension, nil, nil)
		return u
	}
	u.control(http.MethodPut, "/users/"+u.ID+"/entitlements/"+dimension, wire.Stored{Text: text[0]}, nil)
	return u
}

// mends mends all entitlements.
func (u *user) mends() {
	u.Helper()
	u.control(http.MethodPost, "/users/"+u.ID+"/entitlements/mend", nil, nil)
}

// schedules schedules a plan and returns how long it is until it takes over.
func (u *user) schedules(plan string) time.Duration {
	u.Helper()
	u.control(http.MethodPut, "/users/"+u.ID+"/schedule", wire.Plan{Plan: plan}, nil)
	var p wire.Period
	u.control(http.MethodGet, "/users/"+u.ID+"/period", nil, &p)
	end, err := time.Parse(time.RFC3339Nano, p.End)
	require.NoError(u, err)
	return end.Sub(u.now()) + time.Microsecond // a clock moves by whole microseconds
}

// now is the date by the server's clock.
func (s *site) now() time.Time {
	s.Helper()
	var c wire.Clock
	s.control(http.MethodGet, "/clock", nil, &c)
	now, err := time.Parse(time.RFC3339Nano, c.Now)
	require.NoError(s, err)
	return now
}

// in is a date so far ahead.
func (s *site) in(d time.Duration) string {
	s.Helper()
	return s.now().Add(d).Format(time.RFC3339Nano)
}

// usage is the operations left and used.
func (u *user) usage() string {
	u.Helper()
	var usage wire.Usage
	u.control(http.MethodGet, "/users/"+u.ID+"/operations", nil, &usage)
	return fmt.Sprintf("%d left, %d used", usage.Left, usage.Used)
}

// tryControl asks the control protocol for something that may be refused, and
// returns the status.
func (s *site) tryControl(method, path string, in any) int {
	s.Helper()
	body, err := json.Marshal(in)
	require.NoError(s, err)
	req, err := http.NewRequest(method, s.server.ControlURL()+wire.Prefix+path, bytes.NewReader(body))
	require.NoError(s, err)
	req.Header.Set("Authorization", "Bearer "+s.server.ControlToken())
	resp, err := s.client.Do(req)
	require.NoError(s, err)
	require.NoError(s, resp.Body.Close())
	return resp.StatusCode
}

// changesTo changes the user's plan.
func (u *user) changesTo(plan string) {
	u.Helper()
	u.control(http.MethodPut, "/users/"+u.ID+"/plan", wire.Plan{Plan: plan}, nil)
}

// hasOperations sets the operations left.
func (u *user) hasOperations(n int64) *user {
	u.Helper()
	u.control(http.MethodPut, "/users/"+u.ID+"/operations", wire.Operations{Remaining: n}, nil)
	return u
}

// revokes takes a key from the user.
func (u *user) revokes(key int) {
	u.Helper()
	u.control(http.MethodPost, "/users/"+u.ID+"/keys/revoke", wire.Key{Key: u.Keys[key]}, nil)
}

// audit is what the server did for the user.
func (u *user) audit() wire.Audit {
	u.Helper()
	var out wire.Audit
	u.control(http.MethodGet, "/users/"+u.ID+"/audit", nil, &out)
	return out
}

// entries are the log entries of an answer's request.
func (s *site) entries(a answer) string {
	s.Helper()
	var out wire.Audit
	s.control(http.MethodGet, "/audit/requests/"+a.header.Get(contract.HeaderRequestID), nil, &out)
	var seen []string
	for _, e := range out.Entries {
		seen = append(seen, strings.TrimSpace(fmt.Sprintf("%d %t %s", e.Status, e.Rejected, e.ErrorCode)))
	}
	return strings.Join(seen, ", ")
}

// gate reads, closes (PUT) or opens (DELETE) a gate.
func (u *user) gate(method string, place wire.Place) wire.Gate {
	u.Helper()
	var out wire.Gate
	u.control(method, "/users/"+u.ID+"/gates/"+string(place), nil, &out)
	return out
}

// tries sends a valid request to a closed gate: "in" says that it is held there,
// anything else is the status of its answer.
func (u *user) tries(place wire.Place, key int) string {
	u.Helper()
	waiting := u.gate(http.MethodGet, place).Waiting
	answered := make(chan answer, 1)
	u.starts(key, answered)
	result := ""
	u.until("a request is held or answered", func() bool {
		select {
		case a := <-answered:
			result = strconv.Itoa(a.status)
		default:
			if u.gate(http.MethodGet, place).Waiting > waiting {
				u.held++
				result = "in"
			}
		}
		return result != ""
	})
	u.settle()
	return result
}

// fills holds n requests in the engine.
func (u *user) fills(n int) *user {
	u.Helper()
	u.gate(http.MethodPut, wire.PlaceEngine)
	for range n {
		require.Equal(u, "in", u.tries(wire.PlaceEngine, 0))
	}
	return u
}

// frees lets go what is held.
func (u *user) frees(place wire.Place) {
	u.Helper()
	u.held = 0
	u.gate(http.MethodDelete, place)
	u.settle()
}

// room is how many requests get in before one is refused, or limit; the keys
// take turns.
func (u *user) room(place wire.Place, limit int, keys ...int) string {
	u.Helper()
	u.gate(http.MethodPut, place)
	defer u.frees(place)
	for n := range limit {
		if u.tries(place, keys[n%len(keys)]) != "in" {
			return strconv.Itoa(n)
		}
	}
	return strconv.Itoa(limit)
}

// head is a request line and headers of a POST with a body of so many bytes.
func (u *user) head(target string, length int, more ...string) string {
	lines := append([]string{
		"POST " + target + " HTTP/1.1", "Host: site", "Authorization: Bearer " + u.Keys[0],
		fmt.Sprintf("Content-Length: %d", length),
	}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}
