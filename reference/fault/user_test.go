package fault_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

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
