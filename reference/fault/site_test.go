package fault_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// patience is how long a test waits for what should happen at once. It matters
// only when a test is about to fail.
const patience = 10 * time.Second

// engineTime is short, because timeouts are waited for.
const engineTime = 250 * time.Millisecond

// site is a running server on a frozen clock, right or wrong.
type site struct {
	*testing.T
	server *server.Server
	client *http.Client
	active atomic.Int64 // requests in scope whose handler has not returned
}

// open starts a server that alter, unless it is nil, makes a wrong one.
func open(t *testing.T, alter func(*wiring.Parts)) *site {
	s := &site{T: t, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}}
	var err error
	s.server, err = server.Open(t.Context(), server.Config{
		Listen:  "127.0.0.1:0",
		Control: "127.0.0.1:0",
		Clock:   wire.ClockFrozen,
		Alter: func(p *wiring.Parts) {
			p.Bounds.Engine = engineTime
			if alter != nil {
				alter(p)
			}
			p.Links = p.Links.Before(httpapi.LinkRequestID, httpapi.Link{Name: "counter", Wrap: s.counter})
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.server.Close(context.WithoutCancel(t.Context()))) })
	return s
}

func (s *site) counter(_ *httpapi.Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.active.Add(1)
		defer s.active.Add(-1)
		next.ServeHTTP(w, r)
	})
}

// until waits for a condition that nothing stands in the way of.
func (s *site) until(what string, holds func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("waited in vain until %s", what)
		}
	}
}

// control asks the control protocol for something that must succeed.
func (s *site) control(method, path string, in, out any) {
	s.Helper()
	body, err := json.Marshal(in)
	require.NoError(s, err)
	if in == nil {
		body = nil
	}
	req, err := http.NewRequest(method, s.server.ControlURL()+wire.Prefix+path, bytes.NewReader(body))
	require.NoError(s, err)
	req.Header.Set("Authorization", "Bearer "+s.server.ControlToken())
	resp, err := s.client.Do(req)
	require.NoError(s, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	require.Less(s, resp.StatusCode, 300, "%s %s: %s", method, path, answer)
	if out != nil {
		require.NoError(s, json.Unmarshal(answer, out))
	}
}

// advance moves the clock.
func (s *site) advance(d time.Duration) {
	s.Helper()
	s.control(http.MethodPost, "/clock/advance", wire.Advance{Microseconds: d.Microseconds()}, nil)
}

const invoiceText = `{"currency":"EUR","lines":[{"description":"Consulting","quantity":"2.5","unitPrice":"120.00","taxRate":"19"}]}`

// ask is a request. The zero value is a valid operation.
type ask struct {
	method, path, body string
	header             http.Header
}

// Requests that most probes are made of.
var (
	valid   = ask{}
	invalid = ask{body: `{}`}
	unknown = ask{path: "/v1/invoice/unknown"}
)

// send sends a request, with credential unless its header has one, on a
// connection of its own.
func (s *site) send(a ask, credential string) answer {
	s.Helper()
	out, err := s.exchange(a, credential)
	require.NoError(s, err)
	return out
}

// exchange is send for goroutines, which must not end a test.
func (s *site) exchange(a ask, credential string) (answer, error) {
	method, path, body := a.method, a.path, a.body
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = "/v1/invoice/calculate"
	}
	if body == "" && method == http.MethodPost {
		body = invoiceText
	}
	req, err := http.NewRequest(method, s.server.URL()+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if credential != "" {
		req.Header.Set("Authorization", credential)
	}
	maps.Copy(req.Header, a.header)
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	return read(resp)
}

func read(resp *http.Response) (answer, error) {
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	out := answer{status: resp.StatusCode, header: resp.Header, text: string(data)}
	json.Unmarshal(data, &out.members) // what is no object has no members
	return out, err
}

// answer is a response that has been read to its end.
type answer struct {
	status  int
	header  http.Header
	text    string
	members map[string]any
}

// show is what a probe looks at: "status", "code", "members" (their names), a
// header's value or values, or with a question mark behind whether there is one.
func (a answer) show(fields ...string) string {
	var out []string
	for _, f := range fields {
		switch f {
		case "status":
			out = append(out, strconv.Itoa(a.status))
		case "code":
			out = append(out, fmt.Sprint(a.members[contract.MemberErrorCode]))
		case "message":
			out = append(out, fmt.Sprint(a.members[contract.MemberMessage]))
		case "members":
			out = append(out, strings.Join(slices.Sorted(maps.Keys(a.members)), "+"))
		case "same id":
			out = append(out, strconv.FormatBool(a.members[contract.MemberRequestID] == a.header.Get(contract.HeaderRequestID)))
		default:
			name, whether := strings.CutSuffix(f, "?")
			lines := a.header.Values(name)
			switch {
			case whether:
				out = append(out, strconv.FormatBool(len(lines) > 0))
			case len(lines) == 0:
				out = append(out, "-")
			default:
				out = append(out, strings.Join(lines, " and "))
			}
		}
	}
	return strings.Join(out, " ")
}

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

// conn sends the beginning of a request by hand.
func (s *site) conn(text string) net.Conn {
	s.Helper()
	c, err := net.Dial("tcp", s.server.Addr().String())
	require.NoError(s, err)
	s.Cleanup(func() { c.Close() })
	require.NoError(s, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, text)
	require.NoError(s, err)
	return c
}

// head is a request line and headers of a POST with a body of so many bytes.
func (u *user) head(target string, length int, more ...string) string {
	lines := append([]string{
		"POST " + target + " HTTP/1.1", "Host: site", "Authorization: Bearer " + u.Keys[0],
		fmt.Sprintf("Content-Length: %d", length),
	}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// firstLine is the first line that comes back on a connection.
func (s *site) firstLine(c net.Conn) string {
	s.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(s, err)
	return strings.TrimSpace(line)
}

// byHand is the answer on a connection.
func (s *site) byHand(c net.Conn) answer {
	s.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(s, err)
	out, err := read(resp)
	require.NoError(s, err)
	s.until("the server is done with a request", func() bool { return s.active.Load() == 0 })
	return out
}
