package pgtest_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/internal/pgtest"
)

// victim makes the test binary start a server, say where, and wait to be killed.
const victim = "PGTEST_VICTIM"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func connect(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func directory(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	require.NoError(t, err)
	return u.Query().Get("host")
}

func TestDatabasesAreSeparate(t *testing.T) {
	first, second := pgtest.Database(t), pgtest.Database(t)
	require.Equal(t, directory(t, first), directory(t, second), "one server for both")
	a, b := connect(t, first), connect(t, second)
	_, err := a.Exec(t.Context(), "create table only_here ()")
	require.NoError(t, err)
	_, err = b.Exec(t.Context(), "select from only_here")
	require.ErrorContains(t, err, "does not exist")
}

func TestDatabaseIsDroppedWithItsTest(t *testing.T) {
	var gone string
	t.Run("of its own", func(t *testing.T) {
		gone = pgtest.Database(t)
		c, err := pgx.Connect(t.Context(), gone) // left open
		require.NoError(t, err)
		t.Cleanup(func() { c.Close(context.Background()) })
	})
	_, err := pgx.Connect(t.Context(), gone)
	require.ErrorContains(t, err, "does not exist")
}

func TestOutages(t *testing.T) {
	s := pgtest.Start(t)
	database := s.Database(t)
	c := connect(t, database)
	_, err := c.Exec(t.Context(), "create table kept ()")
	require.NoError(t, err)

	s.Stop(t)
	require.Error(t, c.Ping(t.Context()))
	_, err = pgx.Connect(t.Context(), database)
	require.Error(t, err)

	s.Start(t)
	c = connect(t, database)
	_, err = c.Exec(t.Context(), "select from kept")
	require.NoError(t, err)

	answered := make(chan error, 1)
	s.Pause(t)
	go func() { answered <- c.Ping(t.Context()) }()
	require.True(t, stopped(t, database), "no process of a paused server runs")
	s.Resume(t)
	require.NoError(t, <-answered)
}

// stopped reports whether the server and every process it has forked stand still.
func stopped(t *testing.T, database string) bool {
	t.Helper()
	pids := []string{postmaster(t, directory(t, database))}
	children, err := os.ReadFile("/proc/" + pids[0] + "/task/" + pids[0] + "/children")
	require.NoError(t, err)
	for _, pid := range append(pids, strings.Fields(string(children))...) {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		require.NoError(t, err)
		if !strings.Contains(string(status), "State:\tT") && !strings.Contains(string(status), "State:\tZ") {
			return false
		}
	}
	return true
}

func postmaster(t *testing.T, dir string) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	require.NoError(t, err)
	pid, _, _ := strings.Cut(string(file), "\n")
	return pid
}

func TestServerOfATestEndsWithIt(t *testing.T) {
	var dir string
	t.Run("paused", func(t *testing.T) {
		s := pgtest.Start(t)
		dir = directory(t, s.Database(t))
		s.Pause(t)
	})
	require.NoDirExists(t, dir)
}

func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		t.Skip("a helper of TestNothingStaysBehindAKilledTest")
	}
	dir := directory(t, pgtest.Database(t))
	os.Stdout.WriteString(dir + "\n" + postmaster(t, dir) + "\n")
	select {}
}

func TestNothingStaysBehindAKilledTest(t *testing.T) {
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestVictim$")
	c.Env = append(os.Environ(), victim+"=1")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	dir := lines.Text()
	require.True(t, lines.Scan())
	process := "/proc/" + lines.Text()
	require.DirExists(t, dir)
	require.DirExists(t, process)

	require.NoError(t, c.Process.Signal(syscall.SIGKILL))
	require.Error(t, c.Wait())
	for _, path := range []string{dir, process} {
		require.Eventually(t, func() bool {
			_, err := os.Stat(path)
			return errors.Is(err, fs.ErrNotExist)
		}, 30*time.Second, 10*time.Millisecond, "%s is gone", path)
	}
}
