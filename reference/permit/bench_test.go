package permit_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/invoicespec/brimline/reference/permit"
)

// BenchmarkPassingUsers lets ten million users have one request in flight each,
// a thousand of them at a time. KB@n is what the heap grew by after so many. One
// run says it all: -benchtime 1x.
func BenchmarkPassingUsers(b *testing.B) {
	const atOnce = 1000
	for b.Loop() {
		before := heap()
		table, passed := permit.New(), 0
		for _, n := range []int{100_000, 1_000_000, 10_000_000} {
			for ; passed < n; passed++ {
				if _, ok := table.Take(strconv.Itoa(passed), "request", 1); !ok {
					b.Fatal("refused")
				}
				if passed >= atOnce {
					table.Release(strconv.Itoa(passed-atOnce), "request")
				}
			}
			b.ReportMetric(float64(heap()-before)/1e3, fmt.Sprintf("KB@%.0e", float64(n)))
		}
		if n := table.Subjects(); n != atOnce {
			b.Fatalf("%d in the table, not %d", n, atOnce)
		}
		runtime.KeepAlive(table)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
