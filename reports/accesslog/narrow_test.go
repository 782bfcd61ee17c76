package accesslog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

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
		{"other.json", `{"a":1}`, "", "JSON of no known kind"},
		{"words.txt", "nothing\nat all\n", "", "no entries in 2 lines; accepted: "},
		{"empty", "", "", "no entries in 0 lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := accesslog.Recognise(t.Context(), file(c.name, c.text), accesslog.Options{})
			require.Equal(t, c.want, got)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			require.ErrorContains(t, err, c.name)
		})
	}
	_, err := accesslog.Recognise(t.Context(), accesslog.File(folder), accesslog.Options{})
	require.ErrorContains(t, err, "a folder, not a file")
}
