package accesslog_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// Each test here is a public report of another log reader; the comment names it.

// vectordotdev/vrl#226, vectordotdev/vector#14710: lines of bots are lost.
func TestMalformedRequestIsKeptWithClientTimeAndStatus(t *testing.T) {
	log := read(t, accesslog.Options{},
		`203.0.113.9 - - [04/Oct/2022:04:34:49 +0200] "" 400 0 "-" "-"`,
		`203.0.113.10 - - [04/Oct/2022:04:34:50 +0200] "\x16\x03\x01\x02\x00\x01" 400 150 "-" "-"`,
		"203.0.113.11 - - [04/Oct/2022:04:34:51 +0200] \"\x16\x03\x01 \xff\" 400 150",
		`203.0.113.12 - - [04/Oct/2022:04:34:52 +0200] "-" 408 -`,
	)
	require.Empty(t, log.Quality.Dropped)
	require.EqualValues(t, 4, log.Quality.Malformed)
	require.Equal(t, 4, log.Pools)
	require.EqualValues(t, 3, count(log.Quality.Statuses, "400"))
	require.EqualValues(t, 1, count(log.Quality.Statuses, "408"))
	require.Equal(t, time.Date(2022, 10, 4, 2, 34, 49, 0, time.UTC), log.Quality.First)
}

// kassner/log-parser#58, Songmu/axslogparser#17: one odd line ends the run.
func TestOddLineDoesNotEndTheReading(t *testing.T) {
	var lines []string
	for i := range 500 {
		lines = append(lines, good("192.0.2.7", i))
	}
	lines = append(lines, `192.0.2.8 - - [04/Oct/2022:04:08:20 +0000] "MGLNDD_192.0.2.1_80" 400 150 "-" "-"`, `what is this`, "\x00\x01\xff", "")
	for i := range 500 {
		lines = append(lines, good("192.0.2.7", 500+i))
	}
	q := read(t, accesslog.Options{}, lines...).Quality
	require.EqualValues(t, 1001, q.Entries)
	require.EqualValues(t, 1, q.Malformed)
	require.EqualValues(t, 2, count(q.Dropped, "no client and time at its start"))
	require.EqualValues(t, 1, count(q.Dropped, "blank"))
}

// kassner/log-parser#23: the method is the first word, the protocol the last.
func TestRawSpaceInTarget(t *testing.T) {
	line := `192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] "GET /index.php?x=a b HTTP/1.1" 404 0`
	log := read(t, accesslog.Options{Scope: "/index.php"}, line)
	require.Zero(t, log.Quality.Malformed)
	require.Len(t, attempts(t, log), 1)
	require.EqualValues(t, 1, count(log.Quality.Methods, "GET"))
}

// allinurl/goaccess#1758, #2719, #1784, #720.
func TestClient(t *testing.T) {
	const list = "2001:db8::1, 198.51.100.4, 10.0.0.5 127.0.0.1"
	for name, c := range map[string]struct {
		host    string
		same    string // as the client of this host
		trusted string
	}{
		"address and port":                       {"198.51.100.11:42918", "198.51.100.11", ""},
		"bracketed address and port":             {"[2001:db8::1]:443", "2001:db8::1", ""},
		"brackets alone":                         {"[2001:db8::1]", "2001:db8::1", ""},
		"virtual host in front":                  {"example.test:443 198.51.100.11:42918", "198.51.100.11", ""},
		"virtual host and IPv6 in front":         {"example.test:443 [2001:db8::1]:9", "2001:db8::1", ""},
		"other spelling of an IPv6 address":      {"2001:DB8:0:0::0001", "2001:db8::1", ""},
		"zone":                                   {"fe80::1%eth0", "fe80::1", ""},
		"IPv4 written as IPv6":                   {"::ffff:198.51.100.11", "198.51.100.11", ""},
		"name and port":                          {"client.example.net:80", "client.example.net", ""},
		"list: the peer, when no proxy is known": {list, "127.0.0.1", ""},
		"list: the nearest that is no proxy":     {list, "10.0.0.5", "127.0.0.0/8"},
		"list: proxies skipped from the right":   {list, "198.51.100.4", "127.0.0.0/8,10.0.0.0/8"},
		"list: all of them proxies":              {"10.0.0.6, 10.0.0.5 10.0.0.1", "10.0.0.1", "10.0.0.0/8"},
		"list: no address passed over":           {"198.51.100.4, unknown 10.0.0.1", "198.51.100.4", "10.0.0.0/8"},
		"list without spaces":                    {"198.51.100.4,10.0.0.5", "10.0.0.5", ""},
		"list with ports":                        {"198.51.100.4:1, [::ffff:10.0.0.5]:2 127.0.0.1:3", "198.51.100.4", "127.0.0.0/8,10.0.0.0/8"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := accesslog.Options{TrustedProxies: prefixes(t, c.trusted)}
			log := read(t, opt, good(c.same, 0), good(c.host, 1))
			require.Len(t, attempts(t, log), 2)
			require.Equal(t, 1, log.Pools, "%s is not the client of %s", c.same, c.host)
		})
	}

	t.Run("a name that begins like an address is a name", func(t *testing.T) {
		log := read(t, accesslog.Options{}, good("203.0.113.13", 0), good("203.0.113.13.scanner.example.net", 1))
		require.Equal(t, 2, log.Pools)
	})
	t.Run("nobody is no client", func(t *testing.T) {
		q := read(t, accesslog.Options{}, good("203.0.113.13", 0), good("-", 1), good(strings.Repeat("a", 256), 2)).Quality
		require.EqualValues(t, 2, count(q.Dropped, "no client"))
	})
}

// cockroachdb/copyist#2, trentm/go-ecslog#7, kazeburo/mackerel-plugin-axslog#11:
// a line over 64 KiB ends the reading, sometimes without an error.
func TestLongLines(t *testing.T) {
	long := func(n int) string {
		return strings.Replace(good("192.0.2.9", 1), "/v1/", "/"+strings.Repeat("x", n)+"/", 1)
	}
	const mib = 1 << 20
	for _, c := range []struct {
		name          string
		size          int
		kept, dropped int64
	}{
		{"70,000 bytes", 70_000, 3, 0},
		{"as long as the read buffer", 256 << 10, 3, 0},
		{"nearly the limit", mib - 200, 3, 0},
		{"just over the limit", mib, 2, 1},
		{"2 million bytes", 2_000_000, 2, 1},
		{"10 million bytes", 10_000_000, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, end := range []string{"\n", "\r\n"} {
				text := strings.Join([]string{good("192.0.2.8", 0), long(c.size), good("192.0.2.8", 2)}, end)
				log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("x", strings.NewReader(text))}, accesslog.Options{})
				require.NoError(t, err)
				requireAddsUp(t, log)
				require.Equal(t, c.kept, log.Quality.Entries)
				require.Equal(t, c.dropped, count(log.Quality.Dropped, "longer than 1 MiB"))
			}
		})
	}
	t.Run("one after another", func(t *testing.T) {
		other := strings.Replace(long(300_000), "192.0.2.9", "192.0.2.10", 1)
		require.Equal(t, 2, read(t, accesslog.Options{}, long(300_000), other).Pools)
	})
	t.Run("as the last line", func(t *testing.T) {
		q := read(t, accesslog.Options{}, good("192.0.2.8", 0), long(2_000_000)).Quality
		require.EqualValues(t, 1, count(q.Dropped, "longer than 1 MiB"))
	})
}

// vozlt/nginx-module-vts#186: 499 is counted under 3xx. Here every status is
// itself, and 429 alone marks an attempt as refused.
func TestStatuses(t *testing.T) {
	var lines []string
	statuses := []string{"099", "100", "299", "429", "499", "599", "600", "999"}
	for _, s := range append(statuses, "-") {
		lines = append(lines, strings.Replace(good("192.0.2.7", 0), " 200 ", " "+s+" ", 1))
	}
	log := read(t, accesslog.Options{}, lines...)
	for _, s := range append(statuses, "none") {
		require.EqualValues(t, 1, count(log.Quality.Statuses, s), s)
	}
	var refused int
	for _, a := range attempts(t, log) {
		if a.Refused() {
			refused++
		}
	}
	require.Equal(t, 1, refused)

	for _, s := range []string{"20", "2000", "2x0", "", "+20"} {
		q := read(t, accesslog.Options{}, good("192.0.2.7", 0), strings.Replace(good("192.0.2.7", 0), " 200 ", " "+s+" ", 1)).Quality
		require.EqualValues(t, 1, count(q.Dropped, "ends before a status"), s)
	}
}

// owasp-modsecurity/ModSecurity#423: a zone of half an hour.
func TestZones(t *testing.T) {
	at := func(stamp string) *accesslog.Log {
		return read(t, accesslog.Options{}, good("192.0.2.7", 0), strings.Replace(good("192.0.2.8", 0), "04/Oct/2022:04:00:00 +0000", stamp, 1))
	}
	for stamp, want := range map[string]time.Time{
		"05/May/2020:21:25:27 +0000": time.Date(2020, 5, 5, 21, 25, 27, 0, time.UTC),
		"05/May/2020:21:25:27 +0530": time.Date(2020, 5, 5, 15, 55, 27, 0, time.UTC),
		"05/May/2020:21:25:27 -0330": time.Date(2020, 5, 6, 0, 55, 27, 0, time.UTC),
		"05/May/2020:21:25:27 +1030": time.Date(2020, 5, 5, 10, 55, 27, 0, time.UTC),
		"29/Feb/2020:23:59:60 -1200": time.Date(2020, 3, 1, 12, 0, 0, 0, time.UTC), // a leap second
	} {
		t.Run(stamp, func(t *testing.T) { require.Equal(t, want, at(stamp).Quality.First) })
	}
	for _, stamp := range []string{
		"05/May/2020:21:25:27 +101800", "05/May/2020:21:25:27 +1060", "05/May/2020:21:25:27 +9900", "05/May/2020:21:25:27",
		"05/May/2020:21:25:27 0000", "05/May/2020:21:25:27 *0000", "05/May/2020:24:00:00 +0000", "05/May/2020:21:60:00 +0000",
		"30/Feb/2020:21:25:27 +0000", "05/Mai/2020:21:25:27 +0000", "05/May/1969:21:25:27 +0000", "05/May/2020:2a:25:27 +0000",
		"05/May/2020:21-25-27 +0000", "", "-",
	} {
		t.Run("invalid "+stamp, func(t *testing.T) {
			log := at(stamp)
			require.EqualValues(t, 1, log.Quality.Entries)
			require.EqualValues(t, 1, total(log.Quality.Dropped))
		})
	}
}

// The hour that a clock goes through twice: the zone tells the two apart, and
// entries end up in the order of their time.
func TestFoldedHour(t *testing.T) {
	stamp := func(s string) string {
		return strings.Replace(good("192.0.2.7", 0), "04/Oct/2022:04:00:00 +0000", s, 1)
	}
	q := read(t, accesslog.Options{},
		stamp("30/Oct/2022:02:30:00 +0200"), stamp("30/Oct/2022:02:10:00 +0100"), stamp("30/Oct/2022:02:40:00 +0100")).Quality
	require.Zero(t, q.BackwardSteps)
	require.Equal(t, 70*time.Minute, q.Last.Sub(q.First))
}

// allinurl/goaccess#1952: the total is not what was kept and what was not. The
// helper read checks it in every test; here with something of everything.
func TestTotalsAddUp(t *testing.T) {
	q := read(t, accesslog.Options{Scope: "/v1/invoice"},
		good("192.0.2.7", 0),
		"",
		` "curl/7.54.0"`,
		`192.0.2.7 - - [04/Oct/2022:04:00:00 +9900] "GET / HTTP/1.1" 200 1`,
		`192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] "GET / HT`,
		`192.0.2.7 - - [04/Oct/2022:04:00:00 +0000]`,
		`192.0.2.7 - - [04/Oct/2022:04:00:00 +0000`,
		`- - - [04/Oct/2022:04:00:00 +0000] "GET / HTTP/1.1" 200 1`,
		`192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] "GET / HTTP/1.1" 200 1`,
	).Quality
	require.Equal(t, []record.Count{
		{Name: "blank", N: 1}, {Name: "no client and time at its start", N: 1}, {Name: "invalid time", N: 2},
		{Name: "ends before a status", N: 2}, {Name: "no client", N: 1},
	}, q.Dropped)
	require.EqualValues(t, 2, q.Entries)
}

// allinurl/goaccess#334, #608: a file that is read twice is counted twice.
func TestFileGivenTwice(t *testing.T) {
	path := writeFile(t, "access.log", []byte(good("192.0.2.7", 0)))
	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	_, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(path), accesslog.File(link)}, accesslog.Options{})
	require.ErrorContains(t, err, "given twice")
	other := writeFile(t, "access.log.1", []byte(good("192.0.2.7", 1)))
	_, err = accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(path), accesslog.File(other), accesslog.File(path)}, accesslog.Options{})
	require.ErrorContains(t, err, "given twice")
}

// A log beside its rotated copy: what is in both counts once, so neither is read.
func TestSameLinesUnderTwoNames(t *testing.T) {
	text := good("192.0.2.7", 1) + "\n" + good("192.0.2.8", 2) + "\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	stream := func(name, text string) accesslog.Source { return accesslog.Stream(name, strings.NewReader(text)) }
	for name, c := range map[string]struct{ first, second string }{
		"packed":                      {text, packed.String()},
		"packed first":                {packed.String(), text},
		"other ends of lines":         {text, strings.ReplaceAll(text, "\n", "\r\n")},
		"without the end of the last": {text, strings.TrimSuffix(text, "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := accesslog.Read(t.Context(), []accesslog.Source{stream("a.log", c.first), stream("b.log", good("192.0.2.9", 3)), stream("a.log.gz", c.second)}, accesslog.Options{})
			require.EqualError(t, err, "a.log.gz: holds the same lines as a.log, which would count twice")
		})
	}
	_, err = accesslog.Read(t.Context(), []accesslog.Source{stream("a.log", text), stream("empty.1", ""), stream("empty.2", ""), stream("longer.log", text+good("192.0.2.8", 3))}, accesslog.Options{})
	require.NoError(t, err, "what only begins alike is another log, and nothing counts twice of nothing")
}
