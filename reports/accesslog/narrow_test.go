package accesslog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

func TestWhereKeepsAttemptsWithTheirDecisions(t *testing.T) {
	on := func(plan, user string, hold int64) func(*contract.LogEntry) {
		return func(e *contract.LogEntry) { e.Plan, e.User, e.Duration = plan, user, hold }
	}
	log := read(t, accesslog.Options{Scope: "/v1/invoice"},
		entry(t, "b", 2, on("pro", "u2", 22)),
		entry(t, "a", 1, on("free", "u1", 11)),
		entry(t, "outside", 3, func(e *contract.LogEntry) { e.Path, e.Plan = "/health", "pro" }),
		entry(t, "c", 4, on("pro", "u1", 44)),
	)
	require.Len(t, log.Attempts, 3)
	pro := log.Where(func(d accesslog.Decided) bool { return d.Plan == "pro" })
	require.Len(t, pro.Decided, 3)
	require.Equal(t, []accesslog.Attempt{log.Attempts[1], log.Attempts[2]}, pro.Attempts)
	require.Equal(t, []int64{22, 44}, pro.Holds)
	require.Equal(t, log.Pools, pro.Pools)
}

func TestRecognise(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) accesslog.Source {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return accesslog.File(path)
	}
	ours := entry(t, "a", 1, nil)
	for _, c := range []struct {
		name, text string
		want       record.LogFormat
		wrong      string
	}{
		{"access.log", good("192.0.2.1", 1) + "\n", record.FormatCommon, ""},
		{"cut.log", "half an entry\n\n" + good("192.0.2.1", 1), record.FormatCommon, ""},
		{"api.jsonl", ours + "\n", record.FormatAPI, ""},
		{"cut.jsonl", ours[20:] + "\n" + ours, record.FormatAPI, ""},
		{"other.json", `{"a":1}`, "", "not brimline's API log"},
		{"words.txt", "nothing\nat all\n", "", "no entries in 2 lines; accepted: "},
		{"empty", "", "", "no entries in 0 lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := accesslog.Recognise(t.Context(), file(c.name, c.text))
			require.Equal(t, c.want, got)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			require.ErrorContains(t, err, c.name)
		})
	}
	_, err := accesslog.Recognise(t.Context(), accesslog.File(folder))
	require.ErrorContains(t, err, "a folder, not a file")
}
