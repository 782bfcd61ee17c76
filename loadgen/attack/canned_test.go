package attack_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// arrivedAt is a request that came to a canned server.
type arrivedAt struct {
	at   time.Duration
	user string
}

// canned is a round tripper without a network.
type canned struct {
	t      *testing.T
	began  time.Time
	answer func(user string, at time.Duration) (status int, wait string, took time.Duration, err error)

	mu    sync.Mutex
	log   []arrivedAt
	most  int
	now   int
	heads []http.Header
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	user := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer isk_test_")
	c.mu.Lock()
	at := time.Since(c.began)
	c.log = append(c.log, arrivedAt{at, user})
	c.heads = append(c.heads, r.Header)
	c.now++
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}()
	status, wait, took, err := c.answer(user, at)
	select {
	case <-time.After(took):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	body := ""
	if status == http.StatusTooManyRequests {
		h.Set("RateLimit-Limit", "10")
		if wait != "" {
			h.Set("Retry-After", wait)
		}
		body = `{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"m"}`
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func always(status int, took time.Duration) func(string, time.Duration) (int, string, time.Duration, error) {
	return func(string, time.Duration) (int, string, time.Duration, error) { return status, "", took, nil }
}

// members are users on one plan who behave alike. Their keys are their names.
func members(p arrival.Process, users int, d time.Duration) []traffic.Member {
	var list []traffic.Member
	for i := range users {
		name := fmt.Sprintf("free-%03d", i+1)
		list = append(list, traffic.Member{
			Name: name, Plan: "free", Process: p, Planned: p.Count(seed, name, d), Rested: true,
			Allowance: oracle.Allowance{RequestsPerMinute: 1_000_000, Burst: 1_000_000, Concurrency: 100_000},
			Keys:      []target.Secret{target.NewSecret("isk_test_" + name)},
		})
	}
	return list
}

const seed = 7

func perSecond(t *testing.T, n int64) arrival.Rate {
	r, err := arrival.NewRate(n*60, 1)
	require.NoError(t, err)
	return r
}

func site() attack.Site {
	return attack.Site{
		BaseURLs:   []string{"http://127.0.0.1:1"},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Requests: map[traffic.Operation]attack.Request{
			traffic.Valid: {Method: "POST", Path: "/v1/invoice/calculate", Body: []byte("{}"), Expect: 200},
		},
	}
}

// alter changes the valid request of a site.
func alter(s *attack.Site, change func(*attack.Request)) {
	r := s.Requests[traffic.Valid]
	change(&r)
	s.Requests[traffic.Valid] = r
}

// start prepares a run over a canned server, which begins its clock now.
func start(t *testing.T, list []traffic.Member, d time.Duration, c *canned) *attack.Attack {
	t.Helper()
	c.t, c.began = t, time.Now()
	a, err := attack.New(attack.Config{Members: list, Duration: d, Seed: seed, Site: site(), Transport: c})
	require.NoError(t, err)
	return a
}

// whole checks that a run adds up, user by user, with what the server saw.
func whole(t *testing.T, r record.Run, list []traffic.Member, c *canned) record.RunPlan {
	t.Helper()
	r.Schema = record.RunSchema
	require.NoError(t, r.Check())
	require.Len(t, r.Plans, 1)
	p := r.Plans[0]
	require.Equal(t, traffic.Planned(list), p.Planned)
	require.EqualValues(t, len(c.log), p.Sent, "what the server saw")
	seen := map[string]int64{}
	for _, l := range c.log {
		seen[l.user]++
	}
	for _, u := range r.Users {
		require.Equal(t, seen[u.User], u.Sent, u.User)
	}
	return p
}

// fullest is the most requests that came within a window.
func (c *canned) fullest(window time.Duration) int {
	most, first := 0, 0
	for i, l := range c.log {
		for c.log[first].at <= l.at-window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
