package accesslog_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

const (
	nginxLine   = `{"time_iso8601":"2026-03-02T09:00:01+01:00","msec":"1772438401.250","remote_addr":"198.51.100.7","remote_user":"-","request":"POST /v1/invoice/calculate HTTP/1.1","status":"429","request_time":"0.250","http_x_forwarded_for":"203.0.113.9, 10.0.0.5"}`
	caddyLine   = `{"level":"info","ts":1772438401.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"10.0.0.5","client_ip":"198.51.100.7","proto":"HTTP/1.1","method":"POST","host":"api.example","uri":"/v1/invoice/calculate","headers":{"User-Agent":["curl"]}},"user_id":"","duration":0.25,"size":120,"status":429}`
	traefikLine = `{"ClientAddr":"198.51.100.7:41234","ClientHost":"198.51.100.7","ClientUsername":"-","DownstreamStatus":429,"Duration":250000000,"OriginStatus":0,"RequestMethod":"POST","RequestPath":"/v1/invoice/calculate","StartUTC":"2026-03-02T08:00:01Z","level":"info","msg":""}`
	albLine     = `https 2026-03-02T08:00:01.250000Z app/api/50dc6c495c0c9188 198.51.100.7:41234 10.0.0.1:80 0.050 0.150 0.050 429 429 34 366 "POST https://api.example:443/v1/invoice/calculate HTTP/1.1" "curl/8.5.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:x "Root=1-58337262" "api.example" "arn:aws:acm:x" 1 2026-03-02T08:00:01.000000Z "forward" "-" "-"`
	cloudHead   = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query time-taken"
	cloudLine   = "2026-03-02\t08:00:01\tFRA2\t402\t198.51.100.7\tPOST\td1.example\t/v1/invoice/calculate\t429\t-\tcurl\t-\t0.250"
	envoyLine   = `[2026-03-02T08:00:01.000Z] "POST /v1/invoice/calculate HTTP/1.1" 429 RL 34 18 250 - "203.0.113.9, 198.51.100.7" "curl/8.5.0" "1f0e" "api.example" "-"`
)

// TestFormatsOfOthers: the same refused request of the same client at 08:00:01 as
// each server writes it, and a good one a second later.
func TestFormatsOfOthers(t *testing.T) {
	begin := time.Date(2026, 3, 2, 8, 0, 1, 0, time.UTC).UnixMicro()
	for _, c := range []struct {
		name   string
		text   string
		format record.LogFormat
		stamp  record.LogStamp
		at     int64
		fate   timeline.Fate
		coarse bool
	}{
		{"nginx", nginxLine, record.FormatNginxJSON, record.StampArrival, begin, timeline.RefusedSomehow, false},
		{"nginx by parts", strings.Replace(nginxLine, `"request":"POST /v1/invoice/calculate HTTP/1.1"`, `"request_method":"POST","request_uri":"/v1/invoice/calculate"`, 1), record.FormatNginxJSON, record.StampArrival, begin, timeline.RefusedSomehow, false},
		{"nginx with numbers", strings.NewReplacer(`"429"`, `429`, `"0.250"`, `0.25`, `"1772438401.250"`, `1772438401.25`).Replace(nginxLine), record.FormatNginxJSON, record.StampArrival, begin, timeline.RefusedSomehow, false},
		{"caddy", caddyLine, record.FormatCaddy, record.StampArrival, begin, timeline.RefusedSomehow, false},
		{"caddy with words", strings.NewReplacer(`1772438401.25`, `"2026/03/02 08:00:01.250"`, `"duration":0.25`, `"duration":"250ms"`).Replace(caddyLine), record.FormatCaddy, record.StampArrival, begin, timeline.RefusedSomehow, false},
		{"traefik", traefikLine, record.FormatTraefik, record.StampReceived, begin, timeline.RefusedSomehow, true},
		{"ALB", albLine, record.FormatALB, record.StampReceived, begin, timeline.RefusedSomehow, true},
		{"ALB of before", strings.TrimSuffix(albLine, ` 1 2026-03-02T08:00:01.000000Z "forward" "-" "-"`), record.FormatALB, record.StampReceived, begin, timeline.RefusedSomehow, true},
		{"CloudFront", cloudHead + "\n" + cloudLine, record.FormatCloudFront, record.StampArrival, begin - 250_000, timeline.RefusedSomehow, true},
		{"Envoy", envoyLine, record.FormatEnvoy, record.StampReceived, begin, timeline.RefusedRate, true},
		{"Envoy, refused upstream", strings.Replace(envoyLine, " RL ", " - ", 1), record.FormatEnvoy, record.StampReceived, begin, timeline.Passed, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := read(t, accesslog.Options{Scope: "/v1/invoice"}, c.text)
			q := log.Quality
			require.Equal(t, c.format, q.Format)
			require.Equal(t, c.stamp, q.Stamp)
			require.Equal(t, 1.0, q.Durations)
			require.Equal(t, !c.coarse, log.Durations, "stamps of whole seconds tell nothing of what was in flight")
			require.Equal(t, []string{"198.51.100.7"}, log.Names)
			require.Equal(t, []timeline.Attempt{{At: c.at, Hold: 250_000, Status: 429, Fate: c.fate}}, attempts(t, log))
			require.Equal(t, []record.Count{{Name: "POST", N: 1}}, q.Methods)
		})
	}
}

// TestStampsAreTakenAsSaid: what a format means by its stamps can be said otherwise.
func TestStampsAreTakenAsSaid(t *testing.T) {
	for stamp, want := range map[record.LogStamp]int64{record.StampReceived: 250_000, record.StampFinished: 0} {
		log := read(t, accesslog.Options{Stamp: stamp}, nginxLine)
		require.Equal(t, time.Date(2026, 3, 2, 8, 0, 1, 0, time.UTC).UnixMicro()+want, attempts(t, log)[0].At, stamp)
	}
}

// TestTrustedProxiesOfAFormat: a list of addresses is walked as the limiter walks it.
func TestTrustedProxiesOfAFormat(t *testing.T) {
	trusted := accesslog.Options{TrustedProxies: prefixes(t, "10.0.0.0/8,198.51.100.0/24")}
	require.Equal(t, []string{"203.0.113.9"}, read(t, trusted, nginxLine).Names)
	require.Equal(t, []string{"203.0.113.9"}, read(t, trusted, envoyLine).Names)
}

// TestTrailingDurations: only what can be told is taken.
func TestTrailingDurations(t *testing.T) {
	for _, c := range []struct {
		tail string
		unit accesslog.Unit
		want int64
	}{
		{" 0.125", "", 125_000},                             // nginx
		{" 125000", "", timeline.NoHold},                    // %D or %T: who knows
		{" 125000", accesslog.Microseconds, 125_000},        // %D
		{" 2", accesslog.Seconds, 2_000_000},                // %T
		{` 17 "router" "http://10.0.0.1" 12ms`, "", 12_000}, // Traefik
		{" -", accesslog.Microseconds, timeline.NoHold},
		{"", "", timeline.NoHold},
	} {
		log := read(t, accesslog.Options{Trailing: c.unit}, good("192.0.2.1", 0)+c.tail)
		require.Equal(t, c.want, attempts(t, log)[0].Hold, c.tail)
	}
}

// TestLinesOfOthersThatAreNone: a line that is broken is counted, and the first is
// shown with nothing of anybody in it.
func TestLinesOfOthersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name, first, bad, reason string
	}{
		{"nginx without escape=json", nginxLine, strings.Replace(nginxLine, "POST /v1", `POST "/v1`, 1), "invalid JSON"},
		{"nginx without a time", nginxLine, strings.NewReplacer("1772438401.250", "", "2026-03-02T09", "x").Replace(nginxLine), "invalid time"},
		{"nginx with an odd status", nginxLine, strings.Replace(nginxLine, `"429"`, `"4290"`, 1), "ends before a status"},
		{"caddy with another message", caddyLine, strings.Replace(caddyLine, `"request":{`, `"request":1,"x":{`, 1), "other fields than the format has"},
		{"caddy without a client", caddyLine, strings.NewReplacer(`"10.0.0.5"`, `""`, `"198.51.100.7"`, `""`).Replace(caddyLine), "no client"},
		{"traefik before 1970", traefikLine, strings.Replace(traefikLine, "2026-03-02T", "1926-03-02T", 1), "invalid time"},
		{"half an ALB line", albLine, albLine[:90], "ends before a status"},
		{"half a CloudFront line", cloudHead + "\n" + cloudLine, cloudLine[:20], "ends before a status"},
		{"half an Envoy line", envoyLine, envoyLine[:60], "ends before a status"},
		{"Envoy with no time", envoyLine, strings.Replace(envoyLine, "2026", "x", 1), "invalid time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := read(t, accesslog.Options{}, c.first, c.bad).Quality
			require.EqualValues(t, 1, q.Entries)
			require.EqualValues(t, 1, count(q.Dropped, c.reason), "%+v", q.Dropped)
			require.Len(t, q.Examples, 1)
			e := q.Examples[0]
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, "test.log", e.File)
			require.EqualValues(t, 2+strings.Count(c.first, "\n"), e.Line)
			require.NotRegexp(t, `[1-9b-zB-Z]`, strings.TrimSuffix(e.Looks, "..."))
		})
	}
}

func TestZstandard(t *testing.T) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	require.NoError(t, err)
	_, err = z.Write([]byte(strings.Repeat(good("192.0.2.7", 0)+"\n", 500)))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	path := writeFile(t, "access.log.zst", b.Bytes())
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(path)}, accesslog.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 500, log.Quality.Entries)
	require.True(t, log.Quality.Files[0].Compressed)

	cut := writeFile(t, "cut.log.zst", b.Bytes()[:b.Len()-9])
	_, err = accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(cut)}, accesslog.Options{})
	require.ErrorContains(t, err, "the compressed file ends before its end")
}

// TestManyPieces: lines keep their numbers, order and clients over the pieces that
// several read at the same time.
func TestManyPieces(t *testing.T) {
	var text strings.Builder
	const n = 40_000
	for i := range n {
		text.WriteString(good("192.0.2."+string(rune('0'+i%7)), i%3600) + "\n")
		if i == n/2 {
			text.WriteString("what is this\n")
		}
	}
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("x", strings.NewReader(text.String()))}, accesslog.Options{})
	require.NoError(t, err)
	requireAddsUp(t, log)
	require.EqualValues(t, n, log.Quality.Entries)
	require.Equal(t, 7, log.Pools)
	require.Equal(t, "192.0.2.0", log.Names[0])
	require.EqualValues(t, n/3600, log.Quality.BackwardSteps)
	require.EqualValues(t, n/2+2, log.Quality.Examples[0].Line)
}

// TestFilesInAnyOrder: rotated files make one log whatever order they are given in.
func TestFilesInAnyOrder(t *testing.T) {
	older, newer := good("192.0.2.1", 0)+"\n"+good("192.0.2.1", 5), good("192.0.2.1", 9)
	log, err := accesslog.Read(t.Context(), []accesslog.Source{
		accesslog.Stream("access.log", strings.NewReader(newer)), accesslog.Stream("access.log.1", strings.NewReader(older)),
	}, accesslog.Options{})
	require.NoError(t, err)
	require.Zero(t, log.Quality.BackwardSteps, "one file after another is no step back")
	list := attempts(t, log)
	require.Equal(t, []int64{5_000_000, 4_000_000}, []int64{list[1].At - list[0].At, list[2].At - list[1].At})
}

func TestMixedZonesAreCounted(t *testing.T) {
	q := read(t, accesslog.Options{}, good("a", 0), good("a", 1), strings.Replace(good("a", 2), "+0000", "-0330", 1)).Quality
	require.Equal(t, []record.Count{{Name: "+0000", N: 2}, {Name: "-0330", N: 1}}, q.Zones)
}
