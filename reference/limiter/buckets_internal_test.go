package limiter

import (
	"strconv"
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

// A map grows by being changed, even if it never holds more: whatever comes and
// goes, it is made anew in time.
func TestChurnIsCleared(t *testing.T) {
	for name, leave := range map[string]func(b *Buckets, subject string){
		"evicted": func(*Buckets, string) {},
		"swept":   func(b *Buckets, _ string) { b.Sweep(1 << 60) },
		"taken away": func(b *Buckets, subject string) {
			b.Update(subject, func(bucket.State) bucket.State { return bucket.State{} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuckets(Config{MaximumSize: 100})
			for i := range 1000 {
				subject := strconv.Itoa(i)
				b.Update(subject, func(bucket.State) bucket.State { return bucket.State{Rate: 1, Burst: 1} })
				leave(b, subject)
				require.LessOrEqual(t, b.shards[0].dropped, 100)
			}
		})
	}
}
