package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const goodInvoice = `{"currency":"EUR","lines":[{"description":"x","quantity":1,"unitPrice":"9.99","taxRate":19}]}`

// patience is how long anything may take that should happen at once. Tests wait
// for what they can see, so it only matters when one is about to fail.
const patience = 10 * time.Second

// fixture is a running server, the way a test sees it.
type fixture struct {
	*testing.T
	*server.Server
	limiter inFlight
	client  *http.Client
	cutOff  bool // the test has requests cut off when the server stops
}

// inFlight is what tests ask of the limiter.
type inFlight interface{ SubjectsInFlight() int }

// start runs a server with control until the test ends.
func start(t *testing.T, cfg server.Config) *fixture {
	t.Helper()
	f := &fixture{T: t, client: &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}}
	cfg.Listen, cfg.Control = "127.0.0.1:0", "127.0.0.1:0"
	alter := cfg.Alter
	cfg.Alter = func(p *wiring.Parts) {
		f.limiter = p.Limiter.(inFlight)
		if alter != nil {
			alter(p)
		}
	}
	// The test's own context ends before its clean-ups run.
	s, err := server.Open(context.Background(), cfg)
	require.NoError(t, err)
	f.Server = s
	t.Cleanup(func() {
		err := s.Close(context.Background())
		require.True(t, err == nil || f.cutOff, "stopping: %v", err)
	})
	return f
}

// in is the fixture for a subtest.
func (f *fixture) in(t *testing.T) *fixture {
	return &fixture{T: t, Server: f.Server, limiter: f.limiter, client: f.client}
}

// newUser makes a user with two keys.
func (f *fixture) newUser(plan string) wire.User {
	f.Helper()
	var u wire.User
	f.control(http.MethodPost, "/users", wire.NewUser{Plan: plan, Keys: 2}, &u)
	return u
}

// control asks the control server for something that must succeed.
func (f *fixture) control(method, path string, in, out any) {
	f.Helper()
	status, body := f.controlRaw(method, path, encode(f.T, in), "Bearer "+f.ControlToken())
	require.Less(f, status, 300, "%s %s: %s", method, path, body)
	if out != nil {
		require.NoError(f, json.Unmarshal(body, out))
	}
}

func (f *fixture) controlRaw(method, path, body, authorization string) (int, []byte) {
	f.Helper()
	req, err := http.NewRequest(method, f.ControlURL()+wire.Prefix+path, strings.NewReader(body))
	require.NoError(f, err)
	req.Header.Set("Authorization", authorization)
	resp, err := f.client.Do(req)
	require.NoError(f, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(f, err)
	return resp.StatusCode, data
}

func encode(t *testing.T, v any) string {
	t.Helper()
	if v == nil {
		return ""
	}
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// answer is a response that has been read to its end.
type answer struct {
	*http.Response
	body string
}

func (a answer) code(t *testing.T) string {
	t.Helper()
	var e struct{ RequestID, ErrorCode, Message string }
	require.NoError(t, json.Unmarshal([]byte(a.body), &e), a.body)
	require.Equal(t, a.Header.Get("X-Request-Id"), e.RequestID)
	require.NotEmpty(t, e.Message)
	return e.ErrorCode
}

// send sends one request on a connection of its own.
func (f *fixture) send(method, path, key, body string) answer {
	f.Helper()
	req, err := http.NewRequest(method, f.URL()+path, strings.NewReader(body))
	require.NoError(f, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := f.client.Do(req)
	require.NoError(f, err)
	return finish(f.T, resp)
}

func finish(t *testing.T, resp *http.Response) answer {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return answer{Response: resp, body: string(body)}
}

func (f *fixture) calculate(key string) answer {
	f.Helper()
	return f.send(http.MethodPost, "/v1/invoice/calculate", key, goodInvoice)
}

// dial opens a raw connection.
func (f *fixture) dial() *net.TCPConn {
	f.Helper()
	c, err := net.Dial("tcp", f.Addr().String())
	require.NoError(f, err)
	f.Cleanup(func() { c.Close() })
	require.NoError(f, c.SetDeadline(time.Now().Add(patience)))
	return c.(*net.TCPConn)
}

// head is the head of a valid operation that announces a body of so many bytes.
func head(key string, length int, lines ...string) string {
	return fmt.Sprintf("POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n%s\r\n",
		key, length, strings.Join(append(lines, ""), "\r\n"))
}

// raw sends text as it is and reads one response.
func (f *fixture) raw(text string) answer {
	f.Helper()
	c := f.dial()
	defer c.Close()
	_, err := io.WriteString(c, text)
	require.NoError(f, err)
	return readAnswer(f.T, c)
}

func readAnswer(t *testing.T, c net.Conn) answer {
	t.Helper()
	return readAnswerTo(t, c, http.MethodPost)
}

// readAnswerTo is readAnswer where the method matters: HEAD has no body.
func readAnswerTo(t *testing.T, c net.Conn, method string) answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	require.NoError(t, err)
	return finish(t, resp)
}

// eventually waits until something that happens on its own has happened.
func (f *fixture) eventually(what string, ok func() bool) {
	f.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	require.FailNow(f, "it did not happen: "+what)
}

// idle waits until no permit is taken.
func (f *fixture) idle() {
	f.Helper()
	f.eventually("every permit is released", func() bool { return f.limiter.SubjectsInFlight() == 0 })
}

func (f *fixture) gate(method string, u wire.User, place wire.Place) wire.Gate {
	f.Helper()
	var g wire.Gate
	f.control(method, "/users/"+u.ID+"/gates/"+string(place), nil, &g)
	return g
}

// waiting waits until so many requests are held at a place.
func (f *fixture) waiting(u wire.User, place wire.Place, n int) {
	f.Helper()
	f.eventually(fmt.Sprintf("%d wait at %s", n, place), func() bool { return f.gate(http.MethodGet, u, place).Waiting == n })
}

func (f *fixture) engine(u wire.User, b wire.Behaviour) {
	f.Helper()
	f.control(http.MethodPut, "/users/"+u.ID+"/engine", wire.Engine{Behaviour: b}, nil)
}

func (f *fixture) audit(u wire.User) wire.Audit {
	f.Helper()
	var a wire.Audit
	f.control(http.MethodGet, "/users/"+u.ID+"/audit", nil, &a)
	return a
}

// logged is the one entry of a request.
func (f *fixture) logged(id string) contract.LogEntry {
	f.Helper()
	var a wire.Audit
	f.control(http.MethodGet, "/audit/requests/"+id, nil, &a)
	require.Len(f, a.Entries, 1, "one request, one entry")
	var e contract.LogEntry
	dec := json.NewDecoder(bytes.NewReader([]byte(a.Entries[0].Raw)))
	dec.DisallowUnknownFields()
	require.NoError(f, dec.Decode(&e))
	return e
}

// hold sends a valid operation that will be held at a closed gate, and returns
// its connection.
func (f *fixture) hold(u wire.User) *net.TCPConn {
	f.Helper()
	c := f.dial()
	_, err := io.WriteString(c, head(u.Keys[0], len(goodInvoice))+goodInvoice)
	require.NoError(f, err)
	return c
}

// capIs requires that exactly n requests of u fit in at once, now.
func (f *fixture) capIs(u wire.User, n int) {
	f.Helper()
	f.gate(http.MethodPut, u, wire.PlaceEngine)
	var held []*net.TCPConn
	for range n {
		held = append(held, f.hold(u))
	}
	f.waiting(u, wire.PlaceEngine, n)
	a := f.calculate(u.Keys[1])
	require.Equal(f, contract.CodeConcurrencyLimited, a.code(f.T), "one more than %d", n)
	f.gate(http.MethodDelete, u, wire.PlaceEngine)
	for _, c := range held {
		require.NotEqual(f, http.StatusTooManyRequests, readAnswer(f.T, c).StatusCode)
		c.Close()
	}
	f.idle()
}
