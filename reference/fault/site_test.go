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
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/clientip"
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

// open starts a server that alter, unless it is nil, makes a wrong one, with
// users who are known to it.
func open(t *testing.T, alter func(*wiring.Parts), known ...server.User) *site {
	s := &site{T: t, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}}
	var err error
	s.server, err = server.Open(t.Context(), server.Config{
		Listen:  "127.0.0.1:0",
		Control: "127.0.0.1:0",
		Metrics: "127.0.0.1:0",
		Known:   known,

		Transport: server.Transport{H2C: true},
		Clock:     wire.ClockFrozen,
		Lasting:   true,
		Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.9.0/24")}},
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
