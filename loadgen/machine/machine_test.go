package machine

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

func TestTicks(t *testing.T) {
	const before = "cpu  100 10 50 1000 20 5 5 30 7 0\ncpu0 1 2 3\n"
	const after = "cpu  160 10 70 1100 20 5 5 50 7 0\n"
	b, a := parseTicks([]byte(before)), parseTicks([]byte(after))
	require.Equal(t, ticks{busy: 170, steal: 30, all: 1220}, b)
	// 200 ticks went by: 80 busy, of which 50 ours; 20 stolen.
	all, others, stolen := a.since(b, 500*time.Millisecond)
	require.InDelta(t, 2.0, all, 1e-9)
	require.InDelta(t, 0.3, others, 1e-9)
	require.InDelta(t, 0.2, stolen, 1e-9)
	_, others, _ = a.since(b, time.Minute)
	require.Zero(t, others, "never below nothing")
	all, others, stolen = b.since(a, 0)
	require.Zero(t, all+others+stolen, "a clock that went back")
}

func TestWhatIsNoStat(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "another line": "intr 1 2 3 4 5 6 7 8 9", "too short": "cpu 1 2 3 4 5 6 7", "no number": "cpu 1 2 3 4 x 6 7 8", "negative": "cpu 1 2 3 4 -5 6 7 8",
	} {
		require.Equal(t, ticks{}, parseTicks([]byte(text)), name)
	}
}

func FuzzTicks(f *testing.F) {
	f.Add([]byte("cpu  100 10 50 1000 20 5 5 30 7 0\n"))
	f.Add([]byte("cpu 9223372036854775807 1 1 1 1 1 1 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		v := parseTicks(text)
		require.True(t, v.busy >= 0 && v.steal >= 0 && v.all >= v.busy+v.steal)
	})
}

func TestWatch(t *testing.T) {
	w := Start()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for x := 0; cpuTime() == w.cpu; x++ { // until there is something to see
	}
	runtime.GC()
	var g record.Generator
	w.Fill(&g)
	require.Positive(t, g.CPUSeconds)
	require.Positive(t, g.ProcessorSeconds)
	require.Positive(t, g.CPUs)
	require.Positive(t, g.GCPauseMS)
	require.Positive(t, g.GCPauseMaxMS)
	require.GreaterOrEqual(t, g.GCPauseMS, g.GCPauseMaxMS)
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return
	}
	require.Positive(t, g.Sockets)
	require.Greater(t, g.Descriptors, g.Sockets)
	require.GreaterOrEqual(t, g.DescriptorLimit, g.Descriptors)
}

func TestDescriptorsAreCountedBefore(t *testing.T) {
	require.NoError(t, EnoughDescriptors(1))
	limit := DescriptorLimit()
	require.Positive(t, limit)
	err := EnoughDescriptors(limit)
	require.ErrorContains(t, err, "file descriptors are needed for up to")
	require.ErrorContains(t, err, "raise the limit (ulimit -n")
}
