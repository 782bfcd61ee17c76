package record_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// three is a contract of three clauses.
func three(id string) bool { return slices.Contains([]string{"HDR-5", "RATE-1", "ERR-4"}, id) }

func TestParseKnownFailing(t *testing.T) {
	list, err := record.ParseKnownFailing("known.txt", []byte("# ours\r\n\nHDR-5 # rounds down | until 2027\r\n\tRATE-1\t#\nERR-4"), three)
	require.NoError(t, err)
	require.Equal(t, []record.KnownFailing{{"HDR-5", "rounds down | until 2027"}, {"RATE-1", ""}, {"ERR-4", ""}}, list)

	list, err = record.ParseKnownFailing("known.txt", nil, three)
	require.NoError(t, err, "all of it was mended")
	require.Empty(t, list)
}

func TestKnownFailingRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, says string }{
		"an unknown clause":  {"HDR-5\nHDR-55 # x\n", `known.txt:2: there is no clause "HDR-55"`},
		"another case":       {"hdr-5", `known.txt:1: there is no clause "hdr-5"`},
		"a clause twice":     {"HDR-5\n\n# x\nHDR-5 # again", "known.txt:4: HDR-5 is in line 1 already"},
		"two in a line":      {"HDR-5 RATE-1", `known.txt:1: got "HDR-5 RATE-1"; accepted: one clause a line`},
		"two and a comma":    {"HDR-5,RATE-1", "one clause a line"},
		"no text":            {"HDR-5 # \x1b[31m", "known.txt:1: something in it does not print"},
		"no UTF-8":           {"HDR-5 # \xff", "known.txt:1: something in it does not print"},
		"an endless reason":  {"HDR-5 # " + strings.Repeat("x", 301), "known.txt:1: the reason has more than 300 characters"},
		"more than any list": {strings.Repeat("#\n", record.MaxKnownFailing), "known.txt: more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.ParseKnownFailing("known.txt", []byte(tc.text), three)
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestReadKnownFailing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known.txt")
	_, err := record.ReadKnownFailing(path, three)
	require.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte("X"), 0o600))
	_, err = record.ReadKnownFailing(path, three)
	require.ErrorContains(t, err, path+":1: ")
}

func TestWithKnown(t *testing.T) {
	list := []record.KnownFailing{{"HDR-5", "rounds down"}}
	partly := is("HDR-5", record.Pass)
	partly.Scenarios = append(partly.Scenarios, record.Scenario{Verdict: record.NotRun, Reason: "not selected"})
	beyond := is("HDR-5", record.Pass)
	beyond.Scenarios = append(beyond.Scenarios, record.Scenario{Verdict: record.NotRun, OutOfReach: true})
	for name, tc := range map[string]struct {
		found   record.Clause
		verdict record.Verdict
		result  record.Result
		untold  int
	}{
		"fails as listed":         {is("HDR-5", record.Fail), record.KnownFails, record.ResultPartial, 0},
		"kept":                    {is("HDR-5", record.Pass), record.Stale, record.ResultFailure, 0},
		"kept as far as in reach": {beyond, record.Stale, record.ResultFailure, 0},
		"kept, some left out":     {partly, record.Pass, record.ResultSuccess, 1},
		"differs":                 {is("HDR-5", record.Differs), record.Differs, record.ResultSuccess, 0},
		"inconclusive":            {is("HDR-5", record.Inconclusive), record.Inconclusive, record.ResultPartial, 1},
		"not run":                 {is("HDR-5", record.NotRun), record.NotRun, record.ResultPartial, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := record.Conformance{Clauses: []record.Clause{is("RATE-1", record.Pass), tc.found}}
			got := c.WithKnown(list)
			require.Equal(t, tc.verdict, got.Clauses[1].Verdict)
			require.Equal(t, tc.result, got.Result)
			require.Len(t, got.UntoldKnown(), tc.untold)
			require.Equal(t, record.Of(got.Clauses), got.Counts)
			require.Equal(t, tc.found.Verdict, c.Clauses[1].Verdict, "the run it was made of stays as it is")
		})
	}
	c := record.Conformance{Clauses: []record.Clause{is("HDR-5", record.Fail), is("RATE-1", record.Fail)}}.WithKnown(list)
	require.Equal(t, record.ResultFailure, c.Result, "RATE-1 was not known")
	require.Equal(t, "rounds down", c.Clauses[0].Reason)
}

// FuzzParseKnownFailing looks for lists that crash, whose error is not one line
// that names the list, or that hold a clause twice or one that does not exist.
func FuzzParseKnownFailing(f *testing.F) {
	for _, seed := range []string{"", "HDR-5 # x\nRATE-1\r\n", "#", "HDR-5#HDR-5", "HDR-5\nHDR-5", "\x00", "ERR-4 # ✓ | `x`"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := record.ParseKnownFailing("known.txt", data, three)
		if err != nil {
			require.Regexp(t, `^known\.txt:(\d+:)? [^\n]+$`, err.Error())
			return
		}
		seen := map[string]bool{}
		for _, k := range list {
			require.True(t, three(k.Clause))
			require.False(t, seen[k.Clause])
			require.NotContains(t, k.Reason, "\n")
			seen[k.Clause] = true
		}
	})
}
