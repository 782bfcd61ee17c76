package accesslog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// good is a line of Combined format in the given second of an hour.
func good(client string, second int) string {
	return fmt.Sprintf(`%s - - [04/Oct/2022:04:%02d:%02d +0000] "GET /v1/invoice/7 HTTP/1.1" 200 51 "-" "curl/8.5.0"`, client, second/60, second%60)
}

func read(t *testing.T, opt accesslog.Options, lines ...string) *accesslog.Log {
	t.Helper()
	log, err := accesslog.Read(t.Context(), []accesslog.Source{source(lines...)}, opt)
	require.NoError(t, err)
	requireAddsUp(t, log)
	return log
}

func source(lines ...string) accesslog.Source {
	return accesslog.Stream("test.log", strings.NewReader(strings.Join(lines, "\n")))
}

// attempts are the log's attempts in order.
func attempts(t require.TestingT, log *accesslog.Log) []timeline.Attempt {
	list := []timeline.Attempt{}
	for batch, err := range log.Attempts.Batches(context.Background()) {
		require.NoError(t, err)
		list = append(list, batch...)
	}
	return list
}

// requireAddsUp checks that every line and every entry went somewhere once.
func requireAddsUp(t require.TestingT, log *accesslog.Log) {
	q := log.Quality
	require.Equal(t, q.Lines, q.Entries+total(q.Dropped))
	require.Equal(t, q.Entries, total(q.Statuses))
	require.Equal(t, q.Entries, total(q.Methods))
	require.Equal(t, q.Entries, log.Attempts.Len()+total(log.NotAttempts))
	var lines, entries int64
	for _, f := range q.Files {
		lines, entries = lines+f.Lines, entries+f.Entries
	}
	require.Equal(t, [2]int64{q.Lines, q.Entries}, [2]int64{lines, entries})
	for _, a := range attempts(t, log) {
		require.Less(t, int(a.Pool), log.Pools)
	}
	require.Len(t, log.Names, log.Pools)
}

func total(list []record.Count) (n int64) {
	for _, c := range list {
		n += c.N
	}
	return n
}

func count(list []record.Count, name string) int64 {
	for _, c := range list {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}
