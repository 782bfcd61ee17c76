package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// TestEveryEnding ends many requests at once in every way there is, over HTTP/1
// and HTTP/2, chosen by a seed. Meanwhile no user ever has more at work than
// their cap; afterwards every cap is exact and no goroutine is left (PERMIT-1 to
// PERMIT-8, CONC-6). "make endings" does it 100,000 times.
func TestEveryEnding(t *testing.T) {
	total := 1000
	if text := os.Getenv("ENDINGS"); text != "" {
		var err error
		total, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := newSoak(t)
	began := time.Now()
	const workers = 32
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := s.begun.Add(1); n <= int64(total); n = s.begun.Add(1) {
				s.end(rand.New(rand.NewPCG(1, uint64(n))))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	s.http2.CloseIdleConnections()
	s.idle()
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		t.Logf("%7d  %s: %v", s.counts[name].times, name, s.counts[name].seen)
	}
	t.Logf("%d requests in %v; at work at most %v of a cap of %d", total, took.Round(time.Millisecond), s.engine.most(), s.cap)
	require.Empty(t, s.strange)
	for user, most := range s.engine.most() {
		require.LessOrEqual(t, most, int64(s.cap), user)
	}
	s.control(http.MethodPut, "/users/"+s.poor.ID+"/operations", wire.Operations{Remaining: 100}, nil)
	for _, u := range append(s.rich, s.poor) {
		s.exactCap(u)
	}
}

// exactCap requires that exactly the cap fits in at once, now.
func (s *soak) exactCap(u wire.User) {
	s.Helper()
	s.engine.hold = make(chan struct{})
	for range s.cap {
		body := named("hold")
		_, err := io.WriteString(s.dial(), head(u.Keys[0], len(body))+body)
		require.NoError(s, err)
	}
	s.eventually("the cap is at work", func() bool { return s.engine.working(u.ID) == int64(s.cap) })
	require.Equal(s, contract.CodeConcurrencyLimited, s.calculate(u.Keys[1]).code(s.T), "one more than the cap")
	close(s.engine.hold)
	s.idle()
}

// soak is a server that many clients use badly.
type soak struct {
	*fixture
	cap        int
	rich       []wire.User
	poor, slow wire.User // without operations, and with one token an hour
	engine     *moody
	http2      *http.Transport
	ways       map[string]ending
	names      []string
	begun      atomic.Int64

	mu      sync.Mutex
	counts  map[string]*count
	strange []string
}

// count is how often an ending was tried and what the client saw of it.
type count struct {
	times int
	seen  map[string]int
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{cap: 3, engine: &moody{now: map[string]int64{}, peak: map[string]int64{}}, counts: map[string]*count{}}
	plan := func(name, rate, burst string) policy.Plan {
		return policy.Plan{Name: name, Operations: 1 << 40, Entitlements: map[policy.Dimension]string{
			policy.RequestsPerMinute: rate, policy.Burst: burst, policy.Concurrency: strconv.Itoa(s.cap),
		}}
	}
	s.fixture = start(t, server.Config{
		Transport: h2c,
		Plans:     map[string]policy.Plan{"free": plan("free", "1000000", "1000000"), "plus": plan("plus", "1", "1")},
		Alter: func(p *wiring.Parts) {
			p.Bounds.Body, p.Bounds.Engine, p.Bounds.Upload, p.Bounds.Write = 4<<10, 20*time.Millisecond, 20*time.Millisecond, 5*time.Second
			s.engine.Engine, p.Engine = p.Engine, s.engine
			p.Links = p.Links.Before(httpapi.LinkRoute, httpapi.Link{Name: "panic", Wrap: func(_ *httpapi.Ports, next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch r.Header.Get("X-Panic") {
					case "":
						next.ServeHTTP(w, r)
					case "abort":
						panic(http.ErrAbortHandler)
					default:
						panic("a mistake in a link")
					}
				})
			}})
		},
	})
	for range 8 {
		s.rich = append(s.rich, s.newUser("free"))
	}
	s.poor, s.slow = s.newUser("free"), s.newUser("plus")
	s.control(http.MethodPut, "/users/"+s.poor.ID+"/operations", wire.Operations{Remaining: 0}, nil)
	s.calculate(s.slow.Keys[0])
	only2 := new(http.Protocols)
	only2.SetUnencryptedHTTP2(true)
	s.http2 = &http.Transport{Protocols: only2}
	t.Cleanup(s.http2.CloseIdleConnections)
	s.ways = s.endings()
	s.names = slices.Sorted(maps.Keys(s.ways))
	return s
}

// end ends one request in one way.
func (s *soak) end(r *rand.Rand) {
	name := s.names[r.IntN(len(s.names))]
	u := s.rich[r.IntN(len(s.rich))]
	saw, err := s.ways[name](r, u)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[name]
	if c == nil {
		c = &count{seen: map[string]int{}}
		s.counts[name] = c
	}
	c.times++
	c.seen[saw]++
	if err != nil && len(s.strange) < 20 {
		s.strange = append(s.strange, fmt.Sprintf("%s: %v", name, err))
	}
}

// moody is an engine that does what the invoice's first line is called, and
// knows how much is at work for whom.
type moody struct {
	httpapi.Engine
	mu        sync.Mutex
	now, peak map[string]int64
	hold      chan struct{} // until it is closed, whatever the context says
}

func (m *moody) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	user := httpapi.From(ctx).Account.User
	m.enter(user, 1)
	defer m.enter(user, -1)
	switch in.Lines[0].Description {
	case "fail":
		return invoice.Result{}, errors.New("it was told to")
	case "panic":
		panic("it was told to")
	case "goexit":
		runtime.Goexit()
	case "obey":
		<-ctx.Done()
		return invoice.Result{}, ctx.Err()
	case "stubborn":
		time.Sleep(40 * time.Millisecond)
	case "hold":
		<-m.hold
	case "slow":
		time.Sleep(2 * time.Millisecond)
	}
	return m.Engine.Calculate(ctx, in)
}

func (m *moody) enter(user string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now[user] += n
	m.peak[user] = max(m.peak[user], m.now[user])
}

func (m *moody) working(user string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now[user]
}

// most is how much was at work at once for each user.
func (m *moody) most() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.peak)
}
