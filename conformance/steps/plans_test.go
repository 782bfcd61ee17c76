package steps

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// usual is the catalogue of the reference.
func usual() catalogue {
	return catalogue{
		{"free", oracle.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
		{"starter", oracle.Allowance{RequestsPerMinute: 60, Burst: 20, Concurrency: 5}},
		{"plus", oracle.Allowance{RequestsPerMinute: 120, Burst: 40, Concurrency: 10}},
		{"pro", oracle.Allowance{RequestsPerMinute: 300, Burst: 100, Concurrency: 20}},
	}
}

func names(plans []plan) []string {
	var all []string
	for _, p := range plans {
		all = append(all, p.name)
	}
	return all
}

func TestPlansAreFoundByWhatTheyAre(t *testing.T) {
	alone := usual()[2:3]
	for phrase, want := range map[string][2]string{
		"the plus plan":            {"plus", "plus"},
		"the smallest plan":        {"free", "plus"},
		"the second smallest plan": {"starter", "plus"},
		"the slowest plan":         {"free", "plus"},
		"the fastest plan":         {"pro", "plus"},
		"the quickest plan":        {"starter", "plus"},
	} {
		for i, c := range []catalogue{usual(), alone} {
			got, err := c.named(phrase, nil)
			require.NoError(t, err)
			require.Equal(t, []string{want[i]}, names(got), phrase)
		}
	}
	others, err := usual().named(everyOther, []string{"free", "plus", "gold"})
	require.NoError(t, err)
	require.Equal(t, []string{"starter", "pro"}, names(others))
	_, err = usual().named("the gold plan", nil)
	require.ErrorIs(t, err, ErrSetup)
	require.ErrorContains(t, err, `"gold"`)
}

func TestRoomyPlanHasTheTokensAndCostsLittle(t *testing.T) {
	of := func(n int64) func(plan) int64 { return func(plan) int64 { return n } }
	require.Equal(t, "starter", usual().roomy(of(9)).name)
	require.Equal(t, "plus", usual().roomy(of(21)).name)
	require.Equal(t, "pro", usual().roomy(of(41)).name)
	require.Equal(t, "pro", usual().roomy(of(1000)).name, "none has so many: the largest has to do")
	require.Equal(t, "free", usual()[:1].roomy(of(1)).name)
	require.Equal(t, "starter", usual().roomy(func(p plan) int64 { return 2*p.Concurrency + few }).name)
}

func TestNeighbours(t *testing.T) {
	p, err := usual().neighbour(20, "larger")
	require.NoError(t, err)
	require.Equal(t, "plus", p.name)
	p, err = usual().neighbour(20, "smaller")
	require.NoError(t, err)
	require.Equal(t, "free", p.name)
	for burst, direction := range map[int64]string{10: "smaller", 100: "larger"} {
		_, err = usual().neighbour(burst, direction)
		require.ErrorIs(t, err, ErrSetup)
		require.ErrorContains(t, err, direction)
	}
}
