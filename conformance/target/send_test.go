package target_test

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// TestMain lets connections over TLS trust the certificate of httptest's servers,
// and looks for goroutines left behind.
func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		beServer(os.Args[1:])
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	dir, err := os.MkdirTemp("", "target")
	if err == nil {
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		err = os.WriteFile(filepath.Join(dir, "ca.pem"), cert, 0o600)
	}
	s.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "ca.pem"))
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

const theKey = "isk_free_0123456789abcdef0123"

// fileFor is a target file for a server with one user on plan free.
func fileFor(url string) target.File {
	return target.File{
		BaseURLs:   []string{url},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{
			Valid:   target.Operation{Method: "POST", Path: "/v1/invoice/calculate", Body: `{"a":1}`, Headers: map[string]string{"X-Kind": "it's valid"}},
			Invalid: &target.Operation{Method: "POST", Path: "/v1/invoice/calculate", Body: "{}"},
		},
		Allowances: map[string]target.Allowance{"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
	}
}

func open(t *testing.T, f target.File, keys ...target.Key) *target.Target {
	t.Helper()
	if len(keys) == 0 {
		keys = []target.Key{{User: "u1", Plan: "free", Secret: target.NewSecret(theKey)}}
	}
	tg, err := target.Open(t.Context(), f, target.Options{Keys: keys})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	return tg
}

func lease(t *testing.T, tg *target.Target, plan string, keys int) *target.User {
	t.Helper()
	u, err := tg.Lease(t.Context(), plan, keys)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Return(context.Background(), u)) })
	return u
}

// raw is a server that hands each connection to f.
func raw(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return "http://" + l.Addr().String()
}

// capture is a server that takes one request as text per connection and answers
// each with 204.
func capture(t *testing.T) (string, func() string) {
	got := make(chan string, 10)
	url := raw(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		var b strings.Builder
		n := 0
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // Open only connects
			}
			b.WriteString(line)
			fmt.Sscanf(line, "Content-Length: %d", &n)
			if line == "\r\n" {
				break
			}
		}
		body := make([]byte, n)
		io.ReadFull(r, body)
		got <- b.String() + string(body)
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\nX-Request-Id: r1\r\n\r\n")
	})
	return url, func() string { return <-got }
}

func TestRequestsGoOutAsTheyAreSpelled(t *testing.T) {
	url, sent := capture(t)
	tg := open(t, fileFor(url))
	u := lease(t, tg, "free", 1)
	host := strings.TrimPrefix(url, "http://")

	e := tg.Send(t.Context(), u, tg.Valid())
	require.NoError(t, e.Err)
	require.Equal(t, 204, e.Status)
	require.Equal(t, "r1", e.Answer.RequestID.Value)
	text := sent()
	require.True(t, strings.HasPrefix(text, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: "+host+"\r\nUser-Agent: brimline/"), text)
	for _, line := range []string{"X-Kind: it's valid", "Authorization: Bearer " + theKey, "Content-Type: application/json", "Content-Length: 7"} {
		require.Contains(t, text, "\r\n"+line+"\r\n")
	}
	require.True(t, strings.HasSuffix(text, "\r\n\r\n{\"a\":1}"), text)
	require.Contains(t, text, "\r\nConnection: close\r\n")
	require.NotContains(t, text, "Expect:")

	for _, path := range []string{"//v1/invoice/x", "/v1/./invoice/../invoice/x", "/%76%31/invoice%2fx", "http://" + host + "/v1/invoice/x", "*"} {
		r := target.Request{Method: "OPTIONS", Path: path, Authorization: []string{}}
		require.NoError(t, tg.SendApart(t.Context(), nil, r).Err)
		text := sent()
		require.True(t, strings.HasPrefix(text, "OPTIONS "+path+" HTTP/1.1\r\nHost: "), text)
		require.NotContains(t, text, "Authorization")
	}

	require.NoError(t, tg.SendApart(t.Context(), nil, target.Request{Method: "HEAD", Path: "/", Authorization: []string{tg.Credential("a"), "Basic b"}}).Err)
	text = sent()
	require.Contains(t, text, "Authorization: Bearer a\r\nAuthorization: Basic b\r\n")
	require.NotContains(t, text, "Content-Length")
}

func TestRequestsThatCannotBeSentAreNot(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer s.Close()
	tg := open(t, fileFor(s.URL))
	u := lease(t, tg, "free", 1)
	for name, r := range map[string]target.Request{
		"a target with a space":   {Method: "GET", Path: "/a b"},
		"a target of two lines":   {Method: "GET", Path: "/a\r\nX: y"},
		"no method":               {Path: "/"},
		"a header of two lines":   {Method: "GET", Path: "/", Header: http.Header{"X": {"a\r\nY: b"}}},
		"a header without a name": {Method: "GET", Path: "/", Header: http.Header{"": {"a"}}},
		"a key that is not there": {Method: "GET", Path: "/", Key: 1},
		"a credential of two":     {Method: "GET", Path: "/", Authorization: []string{"a\nb"}},
	} {
		e := tg.Send(t.Context(), u, r)
		require.Error(t, e.Err, name)
		require.Zero(t, e.Status, name)
	}
	require.Error(t, tg.SendApart(t.Context(), nil, tg.Valid()).Err, "a key of nobody")
	require.Zero(t, asked.Load())
	require.Zero(t, tg.Charged())
}

func TestNothingIsSentTwice(t *testing.T) {
	var asked atomic.Int64
	url := raw(t, func(c net.Conn) {
		if n, _ := c.Read(make([]byte, 4096)); n > 0 {
			asked.Add(1) // and no answer
		}
	})
	tg := open(t, fileFor(url))
	u := lease(t, tg, "free", 1)
	for _, method := range []string{"GET", "PUT", "POST"} {
		before := asked.Load()
		r := tg.Valid()
		r.Method, r.Header = method, http.Header{"Idempotency-Key": {"1"}}
		e := tg.Send(t.Context(), u, r)
		require.ErrorContains(t, e.Err, "no whole answer to "+method+" /v1/invoice/calculate")
		require.Equal(t, before+1, asked.Load())
	}
	require.Equal(t, int64(3), tg.Charged(), "each may have been charged")
}

func TestRedirectsAreAnswers(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
	}))
	defer s.Close()
	tg := open(t, fileFor(s.URL))
	e := tg.SendApart(t.Context(), nil, target.Request{Method: "GET", Path: "/", Authorization: []string{}})
	require.NoError(t, e.Err)
	require.Equal(t, 301, e.Status)
	require.Equal(t, "/elsewhere", e.Header.Get("Location"))
	require.Equal(t, int64(1), asked.Load())
}

func TestAnswersAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"a large body":       {"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n" + strings.Repeat("x", 1<<20+1), "larger than 1048576 bytes"},
		"a large head":       {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 3<<20), "unexpected EOF"},
		"a cut body":         {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "unexpected EOF"},
		"no HTTP":            {"hello\r\n\r\n", "malformed HTTP"},
		"a bad length":       {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "bad Content-Length"},
		"only interim":       {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100), "only interim answers came"},
		"an answer by chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ""},
		"until it closes":    {"HTTP/1.0 200 OK\r\n\r\nhello", ""},
	} {
		t.Run(name, func(t *testing.T) {
			url := raw(t, func(conn net.Conn) {
				if n, _ := conn.Read(make([]byte, 4096)); n > 0 {
					io.WriteString(conn, c.answer)
				}
			})
			tg := open(t, fileFor(url))
			e := tg.SendApart(t.Context(), nil, target.Request{Method: "GET", Path: "/", Authorization: []string{}})
			if c.want == "" {
				require.NoError(t, e.Err)
				require.Equal(t, "hello", string(e.Body))
				return
			}
			require.ErrorContains(t, e.Err, c.want)
			require.LessOrEqual(t, len(e.Body), 1<<20)
		})
	}
}

func TestAContextEndsAWait(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	tg := open(t, fileFor(s.URL))
	u := lease(t, tg, "free", 1)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	e := tg.Send(ctx, u, tg.Valid())
	require.Error(t, e.Err)
	require.NotErrorIs(t, e.Err, target.ErrAway)
	require.Positive(t, u.Bucket.Width(), "the token may be spent or not")
	require.ErrorIs(t, tg.Send(ctx, u, tg.Valid()).Err, context.Canceled)
}

func TestBucketHearsOfWhatAParserLetsThrough(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	defer srv.Close()
	tg := open(t, fileFor(srv.URL))
	u := lease(t, tg, "free", 1)
	through := 0
	for _, x := range target.AllUnparsable() {
		_, before := u.Bucket.Level()
		e := tg.SendUnparsable(t.Context(), u, x)
		_, after := u.Bucket.Level()
		require.NoError(t, e.Err, x.Name)
		require.Equal(t, e.RefusedByParser(), after >= before, "%s: %d", x.Name, e.Status)
		if !e.RefusedByParser() {
			through++
		}
	}
	require.Equal(t, 1, through, "a head of 64 KiB")
}

// A proxy may put right what it was sent; the server behind it then answers like
// to any other request, be it with 400.
func TestAnAnswerThatTellsOfTheBucketIsNoParsers(t *testing.T) {
	for _, from := range []struct {
		who    string
		header http.Header
		parser bool
	}{
		{"a parser", http.Header{}, true},
		{"a handler", http.Header{http.CanonicalHeaderKey(contract.HeaderLimit): {"10"}}, false},
	} {
		a := contract.ParseAnswer(http.StatusBadRequest, from.header, nil)
		require.Equal(t, from.parser, target.Exchange{Status: a.Status, Answer: a}.RefusedByParser(), from.who)
	}
}

// Whether two keys draw on one bucket is a question of its own, so that what a
// scenario took with both says nothing certain to the next one.
func TestBucketOfAUserWhoseKeysWereMixedIsUnknown(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	both := []target.Key{{User: "u1", Plan: "free", Secret: target.NewSecret(theKey)}, {User: "u1", Plan: "free", Secret: target.NewSecret(theKey + "-2")}}
	tg := open(t, fileFor(srv.URL), both...)
	for _, keys := range [][]int{{0, 0}, {0, 1}} {
		u, err := tg.Lease(t.Context(), "free", 2)
		require.NoError(t, err)
		for _, key := range keys {
			r := tg.Valid()
			r.Key = key
			require.NoError(t, tg.Send(t.Context(), u, r).Err)
		}
		require.NoError(t, tg.Return(t.Context(), u))
		lo, hi := u.Bucket.Level()
		full := u.Bucket.Allowance().Burst * oracle.Token
		require.Equal(t, keys[1] > 0, lo == 0 && hi == full, "keys %v: %d to %d", keys, lo, hi)
	}
}
