package accesslog_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
)

// FuzzRead puts any bytes between two good lines: whatever they are, reading
// ends, totals add up and no line is lost.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		good("192.0.2.7", 0),
		good("2001:db8::1, 198.51.100.4, 10.0.0.5 127.0.0.1", 0),
		good("example.test:443 [2001:db8::1]:443", 0),
		` "curl/7.54.0"`,
		`203.0.113.9 - - [04/Oct/2022:04:34:49 +0200] "" 400 0 "-" "-"`,
		`203.0.113.9 - - [04/Oct/2022:04:34:49 +101800] "\x16\x03" 099`,
		`a - - [99/Xyz/9999:99:99:99 -9999] "GET / HTTP/1.1" - -`,
		"[[[/\"\\\"\x00\xff\n\r\n,,, ,[",
		`{"schema":1,"request_id":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, middle []byte) {
		text := []byte(good("192.0.2.1", 0) + "\n")
		text = append(text, middle...)
		text = append(text, "\n"+good("192.0.2.2", 9)+"\n"...)
		log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("x", bytes.NewReader(text))}, accesslog.Options{Scope: "/v1"})
		require.NoError(t, err)
		requireAddsUp(t, log)
		require.EqualValues(t, bytes.Count(text, []byte("\n")), log.Quality.Lines)
		require.GreaterOrEqual(t, log.Quality.Entries, int64(2))
		for i, list := 1, attempts(t, log); i < len(list); i++ {
			require.LessOrEqual(t, list[i-1].At, list[i].At)
		}
	})
}

// FuzzReadAPILog does the same to a log of our own.
func FuzzReadAPILog(f *testing.F) {
	f.Add([]byte(`{"schema":1,"request_id":"b","received":"2026-01-02T03:04:05Z","outcome":"admitted","user":"u","decision":{"order":18446744073709551615,"instant_us":-9223372036854775808,"outcome":"rate","level":9223372036854775807}}`))
	f.Add([]byte(`{"schema":1,"request_id":"b","received":"9999-01-02T03:04:05Z","outcome":"rejected","decision":{"order":1,"outcome":"concurrency"}}`))
	f.Add([]byte("{\n}\n{"))
	first := `{"schema":1,"request_id":"a","received":"2026-01-02T03:04:05Z","outcome":"unauthenticated","status":401}` + "\n"
	f.Fuzz(func(t *testing.T, rest []byte) {
		log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("x", bytes.NewReader(append([]byte(first), rest...)))}, accesslog.Options{})
		require.NoError(t, err)
		requireAddsUp(t, log)
	})
}

// FuzzReadAnything takes any bytes for a whole file, compressed ones included.
func FuzzReadAnything(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add([]byte(good("192.0.2.7", 0)))
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("x", bytes.NewReader(text))}, accesslog.Options{})
		if err == nil {
			requireAddsUp(t, log)
		} else if errors.Is(err, accesslog.ErrNothing) {
			require.Nil(t, log)
		}
	})
}
