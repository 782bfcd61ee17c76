package dice_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/dice"
)

func TestDrawsAreEven(t *testing.T) {
	for name, draw := range map[string]func(i int) float64{
		"over places":   func(i int) float64 { return dice.New(7, "mix", "free-001").At(int64(i)) },
		"over seeds":    func(i int) float64 { return dice.New(int64(i), "mix", "free-001").At(0) },
		"over users":    func(i int) float64 { return dice.New(7, "mix", string(rune('a'+i))).At(3) },
		"over purposes": func(i int) float64 { return dice.New(7, string(rune('a'+i)), "free-001").At(3) },
	} {
		t.Run(name, func(t *testing.T) {
			var all []float64
			for i := range 1000 {
				all = append(all, draw(i))
				require.Equal(t, draw(i), draw(i))
			}
			slices.Sort(all)
			for i, x := range all { // the Kolmogorov distance, as in 999 of 1,000 draws
				require.InDelta(t, float64(i)/1000, x, 0.062)
			}
			require.GreaterOrEqual(t, all[0], 0.0)
			require.Less(t, all[999], 1.0)
		})
	}
}

// TestDrawsStayWhatTheyAre: a run is repeated from its seed by later versions too.
func TestDrawsStayWhatTheyAre(t *testing.T) {
	d := dice.New(7, "mix", "free-001")
	require.Equal(t, []float64{0.07507073757656901, 0.3064004221837562, 0.932208717582853}, []float64{d.At(0), d.At(1), d.At(1 << 40)})
}

func TestPurposeAndUserAreNotRunTogether(t *testing.T) {
	require.NotEqual(t, dice.New(1, "ab", "c"), dice.New(1, "a", "bc"))
}
