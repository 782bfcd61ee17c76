package conformance_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/proxytest"
	"github.com/invoicespec/brimline/internal/slownet"
	"github.com/invoicespec/brimline/reports/record"
)

// TestSoak judges a correct server again and again while every core is kept busy,
// several at a time: on a clock that the suite moves, on a real one, with nothing
// but HTTP, and behind nginx and a slow network, with a slow operation there or
// without. Nothing may be held against it,
// ever. "make soak SOAK=50" does each of them 50 times.
func TestSoak(t *testing.T) {
	runs := soakRuns(t)
	for _, s := range []struct {
		name string
		open func(t *testing.T) *target.Target
	}{
		{"frozen clock", func(t *testing.T) *target.Target { return start(t, control.ClockFrozen, nil).open(t) }},
		{"real clock", func(t *testing.T) *target.Target { return start(t, control.ClockReal, nil).open(t) }},
		{"plain HTTP", func(t *testing.T) *target.Target { return start(t, "", nil).open(t) }},
		{"behind nginx and 50 ms", behindSlowNginx},
		{"a slow operation behind them", func(t *testing.T) *target.Target { return slowBehindNginx(t).open(t) }},
	} {
		t.Run(s.name, func(t *testing.T) {
			keepBusy(t)
			var told, untold, alarms atomic.Int64
			began := time.Now()
			t.Run("runs", func(t *testing.T) {
				for n := range runs {
					t.Run(fmt.Sprint(n+1), func(t *testing.T) {
						t.Parallel()
						c, err := conformance.Run(t.Context(), s.open(t), conformance.Options{Strict: true})
						require.NoError(t, err)
						require.Empty(t, c.Aborted)
						told.Add(int64(c.Counts.Pass))
						untold.Add(int64(c.Counts.Inconclusive))
						alarms.Add(falseAlarms(t, c))
						t.Logf("%+v in %d s", c.Counts, c.DurationMS/1000)
					})
				}
			})
			t.Logf("%d runs, %d false alarms: %d clauses pass, %d inconclusive; %v", runs, alarms.Load(), told.Load(), untold.Load(), time.Since(began).Round(time.Second))
		})
	}
}

// soakRuns is how many runs are asked for.
func soakRuns(t *testing.T) int {
	text := os.Getenv("SOAK")
	if text == "" {
		t.Skip(`a soak takes its time: "make soak" runs it`)
	}
	runs, err := strconv.Atoi(text)
	require.NoError(t, err, "SOAK")
	require.Positive(t, runs, "SOAK")
	return runs
}

// keepBusy keeps every core busy until the test ends.
func keepBusy(t *testing.T) {
	for range runtime.NumCPU() {
		c := exec.Command("sh", "-c", `while kill -0 "$1"; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done`, "busy", strconv.Itoa(os.Getpid()))
		require.NoError(t, c.Start())
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		})
	}
}

// falseAlarms counts what is held against a server that is right.
func falseAlarms(t *testing.T, c record.Conformance) (n int64) {
	for _, cl := range c.Clauses {
		for _, s := range cl.Scenarios {
			switch s.Verdict {
			case record.Pass, record.NotRun:
			case record.Inconclusive:
				t.Logf("%s %s (%s): %s", cl.ID, s.Name, s.At, s.Reason)
			default:
				n++
				t.Errorf("%s %s (%s): %s %s %+v", cl.ID, s.Name, s.At, s.Verdict, s.Reason, s.Findings)
			}
		}
	}
	return n
}

// behindSlowNginx is a server behind a slow network and nginx as it comes, which
// reads an upload whole before it passes it on. What takes the deployment's own
// address, or a server of its own, is not declared.
func behindSlowNginx(t *testing.T) *target.Target {
	r := start(t, control.ClockReal, nil)
	nginx := proxytest.Nginx(t, "127.0.0.1", func(listen string) string {
		return fmt.Sprintf(`server { listen %s; location / {
proxy_pass http://%s; proxy_http_version 1.1; proxy_set_header Host $http_host;
} }`, listen, hostOf(t, r.file.BaseURLs[0]))
	})
	oneWay := slownet.Delay{Least: 25 * time.Millisecond, Jitter: 15 * time.Millisecond}
	slow, err := slownet.Start("127.0.0.1", nginx, oneWay, oneWay)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slow.Close()) })

	r.file.BaseURLs = []string{"http://" + slow.Addr()}
	can := &r.file.Can
	can.StalledUpload, can.HTTP2, can.Addresses, can.Proxy, can.Process = false, false, nil, nil, nil
	r.file.InternalRoutes = nil // nginx passes on what it has made of a path
	return r.open(t)
}

func hostOf(t *testing.T, text string) string {
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u.Host
}
