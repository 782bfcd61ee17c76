package postgres_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
)

// What makes the test binary charge operations until it is killed.
const (
	victimDatabase = "POSTGRES_VICTIM_DATABASE"
	victimUser     = "POSTGRES_VICTIM_USER"
	victimWorkers  = 4
)

func TestVictim(t *testing.T) {
	database := os.Getenv(victimDatabase)
	if database == "" {
		t.Skip("a helper of TestOperationsAreExactAfterAKill")
	}
	s := open(t, config(t, database, clock.NewReal()))
	var wg sync.WaitGroup
	for w := range victimWorkers {
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d", w, n)
				require.NoError(t, s.Reserve(t.Context(), os.Getenv(victimUser), id))
				if n%3 != 0 {
					require.NoError(t, s.Charge(t.Context(), id))
					os.Stdout.WriteString("charged\n")
				}
				require.NoError(t, s.GiveBack(t.Context(), id))
			}
		})
	}
	wg.Wait()
}

// TestOperationsAreExactAfterAKill: what the process had been told of is charged,
// what was on its way is charged or not, and what it had reserved is there again
// once that has lapsed.
func TestOperationsAreExactAfterAKill(t *testing.T) {
	const there = 1_000_000
	database := migrated(t)
	c := clock.NewShifted(clock.NewReal())
	s := open(t, config(t, database, c))
	alice, _, err := s.CreateUser(t.Context(), "free", 1)
	require.NoError(t, err)
	require.NoError(t, s.SetOperations(t.Context(), alice, there))

	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestVictim$")
	victim.Env = append(os.Environ(), victimDatabase+"="+database, victimUser+"="+alice)
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	told := int64(0)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "charged") {
			told++
		}
		if told == 200 {
			require.NoError(t, victim.Process.Signal(syscall.SIGKILL))
		}
	}
	require.Error(t, victim.Wait())
	require.GreaterOrEqual(t, told, int64(200))
	// The database may still be carrying out what the process asked for last.
	require.Eventually(t, func() bool {
		var n int
		query(t, database, "select count(*) from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()", &n)
		return n == 0
	}, 30*time.Second, time.Millisecond)

	b, err := s.Billing(t.Context(), alice)
	require.NoError(t, err)
	require.GreaterOrEqual(t, b.Used, told)
	require.LessOrEqual(t, b.Used, told+victimWorkers)
	require.Equal(t, there-b.Used, b.Left)

	require.NoError(t, s.SetOperations(t.Context(), alice, victimWorkers+2))
	c.Advance(account.ReservationLapse)
	for n := range victimWorkers + 2 {
		require.NoError(t, s.Reserve(t.Context(), alice, fmt.Sprint("after ", n)))
	}
	require.ErrorIs(t, s.Reserve(t.Context(), alice, "one more"), account.ErrExhausted)
}
