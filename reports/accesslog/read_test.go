package accesslog_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func prefixes(t *testing.T, list string) (ps []netip.Prefix) {
	t.Helper()
	for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		p, err := netip.ParsePrefix(text)
		require.NoError(t, err)
		ps = append(ps, p)
	}
	return ps
}

func zipped(t *testing.T, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, m := range members {
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(m))
		require.NoError(t, err)
		require.NoError(t, z.Close())
	}
	return b.Bytes()
}

func TestCompressedFilesAreToldByContent(t *testing.T) {
	plain := writeFile(t, "access.log.gz", []byte(good("192.0.2.7", 0)+"\n"))
	packed := writeFile(t, "access.log", zipped(t, good("192.0.2.7", 1)+"\n", good("192.0.2.8", 2)+"\n"))
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(plain), accesslog.File(packed)}, accesslog.Options{})
	require.NoError(t, err)
	require.Equal(t, []record.LogFile{
		{Name: plain, Lines: 1, Entries: 1}, {Name: packed, Compressed: true, Lines: 2, Entries: 2},
	}, log.Quality.Files)
}

func TestWhatCannotBeRead(t *testing.T) {
	whole := zipped(t, strings.Repeat(good("192.0.2.7", 0)+"\n", 1000))
	ours := `{"schema":1,"request_id":"a","received":"2026-01-02T03:04:05Z","outcome":"admitted"}`
	for _, c := range []struct {
		name    string
		sources []accesslog.Source
		want    string
	}{
		{"missing", []accesslog.Source{source(good("192.0.2.7", 0)), accesslog.File("nowhere.log")}, "nowhere.log: no such file or directory"},
		{"folder", []accesslog.Source{accesslog.File(t.TempDir())}, "a folder, not a file"},
		{"empty", []accesslog.Source{source("")}, "test.log: no entries: the log is empty"},
		{"nothing of use", []accesslog.Source{source("x", "", "y")}, "test.log: no entries in 3 lines, 1 blank, 2 no client and time at its start"},
		{"one of two without use", []accesslog.Source{source(good("192.0.2.7", 0)), accesslog.File(writeFile(t, "b", []byte("x\n")))}, "/b: no entries in 1 lines"},
		{"other JSON", []accesslog.Source{source(`{"level":"info","status":200}`)}, "test.log: line 1: JSON of no known kind; accepted: Common"},
		{"other schema", []accesslog.Source{source(strings.Replace(ours, ":1", ":2", 1))}, "test.log: line 1: API log of schema 2; accepted: 1"},
		{"two kinds of log", []accesslog.Source{source(good("192.0.2.7", 0)), accesslog.Stream("api.jsonl", strings.NewReader(ours))}, "api.jsonl: line 1: a log of the kind brimline-api-log does not make one log with test.log, of the kind common"},
		{"cut gzip", []accesslog.Source{accesslog.File(writeFile(t, "cut.gz", whole[:len(whole)-9]))}, "cut.gz: after "},
		{"broken gzip", []accesslog.Source{accesslog.File(writeFile(t, "bad.gz", []byte("\x1f\x8bnonsense")))}, "bad.gz: gzip: invalid header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := accesslog.Read(t.Context(), c.sources, accesslog.Options{})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := accesslog.Read(ctx, []accesslog.Source{source(good("192.0.2.7", 0))}, accesslog.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// The beginning of a rotated file can be the rest of an entry.
func TestFormatIsToldByTheFirstLineThatTells(t *testing.T) {
	q := read(t, accesslog.Options{}, `1" 200 51 "-" "curl/8.5.0"`, good("192.0.2.7", 0)).Quality
	require.EqualValues(t, 1, q.Entries)
	q = read(t, accesslog.Options{}, `"charged":0}`, `{"schema":1,"request_id":"a","received":"2026-01-02T03:04:05Z","outcome":"unauthenticated","status":401}`).Quality
	require.Equal(t, record.FormatAPI, q.Format)
}

func TestFormats(t *testing.T) {
	head := `192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] "GET / HTTP/1.1" 200 51`
	for _, c := range []struct {
		name, rest string
		want       record.LogFormat
		extra      int64
	}{
		{"common", ``, record.FormatCommon, 0},
		{"combined", ` "-" "curl/8.5.0"`, record.FormatCombined, 0},
		{"combined with quotes inside", ` "-" "a \"quoted\" agent \\"`, record.FormatCombined, 0},
		{"combined and one more field", ` "-" "-" "curl/8.5.0"`, record.FormatCombined, 1},
		{"combined without an end", ` "-" "curl`, record.FormatCombined, 1},
		{"one quoted field", ` "-"`, record.FormatCombined, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := read(t, accesslog.Options{}, head+c.rest).Quality
			require.Equal(t, c.want, q.Format)
			require.Equal(t, c.extra, q.Extra)
			require.EqualValues(t, 1, q.Entries)
		})
	}
}

func TestRequestLine(t *testing.T) {
	for _, c := range []struct {
		name, request string
		inScope       bool // of /v1/invoice
		malformed     int64
	}{
		{"plain", `GET /v1/invoice/7 HTTP/1.1`, true, 0},
		{"the prefix itself", `GET /v1/invoice HTTP/1.1`, true, 0},
		{"the prefix with a slash", `POST /v1/invoice/ HTTP/2.0`, true, 0},
		{"the prefix with a query", `GET /v1/invoice?x=1 HTTP/1.1`, true, 0},
		{"no segment boundary", `GET /v1/invoicex HTTP/1.1`, false, 0},
		{"elsewhere", `GET /health HTTP/1.1`, false, 0},
		{"the prefix in a query", `GET /x?y=/v1/invoice/ HTTP/1.1`, false, 0},
		{"absolute target", `GET http://api.example/v1/invoice/7 HTTP/1.1`, true, 0},
		{"absolute target without path", `GET http://api.example HTTP/1.1`, false, 0},
		{"a URL in a query", `GET /x?u=http://api.example/v1/invoice/7 HTTP/1.1`, false, 0},
		{"quote that is escaped", `GET /v1/invoice/\" HTTP/1.1`, true, 0},
		{"quote that is not", `GET /v1/invoice/"x HTTP/1.1`, true, 0},
		{"escaped quote before what looks like a status", `GET /v1/invoice/\" 200 HTTP/1.1`, true, 0},
		{"backslash at the end of an odd request", `GET /v1/invoice/7 \`, false, 1},
		{"no protocol", `GET /v1/invoice/7`, false, 1},
		{"lower case", `get /v1/invoice/7 HTTP/1.1`, false, 1},
		{"no target", `GET HTTP/1.1`, false, 1},
		{"nothing but spaces", `   `, false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := `192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] "` + c.request + `" 200 51`
			log := read(t, accesslog.Options{Scope: "/v1/invoice/"}, line)
			require.Equal(t, c.malformed, log.Quality.Malformed)
			require.Equal(t, c.inScope, len(attempts(t, log)) == 1)
			require.Len(t, attempts(t, read(t, accesslog.Options{}, line)), 1, "every entry is an attempt without a scope")
		})
	}
}

func TestScopeOfEverythingLeavesOutMalformedRequests(t *testing.T) {
	log := read(t, accesslog.Options{Scope: "/"}, good("192.0.2.7", 0), `192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] "" 400 0`)
	require.Len(t, attempts(t, log), 1)
	require.EqualValues(t, 1, count(log.NotAttempts, "out of scope"))
}

// Servers that stamp the arrival write in the order of the end.
func TestEntriesAreSortedStably(t *testing.T) {
	log := read(t, accesslog.Options{}, good("a", 5), good("b", 3), good("c", 5), good("d", 3), good("e", 4))
	require.EqualValues(t, 2, log.Quality.BackwardSteps)
	var order []uint32
	for _, a := range attempts(t, log) {
		order = append(order, a.Pool)
	}
	require.Equal(t, []uint32{1, 3, 4, 0, 2}, order)
	require.EqualValues(t, 2, log.Quality.MostPerSecond)
	require.Equal(t, 0.8, log.Quality.TieShare)

	var lines []string
	for i := range 200 {
		lines = append(lines, good(fmt.Sprintf("192.0.2.%d", i), 1-i%2))
	}
	for i, a := range attempts(t, read(t, accesslog.Options{}, lines...)) {
		require.EqualValues(t, (2*i+1)%200-i/100, a.Pool)
	}
}

func TestQuality(t *testing.T) {
	q := read(t, accesslog.Options{}, good("a", 0), good("a", 0), good("a", 59), good("b", 60), good("b - bob", 600),
		strings.Replace(good("c", 3599), "GET", "PROPFIND", 1)).Quality
	require.Equal(t, 3, q.Clients)
	require.Equal(t, 2.0, q.EntriesPerClient)
	require.InDelta(t, 36.0/14, q.EffectiveClients, 1e-12)
	require.EqualValues(t, 3, q.BusiestEntries)
	require.Equal(t, time.Date(2022, 10, 4, 4, 59, 59, 0, time.UTC), q.Last)
	require.Equal(t, 2999.0, q.LargestGap)
	require.Equal(t, 0.5, q.ConstantMinute)
	require.EqualValues(t, 1e6, q.ResolutionMicros)
	require.Equal(t, []record.Count{{Name: "GET", N: 5}, {Name: "other", N: 1}}, q.Methods)
}
