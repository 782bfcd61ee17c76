package roster_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/roster"
)

func TestSingle(t *testing.T) {
	r := roster.Single("free", nil, 2)
	require.Equal(t, []roster.Plan{{Name: "free"}}, r.Plans)
	require.Equal(t, 2, r.Users)
	require.Equal(t, []int32{0, 1}, r.UserOf)
	for _, phases := range r.Phases {
		require.Equal(t, []roster.Phase{{From: math.MinInt64}}, phases)
	}
}
