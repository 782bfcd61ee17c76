package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/steps"
)

const ownClauses = `group: Ours
clauses:
  - { id: TEAM-1, level: MUST, sentence: One. }
`

const ownFeature = `Feature: Ours

  @TEAM-1 @MUST
  Scenario: one
    Given a rested user on the smallest plan
    When they send a valid request
    Then the answer is no rejection
`

// folder leaves files in a folder called "team".
func folder(t testing.TB, files map[string]string) string {
	dir := filepath.Join(t.TempDir(), "team")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

func TestOwnFeaturesArePlannedBesideTheContracts(t *testing.T) {
	own, err := conformance.ReadOwn(folder(t, map[string]string{
		"clauses.yaml": ownClauses, "one.feature": strings.ReplaceAll(ownFeature, "send a valid request", "send a request that fails validation"), "readme.md": "#",
	}))
	require.NoError(t, err)
	plan, err := conformance.NewPlan(everything{}, own, nil)
	require.NoError(t, err)
	last := plan.Scenarios[len(plan.Scenarios)-1]
	require.Equal(t, "team/one.feature:4", last.At)
	require.Equal(t, []string{"TEAM-1"}, last.Clauses)
	require.Equal(t, []contract.Need{contract.NeedInvalid}, last.Needs, "what a sentence needs, the plan asks for")
	require.Greater(t, len(plan.Scenarios), 300)

	plan, err = conformance.NewPlan(everything{}, own, []string{"TEAM-1"})
	require.NoError(t, err)
	require.Len(t, plan.Running(), 1)
	_, err = conformance.NewPlan(plain{}, own, []string{"TEAM-1"})
	require.ErrorContains(t, err, "needs invalid")
	all := conformance.Clauses(own)
	require.Equal(t, contract.Clause{ID: "TEAM-1", Level: contract.Must, Needs: []contract.Need{}, Group: "Ours", Sentence: "One."}, all[len(all)-1])
}

// plain is a target that offers nothing but itself.
type plain struct{ everything }

func (plain) Has(n contract.Need) bool { return n == contract.NeedHTTP }

func (plain) Allowance(string) (oracle.Allowance, bool) { return oracle.Allowance{}, true }

func TestOwnFeaturesAreRefused(t *testing.T) {
	feature := func(old, new string) map[string]string {
		text := strings.Replace(ownFeature, old, new, 1)
		if text == ownFeature {
			panic("nothing replaced: " + old)
		}
		return map[string]string{"clauses.yaml": ownClauses, "one.feature": text}
	}
	clauses := func(text string) map[string]string {
		return map[string]string{"clauses.yaml": text, "one.feature": ownFeature}
	}
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"no features":          {map[string]string{"clauses.yaml": ownClauses}, "team: no features; accepted: .feature files and clauses.yaml"},
		"no clauses":           {map[string]string{"one.feature": ownFeature}, "clauses.yaml: no such file or directory"},
		"an unknown sentence":  {feature("they send a valid request", "they sent a valid request"), `one.feature:6: no sentence "When they sent a valid request"; the nearest: "When `},
		"too many requests":    {feature("they send a valid request", "they send 99999999999999999999 valid requests"), `one.feature:6: "they send 99999999999999999999 valid requests": 99999999999999999999 is too large; accepted: a number up to 1000`},
		"no requests":          {feature("they send a valid request", "they send 0 valid requests"), `one.feature:6: no sentence "When they send 0 valid requests"`},
		"a wrong keyword":      {feature("When they send", "Then they send"), `one.feature:6: no sentence "Then they send a valid request"`},
		"a table in vain":      {feature("a valid request\n", "a valid request\n      | x |\n"), "one.feature:6: \"they send a valid request\": no table may follow"},
		"a text in vain":       {feature("a valid request\n", "a valid request\n      \"\"\"\n      x\n      \"\"\"\n"), "one.feature:6: \"they send a valid request\": no text may follow"},
		"no clause":            {feature("@TEAM-1 @MUST", "@MUST"), "one.feature:4: no clause is tagged; accepted: @ID and level"},
		"no level":             {feature("@TEAM-1 @MUST", "@TEAM-1"), "one.feature:4: tagged with levels []: TEAM-1 is MUST"},
		"another level":        {feature("@TEAM-1 @MUST", "@TEAM-1 @DECIDED"), "one.feature:4: tagged with levels [DECIDED]: TEAM-1 is MUST"},
		"an undeclared clause": {feature("@TEAM-1", "@TEAM-2"), "one.feature:4: unknown tag @TEAM-2"},
		"the contract's own":   {feature("@TEAM-1", "@RATE-1"), "one.feature:4: unknown tag @RATE-1"},
		"an unknown need":      {feature("@MUST", "@MUST @needs-luck"), `one.feature:4: unknown need "luck"`},
		"a slip in a tag":      {feature("@MUST", "@MUST @wip"), "one.feature:4: unknown tag @wip"},
		"no sentences":         {map[string]string{"clauses.yaml": ownClauses, "one.feature": "Feature: x\n  @TEAM-1 @MUST\n  Scenario: y\n"}, `one.feature:3: "y" says nothing`},
		"empty examples":       {map[string]string{"clauses.yaml": ownClauses, "one.feature": strings.Replace(ownFeature, "Scenario: one", "Scenario Outline: one", 1) + "    Examples:\n      | x |\n"}, "one.feature: no scenario that would be run"},
		"one that is not run":  {feature("  @TEAM-1", "  Scenario Outline: two\n    Given a rested user on the smallest plan\n    Examples:\n      | x |\n\n  @TEAM-1"), `one.feature:3: "two" is never run`},
		"two of a name":        {map[string]string{"clauses.yaml": ownClauses, "one.feature": ownFeature + strings.TrimPrefix(ownFeature, "Feature: Ours\n")}, `one.feature:10: two scenarios of TEAM-1 are called "one"`},
		"no scenario":          {map[string]string{"clauses.yaml": ownClauses, "one.feature": "Feature: x\n"}, "one.feature: no scenario that would be run"},
		"no Gherkin":           {map[string]string{"clauses.yaml": ownClauses, "one.feature": "What?\n"}, "one.feature: "},
		"too large":            {map[string]string{"clauses.yaml": ownClauses, "one.feature": ownFeature + strings.Repeat("#", 256<<10)}, "one.feature: too large; accepted: at most 262144 bytes"},
		"a clause for nobody":  {clauses(ownClauses + "  - { id: TEAM-2, level: MUST, sentence: Two. }\n"), "clauses.yaml: no scenario carries TEAM-2"},
		"a family taken":       {clauses(strings.Replace(ownClauses, "TEAM-1", "RATE-77", 1)), "clauses.yaml:3: clauses[0].id: RATE-77: clauses named RATE-… are the contract's"},
		"no id":                {clauses(strings.Replace(ownClauses, "TEAM-1", "team", 1)), `clauses.yaml:3: clauses[0].id: "team" is no clause id`},
		"an id twice":          {clauses(ownClauses + "  - { id: TEAM-1, level: MUST, sentence: Two. }\n"), "clauses.yaml:4: clauses[1].id: TEAM-1 again"},
		"no such level":        {clauses(strings.Replace(ownClauses, "MUST", "SHOULD", 1)), `clauses.yaml:3: clauses[0].level: "SHOULD" is no level`},
		"a group taken":        {clauses(strings.Replace(ownClauses, "Ours", "Request rate", 1)), "is a group of the contract"},
		"an unknown key":       {clauses(ownClauses + "more: 1\n"), "clauses.yaml:4: more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := conformance.ReadOwn(folder(t, c.files))
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestOwnFeaturesStayInTheirFolder(t *testing.T) {
	dir := folder(t, map[string]string{"clauses.yaml": ownClauses})
	outside := filepath.Join(t.TempDir(), "one.feature")
	require.NoError(t, os.WriteFile(outside, []byte(ownFeature), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "one.feature")))
	_, err := conformance.ReadOwn(dir)
	require.ErrorContains(t, err, "escapes")

	require.NoError(t, os.Remove(filepath.Join(dir, "one.feature")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "deeper"), 0o755))
	_, err = conformance.ReadOwn(dir)
	require.ErrorContains(t, err, "deeper: a folder; accepted: ")
	_, err = conformance.ReadOwn(filepath.Join(dir, "nowhere"))
	require.ErrorContains(t, err, "nowhere: no such file or directory")
}

// The example of docs/writing-features.md says every sentence that is offered.
func TestTheExampleOfOwnFeatures(t *testing.T) {
	own, err := conformance.ReadOwn("../examples/features")
	require.NoError(t, err)
	plan, err := conformance.NewPlan(everything{}, own, []string{"TEAM-1", "TEAM-2", "TEAM-3"})
	require.NoError(t, err)
	said := map[string]bool{}
	for _, s := range plan.Running() {
		require.True(t, strings.HasPrefix(s.At, "own/promises.feature:"), s.At)
		for _, text := range s.Steps {
			said[text] = true
		}
	}
	for _, x := range steps.NewDictionary().Sentences() {
		if x.Topic != steps.Offered {
			continue
		}
		found := false
		for text := range said {
			found = found || x.Says(text)
		}
		require.True(t, found, "the example does not say %q", x.Written())
	}
}

func FuzzReadOwn(f *testing.F) {
	f.Add(ownClauses, ownFeature)
	f.Add("group: x\nclauses: []\n", "Feature: x\n  Rule: y\n    Background:\n      Given a user\n    @a\n    Scenario Outline: <z>\n      * <z>\n      Examples:\n        | z |\n        | 1 |\n")
	f.Add("", "# language: de\nFunktionalität: x\n")
	f.Fuzz(func(t *testing.T, clauses, feature string) {
		own, err := conformance.ReadOwn(folder(t, map[string]string{"clauses.yaml": clauses, "one.feature": feature}))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		_, err = conformance.NewPlan(everything{}, own, nil)
		require.NoError(t, err, "what was read can be planned")
	})
}

// A result with clauses of somebody's own is one like any other.
func TestOwnFeaturesAreJudged(t *testing.T) {
	own, err := conformance.ReadOwn("../examples/features")
	require.NoError(t, err)
	c, err := conformance.Run(t.Context(), start(t, control.ClockFrozen, nil).open(t), conformance.Options{Features: own, Clauses: []string{"TEAM-1", "TEAM-2", "TEAM-3"}})
	require.NoError(t, err)
	require.Equal(t, 3, c.Counts.Pass)
	requireSchema(t, c)
	last := c.Clauses[len(c.Clauses)-1]
	require.Equal(t, "Promises of our team", last.Group)
	require.Equal(t, "own/promises.feature:28", last.Scenarios[0].At)
}
