package reassess_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

// erddap weighs the access log of a production data API, which is not part of
// this repository, on the assumption that its clients are allowed so much.
func erddap(t *testing.T, rate, burst int64) record.Report {
	t.Helper()
	folder := os.Getenv("BRIMLINE_DATA")
	if folder == "" {
		t.Skip("BRIMLINE_DATA is unset: it names the folder that holds erddap/access.log.gz")
	}
	e, err := reassess.Read(t.Context(), []string{filepath.Join(folder, "erddap", "access.log.gz")}, accesslog.Options{})
	require.NoError(t, err)
	r, err := e.Report(reassess.Options{Brimline: "test", Rules: reassess.Rules(), Allowance: &record.ReportAllowance{RequestsPerMinute: rate, Burst: burst}})
	require.NoError(t, err)
	return r
}

func TestDump(t *testing.T) {
	r := erddap(t, 10, 10)
	j, _ := json.MarshalIndent(r.Plans[0].Verdict, "", " ")
	t.Log(string(j))
	j, _ = json.MarshalIndent(r.Plans[0].Gates, "", " ")
	t.Log(string(j))
	j, _ = json.MarshalIndent(r.Plans[0].Evidence, "", " ")
	t.Log(string(j))
	j, _ = json.MarshalIndent(r.Plans[0].Scores, "", " ")
	t.Log(string(j))
	r = erddap(t, 30, 10)
	j, _ = json.MarshalIndent(r.Plans[0].Verdict, "", " ")
	t.Log(string(j))
}
