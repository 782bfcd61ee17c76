// Loadcompare sends the same traffic with "brimline load" and with other people's
// load generators, one after another, against one small server, and prints what
// each of them cost and what came of it:
//
//	make load-compare LOADTIME=60
//
// Processor time and memory are those of the generator's process alone. How even
// its requests came is judged by the server, which notes when each arrives; the
// generator's own word is only taken for the latency that it reports. A tool that
// is not in the PATH is left out, and said to be.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// phase is one kind of traffic that every tool has to send.
type phase struct {
	name   string
	what   string
	rate   int // requests/s; 0: as many as it can
	users  int // of the tools that have any; 0: 200
	server serverMode
	open   bool // only tools that send by a schedule
}

func phases() []phase {
	return []phase{
		{name: "most", what: "as many as it can"},
		{name: "even", what: "1,000/s", rate: 1000, users: 1, open: true}, // one user's requests are as far apart as they can be
		{name: "mix", what: "5,000/s, every other answer a 429", rate: 5000, server: serverMode{mix: true}, open: true},
		{name: "hold", what: "10,000/s", rate: 10_000, open: true},
		{name: "users", what: "5,000/s by 100,000 users with keys of their own", rate: 5000, users: 100_000, open: true},
		{name: "freeze", what: "200/s, the server stands still for 1 s", rate: 200, server: serverMode{freeze: time.Second}, open: true},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "server" {
		if err := serve(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	seconds := flag.Int("seconds", 60, "length of each run")
	only := flag.String("only", "", "phases to run, by commas: most, even, mix, hold, users, freeze; empty: all")
	names := flag.String("tools", "", "tools to run, by commas; empty: all that are there")
	flag.Parse()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := compare(ctx, time.Duration(*seconds)*time.Second, list(*only), list(*names)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func list(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" })
}

func compare(ctx context.Context, length time.Duration, only, names []string) error {
	dir, err := os.MkdirTemp("", "loadcompare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%d processors, %s, %v each, load average %s\n", runtime.NumCPU(), runtime.Version(), length, loadAverage())
	for _, p := range phases() {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		fmt.Printf("\n%s: %s\n\n%s", p.name, p.what, head)
		for _, t := range tools() {
			if len(names) > 0 && !slices.Contains(names, t.name) || p.open && t.closed || p.users > 1 && !t.users {
				continue
			}
			if _, err := exec.LookPath(t.program); err != nil {
				fmt.Printf("| %s | not in the PATH |\n", t.name)
				continue
			}
			r, err := most(ctx, dir, t, p, length)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", t.name, p.name, err)
			}
			fmt.Print(r.row(t.name))
		}
	}
	return nil
}

// most is one run; or, of a tool that only sends by a schedule and is to send as
// much as it can, the last of some in which it did not fall behind.
func most(ctx context.Context, dir string, t tool, p phase, length time.Duration) (best result, err error) {
	if p.rate > 0 || !t.users {
		return run(ctx, dir, t, p, length)
	}
	for p.rate = 5000; p.rate <= 50_000; p.rate += 5000 {
		r, err := run(ctx, dir, t, p, length/4)
		if err != nil {
			return r, err
		}
		if best.seen.Requests > 0 && float64(r.seen.Requests) < 0.99*float64(p.rate)*(length/4).Seconds() {
			break
		}
		best = r
	}
	return best, nil
}

// run lets one tool send one phase's traffic to a server of its own.
func run(ctx context.Context, dir string, t tool, p phase, length time.Duration) (result, error) {
	s, err := startServer(ctx, p.server, length/2)
	if err != nil {
		return result{}, err
	}
	defer s.stop()
	w, err := os.MkdirTemp(dir, p.name+"-")
	if err != nil {
		return result{}, err
	}
	if err := write(w, s.address, p, length); err != nil {
		return result{}, err
	}
	argv := t.command(job{dir: w, url: "http://" + s.address + path, rate: p.rate, length: length})
	c := exec.CommandContext(ctx, t.program, argv...)
	c.Dir = w
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	began := time.Now()
	if err := c.Start(); err != nil {
		return result{}, err
	}
	memory := watchMemory(c.Process.Pid, began, length)
	var failed *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &failed) { // a 429 makes some of them fail
		return result{}, err
	}
	took := time.Since(began)
	r := result{took: took, early: <-memory}
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.largest = int64(u.Maxrss) << 10
	}
	r.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	if r.seen, err = s.seen(); err != nil {
		return result{}, err
	}
	if r.seen.Requests == 0 {
		return result{}, fmt.Errorf("nothing came: %s", said.String())
	}
	r.p99, r.note = t.told(w, said.String())
	return r, nil
}

// result is what came of one run.
type result struct {
	took    time.Duration
	cpu     time.Duration
	early   int64 // bytes resident after 10 s, or at half time if that is sooner
	largest int64
	seen    seen
	p99     time.Duration // as the tool says
	note    string
}

const head = "| tool | requests | requests/s | CPU s/100k | MB early | MB most | gap p50 µs | gap p99 ms | Fano | most in 10 ms | p99 ms it says |\n" +
	"|---|---|---|---|---|---|---|---|---|---|---|\n"

func (r result) row(name string) string {
	return fmt.Sprintf("| %s | %d | %.0f | %.2f | %d | %d | %.0f | %.1f | %.2f | %d | %.1f%s |\n",
		name, r.seen.Requests, r.seen.Rate, r.cpu.Seconds()/float64(r.seen.Requests)*100_000, r.early>>20, r.largest>>20,
		r.seen.GapP50US, r.seen.GapP99US/1000, r.seen.Fano, r.seen.Most, float64(r.p99.Microseconds())/1000, r.note)
}

// watchMemory reads once how much memory a process has.
func watchMemory(pid int, began time.Time, length time.Duration) <-chan int64 {
	out := make(chan int64, 1)
	go func() {
		time.Sleep(time.Until(began.Add(min(10*time.Second, length/2))))
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		var size, resident int64
		_, _ = fmt.Sscan(string(text), &size, &resident)
		out <- resident * int64(os.Getpagesize())
	}()
	return out
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// write leaves the files that the tools read.
func write(dir, address string, p phase, length time.Duration) error {
	users := cmp.Or(p.users, 200)
	keys := strings.Builder{}
	keys.WriteString("user,plan,key\n")
	for i := range users {
		fmt.Fprintf(&keys, "user-%d,plan,key-%06d-abcdefghijklmnop\n", i+1, i+1)
	}
	for name, text := range map[string]string{
		"keys.csv":    keys.String(),
		"body.json":   body,
		"targets.txt": "POST http://" + address + path + "\nAuthorization: Bearer key\nContent-Type: application/json\n@body.json\n",
		"target.yaml": fmt.Sprintf(`base-urls: ["http://%s"]
credential: { header: Authorization, template: "Bearer {key}" }
keys-file: keys.csv
operations:
  valid: { method: POST, path: %s, body: '%s' }
allowances:
  plan: { requests-per-minute: %d, burst: %d, concurrency: %d }
limits: { max-operations: 100000000 }
`, address, path, body, allowance, allowance, 100_000),
		"load.yaml": fmt.Sprintf("duration: %v\nseed: 7\npopulations:\n  - { plan: plan, users: %d, arrival: constant, rate: %d, on-429: ignore }\n", length, users, p.rate*60/users),
		"k6.js":     k6Script(p, "http://"+address+path, length),
		"post.lua":  "wrk.method = 'POST'\nwrk.body = '" + body + "'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.headers['Authorization'] = 'Bearer key'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
