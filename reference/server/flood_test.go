package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/server"
)

// flood sends requests with a head of its own each over one connection, until
// next has no more or the connection is gone, and counts the answers by status.
func flood(f interface{ Addr() net.Addr }, from string, next func() (head string, more bool)) (map[int]int, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.Dial("tcp", f.Addr().String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	br := bufio.NewReader(c)
	statuses := map[int]int{}
	for head, more := next(); more; head, more = next() {
		if _, err := fmt.Fprintf(c, "GET /v1/invoice HTTP/1.1\r\nHost: x\r\n%s\r\n", head); err != nil {
			return statuses, err
		}
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			return statuses, err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return statuses, err
		}
		statuses[resp.StatusCode]++
	}
	return statuses, nil
}

// TestFloodOfWrongKeys: whoever guesses keys behind an address takes nothing from
// the user behind it whose key is known (ANON-5, ANON-7).
func TestFloodOfWrongKeys(t *testing.T) {
	f := start(t, server.Config{Clock: wire.ClockFrozen})
	u := f.newUser("pro")
	require.Equal(t, "99", f.from("127.0.0.2", u.Keys[0]).Header.Get("RateLimit-Remaining"))
	var done atomic.Bool
	var guessed, refused atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			statuses, err := flood(f, "127.0.0.2", func() (string, bool) {
				return "Authorization: Bearer isk_free_0123456789abcdefghijABCDEFGHIJ01\r\n", !done.Load()
			})
			if err != nil {
				t.Error(err)
			}
			guessed.Add(int64(statuses[http.StatusUnauthorized]))
			refused.Add(int64(statuses[http.StatusTooManyRequests]))
		})
	}
	for left := 98; left >= 0; left-- {
		a := f.from("127.0.0.2", u.Keys[0])
		require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "admitted, and found to be empty")
		require.Equal(t, strconv.Itoa(left), a.Header.Get("RateLimit-Remaining"))
	}
	done.Store(true)
	wg.Wait()
	require.EqualValues(t, 10, guessed.Load())
	require.Positive(t, refused.Load())
	t.Logf("100 requests of the user admitted beside 10 guesses and %d refused ones", refused.Load())
}

// BenchmarkRotatingClients is what the heap of a server grew by once 200,000
// client addresses, each from a network of its own, had tried one wrong key each
// through a trusted proxy, and what one such attempt takes.
func BenchmarkRotatingClients(b *testing.B) {
	const addresses, connections = 200_000, 8
	for b.Loop() {
		s, err := server.Open(context.Background(), server.Config{
			Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
			Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.9.1/32")}},
		})
		require.NoError(b, err)
		var n atomic.Int64
		wave := func(until int64) {
			var wg sync.WaitGroup
			for range connections {
				wg.Go(func() {
					statuses, err := flood(s, "127.0.9.1", func() (string, bool) {
						i := n.Add(1)
						return fmt.Sprintf("X-Forwarded-For: 2001:db8:%x:%x::1\r\nAuthorization: Bearer isk_free_0123456789abcdefghijABCDEFGHIJ01\r\n", i>>16, i&0xffff), i <= until
					})
					if err != nil || statuses[http.StatusTooManyRequests] > 0 {
						b.Errorf("%v %v", statuses, err)
					}
				})
			}
			wg.Wait()
		}
		wave(1_000) // connections, pools of memory
		before := heap()
		n.Store(1_000)
		began := time.Now()
		wave(1_000 + addresses)
		b.ReportMetric(float64(time.Since(began).Microseconds())/addresses, "µs/attempt")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		require.NoError(b, s.Close(context.Background()))
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
