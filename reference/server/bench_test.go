//go:build unix

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/mux"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// BenchmarkServe is one request over a connection on loopback that stays open:
// to a handler that does the same work behind the same router and nothing else,
// then to this server with the links that do that work (request id, route,
// validate, engine), with one link more in each row, and with all of them.
// Processor time, the few lines of client included, is told apart from time,
// which other work on the machine stretches; allocations are the server's alone.
func BenchmarkServe(b *testing.B) {
	b.Run("chain=none", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(b, err)
		s := &http.Server{Handler: withoutChain()}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		b.Cleanup(func() {
			require.NoError(b, s.Close())
			<-done
		})
		exchanges(b, caller{address: l.Addr().String(), body: goodInvoice, status: http.StatusOK})
	})
	without := func(links ...string) func(*wiring.Parts) {
		return func(p *wiring.Parts) {
			for _, name := range links {
				p.Links = p.Links.Without(name)
				if name == httpapi.LinkCapacity {
					p.Ledger = free{}
				}
			}
		}
	}
	rich := policy.Plan{Name: "rich", Operations: 1 << 40, Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: "1000000", policy.Burst: "1000000", policy.Concurrency: "100000",
	}}
	poor := policy.Plan{Name: "poor", Operations: 1, Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: "1", policy.Burst: "1", policy.Concurrency: "1",
	}}
	for _, chain := range []struct {
		name   string
		plan   policy.Plan
		alter  func(*wiring.Parts)
		log    bool
		status int
	}{
		{"work", rich, without(httpapi.LinkAPILog, httpapi.LinkAuthenticate, httpapi.LinkLimit, httpapi.LinkCapacity), false, http.StatusOK},
		{"and-authenticate", rich, without(httpapi.LinkAPILog, httpapi.LinkLimit, httpapi.LinkCapacity), false, http.StatusOK},
		{"and-limit", rich, without(httpapi.LinkAPILog, httpapi.LinkCapacity), false, http.StatusOK},
		{"and-capacity", rich, without(httpapi.LinkAPILog), false, http.StatusOK},
		{"whole", rich, nil, false, http.StatusOK},
		{"whole-logging", rich, nil, true, http.StatusOK},
		{"whole-rejecting", poor, nil, false, http.StatusTooManyRequests},
	} {
		b.Run("chain="+chain.name, func(b *testing.B) {
			cfg := server.Config{
				Listen: "127.0.0.1:0", Users: 1, Alter: chain.alter,
				Plans: map[string]policy.Plan{chain.plan.Name: chain.plan},
			}
			if chain.log {
				cfg.APILog = filepath.Join(b.TempDir(), "api.log")
			}
			s, err := server.Open(context.Background(), cfg)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close(context.Background())) })
			address := strings.TrimPrefix(s.URL(), "http://")
			key, body := s.Users()[0].Keys[0].Reveal(), goodInvoice
			if chain.status == http.StatusTooManyRequests {
				spend := &caller{address: address, key: key, body: goodInvoice, status: http.StatusOK}
				require.NoError(b, spend.once())
				spend.close()
				body = "" // a rejection ends the connection of a body that it did not read
			}
			exchanges(b, caller{address: address, key: key, body: body, status: chain.status})
		})
	}
}

// withoutChain does the work of an admitted request: read, parse, calculate and
// answer, with the header that every answer has.
func withoutChain() http.Handler {
	router := mux.NewRouter().SkipClean(true)
	for path, h := range httpapi.Outside() {
		router.Path(path).Handler(h)
	}
	router.Path("/v1/invoice/calculate").Methods(http.MethodPost).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wiring.DefaultBounds().Body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		in, err := invoice.Parse(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		result, err := invoice.Engine{}.Calculate(r.Context(), in)
		if err == nil {
			body, err = json.Marshal(result)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	return router
}

// free is a ledger of a server without the link that reserves.
type free struct{ httpapi.Ledger }

func (free) Charge(context.Context, string) error { return nil }

// exchanges sends b.N requests over several connections at once.
func exchanges(b *testing.B, client caller) {
	b.ReportAllocs()
	b.SetParallelism(4)
	before := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c := client
		defer c.close()
		for pb.Next() {
			if err := c.once(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// caller is a client that allocates nothing once it is connected.
type caller struct {
	address, key, body string
	status             int // of every answer

	conn    net.Conn
	request []byte
	answer  *bufio.Reader
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *caller) once() error {
	if c.conn == nil {
		var err error
		if c.conn, err = net.Dial("tcp", c.address); err != nil {
			return err
		}
		c.answer = bufio.NewReader(c.conn)
		c.request = fmt.Appendf(nil, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			c.address, c.key, len(c.body), c.body)
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	status, length := 0, 0
	for {
		line, err := c.answer.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch text := string(line); {
		case strings.HasPrefix(text, "HTTP/1.1 "):
			status, _ = strconv.Atoi(text[9:12])
		case strings.HasPrefix(text, "Content-Length: "):
			length, _ = strconv.Atoi(strings.TrimSpace(text[16:]))
		case text == "\r\n":
			if _, err := c.answer.Discard(length); err != nil {
				return err
			}
			if status != c.status {
				return fmt.Errorf("status %d, want %d", status, c.status)
			}
			return nil
		}
	}
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
