package attack_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
)

// instant answers at once.
type instant struct{}

func (instant) RoundTrip(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	h := http.Header{"Ratelimit-Limit": {"1000000"}, "Ratelimit-Remaining": {"999999"}, "Ratelimit-Reset": {"1"}}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// BenchmarkAttack is what this side costs without a network: processor time and
// memory of a request, and the heap that a user takes.
func BenchmarkAttack(b *testing.B) {
	for name, users := range map[string]int{"users=1": 1, "users=1000": 1000, "users=100000": 100_000} {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			d := time.Duration(b.N) * time.Second / 5000
			rate, err := arrival.NewRate(5000*60, int64(users))
			require.NoError(b, err)
			list := members(arrival.Poisson(rate), users, d)
			a, err := attack.New(attack.Config{Members: list, Duration: d, Seed: seed, Site: site(), Transport: instant{}})
			require.NoError(b, err)
			b.ReportAllocs()
			b.ResetTimer()
			r, err := a.Run(b.Context())
			require.NoError(b, err)
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			n := float64(r.Generator.Results)
			b.ReportMetric(r.Generator.CPUSeconds/n*100_000, "cpu-s/100k")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(users), "B/user")
			runtime.KeepAlive(list)
			runtime.KeepAlive(a)
		})
	}
}
