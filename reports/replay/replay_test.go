package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

func read(t require.TestingT, opt accesslog.Options, lines []string) *accesslog.Log {
	log, err := accesslog.Read(context.Background(), []accesslog.Source{accesslog.Stream("test.log", strings.NewReader(strings.Join(lines, "\n")))}, opt)
	require.NoError(t, err)
	return log
}

// line is an entry of Common format at the given second of a day.
func line(client string, second, status int) string {
	return fmt.Sprintf(`%s - - [04/Oct/2026:%02d:%02d:%02d +0000] "GET /v1/invoice/7 HTTP/1.1" %d 51`,
		client, second/3600, second/60%60, second%60, status)
}

func ask(rate, burst int64) replay.Question {
	return replay.Question{Rates: []int64{rate}, Bursts: []int64{burst}}
}

func TestEveryBucketIsItsClientsAlone(t *testing.T) {
	var lines []string
	for i := range 4 {
		lines = append(lines, line("192.0.2.1", 0, 200), line("192.0.2.2", 0, 200))
		if i > 0 {
			lines = append(lines, line("192.0.2.3", 0, 404))
		}
	}
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines), ask(60, 3))
	require.NoError(t, err)
	require.Equal(t, record.PoolClient, r.Pool)
	require.Equal(t, 3, r.Users)
	require.EqualValues(t, 11, r.Attempts)
	require.EqualValues(t, 2, r.Rejected, "the fourth of each of two clients; whatever its status, an entry is an attempt")
	require.Equal(t, 2, r.UsersAffected)
	require.Equal(t, 1, r.UsersOK)
	require.Equal(t, 0.5, r.TopShare)
	require.Equal(t, 1, r.TopRank)
	require.Nil(t, r.WithoutRefused)
}

// What a limiter refused at the time may or may not have been asked again: both
// bounds are told.
func TestAlreadyRefusedAttemptsGiveTwoBounds(t *testing.T) {
	var lines []string
	for range 5 {
		lines = append(lines, line("192.0.2.1", 0, 200), line("192.0.2.1", 0, 429))
	}
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines), ask(1, 4))
	require.NoError(t, err)
	require.EqualValues(t, 5, r.AlreadyRefused)
	require.EqualValues(t, 6, r.Rejected)
	require.EqualValues(t, 1, r.WithoutRefused.Rejected)
	require.Equal(t, 0.2, r.WithoutRefused.RejectedShare)
}

func TestFewerThanOneInAThousandIsOK(t *testing.T) {
	steady := func(n, extra int) []string { // one a minute, and extra ones at the first instant
		var lines []string
		for i := range n {
			lines = append(lines, line("192.0.2.1", i*60, 200))
			for j := 0; i == 0 && j < extra; j++ {
				lines = append(lines, line("192.0.2.1", 0, 200))
			}
		}
		return lines
	}
	for _, c := range []struct{ attempts, ok int }{{999, 0}, {1000, 0}, {1001, 1}} {
		r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, steady(c.attempts-1, 1)), ask(60, 1))
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Rejected)
		require.Equal(t, c.ok, r.UsersOK, "%d attempts", c.attempts)
	}
}

// Many allowances in one pass say what each alone says.
func TestGridIsManySingleReplays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(1, 200).Draw(t, "entries") {
			client := fmt.Sprintf("192.0.2.%d", rapid.IntRange(1, 5).Draw(t, "client"))
			lines = append(lines, line(client, rapid.IntRange(0, 120).Draw(t, "second"), rapid.SampledFrom([]int{200, 429}).Draw(t, "status")))
		}
		log := read(t, accesslog.Options{}, lines)
		q := replay.Question{Rates: []int64{10, 30, 600}, Bursts: []int64{1, 5}}
		grid, err := replay.Run(t.Context(), log, q)
		require.NoError(t, err)
		require.Nil(t, grid.Cell)
		for i, c := range grid.Cells {
			one, err := replay.Run(t.Context(), log, ask(c.Rate, c.Burst))
			require.NoError(t, err)
			require.Equal(t, *one.Cell, c)
			require.Equal(t, one.BurstNeeded[0], grid.BurstNeeded[i/2])
		}
	})
}

func TestWhatCannotBeAnswered(t *testing.T) {
	var lines, rewritten []string
	for i := range 150 {
		lines = append(lines, line("192.0.2.1", i, 200))
		rewritten = append(rewritten, line(fmt.Sprintf("192.0.2.%d", i), i%24*3600+5*60+i%60, 200))
	}
	log := read(t, accesslog.Options{}, lines)

	var refused *replay.RefusedError
	q := ask(10, 10)
	q.Concurrency = []int64{2}
	r, err := replay.Run(t.Context(), log, q)
	require.ErrorAs(t, err, &refused)
	require.EqualError(t, err, "the log has no durations, so nothing can be said on concurrency")
	require.Equal(t, err.Error(), r.Refused)
	require.EqualValues(t, 150, r.Entries)
	require.Equal(t, 1, r.Users)
	require.Nil(t, r.Cell)

	r, err = replay.Run(t.Context(), read(t, accesslog.Options{}, rewritten), ask(10, 10))
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "100.0 % of the entries carry one and the same minute of the hour over 23 h")
	require.Nil(t, r.Cell)

	for _, c := range []struct {
		name string
		log  *accesslog.Log
		q    replay.Question
		want string
	}{
		{"nothing asked", log, replay.Question{}, "an access log records no allowances"},
		{"no burst", log, replay.Question{Rates: []int64{1}}, "a rate and a burst are needed together"},
		{"no rate", log, replay.Question{Bursts: []int64{1}}, "a rate and a burst are needed together"},
		{"concurrency alone", log, replay.Question{Concurrency: []int64{1}}, "a rate and a burst are needed together"},
		{"zero", log, ask(0, 1), "requests-per-minute 0 is out of range: 1 to 1000000"},
		{"out of range", log, ask(1, 1_000_001), "burst 1000001 is out of range: 1 to 1000000"},
		{"nothing in scope", read(t, accesslog.Options{Scope: "/x"}, lines), ask(1, 1), "none of the 150 entries is an attempt below /x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := replay.Run(t.Context(), c.log, c.q)
			require.EqualError(t, err, c.want)
			require.NotErrorAs(t, err, &refused)
		})
	}
}

// A minute long is no constant minute, and neither is a handful of entries.
func TestShortLogIsNotTakenForARewrittenOne(t *testing.T) {
	var minute, handful []string
	for i := range 150 {
		minute = append(minute, line("192.0.2.1", 300+i%60, 200))
	}
	for hour := range 20 {
		handful = append(handful, line("192.0.2.1", hour*3600+300, 200))
	}
	for _, lines := range [][]string{minute, handful} {
		_, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines), ask(10, 10))
		require.NoError(t, err)
	}
}

func TestWarnings(t *testing.T) {
	lines := []string{line("192.0.2.250", 0, 200)}
	for i := range 500 {
		lines = append(lines, line(fmt.Sprintf("192.0.2.%d", i%4), i, 200))
	}
	r, err := replay.Run(t.Context(), read(t, accesslog.Options{}, lines), ask(10, 10))
	require.NoError(t, err)
	require.Equal(t, []string{"5 clients made 501 entries: these may be proxies, each of which merges many users into one pool"}, r.Warnings)

	named := []string{strings.Replace(line("192.0.2.1", 0, 200), "- -", "- alice", 1), line("192.0.2.7, 192.0.2.1", 1, 200)}
	r, err = replay.Run(t.Context(), read(t, accesslog.Options{}, named), ask(10, 10))
	require.NoError(t, err)
	require.Equal(t, []string{"1 entries name a user; the pool is the client address all the same"}, r.Warnings)
	require.Contains(t, strings.Join(r.Assumed, "\n"), "the last address that is no trusted proxy")
	require.Contains(t, strings.Join(r.Assumed, "\n"), "whether requests were received or finished at it is unknown")
	require.Equal(t, []string{"no durations, so nothing can be said on concurrency"}, r.Missing)
	for _, text := range append(r.Assumed, r.Warnings...) {
		require.NotContains(t, text, "192.0.2", "no address is ever told")
		require.NotContains(t, text, "alice")
	}
}
