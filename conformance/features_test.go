package conformance_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/features"
)

// everything is a target that offers all there is.
type everything struct{}

func (everything) Has(contract.Need) bool      { return true }
func (everything) Untrue(contract.Need) string { return "" }
func (everything) Plans() []string {
	return []string{"free", "starter", "plus", "pro", "enterprise", "custom"}
}

func (everything) Allowance(string) (oracle.Allowance, bool) {
	return oracle.Allowance{}, true
}

func TestScenarioNamesTellThemApart(t *testing.T) {
	plan, err := conformance.NewPlan(everything{}, features.FS, nil)
	require.NoError(t, err)
	names := map[string]string{}
	for _, s := range plan.Scenarios {
		key := s.Clauses[0] + " " + s.Name
		require.Empty(t, names[key], "%s and %s have one name: %s", s.At, names[key], s.Name)
		names[key] = s.At
		require.NotContains(t, s.Name, "<", "%s: a placeholder was not replaced", s.At)
	}
}

// Sentences are read as godog reads them, rows of outlines filled in. Those that
// are offered to others are used by an example of docs.
func TestEverySentenceIsUsedUnderstoodOnceAndAskedFor(t *testing.T) {
	plan, err := conformance.NewPlan(everything{}, features.FS, nil)
	require.NoError(t, err)
	d := steps.NewDictionary()
	used := map[string]bool{}
	for _, s := range plan.Scenarios {
		for _, text := range s.Steps {
			matches := 0
			for _, x := range d.Sentences() {
				if !x.Says(text) {
					continue
				}
				matches++
				used[x.Pattern] = true
				needs, err := d.Understand(x.Keyword, text, x.Table)
				require.NoError(t, err)
				require.Subset(t, s.Needs, needs, "%s: %q cannot do without", s.At, text)
			}
			require.Equal(t, 1, matches, "%q", text)
		}
	}
	for _, x := range d.Sentences() {
		require.Equal(t, x.Topic != steps.Offered, used[x.Pattern], "whether a feature says %s", x.Pattern)
	}
}

// sentences lists the sentences of all scenarios.
func sentences(t *testing.T) []string {
	t.Helper()
	plan, err := conformance.NewPlan(everything{}, features.FS, nil)
	require.NoError(t, err)
	var all []string
	for _, s := range plan.Scenarios {
		all = append(all, s.Steps...)
	}
	return all
}

// Scenarios speak of the burst and the cap, not of 10 and 2: on another target
// these are other numbers.
func TestScenariosHoldNoNumbersOfAnyPlan(t *testing.T) {
	number := regexp.MustCompile(`\b\d+\b`)
	allowed := regexp.MustCompile(`status 40[45]|Retry-After: 1\b|charged [01] operation`)
	for _, s := range sentences(t) {
		require.False(t, number.MatchString(allowed.ReplaceAllString(s, "")), "%q", s)
	}
}

func TestFeatureFilesAreNamedForWhatTheyHold(t *testing.T) {
	paths, err := fs.Glob(features.FS, "*.feature")
	require.NoError(t, err)
	for _, path := range paths {
		data, err := fs.ReadFile(features.FS, path)
		require.NoError(t, err)
		title, _, _ := strings.Cut(strings.TrimPrefix(string(data), "Feature: "), "\n")
		require.Equal(t, path, strings.ReplaceAll(strings.ToLower(title), " ", "_")+".feature")
	}
}
