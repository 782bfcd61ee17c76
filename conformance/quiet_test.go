package conformance_test

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// quiet limits attempts by address and says nothing of anybody's bucket. Like
// some proxies, its parser refuses two credential lines.
type quiet struct {
	mu   sync.Mutex
	pool map[string]*rate.Limiter
}

var quietKeys = regexp.MustCompile(`^Bearer (small|large)[0-9]-[0-9]$`)

func (q *quiet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	credentials := r.Header.Values("Authorization")
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pool[host] == nil {
		q.pool[host] = rate.NewLimiter(0.5, 10)
	}
	switch {
	case len(credentials) > 1:
		says{status: http.StatusBadRequest, body: "<h1>Bad Request</h1>"}.ServeHTTP(w, r)
	case len(credentials) == 1 && quietKeys.MatchString(credentials[0]):
		says{status: http.StatusOK, ids: true}.ServeHTTP(w, r)
	case q.pool[host].Allow():
		says{status: http.StatusUnauthorized, ids: true, body: shaped(contract.CodeUnauthenticated)}.ServeHTTP(w, r)
	default:
		says{status: http.StatusTooManyRequests, ids: true, body: shaped(contract.CodeRateLimited),
			headers: map[string]string{"Retry-After": "2", "Cache-Control": "no-store"}}.ServeHTTP(w, r)
	}
}

// A success says by itself that a key was good. What a parser refuses because of
// two credential lines is no answer in scope, and no attempt; what that left of
// the user's bucket nothing tells.
func TestQuietLimiterIsNotBlamedForWhatItsParserRefuses(t *testing.T) {
	t.Parallel()
	c := judged(t, healthy(&quiet{pool: map[string]*rate.Limiter{}}), absurdTarget, []string{"ANON-1", "ANON-7", "AUTH-1"})()
	want := map[string]record.Verdict{"ANON-1": record.Pass, "ANON-7": record.Pass, "AUTH-1": record.Inconclusive}
	for _, cl := range c.Clauses {
		switch verdict, asked := want[cl.ID]; {
		case asked:
			require.Equal(t, verdict, cl.Verdict, "%s: %+v", cl.ID, cl.Scenarios)
		case cl.ID == "ERR-1" || cl.ID == "ERR-2":
			require.NotEqual(t, record.Fail, cl.Verdict, "%s: %+v", cl.ID, cl.Scenarios)
		}
	}
}

// What a parser lets through is a request, and costs a token.
func TestLargeHeadThatIsLetThroughCostsItsToken(t *testing.T) {
	t.Parallel()
	untilTold(t, func() (told bool) {
		c := judged(t, healthy(&buckets{share: 1, users: map[string]*bucket{}}), absurdTarget, []string{"LOG-8"})()
		for _, cl := range c.Clauses {
			require.NotEqual(t, record.Fail, cl.Verdict, "%s: %+v", cl.ID, cl.Scenarios)
			told = told || cl.ID == "LOG-8" && cl.Verdict == record.Pass
		}
		return told
	})
}

// stalling is a right limiter of one token every two seconds that takes its time
// twice: over a user's second refusal, so that little is left to wait by then, and
// over the twelfth, so that a token comes back.
type stalling struct {
	mu    sync.Mutex
	users map[string]*stalled
}

type stalled struct {
	bucket   *rate.Limiter
	refusals int
}

func (l *stalling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	u := l.users[r.Header.Get("Authorization")]
	if u == nil {
		u = &stalled{bucket: rate.NewLimiter(0.5, 5)}
		l.users[r.Header.Get("Authorization")] = u
	}
	pause := u.refusals == 1 || u.refusals == 11
	if pause {
		u.refusals++ // not again
	}
	l.mu.Unlock()
	if pause {
		time.Sleep(1200 * time.Millisecond)
	}
	if u.bucket.Allow() {
		says{status: http.StatusOK, ids: true}.ServeHTTP(w, r)
		return
	}
	l.mu.Lock()
	u.refusals++
	l.mu.Unlock()
	wait := fmt.Sprint(math.Ceil((1 - u.bucket.Tokens()) / 0.5))
	says{status: http.StatusTooManyRequests, ids: true, body: shaped(contract.CodeRateLimited),
		headers: map[string]string{"Retry-After": wait, "Cache-Control": "no-store"}}.ServeHTTP(w, r)
}

// What a rejection promised is of the token that was missing then. If that came
// back and was spent, the limiter need not keep it.
func TestPromiseOfASpentTokenIsNotHeldAgainstTheLimiter(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, url string) *target.Target {
		return openAbsurd(t, url, map[string]target.Allowance{"small": {RequestsPerMinute: 30, Burst: 5, Concurrency: 2}})
	}
	c := judged(t, healthy(&stalling{users: map[string]*stalled{}}), open, []string{"RATE-8"})()
	for _, cl := range c.Clauses {
		if cl.ID == "RATE-8" {
			require.Contains(t, []record.Verdict{record.Pass, record.Inconclusive}, cl.Verdict, "%+v", cl.Scenarios)
		}
	}
}
