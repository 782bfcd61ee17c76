package replay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/replay"
)

// FuzzRun takes any bytes for a log, also one whose records no server can have
// written: nothing crashes, and what is counted adds up.
func FuzzRun(f *testing.F) {
	const entry = `{"schema":1,"request_id":"a","received":"2026-01-02T03:04:05Z","outcome":"admitted","user":"u","duration_us":9223372036854775807,"decision":{"order":1,"instant_us":-9223372036854775808,"outcome":"admitted","requests_per_minute":10,"burst":10,"concurrency":2,"level":9223372036854775807}}`
	f.Add([]byte(entry))
	f.Add([]byte(entry + "\n" + `{"schema":1,"request_id":"b","received":"0001-01-02T03:04:05Z","outcome":"rejected","user":"u","decision":{"order":2,"instant_us":9223372036854775807,"outcome":"rate","requests_per_minute":1000000,"burst":1,"concurrency":1}}`))
	f.Add([]byte(line("192.0.2.1", 0, 200) + "\n" + line("192.0.2.1", 0, 429)))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("x", bytes.NewReader(text))}, accesslog.Options{})
		if err != nil {
			return
		}
		for _, q := range []replay.Question{{}, ask(1, 1), {Rates: []int64{1_000_000}, Bursts: []int64{1_000_000}, Concurrency: []int64{1}}} {
			r, err := replay.Run(t.Context(), log, q)
			if err != nil {
				continue
			}
			require.Equal(t, r.Rejected, r.RejectedRate+r.RejectedConcurrency)
			require.LessOrEqual(t, r.Rejected, r.Attempts)
			require.LessOrEqual(t, r.UsersAffected+r.UsersOK, 2*r.Users)
			if a := r.Agreement; a != nil {
				require.Equal(t, a.Compared, a.Agreed+a.Disagreed+a.Untold)
				require.Equal(t, a.Disagreed > 0, a.First != nil)
			}
		}
	})
}
