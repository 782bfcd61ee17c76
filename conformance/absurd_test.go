package conformance_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// The servers here do not do what the contract says, each so thoroughly that
// hardly any clause can be seen kept on it. One that passes nevertheless was
// passed by a scenario that did not see what its clause says.

// absurd is a server and the clauses that it may pass, each with the reason.
type absurd struct {
	handler func() http.Handler
	may     map[string]string
}

// says answers every request alike, ids apart.
type says struct {
	status  int
	headers map[string]string
	body    string // %s: the request id
	ids     bool
}

var nextID atomic.Int64

func (s says) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	id := fmt.Sprintf("id-%d", nextID.Add(1))
	if s.ids {
		w.Header().Set(contract.HeaderRequestID, id)
	}
	for name, v := range s.headers {
		w.Header().Set(name, v)
	}
	if strings.HasPrefix(s.body, "{") {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(s.status)
	fmt.Fprint(w, strings.ReplaceAll(s.body, "%s", id))
}

func shaped(code string) string {
	return `{"requestId":"%s","errorCode":"` + code + `","message":"no"}`
}

// healthy lets health and the like answer, outside of the scope.
func healthy(inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, contract.ScopePrefix) {
			inside.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
}

func always(s says) func() http.Handler { return func() http.Handler { return healthy(s) } }

// window counts a user's requests in windows of a second, as naive limiters do.
type window struct {
	mu    sync.Mutex
	begun time.Time
	n     map[string]int
	most  int
	next  http.Handler
	full  says
}

func (l *window) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	if time.Since(l.begun) > time.Second {
		l.begun, l.n = time.Now(), map[string]int{}
	}
	user, _, _ := strings.Cut(r.Header.Get("Authorization"), "-")
	l.n[user]++
	over := l.n[user] > l.most
	l.mu.Unlock()
	if over {
		l.full.ServeHTTP(w, r)
		return
	}
	l.next.ServeHTTP(w, r)
}

func absurdServers() map[string]absurd {
	ok := says{status: 200}
	full := map[string]string{contract.HeaderLimit: "5", contract.HeaderRemaining: "4", contract.HeaderReset: "7", contract.HeaderRetryAfter: "1"}
	empty := map[string]string{contract.HeaderLimit: "5", contract.HeaderRemaining: "0", contract.HeaderReset: "1", contract.HeaderRetryAfter: "1", "Cache-Control": "no-store"}
	const (
		mints   = "its ids are its own, whatever the client sends"
		counts  = "it counts to its five, and waits as long as it has to"
		refuses = "its window comes before anything else"
		parses  = "what net/http refuses has no id, and takes nothing from a Remaining that never changes"
	)
	ids := map[string]string{"ERR-5": mints}
	malformed := map[string]string{contract.HeaderLimit: "ten", contract.HeaderRemaining: "-1", contract.HeaderReset: "1.5", contract.HeaderRetryAfter: "soon"}
	return map[string]absurd{
		"429 {} to all":                        {handler: always(says{status: 429, body: "{}"})},
		"429 rate, in form, to all":            {handler: always(says{status: 429, ids: true, headers: empty, body: shaped(contract.CodeRateLimited)}), may: ids},
		"429 cap, in form, to all":             {handler: always(says{status: 429, ids: true, headers: empty, body: shaped(contract.CodeConcurrencyLimited)}), may: ids},
		"200 to all":                           {handler: always(ok)},
		"200 to all, with ids":                 {handler: always(says{status: 200, ids: true}), may: ids},
		"200 to all, headers of a full bucket": {handler: always(says{status: 200, ids: true, headers: full}), may: map[string]string{"ERR-5": mints, "LOG-8": parses}},
		"500 to all":                           {handler: always(says{status: 500})},
		"500, in form, to all":                 {handler: always(says{status: 500, ids: true, body: shaped("OOPS")}), may: ids},
		"500 even to health":                   {handler: func() http.Handler { return says{status: 500} }},
		"503 of a configuration to all":        {handler: always(says{status: 503, ids: true, body: shaped(contract.CodeConfigUnavailable)}), may: ids},
		"401, in form, to all":                 {handler: always(says{status: 401, ids: true, body: shaped(contract.CodeUnauthenticated)}), may: ids},
		"404, in form, to all":                 {handler: always(says{status: 404, ids: true, body: shaped("NOT_FOUND")}), may: ids},
		"302 to all":                           {handler: always(says{status: 302})},
		"404 even to health":                   {handler: func() http.Handler { return says{status: 404} }},
		"malformed headers, 200":               {handler: always(says{status: 200, ids: true, headers: malformed}), may: ids},
		"malformed headers, a window": {handler: func() http.Handler {
			return healthy(&window{most: 5, next: says{status: 200, ids: true, headers: malformed},
				full: says{status: 429, ids: true, headers: malformed, body: shaped(contract.CodeRateLimited)}})
		}, may: map[string]string{"SCOPE-1": counts, "ERR-3": refuses, "ERR-5": mints, "RATE-3": counts, "RATE-5": refuses, "RATE-9": counts}},
		"a window, 429s without a cause": {handler: func() http.Handler {
			return healthy(&window{most: 5, next: ok, full: says{status: 429, body: "{}"}})
		}, may: map[string]string{"SCOPE-1": counts, "RATE-3": counts, "RATE-5": refuses}},
		"one request admitted, then 429 {}": {handler: func() http.Handler {
			return healthy(&once{window{most: 1, next: ok, full: says{status: 429, body: "{}"}}})
		}},
	}
}

// once never opens a second window.
type once struct{ window }

func (o *once) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.begun = time.Now()
	if o.n == nil {
		o.n = map[string]int{}
	}
	o.mu.Unlock()
	o.window.ServeHTTP(w, r)
}

func absurdTarget(t *testing.T, url string) *target.Target {
	return openAbsurd(t, url, map[string]target.Allowance{"small": {RequestsPerMinute: 600, Burst: 5, Concurrency: 2}, "large": {RequestsPerMinute: 1200, Burst: 20, Concurrency: 2}})
}

// openAbsurd opens a server as a target with three users of two keys on each plan.
func openAbsurd(t *testing.T, url string, plans map[string]target.Allowance) *target.Target {
	r := reference{file: target.File{
		BaseURLs:   []string{url},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{
			Valid:   target.Operation{Method: http.MethodPost, Path: "/v1/invoice/calculate", Body: sample},
			Invalid: &target.Operation{Method: http.MethodPost, Path: "/v1/invoice/calculate", Body: "{}"},
		},
		OutsideQuotas: []string{"/health"},
		Can:           target.Can{Addresses: []string{"127.64.0.0/10"}},
		Allowances:    plans,
	}}
	for plan := range plans {
		for i := range 3 {
			for k := range 2 {
				user := fmt.Sprintf("%s%d", plan, i)
				r.keys = append(r.keys, target.Key{User: user, Plan: plan, Secret: target.NewSecret(fmt.Sprintf("%s-%d", user, k))})
			}
		}
	}
	tgt, err := target.Open(t.Context(), r.file, target.Options{Keys: r.keys})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tgt.Close()) })
	return tgt
}

// judged is what the suite says of a server, reached in one of the two ways.
func judged(t *testing.T, h http.Handler, open func(*testing.T, string) *target.Target, clauses []string) func() record.Conformance {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	tgt := open(t, srv.URL)
	got, err := make(chan record.Conformance, 1), error(nil)
	go func() {
		var c record.Conformance
		c, err = conformance.Run(t.Context(), tgt, conformance.Options{Clauses: clauses})
		got <- c
	}()
	return func() record.Conformance {
		c := <-got
		require.NoError(t, err)
		return c
	}
}

// behindControl is an absurd server beside the reference's own control server,
// so that every scenario can be set up and the clock stands still.
func behindControl(t *testing.T, url string) *target.Target {
	r := start(t, control.ClockFrozen, nil)
	r.file.BaseURLs, r.keys = []string{url}, nil
	return r.open(t)
}

// withoutAudit lists the clauses that need no audit: an absurd server leaves nothing to
// be looked at, and to look for it takes long.
func withoutAudit() []string {
	var all []string
	for _, c := range contract.Clauses() {
		if !slices.Contains(c.Needs, contract.NeedAudit) {
			all = append(all, c.ID)
		}
	}
	return all
}

// own reports whether a clause's own scenario was run.
func own(s record.Scenario) bool { return !s.InPassing && s.Verdict != record.NotRun }

func TestAbsurdServersPassNothing(t *testing.T) {
	t.Parallel()
	type run struct {
		name   string
		plain  bool
		may    map[string]string
		result func() record.Conformance
	}
	var runs []run
	for name, a := range absurdServers() {
		runs = append(runs, run{name + "/plain", true, a.may, judged(t, a.handler(), absurdTarget, nil)},
			run{name + "/controlled", false, a.may, judged(t, a.handler(), behindControl, withoutAudit())})
	}
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			c := r.result()
			for _, cl := range c.Clauses {
				if cl.Verdict == record.Pass && r.may[cl.ID] == "" {
					t.Errorf("%s passes: %s", cl.ID, cl.Sentence)
				}
				if (cl.Verdict == record.Fail || cl.Verdict == record.Differs) && r.plain && !slices.ContainsFunc(cl.Scenarios, own) {
					t.Errorf("%s is found broken, and none of its scenarios could be run: %+v", cl.ID, cl.Scenarios)
				}
			}
		})
	}
}
