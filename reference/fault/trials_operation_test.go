package fault_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/server"
)

// meters is the page of metrics.
func (s *site) meters() string {
	s.Helper()
	resp, err := s.client.Get(s.server.MetricsURL() + "/metrics")
	require.NoError(s, err)
	defer resp.Body.Close()
	require.Equal(s, http.StatusOK, resp.StatusCode)
	page, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return string(page)
}

// value is what a series, whose name and labels begin so, says; "-" if there is
// none.
func (s *site) value(series string) string {
	s.Helper()
	for line := range strings.Lines(s.meters()) {
		if rest, ok := strings.CutPrefix(line, "invoicespec_rate_limit_"+series); ok {
			return strings.Fields(rest[strings.LastIndexByte(rest, ' '):])[0]
		}
	}
	return "-"
}

// decided is how a series of decisions begins.
func decided(limiter, outcome, reason, rate string) string {
	return fmt.Sprintf(`decisions_total{limiter=%q,outcome=%q,reason=%q,requests_per_minute=%q}`, limiter, outcome, reason, rate)
}

func meterTrials() map[string]trial {
	admitted, rejected := decided("rate", "admitted", "", "10"), decided("rate", "rejected", "", "10")
	after := func(traffic func(u *user), series ...string) func(*site) string {
		return of("free", func(u *user) string {
			traffic(u)
			var seen []string
			for _, x := range series {
				seen = append(seen, u.value(x))
			}
			return strings.Join(seen, " ")
		})
	}
	drained := func(u *user) { u.spends(11) }
	capped := func(u *user) { u.fills(2); u.asks(valid) }
	stranger := func(u *user) { u.send(valid, "") }
	broken := func(u *user) {
		u.control(http.MethodDelete, "/users/"+u.ID+"/entitlements/burst", nil, nil)
		u.asks(valid)
	}
	negotiated := func(u *user) { u.overrides("requests-per-minute", 883); u.asks(valid) }
	// shows says whether something is on the page after two users have asked.
	shows := func(pattern string) func(*site) string {
		return func(s *site) string {
			s.user("free").asks(unknown)
			u := s.user("free")
			u.asks(unknown)
			return fmt.Sprint(regexp.MustCompile(strings.ReplaceAll(pattern, "USER", u.ID)).MatchString(s.meters()))
		}
	}
	const duration = `decision_duration_seconds_count{limiter="rate",outcome=`
	return map[string]trial{
		"metric-misnamed":               {after(drained, admitted), "10", "-"},
		"metric-page-is-json":           {shows(`(?m)^\{`), "false", "true"},
		"metric-kind-wrong":             {shows(`_startup_total gauge`), "false", "true"},
		"metric-startup-missing":        {after(drained, "startup_total"), "1", "-"},
		"metric-duration-missing":       {after(drained, duration+`"admitted"`), "10", "-"},
		"metric-duration-of-admissions": {after(drained, duration+`"admitted"`, duration+`"rejected"`), "10 1", "10 -"},
		"metric-cache-size-missing":     {after(drained, `cache_size{cache="buckets"}`), "1", "-"},
		"metric-cache-size-zero":        {after(drained, `cache_size{cache="buckets"}`), "1", "0"},
		"metric-cache-size-negative":    {after(drained, `cache_size{cache="buckets"}`), "1", "-1"},
		"metric-bulkheads-missing":      {after(drained, `cache_size{cache="bulkheads"}`), "0", "-"},
		"metric-pressure-zero":          {after(drained, `cache_eviction_pressure{cache="buckets"}`), "1e-05", "0"},
		"metric-pressure-is-size":       {after(drained, `cache_eviction_pressure{cache="buckets"}`), "1e-05", "1000"},
		"metric-outcome-swapped":        {after(drained, admitted, rejected), "10 1", "1 10"},
		"metric-limiter-swapped":        {after(drained, rejected), "1", "0"},
		"metric-rejections-missing":     {after(drained, admitted, rejected), "10 1", "10 0"},
		"metric-cap-missing":            {after(capped, decided("concurrency", "rejected", "", "10")), "1", "0"},
		"metric-counted-twice":          {after(drained, admitted, rejected), "10 1", "20 2"},
		"metric-rate-is-burst":          {after(drained, admitted, decided("rate", "admitted", "", "11")), "10 -", "- 10"},
		"metric-anonymous-missing":      {after(stranger, decided("rate", "admitted", "anonymous", "")), "1", "-"},
		"metric-anonymous-as-user":      {after(stranger, decided("rate", "admitted", "anonymous", ""), decided("rate", "admitted", "", "")), "1 -", "- 1"},
		"metric-configuration-missing":  {after(broken, `configuration_failures_total{reason="missing"}`), "1", "0"},
		"metric-configuration-reason":   {after(broken, `configuration_failures_total{reason="missing"}`, `configuration_failures_total{reason="malformed"}`), "1 0", "0 1"},
		"metric-configuration-decided":  {after(broken, `configuration_failures_total{reason="missing"}`, decided("rate", "rejected", "", "other")), "1 -", "1 1"},

		"metric-user-label":      {shows(`decisions_total\{.*user="USER"`), "false", "true"},
		"metric-ip-label":        {shows(`decisions_total\{.*client="127.0.0.1:`), "false", "true"},
		"metric-path-label":      {shows(`decisions_total\{.*path="/v1/invoice/unknown"`), "false", "true"},
		"metric-user-as-reason":  {shows(`reason="of USER"`), "false", "true"},
		"metric-path-as-reason":  {shows(`reason="/v1/invoice/unknown"`), "false", "true"},
		"metric-series-per-user": {shows(`requests_per_minute="1000001"`), "false", "true"},
		"metric-negotiated-rate": {after(negotiated, admitted, decided("rate", "admitted", "", "883")), "1 -", "- 1"},

		"startup-doubled": {after(drained, "startup_total"), "1", "2"},
		"startup-zero":    {after(drained, "startup_total"), "1", "0"},
	}
}

// restartTrials look at a user before and after the server has started anew.
func restartTrials() map[string]trial {
	kept := func(agree func(u *user), show func(u *user) string) func(*site) string {
		return of("free", func(u *user) string {
			agree(u)
			before := show(u)
			u.control(http.MethodPost, "/restart", nil, nil)
			return before + ", " + show(u)
		})
	}
	burst := func(u *user) string { return u.all(limit, valid) }
	return map[string]trial{
		"restart-forgets-plan":       {kept(func(u *user) { u.changesTo("plus") }, burst), "40, 40", "40, 10"},
		"restart-forgets-overrides":  {kept(func(u *user) { u.overrides("burst", 33) }, burst), "33, 33", "33, 10"},
		"restart-returns-operations": {kept(func(u *user) { u.spends(1) }, (*user).usage), "99 left, 1 used, 99 left, 1 used", "99 left, 1 used, 100 left, 1 used"},
	}
}

// startTrial is a trial of a fault that shows when a server starts.
type startTrial struct {
	probe        func(*testing.T, fault.Fault) string
	right, wrong string
}

// startTrials has one for each such fault, by its name.
func startTrials() map[string]startTrial {
	// refused starts a server and says what of its refusal matters.
	refused := func(cfg server.Config, names ...string) func(*testing.T, fault.Fault) string {
		return func(t *testing.T, f fault.Fault) string {
			cfg.Listen, cfg.Alter = "127.0.0.1:0", f.Apply
			s, err := server.Open(t.Context(), cfg)
			if err == nil {
				require.NoError(t, s.Close(context.WithoutCancel(t.Context())))
				return "starts"
			}
			if slices.ContainsFunc(names, func(n string) bool { return !strings.Contains(err.Error(), n) }) {
				return "refused without a reason"
			}
			return "refused"
		}
	}
	// reads says what a variable is taken for.
	reads := func(key, value string) func(*testing.T, fault.Fault) string {
		return func(t *testing.T, f fault.Fault) string {
			setting, ok := contract.FindSetting(key)
			require.True(t, ok)
			value, set := f.Reads(func(name string) (string, bool) { return value, name == setting.Variable() })(setting.Variable())
			return fmt.Sprintf("%q %v", value, set)
		}
	}
	replicas, redis := server.Config{Replicas: 2}, server.Config{Storage: "redis"}
	all := map[string]startTrial{
		"replicas-allowed":         {refused(replicas, "replicas", "storage"), "refused", "starts"},
		"replicas-refused-dumbly":  {refused(replicas, "replicas", "storage"), "refused", "refused without a reason"},
		"storage-allowed":          {refused(redis, "storage"), "refused", "starts"},
		"storage-refused-dumbly":   {refused(redis, "storage"), "refused", "refused without a reason"},
		"nonsense-is-default":      {reads("replicas", "abc"), `"abc" true`, `"abc" false`},
		"nonsense-is-clamped":      {reads("replicas", "-1"), `"-1" true`, `"1" true`},
		"fraction-is-cut":          {reads("replicas", "1.5"), `"1.5" true`, `"1" true`},
		"empty-is-default":         {reads("storage", ""), `"" true`, `"" false`},
		"proxies-nonsense-dropped": {reads("anonymous.trusted-proxies", "abc"), `"abc" true`, `"abc" false`},
		"anon-burst-fixed":         {reads("anonymous.burst", "3"), `"3" true`, `"" false`},
		"anon-rate-fixed":          {reads("anonymous.requests-per-minute", "3"), `"3" true`, `"" false`},
		"anon-places-fixed":        {reads("anonymous.concurrency", "3"), `"3" true`, `"" false`},
		"anon-proxies-fixed":       {reads("anonymous.trusted-proxies", "10.0.0.0/8"), `"10.0.0.0/8" true`, `"" false`},
		"restart-leaves-empty": {func(t *testing.T, f fault.Fault) string {
			k, err := account.NewKey("free")
			require.NoError(t, err)
			s := open(t, f.Apply, server.User{ID: "user-1", Plan: "free", Keys: []account.Key{k}})
			return s.send(valid, "Bearer "+k.Reveal()).show("status") + " " + s.user("free").asks(valid).show("status")
		}, "200 200", "429 200"},
	}
	maps.Copy(all, logTrials())
	return all
}

func TestFaultsAtTheStartAreWrong(t *testing.T) {
	for name, trial := range startTrials() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := fault.ByName(name)
			require.NoError(t, err)
			require.NotEqual(t, trial.right, trial.wrong)
			require.Equal(t, trial.right, trial.probe(t, fault.Fault{}), "on a correct server")
			require.Equal(t, trial.wrong, trial.probe(t, f), "on the wrong server")
		})
	}
}

// A fault is about some variables and leaves the others alone.
func TestFaultsReadTheRestAsItIs(t *testing.T) {
	for _, f := range fault.All() {
		for _, name := range []string{"PATH", "BRIMLINE_LISTEN"} {
			value, set := f.Reads(func(string) (string, bool) { return "", true })(name)
			require.True(t, set && value == "", "%s and %s", f.Name, name)
		}
		_, set := f.Reads(func(string) (string, bool) { return "", false })("INVOICESPEC_RATE_LIMIT_REPLICAS")
		require.False(t, set, "%s sets what nobody has set", f.Name)
	}
}
