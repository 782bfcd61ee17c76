package accesslog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

const csvMapping = `lines: csv
separator: ";"
time: { field: when, is: finished, format: "2006-01-02 15:04:05.000", zone: Europe/Berlin }
user: account
status: code
duration: { field: took, unit: ms }
method: verb
path: url
error-code: error
`

func mapping(t *testing.T, text string) *accesslog.Mapping {
	t.Helper()
	m, err := accesslog.ParseMapping("map.yaml", []byte(text))
	require.NoError(t, err)
	return m
}

func TestMappedCSV(t *testing.T) {
	log := read(t, accesslog.Options{Mapping: mapping(t, csvMapping), Scope: "/v1"},
		"\xef\xbb\xbfwhen;account;code;took;verb;url;error;more",
		"2026-03-02 09:00:01.250;acme;429.0;250;POST;/v1/invoice;CONCURRENCY_LIMIT_EXCEEDED;x",
		`2026-03-02 09:00:02.000;"a;b";200;1000;POST;/v1/invoice;;`,
		"2026-03-02 09:00:02.000;-;200;1;POST;/v1/invoice;;",
		"2026-03-02 09:00:02.000;acme;200",
		"yesterday;acme;200;1;POST;/v1/invoice;;",
	)
	begin := time.Date(2026, 3, 2, 8, 0, 1, 0, time.UTC).UnixMicro()
	require.Equal(t, []timeline.Attempt{
		{At: begin, Hold: 250_000, Pool: 0, Status: 429, Fate: timeline.RefusedConcurrency},
		{At: begin, Hold: 1_000_000, Pool: 1, Status: 200},
	}, attempts(t, log))
	require.Equal(t, []string{"acme", "a;b"}, log.Names)
	require.Equal(t, record.FormatMapped, log.Quality.Format)
	require.Equal(t, []record.Count{
		{Name: "heading", N: 1}, {Name: "invalid time", N: 1}, {Name: "no client", N: 1}, {Name: "other fields than the format has", N: 1},
	}, log.Quality.Dropped)
}

func TestMappedJSON(t *testing.T) {
	m := mapping(t, "lines: json\ntime: { field: ts, is: received, format: unix-ms }\nclient: ip\nforwarded: via\n")
	log := read(t, accesslog.Options{Mapping: m, TrustedProxies: prefixes(t, "10.0.0.0/8")},
		`{"ts":1772438401250,"ip":"10.0.0.1","via":"203.0.113.9, 10.0.0.2"}`, `{"ts":"1772438401250","ip":"198.51.100.7"}`, `{"ts":-1,"ip":"x"}`, `[`)
	require.Equal(t, []string{"203.0.113.9", "198.51.100.7"}, log.Names)
	at := time.Date(2026, 3, 2, 8, 0, 1, 250_000_000, time.UTC).UnixMicro()
	require.Equal(t, at, attempts(t, log)[0].At)
	require.EqualValues(t, 1e3, log.Quality.ResolutionMicros)
	require.EqualValues(t, 1, count(log.Quality.Dropped, "invalid JSON"))
	require.EqualValues(t, 1, count(log.Quality.Dropped, "invalid time"))
}

func TestMappingsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"lines":             {"lines: csv", "lines: xml", `map.yaml:1: lines: got "xml"; accepted: csv, tsv, json`},
		"separator":         {`";"`, `";;"`, "map.yaml:2: separator: "},
		"meaning":           {"is: finished", "is: sent", `map.yaml:3: time.is: got "sent"; accepted: received, finished`},
		"unit":              {"unit: ms", "unit: minutes", `map.yaml:6: duration.unit: got "minutes"; accepted: s, ms, us, ns`},
		"zone":              {"Europe/Berlin", "Mars/Base", `map.yaml:3: time.zone: "Mars/Base" is no zone`},
		"layout":            {"2006-01-02 15:04:05.000", "YYYY-MM-DD", `map.yaml:3: time.format: "YYYY-MM-DD" tells no day and time; accepted: rfc3339`},
		"nobody":            {"user: account\n", "", "neither client nor user is given"},
		"path and no verb":  {"method: verb\n", "", "path is given, and the method is not"},
		"a key that is not": {"method: verb", "verb: method", "map.yaml:7: verb: unknown key"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, csvMapping, c.from)
			_, err := accesslog.ParseMapping("map.yaml", []byte(strings.Replace(csvMapping, c.from, c.to, 1)))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// A log that the mapping does not fit is said to be none, with what is accepted.
func TestMappingThatDoesNotFit(t *testing.T) {
	_, err := accesslog.Read(t.Context(), []accesslog.Source{source("a;b;c", "1;2;3")}, accesslog.Options{Mapping: mapping(t, csvMapping)})
	require.ErrorIs(t, err, accesslog.ErrNothing)
}

// FuzzMapped puts any bytes between two good lines of each kind of mapped log.
func FuzzMapped(f *testing.F) {
	f.Add([]byte(`2026-03-02 09:00:01.250;"a;429.0;250`))
	f.Add([]byte(`{"ts":1e400,"ip":[],"via":{}}`))
	f.Fuzz(func(t *testing.T, middle []byte) {
		heading := "when;account;code;took;verb;url;error"
		line := "2026-03-02 09:00:01.250;acme;429;250;POST;/v1/invoice;"
		log, err := accesslog.Read(t.Context(), []accesslog.Source{source(heading, line, string(middle), line)}, accesslog.Options{Mapping: mapping(t, csvMapping)})
		require.NoError(t, err)
		requireAddsUp(t, log)
		require.GreaterOrEqual(t, log.Quality.Entries, int64(2))
	})
}

// FuzzFormats puts any bytes after a good line of every format.
func FuzzFormats(f *testing.F) {
	all := []string{nginxLine, caddyLine, traefikLine, albLine, cloudHead + "\n" + cloudLine, envoyLine}
	for i, line := range all {
		f.Add(i, []byte(line))
		f.Add(i, []byte(strings.ToUpper(line)))
	}
	f.Fuzz(func(t *testing.T, which int, rest []byte) {
		first := all[uint(which)%uint(len(all))]
		log, err := accesslog.Read(t.Context(), []accesslog.Source{source(first, string(rest))}, accesslog.Options{Scope: "/v1"})
		require.NoError(t, err)
		requireAddsUp(t, log)
		require.GreaterOrEqual(t, log.Quality.Entries, int64(1))
	})
}
