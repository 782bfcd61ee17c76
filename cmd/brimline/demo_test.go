package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/examples"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// TestTourAnswersAllFourQuestions takes the tour with shorter traffic than
// "brimline demo" sends, and the part that starts anew twice.
func TestTourAnswersAllFourQuestions(t *testing.T) {
	var out, errs bytes.Buffer
	w := world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	demo := tour{t.TempDir(), []byte(shortLoad), w}
	hold := func(err error) {
		if err != nil {
			require.ErrorContains(t, err, "this machine was too slow", errs.String())
		}
	}
	hold(demo.take(t.Context()))
	text := out.String()
	require.Regexp(t, `\n(success|partial): \d+ pass`, text)
	require.NotContains(t, text, "✗")
	require.Regexp(t, `2\.0 s against 127\.0\.0\.1:\d+, seed 7: `, text)
	require.Regexp(t, `\n(\S+) of (\S+) decisions come out as recorded`, text)
	require.Contains(t, text, "Free: not enough evidence to raise to 20 a minute, burst 20\n")
	_, files, found := strings.Cut(text, "\nfiles to open, in ")
	require.True(t, found)
	for _, name := range []string{"report.html", "index.html", "conformance.json", "junit.xml", "summary.md", "run/run.json", "load.yaml", "api.jsonl", "access.log"} {
		require.Contains(t, files, name)
		require.FileExists(t, demo.path(name))
	}
	hold(demo.load(t.Context()))
	r, err := record.ReadRun(demo.path("run"))
	require.NoError(t, err)
	var sent int64
	for _, p := range r.Plans {
		sent += p.Sent
		require.Zero(t, p.RateJudged.Undue+p.ConcurrencyJudged.Undue, "the reference is right")
	}
	entries, err := os.ReadFile(demo.path("api.jsonl"))
	require.NoError(t, err)
	require.InDelta(t, sent, bytes.Count(entries, []byte("\n")), 10, "the log is of the second run, and of no other")
}

func TestExampleScenarioIsShort(t *testing.T) {
	s, err := traffic.Parse("load.yaml", examples.Load)
	require.NoError(t, err)
	require.LessOrEqual(t, s.Duration.Seconds(), 30.0)
}

// TestExampleTargetIsTheReference holds the example to what "brimline serve"
// writes for the server that its comment starts.
func TestExampleTargetIsTheReference(t *testing.T) {
	got, err := target.ReadFile("../../examples/target.yaml")
	require.NoError(t, err)
	s, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", Control: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	want := targetFile(s, server.Config{})
	require.Equal(t, []string{"http://127.0.0.1:8080"}, got.BaseURLs)
	require.Equal(t, "http://127.0.0.1:9091", got.Can.Control.URL)
	require.Equal(t, "brimline-control.token", filepath.Base(got.Can.Control.TokenFile))
	require.Equal(t, want.Allowances, got.Allowances)
	require.Equal(t, want.OutsideQuotas, got.OutsideQuotas)
	require.Equal(t, want.Credential, got.Credential)
	require.Equal(t, want.Operations.Valid.Body, got.Operations.Valid.Body)
	require.Equal(t, want.Operations.Invalid.Path, got.Operations.Invalid.Path)
}
