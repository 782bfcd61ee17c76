package reassess_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

// erddap weighs the access log of a production data API, which is not part of
// this repository, as if its clients were allowed so much.
func erddap(t *testing.T, rate, burst int64) record.Report {
	t.Helper()
	folder := os.Getenv("BRIMLINE_DATA")
	if folder == "" {
		t.Skip("BRIMLINE_DATA is unset: it names the folder that holds erddap/access.log.gz")
	}
	return weighed(t, reassess.Options{Allowance: &record.ReportAllowance{RequestsPerMinute: rate, Burst: burst}},
		filepath.Join(folder, "erddap", "access.log.gz"))
}

// weighed reads the inputs and weighs them by the usual rules, but for evidence
// that these require.
func weighed(t *testing.T, opt reassess.Options, paths ...string) record.Report {
	t.Helper()
	e, err := reassess.Read(t.Context(), reassess.Files(paths...), accesslog.Options{})
	require.NoError(t, err)
	opt.Brimline = "test"
	if opt.Gates.Rules.Draws == 0 {
		opt.Gates.Rules = reassess.Rules()
		opt.Gates.Rules.Required = nil
	}
	r, err := e.Report(t.Context(), opt)
	require.NoError(t, err)
	return r
}

// Figures of this log that were found by other means.
func TestERDDAP(t *testing.T) {
	r := erddap(t, 10, 10)
	require.Equal(t, "8dd3b980dae999397ab2d022bbd434a30614bf983dd5c87eb8e99a2b7d5e0fc4", r.Inputs[0].SHA256)
	require.EqualValues(t, 218_526, r.Inputs[0].Bytes)
	require.Len(t, r.Plans, 1)
	p := r.Plans[0]
	require.Equal(t, reassess.Everybody, p.Plan)
	require.Equal(t, record.Raise, p.Verdict.Word)
	require.Equal(t, "raise to 20 a minute, burst 20", p.Verdict.Headline)
	require.Equal(t, []string{
		"At today's 10/10, 1.85 % of its clients (17 of 917, 95 % interval 1.16–2.95 %) meet a 429 in 9 days of traffic; at 20/20 it would be 0.33 % (3).",
		"The number of rejections is one client's story: it makes 62 % of them.",
		"With the burst in another proportion to the rate it would take 45/22 or 45/15.",
	}, p.Verdict.Because)
	require.Equal(t, 14, p.Verdict.Moved)
	require.Len(t, p.Scores, 1)
	s := p.Scores[0]
	require.Equal(t, record.BasisReplayed, s.Basis)
	require.Equal(t, 900, s.UsersOK.N)
	require.EqualValues(t, 3_292, s.Rejected)
	require.InDelta(t, 4.57, s.EffectiveUsers, 0.005)
	require.InDelta(t, 0.62, *s.TopShare, 0.0005)
	require.Nil(t, s.RejectedShare95)
	require.Equal(t, 9, p.WhatIf.Days)

	kept := erddap(t, 20, 20).Plans[0]
	require.Equal(t, record.Keep, kept.Verdict.Word)
	require.Equal(t, record.KeepGoalMet, kept.Verdict.Keep)
	require.Nil(t, kept.Verdict.LookAt, "15/15 is not enough")
}

// A burst of a third of the rate: the rule gives 45/15.
func TestERDDAPByAThird(t *testing.T) {
	v := erddap(t, 30, 10).Plans[0].Verdict
	require.Equal(t, [2]int64{45, 15}, [2]int64{v.Target.Rate, v.Target.Burst})
	require.Equal(t, 914, v.Target.UsersOK)
}
