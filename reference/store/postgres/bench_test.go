package postgres_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

// populate adds users with two keys each: every twentieth has a scheduled plan,
// every hundredth an override. The digest of key n is [digestOf] n.
func populate(t testing.TB, database string, users int) {
	t.Helper()
	for _, statement := range []string{
		`set session_replication_role = replica`,
		`insert into account (anchor, created) select now(), now() from generate_series(1, $users)`,
		`insert into subscription select id, anchor, case when id % 2 = 0 then 'free' else 'pro' end from account`,
		`insert into subscription select id, (billing_period(anchor, now())).ends, 'pro' from account where id % 20 = 0`,
		`insert into api_key (user_id, number, handle, digest, prefix, created)
select (n + 1) / 2, n, ('x' || encode(substr(d, 1, 8), 'hex'))::bit(64)::bigint, d, 'isk_free_0000', now()
from generate_series(1, 2 * $users) n, sha256(n::text::bytea) d`,
		`insert into rate_override (user_id, dimension, value, set_at, author, reason)
select id, 'burst', '7', now(), 'a', 'b' from account where id % 100 = 0`,
		`set session_replication_role = default`,
		`vacuum analyze`,
	} {
		execute(t, database, regexp.MustCompile(`\$users`).ReplaceAllString(statement, fmt.Sprint(users)))
	}
}

func digestOf(n int) account.Digest { return sha256.Sum256([]byte(fmt.Sprint(n))) }

// TestALookupReadsIndexesAlone, whatever the size of a table was when its plan
// was made, and not a row of a table.
func TestALookupReadsIndexesAlone(t *testing.T) {
	database := migrated(t)
	populate(t, database, 2000)
	s := open(t, config(t, database, clock.NewReal()))
	plan, err := s.Explain(t.Context(), digestOf(400)) // has a schedule and an override
	require.NoError(t, err)
	require.NotRegexp(t, `Seq Scan|Bitmap|Index Scan`, plan)
	require.NotRegexp(t, `never executed`, plan)
	require.Len(t, regexp.MustCompile(`Index Only Scan`).FindAllString(plan, -1), 7)
	require.Len(t, regexp.MustCompile(`Heap Fetches: 0`).FindAllString(plan, -1), 7, plan)
}

// BenchmarkLookup is the lookup of any of 200,000 keys of 100,000 users, beside
// a query for nothing: the latency of one at a time, and of several side by side.
func BenchmarkLookup(b *testing.B) {
	const users = 100_000
	database := migrated(b)
	populate(b, database, users)
	cfg := config(b, database, clock.NewReal())
	cfg.TTL = time.Nanosecond // every lookup asks the database
	s := open(b, cfg)
	plan, err := s.Explain(b.Context(), digestOf(users))
	require.NoError(b, err)
	b.Log("\n" + plan)
	for _, side := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("lookup/", side), func(b *testing.B) {
			latencies(b, side, func() error { return lookup(b, s, digestOf(1+rand.IntN(2*users))) })
		})
		b.Run(fmt.Sprint("select 1/", side), func(b *testing.B) {
			latencies(b, side, func() error { return s.Floor(b.Context()) })
		})
	}
	cfg.TTL = time.Hour
	kept := open(b, cfg)
	require.NoError(b, lookup(b, kept, digestOf(1)))
	b.Run("kept/1", func(b *testing.B) {
		latencies(b, 1, func() error { return lookup(b, kept, digestOf(1)) })
	})
}

func lookup(b *testing.B, s *postgres.Store, d account.Digest) error {
	_, err := s.Lookup(b.Context(), d)
	return err
}

// BenchmarkLedger is a request's share of the ledger: reserve, charge, give back.
func BenchmarkLedger(b *testing.B) {
	s := open(b, config(b, migrated(b), clock.NewReal()))
	var ids atomic.Int64
	users := make(chan string, 64)
	for range cap(users) {
		user, _, err := s.CreateUser(b.Context(), "free", 1)
		require.NoError(b, err)
		require.NoError(b, s.SetOperations(b.Context(), user, 1<<40))
		users <- user
	}
	for _, side := range []int{1, 8} {
		b.Run(fmt.Sprint(side), func(b *testing.B) {
			latencies(b, side, func() error {
				user, id := <-users, fmt.Sprint("r", ids.Add(1))
				defer func() { users <- user }()
				err := s.Reserve(b.Context(), user, id)
				if err == nil {
					err = s.Charge(b.Context(), id)
				}
				if err == nil {
					err = s.GiveBack(b.Context(), id)
				}
				return err
			})
		})
	}
}

// latencies does something so many at a time, and reports quantiles.
func latencies(b *testing.B, side int, do func() error) {
	b.Helper()
	require.NoError(b, do())
	each := make([][]time.Duration, side)
	errs := make([]error, side)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range side {
		wg.Go(func() {
			for left.Add(-1) >= 0 && errs[i] == nil {
				start := time.Now()
				errs[i] = do()
				each[i] = append(each[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	for _, err := range errs {
		require.NoError(b, err)
	}
	all := slices.Sorted(slices.Values(slices.Concat(each...)))
	b.ReportMetric(float64(all[len(all)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100])/1e3, "p99-µs")
}
