package limiter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/time/rate"

	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
)

// BenchmarkDecision is one local decision, admit and release, of a user drawn at
// random, beside the same question put to golang.org/x/time/rate. The latter has
// no permits, no headers, no bound on its memory and no exact arithmetic: it is
// there as a yardstick for the machine.
func BenchmarkDecision(b *testing.B) {
	a := allowance(b, 1_000_000, 1_000_000, 100_000)
	for _, n := range []int{1, 1_000, 100_000} {
		users := userNames(n)
		b.Run(fmt.Sprintf("limiter=local/users=%d", n), func(b *testing.B) {
			ctx, l := context.Background(), limiter.NewLocal(clock.NewReal(), limiter.Config{})
			decide := func(user, id string) {
				if _, err := l.Admit(ctx, user, a, id); err != nil {
					b.Error(err)
				}
				if err := l.Release(ctx, user, id); err != nil {
					b.Error(err)
				}
			}
			parallel(b, users, decide)
		})
		b.Run(fmt.Sprintf("limiter=x-time-rate/users=%d", n), func(b *testing.B) {
			var limiters sync.Map
			decide := func(user, _ string) {
				l, ok := limiters.Load(user)
				if !ok {
					l, _ = limiters.LoadOrStore(user, rate.NewLimiter(1e6/60, 1e6))
				}
				l.(*rate.Limiter).Allow()
			}
			parallel(b, users, decide)
		})
	}
}

// parallel measures decide on users drawn at random, every one of whom was seen
// before. No two goroutines use an id at once.
func parallel(b *testing.B, users []string, decide func(user, id string)) {
	b.ReportAllocs()
	for _, user := range users {
		decide(user, "first")
	}
	var workers atomic.Uint64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		worker := workers.Add(1)
		random := rand.New(rand.NewPCG(1, worker))
		var ids [64]string
		for i := range ids {
			ids[i] = fmt.Sprintf("%016x-%04d-%04d", random.Uint64(), worker, i)
		}
		for n := 0; pb.Next(); n++ {
			decide(users[random.IntN(len(users))], ids[n%len(ids)])
		}
	})
}

func userNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "user-" + strconv.Itoa(i)
	}
	return names
}
