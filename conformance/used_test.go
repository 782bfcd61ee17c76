package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

// buckets is a limiter of two plans without a cap: right, but for tokens that
// come back at a share of the rate.
type buckets struct {
	share float64

	mu    sync.Mutex
	users map[string]*bucket
}

type bucket struct {
	level float64
	at    time.Time
}

func (b *buckets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	user, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "-")
	burst, rate := 5.0, 10.0 // tokens, and tokens a second
	if strings.HasPrefix(user, "large") {
		burst, rate = 20, 20
	}
	u, known := b.users[user]
	if !known {
		u = &bucket{burst, time.Now()}
		b.users[user] = u
	}
	now := time.Now()
	u.level = min(burst, u.level+now.Sub(u.at).Seconds()*rate*b.share)
	u.at = now
	a := says{status: http.StatusOK, ids: true, headers: map[string]string{}}
	switch {
	case u.level < 1:
		a.status, a.body = http.StatusTooManyRequests, shaped(contract.CodeRateLimited)
		a.headers["Retry-After"], a.headers["Cache-Control"] = "1", "no-store"
	case strings.Contains(r.URL.Path, "no-such"):
		a.status, a.body = http.StatusNotFound, shaped("NOT_FOUND")
	}
	if u.level >= 1 {
		u.level--
	}
	a.headers[contract.HeaderLimit] = fmt.Sprint(burst)
	a.headers[contract.HeaderRemaining] = fmt.Sprint(int(u.level))
	a.headers[contract.HeaderReset] = fmt.Sprint(int((burst-u.level)/rate + 0.999999))
	a.ServeHTTP(w, r)
}

// Tokens that come back too slowly leave users, who are used again and again,
// with less than they should have. That is one mistake, and not one of each
// clause that begins with a user who has tokens.
func TestSlowRefillIsBlamedOnTheRefill(t *testing.T) {
	t.Parallel()
	others := []string{"SCOPE-1", "SCOPE-2", "POOL-1", "POOL-3", "ERR-3"}
	verdicts := func(share float64) map[string]record.Clause {
		c := judged(t, healthy(&buckets{share: share, users: map[string]*bucket{}}), absurdTarget, append(others, "RATE-2"))()
		all := map[string]record.Clause{}
		for _, cl := range c.Clauses {
			all[cl.ID] = cl
		}
		return all
	}
	right, slow := verdicts(1), verdicts(0.25)
	require.Equal(t, record.Fail, slow["RATE-2"].Verdict)
	require.Contains(t, fmt.Sprint(slow["RATE-2"].Scenarios), "may have been used before")
	for _, id := range others {
		require.NotEqual(t, record.Fail, slow[id].Verdict, "%s: %+v", id, slow[id].Scenarios)
		require.NotEqual(t, record.Fail, right[id].Verdict, "%s: %+v", id, right[id].Scenarios)
	}
	require.NotEqual(t, record.Fail, right["RATE-2"].Verdict, "%+v", right["RATE-2"].Scenarios)
}

// A run that is cut short still says what it may have cost: whatever was admitted
// by then, of scenarios that ended and of those that did not.
func TestInterruptedRunCountsWhatItCharged(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var admitted, asked atomic.Int64
	srv := httptest.NewServer(healthy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 18 {
			cancel()
		}
		if r.Header.Get("Authorization") != "" { // or nobody could be charged
			admitted.Add(1)
		}
		says{status: http.StatusOK, ids: true}.ServeHTTP(w, r)
	})))
	tgt := absurdTarget(t, srv.URL)
	c, err := conformance.Run(ctx, tgt, conformance.Options{})
	srv.Close() // waits for what is still being answered
	require.NoError(t, err)
	require.Equal(t, "interrupted", c.Aborted)
	require.GreaterOrEqual(t, c.Charged, admitted.Load())
	require.Positive(t, admitted.Load())
}
