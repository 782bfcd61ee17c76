package limiter_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/invoicespec/brimline/reference/limiter"
)

// BenchmarkNewcomer is one take by a user whom a store without room has never
// seen, so that it has to choose whom to drop. Choosing looks at so many and no
// more: a hundred times the users are not a hundred times the work.
func BenchmarkNewcomer(b *testing.B) {
	for _, maximum := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("maximum=%d", maximum), func(b *testing.B) {
			b.ReportAllocs()
			a, c := allowance(b, 10, 10, 1), newFrozen()
			s := limiter.NewBuckets(limiter.Config{MaximumSize: maximum})
			for i := range maximum {
				takeFrom(s, "user-"+strconv.Itoa(i), a, c)
			}
			newcomers := make([]string, b.N)
			for i := range newcomers {
				newcomers[i] = "newcomer-" + strconv.Itoa(i)
			}
			b.ResetTimer()
			for _, newcomer := range newcomers {
				takeFrom(s, newcomer, a, c)
			}
		})
	}
}

// BenchmarkSweep looks through all buckets for idle ones, none of which is there.
// It holds the lock of one shard, some 1,500 buckets, at a time.
func BenchmarkSweep(b *testing.B) {
	for _, maximum := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("buckets=%d", maximum), func(b *testing.B) {
			a, c := allowance(b, 10, 10, 1), newFrozen()
			s := limiter.NewBuckets(limiter.Config{MaximumSize: maximum})
			for i := range maximum {
				takeFrom(s, "user-"+strconv.Itoa(i), a, c)
			}
			c.Advance(limiter.DefaultIdleExpiry - time.Microsecond)
			for b.Loop() {
				s.Sweep(c.Instant())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(maximum), "ns/bucket")
		})
	}
}
