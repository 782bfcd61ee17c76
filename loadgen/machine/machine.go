// Package machine is what the load side's own machine had to do during a run: how
// much of its processors this process took, how much others did, how long garbage
// collection stopped it, and how many file descriptors were open.
//
// Most callers [Start] a watch when a run begins and let it [Watch.Fill] the
// record when it ends. What a system does not tell is 0: all but processor time
// and garbage collection comes from Linux's /proc.
package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// spareDescriptors are for what is not a connection: files, listeners, and what a
// server in this process may need.
const spareDescriptors = 64

// EnoughDescriptors refuses so many connections where the process may not have
// them all open.
func EnoughDescriptors(connections int64) error {
	limit := DescriptorLimit()
	open, _ := descriptors()
	if need := connections + open + spareDescriptors; limit > 0 && need > limit {
		return fmt.Errorf("%d file descriptors are needed for up to %d connections, this process may have %d open: raise the limit (ulimit -n %d), or ask for less", need, connections, limit, need)
	}
	return nil
}

// Watch watches the machine from [Start] on.
type Watch struct {
	began time.Time
	cpu   time.Duration
	gc    debug.GCStats
	all   ticks

	quit, done  chan struct{}
	descriptors int64 // most that were open at a look
	sockets     int64
}

// Start begins a watch. [Watch.Fill] ends it.
func Start() *Watch {
	w := &Watch{began: time.Now(), cpu: cpuTime(), quit: make(chan struct{}), done: make(chan struct{})}
	debug.ReadGCStats(&w.gc)
	w.all = machineTicks()
	go func() {
		defer close(w.done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			w.look()
			select {
			case <-tick.C:
			case <-w.quit:
				return
			}
		}
	}()
	return w
}

func (w *Watch) look() {
	open, sockets := descriptors()
	w.descriptors, w.sockets = max(w.descriptors, open), max(w.sockets, sockets)
}

// Fill ends the watch and writes what it saw into a generator's figures.
func (w *Watch) Fill(g *record.Generator) {
	close(w.quit)
	<-w.done
	w.look()
	lasted, cpu := time.Since(w.began), cpuTime()-w.cpu
	g.CPUs, g.CPUSeconds = runtime.GOMAXPROCS(0), cpu.Seconds()
	g.WatchedMS, g.ProcessorSeconds = lasted.Milliseconds(), lasted.Seconds()*float64(g.CPUs)
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	g.GCPauseMS = milliseconds(gc.PauseTotal - w.gc.PauseTotal)
	for i, end := range gc.PauseEnd { // the latest 256, newest first
		if end.After(w.began) {
			g.GCPauseMaxMS = max(g.GCPauseMaxMS, milliseconds(gc.Pause[i]))
		}
	}
	g.Descriptors, g.Sockets, g.DescriptorLimit = w.descriptors, w.sockets, DescriptorLimit()
	g.MachineSeconds, g.OthersSeconds, g.StolenSeconds = machineTicks().since(w.all, cpu)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ticks is what a machine's processors have done so far, in ticks of 10 ms.
type ticks struct{ busy, steal, all int64 }

const tick = 10 * time.Millisecond

// since is what all processors could do in seconds, and what of it others did,
// without so much of our own, and the machine below kept.
func (t ticks) since(before ticks, own time.Duration) (all, others, stolen float64) {
	seconds := func(n int64) float64 { return float64(max(0, n)) * tick.Seconds() }
	return seconds(t.all - before.all), max(0, seconds(t.busy-before.busy)-own.Seconds()), seconds(t.steal - before.steal)
}

func machineTicks() ticks {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	return parseTicks(text)
}

// parseTicks reads the first line of /proc/stat: user, nice, system, idle, waiting
// for a disk, interrupts, soft interrupts, stolen. Guests are in user.
func parseTicks(text []byte) ticks {
	line, _ := bufio.NewReader(bytes.NewReader(text)).ReadString('\n')
	words := strings.Fields(line)
	if len(words) < 9 || words[0] != "cpu" {
		return ticks{}
	}
	var n [8]int64
	for i := range n {
		v, err := strconv.ParseInt(words[i+1], 10, 56) // so that no sum overflows
		if err != nil || v < 0 {
			return ticks{}
		}
		n[i] = v
	}
	busy := n[0] + n[1] + n[2] + n[5] + n[6]
	return ticks{busy: busy, steal: n[7], all: busy + n[3] + n[4] + n[7]}
}

// descriptors is how many are open, and how many of them are sockets.
func descriptors() (open, sockets int64) {
	const dir = "/proc/self/fd/"
	d, err := os.Open(dir)
	if err != nil {
		return 0, 0
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0, 0
	}
	for _, name := range names {
		if to, err := os.Readlink(dir + name); err == nil && strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	return int64(len(names)) - 1, sockets // but for the one that was opened to look
}
