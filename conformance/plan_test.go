package conformance_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/features"
)

// offer is a target that offers some needs, has users on some plans and says
// what some more allow.
type offer struct {
	needs []contract.Need
	plans []string
	more  []string

	untrue []contract.Need // declared, and not so
}

func (o offer) Has(n contract.Need) bool { return slices.Contains(o.needs, n) }
func (o offer) Plans() []string          { return o.plans }
func (o offer) Untrue(n contract.Need) string {
	if slices.Contains(o.untrue, n) {
		return "can." + string(n) + " is not so"
	}
	return ""
}

func (o offer) Allowance(plan string) (oracle.Allowance, bool) {
	return oracle.Allowance{}, slices.Contains(o.plans, plan) || slices.Contains(o.more, plan)
}

func feature(text string) fstest.MapFS {
	return fstest.MapFS{"made_up.feature": {Data: []byte(text)}}
}

const made = `Feature: Made up
  @RATE-1 @MUST
  Rule: a rule
    Scenario: plain
      Given something
    @needs-hold @needs-audit
    Scenario: demanding
      Given something
    Scenario Outline: on <plan>
      Given a user on <plan>
      Examples:
        | plan             |
        | the free plan    |
        | the pro plan     |
        | every other plan |
  @ERR-4 @DECIDED @needs-policy
  Rule: another
    Scenario: elsewhere
      Given something
`

func notRun(p conformance.Plan) map[string]string {
	out := map[string]string{}
	for _, s := range p.Scenarios {
		out[s.Name] = s.NotRun
	}
	return out
}

func TestPlanSaysWhatIsMissing(t *testing.T) {
	p, err := conformance.NewPlan(offer{needs: []contract.Need{contract.NeedHold}, plans: []string{"free", "gold"}, more: []string{"pro"}}, feature(made), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"plain":               "",
		"demanding":           "needs audit",
		"on the free plan":    "",
		"on the pro plan":     "there is no user on plan pro",
		"on every other plan": "",
		"elsewhere":           "needs policy",
	}, notRun(p))
	require.Len(t, p.Running(), 3)
}

// What is declared and not so is told apart from what nobody offered, as long as
// it alone keeps a scenario from being run and somebody asked for that.
func TestPlanSaysWhatIsDeclaredAndUntrue(t *testing.T) {
	untrue := func(p conformance.Plan) (names []string) {
		for _, s := range p.Scenarios {
			if s.Untrue {
				names = append(names, s.Name)
			}
		}
		return names
	}
	o := offer{needs: []contract.Need{contract.NeedHold}, plans: []string{"free"}, untrue: []contract.Need{contract.NeedAudit}}
	p, err := conformance.NewPlan(o, feature(made), nil)
	require.NoError(t, err)
	require.Equal(t, "declared, but untrue: can.audit is not so", notRun(p)["demanding"])
	require.Equal(t, []string{"demanding"}, untrue(p))

	p, err = conformance.NewPlan(offer{needs: []contract.Need{contract.NeedPolicy}, plans: []string{"free"}, untrue: o.untrue}, feature(made), []string{"ERR-4"})
	require.NoError(t, err)
	require.Empty(t, untrue(p), "nobody asked for it")

	o.needs = nil
	p, err = conformance.NewPlan(o, feature(made), nil)
	require.NoError(t, err)
	require.Equal(t, "needs hold, audit", notRun(p)["demanding"])
	require.Empty(t, untrue(p), "nobody declared hold")
}

// A row of a plan that the target does not have leaves nothing unseen.
func TestPlanHasNoRowsForPlansThatDoNotExist(t *testing.T) {
	p, err := conformance.NewPlan(offer{plans: []string{"free"}}, feature(made), nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"plain": "", "demanding": "needs hold, audit", "on the free plan": "", "elsewhere": "needs policy",
	}, notRun(p))
}

func TestPlanKeepsToTheSelection(t *testing.T) {
	p, err := conformance.NewPlan(offer{needs: []contract.Need{contract.NeedPolicy}}, feature(made), []string{"ERR-4"})
	require.NoError(t, err)
	require.Len(t, p.Running(), 1)
	require.Equal(t, "elsewhere", p.Running()[0].Name)
	require.Equal(t, "not selected", notRun(p)["plain"])
}

func TestNothingToRunIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		clauses []string
		text    string
	}{
		"unknown clause":          {[]string{"RATE-1", "RATE-99"}, `there is no clause "RATE-99"`},
		"another case":            {[]string{"rate-1"}, `there is no clause "rate-1"`},
		"not a tag expression":    {[]string{"@RATE-1 && ~@MUST"}, "there is no clause"},
		"clause without scenario": {[]string{"OVR-1"}, "no scenario sees OVR-1"},
		"out of reach":            {[]string{"ERR-4"}, "out of reach for all of it: needs policy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := conformance.NewPlan(offer{}, feature(made), tc.clauses)
			require.ErrorIs(t, err, conformance.ErrSelection)
			require.ErrorContains(t, err, tc.text)
		})
	}
	_, err := conformance.NewPlan(offer{}, fstest.MapFS{}, nil)
	require.ErrorIs(t, err, conformance.ErrSelection)
	_, err = conformance.NewPlan(offer{}, fstest.MapFS{"only.feature": {Data: []byte("# a comment\n")}}, nil)
	require.ErrorIs(t, err, conformance.ErrSelection)
}

func TestBadTagsAreErrors(t *testing.T) {
	for name, tc := range map[string]struct{ tags, text string }{
		"unknown need":      {"@RATE-1 @MUST @needs-holds", `unknown need "holds"`},
		"unknown tag":       {"@RATE-1 @MUST @slow", "unknown tag @slow"},
		"no clause":         {"@MUST", "no clause is tagged"},
		"no level":          {"@RATE-1", "tagged with levels []"},
		"two levels":        {"@RATE-1 @MUST @DECIDED", "tagged with levels [MUST DECIDED]"},
		"the wrong level":   {"@RATE-1 @DECIDED", "RATE-1 is MUST"},
		"a misspelt clause": {"@RATE1 @MUST", "unknown tag @RATE1"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "Feature: f\n  " + tc.tags + "\n  Rule: r\n    Scenario: s\n      Given something\n"
			_, err := conformance.NewPlan(everything{}, feature(text), nil)
			require.ErrorContains(t, err, "features/made_up.feature:4")
			require.ErrorContains(t, err, tc.text)
		})
	}
}

func TestFeaturesThatDoNotParseAreAnError(t *testing.T) {
	_, err := conformance.NewPlan(everything{}, feature("Feature: f\n  Scenario: s\n    Wenn something\n"), nil)
	require.ErrorContains(t, err, "made_up.feature")
}

// Windows line ends and escapes in cells are other people's editors at work.
func TestFeaturesMayComeFromAnyEditor(t *testing.T) {
	text := "Feature: f\r\n  # a comment\r\n  @RATE-1 @MUST\r\n  Rule: r\r\n    Scenario Outline: <a>\r\n      Given something\r\n      Examples:\r\n        | a |\r\n        | b \\| c |\r\n"
	p, err := conformance.NewPlan(everything{}, feature(text), nil)
	require.NoError(t, err)
	require.Len(t, p.Scenarios, 1)
	require.Equal(t, "b | c", p.Scenarios[0].Name)
}

// What plain HTTP with one key shows is worth running, and is all that is run.
func TestPlainHTTPSeesMostRules(t *testing.T) {
	p, err := conformance.NewPlan(offer{needs: []contract.Need{contract.NeedHTTP, contract.NeedInvalid}, plans: []string{"free"}}, features.FS, nil)
	require.NoError(t, err)
	rules := map[string]bool{}
	for _, s := range p.Running() {
		rules[s.Clauses[0]] = true
		require.NotContains(t, s.Needs, contract.NeedHold)
	}
	for _, id := range []string{"RATE-1", "RATE-2", "RATE-8", "HDR-1", "HDR-5", "ERR-2", "SCOPE-3"} {
		require.True(t, rules[id], id)
	}
	require.False(t, rules["CONC-1"])
}
