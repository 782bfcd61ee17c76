package limiter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/bucket"
)

// At the maximum a newcomer takes the place of somebody in its own shard. Where
// there is nobody, which takes thousands of subjects to miss one shard of a few,
// it is the newcomer that is dropped: the maximum holds, and the loss is counted.
func TestNewcomerWithoutAPlace(t *testing.T) {
	b := NewBuckets(Config{MaximumSize: 2 * subjectsAShard})
	require.Len(t, b.shards, 2)
	b.size.Store(b.maximum)
	b.Update("u", func(bucket.State) bucket.State { return bucket.State{Rate: 1, Burst: 1} })
	require.Equal(t, Stats{Size: 2 * subjectsAShard, Maximum: 2 * subjectsAShard, Evictions: 1, Lossy: 1}, b.Stats())
	b.Update("u", func(s bucket.State) bucket.State {
		require.Zero(t, s)
		return s
	})
}
