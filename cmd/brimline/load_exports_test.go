package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/invoicespec/brimline/loadgen/spool"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// TestLoadLeavesALineForEachRequest: rows and vegeta's results tell the same as
// the record, and no key.
func TestLoadLeavesALineForEachRequest(t *testing.T) {
	site := openLoadSite(t, server.Config{Control: "127.0.0.1:0"}, nil)
	code, out, errs := site.load(t.Context(), t, shortLoad, "--rows", "--vegeta")
	requireMeasured(t, code, errs)
	require.Contains(t, out, filepath.Join(site.dir, "run", record.RowsFile)+"  ")
	r := site.record(t)
	require.Equal(t, []record.RunExport{
		{File: record.RowsFile, Rows: r.Generator.Results}, {File: spool.VegetaFile, Rows: r.Generator.Results},
	}, r.Exports)

	f, err := os.Open(filepath.Join(site.dir, "run", record.RowsFile))
	require.NoError(t, err)
	defer f.Close()
	byUser, undue := map[string]record.RunUser{}, int64(0)
	head, err := record.ReadRows(f, func(row record.Row) error {
		u := byUser[row.User]
		u.Sent++
		switch row.Outcome {
		case record.OutcomeAdmitted:
			u.Admitted++
		case record.OutcomeRejectedRate:
			u.RejectedRate++
		}
		byUser[row.User] = u
		if row.Verdict == "undue" {
			undue++
		}
		require.Equal(t, "valid", row.Operation)
		require.LessOrEqual(t, row.DueUS, row.SentUS)
		require.LessOrEqual(t, row.SentUS, row.DoneUS)
		return nil
	})
	require.NoError(t, err)
	require.True(t, r.Started.Equal(head.Started))
	require.Zero(t, undue)
	for _, u := range r.Users {
		got := byUser[u.User]
		require.Equal(t, []int64{u.Sent, u.Admitted, u.RejectedRate}, []int64{got.Sent, got.Admitted, got.RejectedRate}, u.User)
	}

	text, err := os.ReadFile(filepath.Join(site.dir, "run", spool.VegetaFile))
	require.NoError(t, err)
	require.NotRegexp(t, apiKey, string(text))
	require.NotContains(t, string(text), "free-00", "no user")
	g, err := os.Open(filepath.Join(site.dir, "run", spool.VegetaFile))
	require.NoError(t, err)
	defer g.Close()
	decode, m := vegeta.DecoderFor(g), vegeta.Metrics{}
	require.NotNil(t, decode)
	for range r.Generator.Results {
		var result vegeta.Result
		require.NoError(t, decode(&result))
		require.Regexp(t, `^http://127\.0\.0\.1:\d+/v1/invoice/calculate$`, result.URL)
		m.Add(&result)
	}
	m.Close()
	admitted := int64(0)
	for _, p := range r.Plans {
		admitted += p.Admitted
	}
	require.EqualValues(t, admitted, m.StatusCodes["200"])

	require.NoError(t, os.Remove(filepath.Join(site.dir, "run", record.RunFile)))
	code, _, errs = site.load(t.Context(), t, shortLoad, "--rows")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "rows.jsonl.zst of an earlier run is there")
	require.NoFileExists(t, filepath.Join(site.dir, "run", record.RunFile))
}
