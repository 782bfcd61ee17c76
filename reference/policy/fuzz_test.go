package policy_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/policy"
)

// FuzzParseValue holds ParseValue to two sentences: what it accepts is the one
// plain spelling of a number in range, and it accepts every such spelling.
func FuzzParseValue(f *testing.F) {
	for _, text := range []string{"1", "1000000", "1000001", "100000", "100001", "0", "00", "01", "-1", "+1", "1.5", " 1", "1 ", "1\n", "1e3", "", "null", "٣", "18446744073709551617"} {
		f.Add(text, uint8(len(text)))
	}
	f.Fuzz(func(t *testing.T, text string, pick uint8) {
		d := policy.Dimensions()[int(pick)%len(policy.Dimensions())]
		n, err := policy.ParseValue(d, text)

		number, ok := new(big.Int).SetString(text, 10)
		plain := ok && number.String() == text && number.Sign() > 0 && number.Cmp(big.NewInt(d.Max())) <= 0
		if !plain {
			require.ErrorContains(t, err, string(d))
			require.Zero(t, n)
			return
		}
		require.NoError(t, err)
		require.Equal(t, number.Int64(), n)
	})
}

func TestParseValueOfNoDimension(t *testing.T) {
	_, err := policy.ParseValue("colour", "3")
	require.EqualError(t, err, `"colour" is none of the dimensions [requests-per-minute burst concurrency]`)
}
