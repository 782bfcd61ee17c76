package attack_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// slow is an engine that takes its time.
type slow struct {
	httpapi.Engine
	takes time.Duration
}

func (s slow) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
	}
	return s.Engine.Calculate(ctx, in)
}

// plan is a plan that a short run can use up.
func plan(perMinute, burst, concurrency int) policy.Plan {
	return policy.Plan{Operations: 1_000_000, Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: fmt.Sprint(perMinute), policy.Burst: fmt.Sprint(burst), policy.Concurrency: fmt.Sprint(concurrency),
	}}
}

// against runs a scenario against a reference server, with what is wrong with it.
func against(t *testing.T, scenario string, wrong func(*wiring.Parts)) record.Run {
	t.Helper()
	s, err := server.Open(t.Context(), server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Alter: wrong,
		Plans: map[string]policy.Plan{"quick": plan(600, 10, 50), "narrow": plan(60_000, 1000, 3)},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) }()
	file := target.File{
		BaseURLs:   []string{s.URL()},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{
			Method: "POST", Path: "/v1/invoice/calculate",
			Body: `{"currency":"EUR","lines":[{"description":"Consulting","quantity":"2.5","unitPrice":"120.00","taxRate":"19"}]}`,
		}},
		Allowances: map[string]target.Allowance{"quick": {RequestsPerMinute: 600, Burst: 10, Concurrency: 50}, "narrow": {RequestsPerMinute: 60_000, Burst: 1000, Concurrency: 3}},
		Can:        target.Can{Control: &target.ControlAddress{URL: s.ControlURL(), TokenFile: "unused"}},
	}
	tg, err := target.Open(t.Context(), file, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	defer tg.Close()

	sc, err := traffic.Parse("load.yaml", []byte(scenario))
	require.NoError(t, err)
	people, err := sc.Cast(file.Allowances)
	require.NoError(t, err)
	require.NoError(t, traffic.Recruit(t.Context(), tg, people))
	a, err := attack.New(attack.Config{Members: people, Duration: sc.Duration, Seed: sc.Seed, Site: attack.SiteOf(file, tg)})
	require.NoError(t, err)
	r, err := a.Run(t.Context())
	require.NoError(t, err)
	r.Schema = record.RunSchema
	require.NoError(t, r.Check())
	for _, p := range r.Plans {
		require.Empty(t, p.TransportErrors, "%q", r.Limits)
		require.Empty(t, p.OtherStatuses)
		require.Zero(t, p.Unauthenticated)
	}
	return r
}

const (
	hasty = `duration: 2s
seed: 7
populations:
  - { plan: quick, users: 4, arrival: poisson, rate: 2x, on-429: ignore }
  - { plan: quick, users: 2, arrival: { bursts: 15, every: 1s }, on-429: obey-retry-after }
`
	crowded = `duration: 2s
seed: 7
populations:
  - { plan: narrow, users: 3, arrival: { bursts: 5, every: 1s }, on-429: ignore }
`
)

func slowEngine(p *wiring.Parts) { p.Engine = slow{p.Engine, 50 * time.Millisecond} }

// TestTheReferenceIsNotAccused: it keeps the contract, and the run says so.
func TestTheReferenceIsNotAccused(t *testing.T) {
	r := against(t, hasty, func(*wiring.Parts) {})
	p := r.Plans[0]
	require.Positive(t, p.RejectedRate)
	require.Zero(t, p.RateJudged.Undue)
	require.Zero(t, p.Missing)
	require.Positive(t, p.RateJudged.Due)
	require.Positive(t, p.HeldOff)
	require.Positive(t, p.UsersAffected)
	require.Empty(t, p.HeaderFaults)

	p = against(t, crowded, slowEngine).Plans[0]
	require.Positive(t, p.RejectedConcurrency)
	require.Zero(t, p.ConcurrencyJudged.Undue)
	require.Zero(t, p.RateJudged.Sum()+p.Missing)
	require.Empty(t, p.HeaderFaults)
}

// TestWrongHeadersAreNamed: each kind is counted, and no other.
func TestWrongHeadersAreNamed(t *testing.T) {
	for name, want := range map[string][]string{
		"no-headers-200":         {"no RateLimit-Limit", "no RateLimit-Remaining", "no RateLimit-Reset"},
		"limit-is-rpm":           {"RateLimit-Limit not the burst"},
		"remaining-plus-one":     {"RateLimit-Remaining too high"},
		"remaining-minus-one":    {"RateLimit-Remaining too low"},
		"remaining-negative-429": {"RateLimit-Remaining no single integer"},
		"remaining-nonzero-429":  {"RateLimit-Remaining too high"},
		"reset-epoch":            {"RateLimit-Reset too long"},
		"no-retry-after":         {"no Retry-After"},
		"retry-after-zero":       {"Retry-After 0"},
		"retry-after-60":         {"Retry-After too long"},
		"retry-after-date":       {"Retry-After no single integer"},
		"duplicate-headers":      {"RateLimit-Remaining no single integer"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := fault.ByName(name)
			require.NoError(t, err)
			p := against(t, hasty, f.Apply).Plans[0]
			var got []string
			for _, c := range p.HeaderFaults {
				require.Positive(t, c.N)
				got = append(got, c.Name)
			}
			require.Equal(t, want, got, "%v", p.HeaderFaults)
		})
	}
}

// TestWrongServersAreNamed: the run says which way each of them is wrong.
func TestWrongServersAreNamed(t *testing.T) {
	undueRate := func(p record.RunPlan) int64 { return p.RateJudged.Undue }
	undueConcurrency := func(p record.RunPlan) int64 { return p.ConcurrencyJudged.Undue }
	missing := func(p record.RunPlan) int64 { return p.Missing }
	quickEngine := func(*wiring.Parts) {}
	for name, c := range map[string]struct {
		scenario string
		engine   func(*wiring.Parts)
		told     func(record.RunPlan) int64
	}{
		"refill-half":     {hasty, quickEngine, undueRate},
		"refill-never":    {hasty, quickEngine, undueRate},
		"cost-two":        {hasty, quickEngine, undueRate},
		"refill-double":   {hasty, quickEngine, missing},
		"cap-minus-one":   {crowded, slowEngine, undueConcurrency},
		"leak-on-success": {crowded, slowEngine, undueConcurrency},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := fault.ByName(name)
			require.NoError(t, err)
			p := against(t, c.scenario, func(p *wiring.Parts) { c.engine(p); f.Apply(p) }).Plans[0]
			require.Positive(t, c.told(p), "%+v", p.Answers)
		})
	}
}
