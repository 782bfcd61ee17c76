package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/telemetry"
	"github.com/invoicespec/brimline/reference/wiring"
)

// allowed is every label of METRIC-2 with the values it may have.
var allowed = map[string]*regexp.Regexp{
	"limiter":             regexp.MustCompile(`^(rate|concurrency)$`),
	"outcome":             regexp.MustCompile(`^(admitted|rejected)$`),
	"requests_per_minute": regexp.MustCompile(`^(10|60|300|other|)$`), // the plans below; none before authentication
	"reason":              regexp.MustCompile(`^(missing|malformed|anonymous|full|failed|)$`),
	"cache":               regexp.MustCompile(`^(buckets|bulkheads)$`),
	"le":                  regexp.MustCompile(`^([0-9.e-]+|\+Inf)$`),
}

// TestLabelsAreClosed walks every series after traffic of thousands of users: on
// plans, with overrides, on broken plans, with bad keys, from many addresses, on
// many paths, with the store away. What a user could write is in no label, and
// the second half of the users adds no series.
func TestLabelsAreClosed(t *testing.T) {
	const users = 3_000
	local := limiter.NewLocal(clock.NewReal(), limiter.Config{MaximumSize: users / 2})
	m := telemetry.New(telemetry.Config{Limiter: local, Log: someLog{}, Logger: slog.New(slog.DiscardHandler)})
	all := newPeople(t, users)
	p := wiring.Default(wiring.Needs{
		Clock: clock.NewReal(), Digest: all.digester.Of, Accounts: all, Ledger: unlimited{},
		Limiter: local, Engine: invoice.Engine{}, Log: apilog.Discard{}, Logger: slog.New(slog.DiscardHandler),
	})
	p.Meters, p.Metrics = m, m.Handler()
	h := p.Handler()

	all.ask(t, h, 0, users/2)
	half := samples(t, scrape(t, p.Metrics))
	all.ask(t, h, users/2, users)
	page := scrape(t, p.Metrics)
	whole := samples(t, page)
	require.Len(t, whole, len(half), "series grow with users")

	totals := map[string]float64{}
	for _, s := range whole {
		for label, value := range s.labels {
			values, ok := allowed[label]
			require.True(t, ok, "label %s of %s", label, s.name)
			require.Regexp(t, values, value, "label %s of %s", label, s.name)
		}
		totals[s.name] += s.value
		totals[s.name+s.labels["requests_per_minute"]+s.labels["reason"]] += s.value
	}
	for _, secret := range []string{"usr", "isk_", "/v1", "203.0.113", "calculate"} {
		require.NotContains(t, page, secret)
	}
	// The traffic was there: a walk over an idle server would prove nothing.
	decisions, failures := "invoicespec_rate_limit_decisions_total", "invoicespec_rate_limit_configuration_failures_total"
	for _, counted := range []string{
		decisions + "10", decisions + "60", decisions + "300", decisions + "other",
		failures + "missing", failures + "malformed", "invoicespec_rate_limit_store_failures_total",
		"invoicespec_rate_limit_cache_evictions",
	} {
		require.Positive(t, totals[counted], counted)
	}
}

// people are users on every kind of plan, good and broken, found by their keys.
type people struct {
	digester account.Digester
	keys     []account.Key
	records  map[account.Digest]account.Record
}

// kinds of users go round: plans of three rates, with and without overrides, a
// broken rate under an override, a broken plan, none at all, a store that fails.
const kinds = 9

func newPeople(t *testing.T, n int) *people {
	plan := func(rate string) policy.Plan {
		return policy.Plan{Name: "plan of " + rate, Entitlements: map[policy.Dimension]string{
			policy.RequestsPerMinute: rate, policy.Burst: "1", policy.Concurrency: "5",
		}}
	}
	plans := map[string]policy.Plan{"free": plan("10"), "starter": plan("60"), "pro": plan("300"), "broken": plan("usr_as_text")}
	all := &people{digester: account.NewDigester(), records: map[account.Digest]account.Record{}}
	for i := range n {
		key, err := account.NewKey("free")
		require.NoError(t, err)
		r := account.Record{User: "usr_" + strconv.Itoa(i), Plans: plans}
		override := func(d policy.Dimension) {
			r.Overrides = []policy.Override{{Dimension: d, Value: strconv.Itoa(1000 + i)}}
		}
		switch i % kinds {
		case 0:
			r.Subscription.Plan = "free"
		case 1:
			r.Subscription.Plan = "starter"
		case 2:
			r.Subscription.Plan = "pro"
		case 3:
			r.Subscription.Plan = "pro"
			override(policy.RequestsPerMinute) // another rate for every user
		case 4:
			r.Subscription.Plan = "free"
			override(policy.Concurrency)
		case 5:
			r.Subscription.Plan = "broken"
			override(policy.RequestsPerMinute)
		case 6:
			r.Subscription.Plan = "broken"
		case 7:
			r.Subscription.Plan = "plan_of_" + r.User
		}
		all.keys = append(all.keys, key)
		all.records[all.digester.Of(key)] = r
	}
	return all
}

// Lookup finds a user, but for those whose plan is empty: there the store fails.
func (a *people) Lookup(_ context.Context, d account.Digest) (account.Record, error) {
	r, ok := a.records[d]
	switch {
	case !ok:
		return account.Record{}, account.ErrUnknownKey
	case r.Subscription.Plan == "":
		return account.Record{}, errors.New("out of reach, says " + r.User)
	}
	return r, nil
}

// ask sends two requests for each user and one with a bad key, from several
// goroutines.
func (a *people) ask(t *testing.T, h http.Handler, from, to int) {
	t.Helper()
	const workers = 4
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := from + w; i < to; i += workers {
				for _, token := range []string{a.keys[i].Reveal(), a.keys[i].Reveal(), "isk_usr_" + strconv.Itoa(i)} {
					r := httptest.NewRequest(http.MethodPost, fmt.Sprintf("/v1/invoice/usr_%d", i), strings.NewReader("{}"))
					r.RemoteAddr = fmt.Sprintf("203.0.113.%d:%d", i%256, 1024+i)
					r.Header.Set("Authorization", "Bearer "+token)
					h.ServeHTTP(httptest.NewRecorder(), r)
				}
			}
		})
	}
	all.Wait()
}

// unlimited is a ledger that lets everybody.
type unlimited struct{}

func (unlimited) Reserve(context.Context, string, string) error { return nil }
func (unlimited) Charge(context.Context, string) error          { return nil }
func (unlimited) GiveBack(context.Context, string) error        { return nil }
