package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// whole is a result as a file has it.
func whole(t *testing.T) string {
	t.Helper()
	data, err := json.MarshalIndent(complete(), "", "  ")
	require.NoError(t, err)
	return string(data)
}

func TestParseConformance(t *testing.T) {
	got, err := record.ParseConformance([]byte(whole(t)))
	require.NoError(t, err)
	require.Equal(t, complete(), got)
	require.True(t, strings.HasSuffix(whole(t), "}\n}"), "the totals come last")
}

func TestParseConformanceRefuses(t *testing.T) {
	text := whole(t)
	edited := func(old, new string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, new, 1)
	}
	var noTotals map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &noTotals))
	delete(noTotals, "totals")
	without, err := json.Marshal(noTotals)
	require.NoError(t, err)
	for name, tc := range map[string]struct{ text, says string }{
		"nothing":             {"", "unexpected end of JSON input"},
		"cut":                 {text[:len(text)/2], "line "},
		"no footer":           {string(without), "not a whole result: missing totals"},
		"another schema":      {edited("brimline.conformance/1", "brimline.conformance/2"), `schema is "brimline.conformance/2", want "brimline.conformance/1"`},
		"another file":        {`{"schema":"brimline.run/1"}`, `schema is "brimline.run/1"`},
		"a list":              {`[]`, "line 1"},
		"no clauses":          {edited(`"clauses": [`, `"clauses": [], "was": [`), "no clause is in it"},
		"a finding too few":   {edited(`"findings": 1`, `"findings": 2`), "cut or edited: it says it holds 1 clauses, 1 scenarios, 2 findings, and holds 1 clauses, 1 scenarios, 1 findings"},
		"a verdict mended":    {edited(`"verdict": "fail"`, `"verdict": "pass"`), "its counts are not those of its clauses"},
		"a result mended":     {edited(`"result": "failure"`, `"result": "success"`), `its result is "success"`},
		"an unknown verdict":  {edited(`"verdict": "fail"`, `"verdict": "skipped"`), `HDR-5: there is no verdict "skipped"`},
		"a word for a number": {edited(`"duration_ms": 1`, `"duration_ms": "1"`), "accepted: a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.ParseConformance([]byte(tc.text))
			require.ErrorContains(t, err, tc.says)
		})
	}
	twice := complete()
	twice.Clauses = append(twice.Clauses, twice.Clauses[0])
	require.ErrorContains(t, twice.Summed().Check(), "HDR-5 is in it twice")
}

func TestReadConformance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.json")
	_, err := record.ReadConformance(path)
	require.ErrorContains(t, err, path)
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	_, err = record.ReadConformance(path)
	require.ErrorContains(t, err, path+`: schema is "", want`)
	require.NoError(t, os.WriteFile(path, []byte(whole(t)), 0o600))
	_, err = record.ReadConformance(path)
	require.NoError(t, err)
}

// FuzzParseConformance looks for texts that crash, or that are taken and are not
// the same once they are written again.
func FuzzParseConformance(f *testing.F) {
	data, err := json.Marshal(complete())
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"schema":"brimline.conformance/1"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := record.ParseConformance(data)
		if err != nil {
			return
		}
		require.NoError(t, c.Check())
		again, err := json.Marshal(c)
		require.NoError(t, err)
		got, err := record.ParseConformance(again)
		require.NoError(t, err)
		require.Equal(t, c, got)
	})
}

func TestAgainst(t *testing.T) {
	decided := func(v record.Verdict) record.Clause {
		c := is("RATE-1", v)
		c.Level = "DECIDED"
		return c
	}
	for name, tc := range map[string]struct {
		was, is record.Clause
		kind    record.ChangeKind
	}{
		"kept and kept":                {is("RATE-1", record.Pass), is("RATE-1", record.Stale), ""},
		"broken":                       {is("RATE-1", record.Pass), is("RATE-1", record.Fail), record.NewlyFailing},
		"broken where nobody looked":   {is("RATE-1", record.NotRun), is("RATE-1", record.Fail), record.NewlyFailing},
		"known by now":                 {is("RATE-1", record.Fail), is("RATE-1", record.KnownFails), ""},
		"no longer listed":             {is("RATE-1", record.KnownFails), is("RATE-1", record.Fail), ""},
		"mended":                       {is("RATE-1", record.KnownFails), is("RATE-1", record.Stale), record.Mended},
		"judged":                       {is("RATE-1", record.SetupFailed), is("RATE-1", record.Pass), record.NewlyJudged},
		"lost":                         {is("RATE-1", record.Fail), is("RATE-1", record.Inconclusive), record.NoLongerJudged},
		"open then and now":            {is("RATE-1", record.NotRun), is("RATE-1", record.Inconclusive), ""},
		"settled otherwise":            {decided(record.Pass), decided(record.Differs), record.NewlyDiffers},
		"settled so":                   {decided(record.Differs), decided(record.Pass), record.Mended},
		"judged strictly now":          {decided(record.Differs), decided(record.Fail), ""},
		"settled otherwise, as judged": {decided(record.NotRun), decided(record.Fail), record.NewlyDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			old := record.Conformance{Clauses: []record.Clause{tc.was}}
			now := record.Conformance{Clauses: []record.Clause{tc.is}}.Against(old)
			if tc.kind == "" {
				require.Empty(t, now.Changes.List)
				return
			}
			require.Equal(t, []record.Change{{Clause: "RATE-1", Kind: tc.kind, Was: tc.was.Verdict, Is: tc.is.Verdict}}, now.Changes.List)
			require.Contains(t, record.ChangeKinds(), tc.kind)
		})
	}

	old := record.Conformance{Clauses: []record.Clause{is("OLD-1", record.Pass), is("OLD-2", record.NotRun)}}
	now := record.Conformance{Clauses: []record.Clause{is("NEW-1", record.Pass)}}.Against(old)
	require.Equal(t, []record.Change{
		{Clause: "NEW-1", Kind: record.NewlyJudged, Was: record.NotRun, Is: record.Pass},
		{Clause: "OLD-1", Kind: record.NoLongerJudged, Was: record.Pass, Is: record.NotRun, Reason: "this suite does not know it"},
	}, now.Changes.List, "a clause that one of the suites did not know")

	old = record.Conformance{Clauses: []record.Clause{is("RATE-1", record.Pass), is("RATE-2", record.Pass)}}
	now = record.Conformance{Selected: []string{"RATE-2"}, Clauses: []record.Clause{is("RATE-1", record.NotRun), is("RATE-2", record.NotRun)}}.Against(old)
	require.Equal(t, []record.Change{
		{Clause: "RATE-2", Kind: record.NoLongerJudged, Was: record.Pass, Is: record.NotRun},
	}, now.Changes.List, "the other was not asked for")
}
