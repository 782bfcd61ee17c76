package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/pgtest"
)

// asProcess makes this test binary the program itself, for tests that kill it.
const asProcess = "BRIMLINE_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a server of its own process on the office's database.
type process struct {
	*exec.Cmd
	url string
}

func (o office) serve(spool string) process {
	o.Helper()
	c := exec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0", "--database-url", o.url, "--key-secret-file", o.secret, "--migrate", "--api-log-spool", spool)
	c.Env = append(os.Environ(), asProcess+"=1")
	c.Stderr = io.Discard
	out, err := c.StdoutPipe()
	require.NoError(o, err)
	require.NoError(o, c.Start())
	o.Cleanup(func() { c.Process.Kill(); c.Wait() })
	first, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(o, err)
	found := regexp.MustCompile(`http://\S+`).FindString(first)
	require.NotEmpty(o, found, first)
	return process{c, found}
}

// answered is every request id that clients have got an answer with, and how long
// the slowest 503 took.
type answered struct {
	mu      sync.Mutex
	ids     map[string]bool
	codes   map[string]int
	slowest time.Duration
}

// crowd sends some 2,000 requests a second of all keys, good and bad, until ctx
// ends.
func crowd(ctx context.Context, base string, keys []string, got *answered) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			defer client.CloseIdleConnections()
			pace := time.NewTicker(4 * time.Millisecond)
			defer pace.Stop()
			for n := i; ctx.Err() == nil; n++ {
				<-pace.C
				r, err := http.NewRequest(http.MethodPost, base+"/v1/invoice/calculate", strings.NewReader(sampleInvoice))
				if err != nil {
					panic(err)
				}
				r.Header.Set("Authorization", "Bearer "+keys[n%len(keys)])
				began := time.Now()
				resp, err := client.Do(r)
				if err != nil {
					continue // killed, or not there yet
				}
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil {
					continue
				}
				took := time.Since(began)
				got.mu.Lock()
				got.ids[resp.Header.Get("X-Request-Id")] = true
				got.codes[fmt.Sprint(resp.StatusCode)]++
				if resp.StatusCode == http.StatusServiceUnavailable {
					got.slowest = max(got.slowest, took)
				}
				got.mu.Unlock()
			}
		})
	}
	wg.Wait()
}

func (o office) keys() []string {
	o.Helper()
	o.admin("migrate")
	var keys []string
	for _, plan := range []string{"free", "starter", "pro", "pro", "pro", "pro"} {
		keys = append(keys, strings.Fields(o.admin("user", "create", "--plan", plan))[1:]...)
	}
	return append(keys, "isk_free_0123456789abcdef0123456789abcdef")
}

// rows are the request ids in the API log, each as often as it is there.
func (o office) rows() map[string]int {
	o.Helper()
	c, err := pgx.Connect(o.Context(), o.url)
	require.NoError(o, err)
	defer c.Close(o.Context())
	rows, err := c.Query(o.Context(), "select request_id from api_log")
	require.NoError(o, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(o, err)
	count := map[string]int{}
	for _, id := range ids {
		count[id]++
	}
	return count
}

// requireEveryAnswerIsOneRow waits for what a running server still delivers.
func (o office) requireEveryAnswerIsOneRow(got *answered) {
	o.Helper()
	missing := -1
	var rows map[string]int
	for end := time.Now().Add(30 * time.Second); missing != 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		rows, missing = o.rows(), 0
		for id := range got.ids {
			if rows[id] == 0 {
				missing++
			}
		}
	}
	o.Logf("%d answers (%v), %d rows, the slowest 503 took %v", len(got.ids), got.codes, len(rows), got.slowest)
	require.Zero(o, missing, "answers without a row")
	for id, n := range rows {
		require.Equal(o, 1, n, id)
	}
	require.NotEmpty(o, got.ids)
}

func newAnswered() *answered { return &answered{ids: map[string]bool{}, codes: map[string]int{}} }

// TestAGracefulStopLosesNoEntry: LOG-5.
func TestAGracefulStopLosesNoEntry(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	keys, got := o.keys(), newAnswered()
	p := o.serve(t.TempDir())
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	time.AfterFunc(1500*time.Millisecond, func() { p.Process.Signal(syscall.SIGTERM) })
	crowd(ctx, p.url, keys, got)
	require.NoError(t, p.Wait(), "a stop that was asked for is no failure")
	o.requireEveryAnswerIsOneRow(got)
}

// TestAKillLosesNoEntry: LOG-5, LOG-6. The next process on the same spool
// delivers what the killed one had spooled.
func TestAKillLosesNoEntry(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	keys, got, spool := o.keys(), newAnswered(), t.TempDir()
	for range 2 {
		p := o.serve(spool)
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		time.AfterFunc(4*time.Second, func() { p.Process.Kill() })
		crowd(ctx, p.url, keys, got)
		stop()
		p.Wait()
	}
	o.serve(spool)
	o.requireEveryAnswerIsOneRow(got)
}

// TestAnOutageLosesNoEntry: LOG-5. With the database away for a while every
// request is answered, and each answer is a row once it is back.
func TestAnOutageLosesNoEntry(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	o := openOffice(t)
	o.url = pg.Database(t)
	keys, got := o.keys(), newAnswered()
	p := o.serve(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{})
	go func() { defer close(done); crowd(ctx, p.url, keys, got) }()
	for _, phase := range []struct {
		lasts time.Duration
		then  func(testing.TB)
	}{{2 * time.Second, pg.Stop}, {outage(), pg.Start}, {2 * time.Second, nil}} {
		select {
		case <-time.After(phase.lasts):
		case <-done:
			t.Fatal("the crowd went home")
		}
		if phase.then != nil {
			phase.then(t)
		}
	}
	stop()
	<-done
	require.NotZero(t, got.codes["503"], "the outage was seen")
	for end := time.Now().Add(30 * time.Second); ; {
		after := newAnswered()
		again, cancel := context.WithTimeout(t.Context(), time.Second)
		crowd(again, p.url, keys, after)
		cancel()
		for id := range after.ids {
			got.ids[id] = true
		}
		if after.codes["200"] > 0 {
			break
		}
		require.True(t, time.Now().Before(end), "all is well again by itself: %v", after.codes)
	}
	o.requireEveryAnswerIsOneRow(got)
}

// outage is how long the database is away: 20 s where time is to spare.
func outage() time.Duration {
	if testing.Short() {
		return 2 * time.Second
	}
	return 20 * time.Second
}
