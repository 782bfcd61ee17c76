package apilog_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

// These make the test binary a server that does nothing but log.
const (
	serverSpool    = "APILOG_SERVER_SPOOL"
	serverDatabase = "APILOG_SERVER_DATABASE"
	serverName     = "APILOG_SERVER_NAME"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverSpool); dir != "" {
		if err := serve(dir, os.Getenv(serverDatabase), os.Getenv(serverName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve writes 2,000 entries a second and prints the id of each that was
// accepted, until it is told to stop.
func serve(dir, database, name string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := apilog.OpenSpool(apilog.SpoolConfig{Dir: dir, Sink: postgres.NewLog(pool), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for start, n := time.Now(), 0; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		for ; n < int(time.Since(start)/(500*time.Microsecond)); n++ {
			id := fmt.Sprintf("%s-%d", name, n)
			if err := s.Write(ctx, entry(id)); err != nil {
				return err
			}
			fmt.Println(id)
		}
	}
	deadline, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return s.Close(deadline)
}

// process is such a server.
type process struct {
	cmd      *exec.Cmd
	read     sync.WaitGroup
	mu       sync.Mutex
	more     *sync.Cond
	accepted []string
	ended    bool
}

func startProcess(t *testing.T, dir, database, name string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.more = sync.NewCond(&p.mu)
	p.cmd.Env = append(os.Environ(), serverSpool+"="+dir, serverDatabase+"="+database, serverName+"="+name)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.read.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.change(func() { p.accepted = append(p.accepted, lines.Text()) })
		}
		p.change(func() { p.ended = true })
	})
	return p
}

func (p *process) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.more.Broadcast()
}

// accept waits until so many more entries have been accepted.
func (p *process) accept(t *testing.T, n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for end := len(p.accepted) + n; len(p.accepted) < end; p.more.Wait() {
		require.False(t, p.ended, "the process has ended by itself")
	}
}

// end sends a signal and waits for the process to go; it tells what was accepted.
func (p *process) end(t *testing.T, sig os.Signal) []string {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(sig))
	p.read.Wait()
	err := p.cmd.Wait()
	if sig == syscall.SIGTERM {
		require.NoError(t, err)
	} else {
		require.ErrorContains(t, err, "signal: killed")
	}
	return p.accepted
}

// deliverRest opens a spool that a process has left, and delivers what is in it.
func deliverRest(t *testing.T, dir string, pool *pgxpool.Pool) apilog.Stats {
	t.Helper()
	s := openSpool(t, dir, postgres.NewLog(pool))
	require.NoError(t, s.Close(t.Context()))
	require.Empty(t, segments(t, dir))
	return s.Stats()
}

func openPool(t testing.TB, database string) *pgxpool.Pool {
	t.Helper()
	_, err := postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// rows is the ids in the log; the table's primary key has none of them twice.
func rows(t *testing.T, pool *pgxpool.Pool) map[string]bool {
	t.Helper()
	var all []string
	require.NoError(t, pool.QueryRow(t.Context(), "select array_agg(request_id) from api_log").Scan(&all))
	found := map[string]bool{}
	for _, id := range all {
		found[id] = true
	}
	require.Len(t, found, len(all))
	return found
}

// requireRows: each accepted entry is a row. Killed, a process may have spooled
// one entry more than it could say.
func requireRows(t *testing.T, pool *pgxpool.Pool, accepted []string, killed int) {
	t.Helper()
	found := rows(t, pool)
	lost := []string{}
	for _, id := range accepted {
		if !found[id] {
			lost = append(lost, id)
		}
	}
	require.Empty(t, lost, "accepted and lost")
	require.LessOrEqual(t, len(found)-len(accepted), killed)
	t.Logf("%d accepted, %d rows", len(accepted), len(found))
}

func TestGracefulStopLosesNothing(t *testing.T) {
	database, dir := pgtest.Database(t), t.TempDir()
	pool := openPool(t, database)
	p := startProcess(t, dir, database, "r")
	p.accept(t, 2000)
	requireRows(t, pool, p.end(t, syscall.SIGTERM), 0)
	require.Empty(t, segments(t, dir), "nothing is left to deliver")
}

func TestKillLosesNothing(t *testing.T) {
	database, dir := pgtest.Database(t), t.TempDir()
	pool := openPool(t, database)
	var accepted []string
	const kills = 3
	for i := range kills {
		p := startProcess(t, dir, database, fmt.Sprint("r", i))
		p.accept(t, 1500)
		accepted = append(accepted, p.end(t, syscall.SIGKILL)...)
		t.Logf("kill %d: %d accepted so far, %d rows", i+1, len(accepted), len(rows(t, pool)))
	}
	stats := deliverRest(t, dir, pool)
	t.Logf("then %d delivered, %d torn", stats.Delivered, stats.Torn)
	requireRows(t, pool, accepted, kills)
}

// TestOutagesLoseNothing: the database is stopped and started, is frozen, and is
// away while the server is killed. Entries are accepted all the while.
func TestOutagesLoseNothing(t *testing.T) {
	server, dir := pgtest.Start(t), t.TempDir()
	database := server.Database(t)
	pool := openPool(t, database)

	p := startProcess(t, dir, database, "first")
	p.accept(t, 300)
	server.Stop(t)
	p.accept(t, 600)
	server.Start(t)
	p.accept(t, 300)
	server.Pause(t)
	p.accept(t, 600)
	server.Resume(t)
	accepted := p.end(t, syscall.SIGTERM) // what it could not deliver before its end is left to the second

	p = startProcess(t, dir, database, "second")
	p.accept(t, 300)
	server.Stop(t)
	p.accept(t, 300)
	accepted = append(accepted, p.end(t, syscall.SIGKILL)...)
	server.Start(t)
	require.NotZero(t, deliverRest(t, dir, pool).Delivered)
	requireRows(t, pool, accepted, 1)
}

func TestSecondServerIsRefused(t *testing.T) {
	dir, sink := t.TempDir(), &table{}
	s := openSpool(t, dir, sink)
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), serverSpool+"="+dir, serverDatabase+"=postgres://nowhere")
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), dir+" is in use by another server")
	names := write(t, s, "undisturbed", 1)
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, once(names...), sink.times)
}
