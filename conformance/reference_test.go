package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/conformancetest"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/telemetry"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeProgram()
		os.Exit(code)
	}))
}

const sample = `{"currency":"EUR","lines":[{"description":"Consulting","quantity":"2.5","unitPrice":"120.00","taxRate":"19"}]}`

// reference is a running reference server and its target file.
type reference struct {
	*server.Server
	file target.File
	keys []target.Key
}

// start starts the reference on loopback; no clock means no control either.
func start(t testing.TB, clock control.ClockMode, alter func(*wiring.Parts)) reference {
	t.Helper()
	r, err := newReference(clock, nil, alter)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r
}

// newReference is start without a test, on a database unless that is nil.
func newReference(clock control.ClockMode, db *server.Database, alter func(*wiring.Parts)) (reference, error) {
	return newReferenceOver(server.Transport{H2C: true}, nil, clock, db, alter)
}

// newReferenceOver is newReference over another transport, and on other plans than
// its own; nil: on those.
func newReferenceOver(transport server.Transport, plans map[string]policy.Plan, clock control.ClockMode, db *server.Database, alter func(*wiring.Parts)) (reference, error) {
	process, err := startable()
	if err != nil {
		return reference{}, err
	}
	cfg := server.Config{
		Plans: plans, Database: db, Lasting: db == nil, Transport: transport,
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Metrics: "127.0.0.1:0", Clock: clock, Users: 20,
		OperatorToken: "the-operators-own", CapacityToken: "the-services-own",
		Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.9.0/24")}},
		Logger:    slog.New(slog.DiscardHandler),
		Alter: func(p *wiring.Parts) {
			p.Bounds.Engine = 200 * time.Millisecond
			if alter != nil {
				alter(p)
			}
		},
	}
	if clock == "" {
		cfg.Control, cfg.Clock = "", control.ClockReal
	}
	s, err := server.Open(context.Background(), cfg)
	if err != nil {
		return reference{}, err
	}

	op := target.Operation{Method: http.MethodPost, Path: "/v1/invoice/calculate", Body: sample}
	invalid := target.Operation{Method: http.MethodPost, Path: "/v1/invoice/calculate", Body: "{}"}
	r := reference{Server: s, file: target.File{
		BaseURLs:      []string{s.URL()},
		Credential:    target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations:    target.Operations{Valid: op, Invalid: &invalid},
		OutsideQuotas: []string{"/health", "/ready", "/openapi.json"},
		InternalRoutes: []target.Route{
			{Method: http.MethodPut, Path: "/internal/billing/users/{user}/overrides/{dimension}", Body: `{"value":50,"reason":"mine","author":"me"}`},
			{Method: http.MethodDelete, Path: "/internal/billing/users/{user}/overrides/{dimension}", Body: `{"reason":"mine","author":"me"}`},
			{Method: http.MethodGet, Path: "/internal/billing/users/{user}"},
			{Method: http.MethodPost, Path: "/internal/capacity/reservations", Body: `{"user":"{user}","id":"one"}`},
		},
		Allowances: map[string]target.Allowance{
			"free":       {RequestsPerMinute: 10, Burst: 10, Concurrency: 2},
			"starter":    {RequestsPerMinute: 60, Burst: 20, Concurrency: 5},
			"plus":       {RequestsPerMinute: 120, Burst: 40, Concurrency: 10},
			"pro":        {RequestsPerMinute: 300, Burst: 100, Concurrency: 20},
			"enterprise": {RequestsPerMinute: 300, Burst: 100, Concurrency: 20},
		},
		Can: target.Can{StalledUpload: true, HTTP2: s.HTTP2(), Page: &target.Page{
			Path: dashboard.BillingPath, SignIn: dashboard.SignInPath, Field: dashboard.KeyField, Negotiated: "negotiated",
		}, Addresses: []string{"127.64.0.0/10"}, Proxy: &target.Proxy{From: "127.0.9.1", Trusted: []string{"127.0.9.0/24"}},
			Metrics: &target.MetricsAddress{URL: s.MetricsURL() + telemetry.Path}, Process: process},
	}}
	if clock != "" {
		r.file.Can.Control = &target.ControlAddress{URL: s.ControlURL()}
	}
	for _, u := range s.Users() {
		for _, k := range u.Keys {
			r.keys = append(r.keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(k.Reveal())})
		}
	}
	return r, nil
}

func (r reference) dial(ctx context.Context) (*target.Target, error) {
	return target.Open(ctx, r.file, target.Options{Keys: r.keys, ControlToken: target.NewSecret(r.ControlToken()),
		Vouched: []contract.Need{contract.NeedProxy, contract.NeedMetrics, contract.NeedProcess}})
}

// open opens the reference as a target.
func (r reference) open(t testing.TB) *target.Target {
	t.Helper()
	tgt, err := r.dial(context.Background())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tgt.Close()) })
	return tgt
}

// requireKept asks that nothing is held against a correct server. Where the clock
// is real, a machine may be too busy to ask what some scenarios ask: their verdict
// says so, and it may not be more than a few.
func requireKept(t *testing.T, c record.Conformance) {
	t.Helper()
	var passed, unanswered int
	for _, cl := range c.Clauses {
		for _, s := range cl.Scenarios {
			switch s.Verdict {
			case record.Pass:
				passed++
			case record.NotRun:
			case record.Inconclusive:
				unanswered++
				t.Logf("%s %s (%s): %s", cl.ID, s.Name, s.At, s.Reason)
			default:
				t.Errorf("%s %s (%s): %s %s %+v", cl.ID, s.Name, s.At, s.Verdict, s.Reason, s.Findings)
			}
		}
	}
	require.Less(t, 10*unanswered, passed, "scenarios that were not answered, of those that passed")
}

func TestReferenceKeepsTheContractOnAFrozenClock(t *testing.T) {
	c := conformancetest.Target(t, start(t, control.ClockFrozen, nil).open(t), conformance.Options{})
	requireKept(t, c)
	require.Equal(t, record.ResultPartial, c.Result, "some clauses have no scenario")
	for _, cl := range c.Clauses {
		if len(cl.Scenarios) > 0 {
			require.Equal(t, record.Pass, cl.Verdict, cl.ID)
		}
	}
	requireSchema(t, c)
}

func TestReferenceKeepsTheContractOnARealClock(t *testing.T) {
	t.Parallel()
	c, err := conformance.Run(t.Context(), start(t, control.ClockReal, nil).open(t), conformance.Options{})
	require.NoError(t, err)
	requireKept(t, c)
}

// Without the control protocol users are those of a keys file, of whose past
// nothing is known, and what each scenario needs has to be declared: one that
// uses more than that cannot be set up.
func TestReferenceKeepsTheContractOverPlainHTTP(t *testing.T) {
	t.Parallel()
	tgt := start(t, "", nil).open(t)
	require.False(t, tgt.Has(contract.NeedAudit))
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{})
	require.NoError(t, err)
	requireKept(t, c)
	require.Greater(t, c.Counts.Pass, 30)
}

func requireSchema(t *testing.T, c record.Conformance) {
	t.Helper()
	text, err := os.ReadFile("../docs/conformance.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("s.json", doc))
	schema, err := compiler.Compile("s.json")
	require.NoError(t, err)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value))
}

func madeUp(text string) fstest.MapFS { return fstest.MapFS{"made_up.feature": {Data: []byte(text)}} }

// The suite must not be able to pass by mistake: each of these is green in a
// godog that is left to itself.
func TestMistakesOfTheSuiteAreErrors(t *testing.T) {
	tgt := start(t, control.ClockFrozen, nil).open(t)
	const head = "Feature: Made up\n  @RATE-1 @MUST\n  Rule: r\n"
	for name, tc := range map[string]struct{ text, says string }{
		"a sentence nobody knows":  {head + "    Scenario: s\n      Given a user with tokens to spare\n      When they do something else\n", "step is undefined"},
		"a sentence cut short":     {head + "    Scenario: s\n      Given a user with tokens\n", "step is undefined"},
		"a sentence with more":     {head + "    Scenario: s\n      Given a user with tokens to spare and more\n", "step is undefined"},
		"the wrong keyword":        {head + "    Scenario: s\n      When a user with tokens to spare\n", "step is undefined"},
		"no sentence":              {head + "    Scenario: s\n", "planned and not run"},
		"an effect nobody knows":   {head + "    Scenario: s\n      Given a user with tokens to spare\n      When they send a valid request\n      Then it had these effects:\n        | smoke | 1 |\n", "no such effect"},
		"a judgment before a deed": {head + "    Scenario: s\n      Given a user with tokens to spare\n      Then the answer is no rejection\n", "there is no answer yet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := conformance.Run(t.Context(), tgt, conformance.Options{Features: madeUp(tc.text)})
			require.ErrorIs(t, err, conformance.ErrSuite)
			require.ErrorContains(t, err, tc.says)
			require.ErrorContains(t, err, "features/made_up.feature:4")
		})
	}
	_, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"CACHE-1"}})
	require.ErrorIs(t, err, conformance.ErrSelection)
}

func TestInterruptedRunKeepsWhatItHas(t *testing.T) {
	tgt := start(t, control.ClockFrozen, nil).open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := conformance.Run(ctx, tgt, conformance.Options{Progress: func(e conformance.Event) {
		if e.Done == 5 {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, "interrupted", c.Aborted)
	require.Positive(t, c.Counts.Pass)
	require.Equal(t, record.ResultPartial, c.Result)
	last := c.Clauses[len(c.Clauses)-1]
	require.Equal(t, record.NotRun, last.Verdict)
	interrupted := 0
	for _, cl := range c.Clauses {
		for _, s := range cl.Scenarios {
			if s.Reason == "interrupted" {
				interrupted++
			}
		}
	}
	require.Positive(t, interrupted)
}

func TestTargetThatGoesAwayEndsTheRun(t *testing.T) {
	r := start(t, control.ClockFrozen, nil)
	tgt := r.open(t)
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Progress: func(e conformance.Event) {
		if e.Done == 3 {
			require.NoError(t, r.Close(context.Background()))
		}
	}})
	require.NoError(t, err)
	require.Equal(t, "the target is away", c.Aborted)
	require.Zero(t, c.Counts.Fail, "a target that is away breaks no clause")
}

func TestSelectionRunsNothingElse(t *testing.T) {
	tgt := start(t, control.ClockFrozen, nil).open(t)
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"HDR-5", "RATE-1"}})
	require.NoError(t, err)
	require.Equal(t, record.ResultSuccess, c.Result)
	require.Equal(t, 2, c.Counts.Pass)
	require.Equal(t, len(contract.Clauses())-2, c.Counts.NotRun)
}

func TestStrictMakesADifferenceAFailure(t *testing.T) {
	wrong, err := fault.ByName(decidedFault(t))
	require.NoError(t, err)
	tgt := start(t, control.ClockFrozen, wrong.Apply).open(t)
	for strict, want := range map[bool]record.Verdict{false: record.Differs, true: record.Fail} {
		c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{wrong.Clause}, Strict: strict})
		require.NoError(t, err)
		for _, cl := range c.Clauses {
			if cl.ID == wrong.Clause {
				require.Equal(t, want, cl.Verdict)
			}
		}
	}
}

// decidedFault is the name of a fault against a DECIDED clause.
func decidedFault(t *testing.T) string {
	t.Helper()
	for _, f := range fault.All() {
		if c, _ := contract.FindClause(f.Clause); c.Level == contract.Decided && f.Clause == "RATE-8" {
			return f.Name
		}
	}
	t.Fatal("no fault against RATE-8")
	return ""
}

// Every scenario that the features hold gets to its end on the reference; one
// that never runs anywhere would be no proof of anything.
func TestEveryScenarioRunsOnTheReference(t *testing.T) {
	plan, err := conformance.NewPlan(start(t, control.ClockFrozen, nil).open(t), features.FS, nil)
	require.NoError(t, err)
	for _, s := range plan.Scenarios {
		require.Empty(t, s.NotRun, s.At)
	}
}
