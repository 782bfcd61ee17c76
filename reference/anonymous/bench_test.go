package anonymous_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
)

// BenchmarkAttempt is one attempt and a lookup that takes no time: of a key that
// is known, of one that is new and good, and of those that the pool is there for.
func BenchmarkAttempt(b *testing.B) {
	ctx := context.Background()
	drained := func(g *anonymous.Gate) {
		for g.NoKey("a") == nil {
		}
	}
	for _, kind := range []struct {
		name    string
		prepare func(*anonymous.Gate)
		try     func(g *anonymous.Gate, n int)
	}{
		{"known", func(g *anonymous.Gate) {
			for n := range 50_000 {
				g.Authenticate(ctx, "a", key(n), good)
			}
		}, func(g *anonymous.Gate, n int) { g.Authenticate(ctx, "a", key(n%50_000), good) }},
		{"new", func(*anonymous.Gate) {}, func(g *anonymous.Gate, n int) { g.Authenticate(ctx, "a", key(n), good) }},
		{"bad", func(*anonymous.Gate) {}, func(g *anonymous.Gate, n int) { g.Authenticate(ctx, "a"+strconv.Itoa(n), key(n), bad) }},
		{"no key, rejected", drained, func(g *anonymous.Gate, _ int) { g.NoKey("a") }},
		{"bad, rejected", drained, func(g *anonymous.Gate, n int) { g.Authenticate(ctx, "a", key(n), bad) }},
	} {
		b.Run("kind="+kind.name, func(b *testing.B) {
			b.ReportAllocs()
			g := anonymous.New(clock.NewFrozen(clock.NewReal().Now()), anonymous.Config{})
			kind.prepare(g)
			var last atomic.Int64
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					kind.try(g, int(last.Add(1)))
				}
			})
		})
	}
}

// BenchmarkRotatingAddresses is what the heap grew by for the default maximum of
// 100,000, after 200,000 addresses failed once each, and after as many keys were
// seen good.
func BenchmarkRotatingAddresses(b *testing.B) {
	const n = 200_000
	ctx := context.Background()
	for _, kind := range []struct {
		name string
		try  func(g *anonymous.Gate, n int)
	}{
		{"bad", func(g *anonymous.Gate, n int) {
			g.Authenticate(ctx, "2001:db8:0:"+strconv.FormatInt(int64(n), 16)+"::/64", key(n), bad)
		}},
		{"good", func(g *anonymous.Gate, n int) {
			g.Authenticate(ctx, "2001:db8:0:"+strconv.FormatInt(int64(n), 16)+"::/64", key(n), good)
		}},
	} {
		b.Run("kind="+kind.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				g := anonymous.New(newFrozen(), anonymous.Config{})
				for i := range n {
					kind.try(g, i)
				}
				b.ReportMetric(float64(heap()-before)/limiter.DefaultMaximumSize, "B/kept")
				runtime.KeepAlive(g)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
