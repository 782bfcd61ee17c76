package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
)

// TestTheDatabaseRefusesWhatTheOperatorBoundaryDoes: whoever writes past us is
// held to the same (OVR-3, OVR-7).
func TestTheDatabaseRefusesWhatTheOperatorBoundaryDoes(t *testing.T) {
	database := migrated(t)
	s := open(t, config(t, database, clock.NewReal()))
	alice, _, err := s.CreateUser(t.Context(), "free", 1)
	require.NoError(t, err)
	bob, _, err := s.CreateUser(t.Context(), "free", 1)
	require.NoError(t, err)
	// A malformed override that is there already changes nothing for others.
	require.NoError(t, s.StoreOverride(t.Context(), bob, policy.Override{Dimension: policy.Burst, Value: "ten"}))
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer c.Close(t.Context())
	const insert = `insert into rate_override (user_id, dimension, value, expires, set_at, author, reason) values ($1, $2, $3, $4, $5, $6, $7)`
	set := func(dimension, value, author, reason string, expires time.Duration) error {
		_, err := c.Exec(t.Context(), insert, number(alice), dimension, value, time.Unix(0, 0).Add(expires), time.Unix(0, 0), author, reason)
		return err
	}
	for _, d := range policy.Dimensions() {
		for _, value := range []string{"", "0", "-1", "1.5", "ten", "01", " 1", "1\n", "1e3", "null", fmt.Sprint(d.Max() + 1), "99999999999999999999"} {
			require.ErrorContains(t, set(string(d), value, "a", "b", time.Hour), "override_value", "%s %q", d, value)
		}
		_, err := c.Exec(t.Context(), insert, number(alice), string(d), nil, nil, time.Unix(0, 0), "a", "b")
		require.ErrorContains(t, err, "not-null")
	}
	require.ErrorContains(t, set("unlimited", "1", "a", "b", time.Hour), "override_dimension")
	require.ErrorContains(t, set("burst", "1", "", "b", time.Hour), "author")
	require.ErrorContains(t, set("burst", "1", "a", "", time.Hour), "reason")
	require.ErrorContains(t, set("burst", "1", "a", strings.Repeat("b", account.MaxReason+1), time.Hour), "reason")
	require.ErrorContains(t, set("burst", "1", "a", "b", 0), "override_expiry")
	for _, d := range policy.Dimensions() {
		require.NoError(t, set(string(d), fmt.Sprint(d.Max()), "a", "b", time.Hour))
		require.ErrorContains(t, set(string(d), "1", "a", "b", time.Hour), "override_lookup", "one is active at a time")
	}
	for _, statement := range []string{
		"delete from rate_override",
		"truncate rate_override",
		"update rate_override set value = '2'",
		"update rate_override set reason = 'another', ended_at = now()",
	} {
		_, err := c.Exec(t.Context(), statement)
		require.ErrorContains(t, err, "cannot be changed", statement)
	}
	_, err = c.Exec(t.Context(), "update rate_override set ended_at = now() where user_id = $1", number(alice))
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "update rate_override set ended_at = null where user_id = $1", number(alice))
	require.ErrorContains(t, err, "cannot be changed", "what has ended does not come back")
}

func number(user string) (n int64) {
	if _, err := fmt.Sscanf(user, "user-%d", &n); err != nil {
		panic(err)
	}
	return n
}

// TestNoKeyIsStored looks through everything that the database holds.
func TestNoKeyIsStored(t *testing.T) {
	database := migrated(t)
	s := open(t, config(t, database, clock.NewReal()))
	alice, keys, err := s.CreateUser(t.Context(), "free", 2)
	require.NoError(t, err)
	_, err = s.Lookup(t.Context(), s.Digest(keys[0]))
	require.NoError(t, err)
	require.NoError(t, s.RevokeKey(t.Context(), alice, keys[1]))
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), "select table_name::text from information_schema.tables where table_schema = 'public'")
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var all strings.Builder
	for _, table := range tables {
		rows, err := c.Query(t.Context(), "select t::text from "+pgx.Identifier{table}.Sanitize()+" t")
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		all.WriteString(strings.Join(lines, "\n"))
	}
	for _, k := range keys {
		secret := k.Reveal()[len(k.Prefix()):]
		require.Contains(t, all.String(), k.Prefix())
		require.NotContains(t, all.String(), secret)
		require.NotContains(t, all.String(), fmt.Sprintf("%x", secret))
	}
}
