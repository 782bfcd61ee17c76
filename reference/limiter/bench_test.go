package limiter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// BenchmarkDecision is one local decision, admit and release, of a user drawn at
// random, beside the same question put to golang.org/x/time/rate. The latter has
// no permits, no headers, no bound on its memory and no exact arithmetic: it is
// there as a yardstick for the machine.
func BenchmarkDecision(b *testing.B) {
	a, err := policy.NewAllowance(1_000_000, 1_000_000, 100_000)
	require.NoError(b, err)
	for _, n := range []int{1, 1_000, 100_000} {
		users := userNames(n)
		b.Run(fmt.Sprintf("limiter=local/users=%d", n), func(b *testing.B) {
			l := limiter.NewLocal(clock.NewReal(), limiter.Config{})
			parallel(b, func(next *drawer) {
				user := users[next.draw(n)]
				if _, err := l.Admit(context.Background(), user, a, next.id()); err != nil {
					b.Error(err)
				}
				if err := l.Release(context.Background(), user, next.id()); err != nil {
					b.Error(err)
				}
			})
		})
		b.Run(fmt.Sprintf("limiter=x-time-rate/users=%d", n), func(b *testing.B) {
			var limiters sync.Map
			parallel(b, func(next *drawer) {
				user := users[next.draw(n)]
				l, ok := limiters.Load(user)
				if !ok {
					l, _ = limiters.LoadOrStore(user, rate.NewLimiter(1e6/60, 1e6))
				}
				l.(*rate.Limiter).AllowN(time.Now(), 1)
			})
		})
	}
}

// drawer is the randomness of one goroutine of a benchmark.
type drawer struct {
	random *rand.Rand
	ids    [64]string
	n      int
}

func (d *drawer) draw(n int) int { return d.random.IntN(n) }

func (d *drawer) id() string { return d.ids[d.n%len(d.ids)] }

func parallel(b *testing.B, step func(*drawer)) {
	b.ReportAllocs()
	var started sync.Mutex
	workers := 0
	b.RunParallel(func(pb *testing.PB) {
		started.Lock()
		workers++
		d := &drawer{random: rand.New(rand.NewPCG(1, uint64(workers)))}
		for i := range d.ids {
			d.ids[i] = fmt.Sprintf("%016x-%04d-%04d", d.random.Uint64(), workers, i)
		}
		started.Unlock()
		for pb.Next() {
			step(d)
			d.n++
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
