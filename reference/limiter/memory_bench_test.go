package limiter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/invoicespec/brimline/reference/limiter"
)

// BenchmarkMillionUsers sends the requests of a million users, drawn by a law of
// Zipf, through a local limiter, 10,000 in each second of its clock. MB@n is what
// the heap grew by, the users' names included, after so many requests; B/bucket
// is that for each bucket kept once every user has asked within a few minutes.
// One run says it all: -benchtime 1x.
func BenchmarkMillionUsers(b *testing.B) {
	const users, every = 1_000_000, 100 * time.Microsecond
	for _, maximum := range []int{limiter.DefaultMaximumSize, users} {
		b.Run(fmt.Sprintf("maximum=%d", maximum), func(b *testing.B) {
			ctx, a := context.Background(), allowance(b, 60, 20, 5)
			for b.Loop() {
				before, c := heap(), newFrozen()
				l := limiter.NewLocal(c, limiter.Config{MaximumSize: maximum})
				ask := func(user uint64) {
					c.Advance(every)
					name := "user-" + strconv.FormatUint(user, 10)
					if _, err := l.Admit(ctx, name, a, "request"); err != nil {
						b.Fatal(err)
					}
					if err := l.Release(ctx, name, "request"); err != nil {
						b.Fatal(err)
					}
				}
				zipf := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.05, 1, users-1)
				drawn := 0
				for _, n := range []int{100_000, 1_000_000, 10_000_000} {
					for ; drawn < n; drawn++ {
						ask(zipf.Uint64())
					}
					b.ReportMetric(float64(heap()-before)/1e6, fmt.Sprintf("MB@%.0e", float64(n)))
				}
				b.ReportMetric(float64(l.Stats().Size), "buckets@1e+07")
				for user := range uint64(users) {
					ask(user)
				}
				stats := l.Stats()
				b.ReportMetric(float64(heap()-before)/float64(stats.Size), "B/bucket")
				b.ReportMetric(float64(stats.Size), "buckets")
				runtime.KeepAlive(l)
			}
		})
	}
}
