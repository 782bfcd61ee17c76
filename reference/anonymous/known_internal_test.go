package anonymous

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
)

// Whatever is seen, touched and dropped: there are never more than the maximum,
// nobody is known for longer than the time to keep, and whoever is among the
// half of the maximum seen last is known for all of it.
func TestKnownIsBoundedAndKeepsTheRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keep = 100
		most := rapid.IntRange(2, 9).Draw(t, "most")
		k := newKnown(most, keep*time.Microsecond)
		seen := map[byte]bucket.Instant{}
		var order []byte // the one seen last at the end
		now := bucket.Instant(0)
		remember := func(b byte) {
			for i, other := range order {
				if other == b {
					order = append(order[:i:i], order[i+1:]...)
					break
				}
			}
			order = append(order, b)
			seen[b] = now
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += bucket.Instant(rapid.IntRange(0, 40).Draw(t, "pause"))
			b := rapid.Byte().Draw(t, "digest") % 12
			d := account.Digest{b}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				k.add(d, now)
				remember(b)
			case 2:
				if k.has(d, now) {
					remember(b)
				}
				k.touch(d, now)
			case 3:
				k.drop(d)
				delete(seen, b)
			}
			require.LessOrEqual(t, k.size(), most)
			for b := range byte(12) {
				at, ok := seen[b]
				known := k.has(account.Digest{b}, now)
				if !ok || now-at >= keep {
					require.False(t, known, "%d is known too long", b)
				}
			}
			for _, b := range order[max(0, len(order)-most/2):] {
				if at, ok := seen[b]; ok && now-at < keep {
					require.True(t, k.has(account.Digest{b}, now), "%d is forgotten too early", b)
				}
			}
		}
	})
}

// The maximum of one is two: a generation holds one at least.
func TestKnownOfOne(t *testing.T) {
	k := newKnown(1, time.Hour)
	for b := range byte(5) {
		k.add(account.Digest{b}, 0)
	}
	require.Equal(t, 2, k.size())
	require.True(t, k.has(account.Digest{4}, 0))
}

// What is too old is not kept in memory for ever, however little comes after it.
func TestKnownDropsTheOld(t *testing.T) {
	k := newKnown(1000, time.Hour)
	for b := range byte(100) {
		k.add(account.Digest{b}, 0)
	}
	hour := bucket.Instant(time.Hour / time.Microsecond)
	k.add(account.Digest{100}, hour)
	k.add(account.Digest{100}, 2*hour)
	require.Equal(t, 1, k.size())
}
