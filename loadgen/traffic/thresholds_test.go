package traffic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/traffic"
)

const withThresholds = `duration: 30s
populations:
  - { plan: free, users: 1, arrival: poisson, rate: 1x, on-429: ignore }
  - { plan: pro, users: 1, arrival: poisson, rate: 1x, on-429: ignore }
thresholds:
`

func TestThresholdsAreRead(t *testing.T) {
	s := parse(t, withThresholds+"  - free.rejected.rate < 5%\n  - undue-429 == 0\n")
	require.Len(t, s.Thresholds, 2)
	require.Equal(t, "free.rejected.rate < 5%", s.Thresholds[0].String())
	require.Empty(t, parse(t, strings.TrimSuffix(withThresholds, "thresholds:\n")).Thresholds)
}

func TestThresholdsAreRefused(t *testing.T) {
	var many strings.Builder
	for i := range 101 {
		fmt.Fprintf(&many, "  - rejected < %d\n", i+1)
	}
	for name, c := range map[string]struct{ in, want string }{
		"no list":           {"  free.rejected.rate < 5%\n", "load.yaml:6: thresholds: got the text \"free.rejected.rate < 5%\"; accepted: a list of"},
		"no threshold":      {"  - undue-429 == 0\n  - free.rejected.rate\n", `load.yaml:7: thresholds[1]: "free.rejected.rate" is no threshold; accepted: a figure, one of <`},
		"an unknown word":   {"  - refused == 0\n", `load.yaml:6: thresholds[0]: "refused" names nothing that is counted; accepted, after a plan's name`},
		"an unknown plan":   {"  - gold.undue-429 == 0\n", `load.yaml:6: thresholds[0]: no population is on plan "gold"; accepted: free, pro, or no plan for all of them`},
		"the same twice":    {"  - undue-429 == 0\n  - undue-429 == 0\n", `load.yaml:7: thresholds[1]: "undue-429 == 0" is given twice; accepted: each threshold once`},
		"more than anybody": {many.String(), "thresholds: 101 are listed; accepted: at most 100"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := traffic.Parse("load.yaml", []byte(withThresholds+c.in))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}
