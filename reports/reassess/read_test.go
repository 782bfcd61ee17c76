package reassess_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

func TestReadRecognises(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, week(1, 200))
	require.NoError(t, z.Close())
	dir := runFolder(t, "free", 0)
	renamed, err := os.ReadFile(filepath.Join(dir, record.RunFile))
	require.NoError(t, err)
	another := strings.Replace(string(renamed), `"seed":7`, `"seed":8`, 1)
	first, second := file(t, "access.log", week(2, 200)), file(t, "access.log.1.gz", packed.String())
	r := weighed(t, reassess.Options{}, dir, first, file(t, "old-run.json", another), second,
		file(t, "api.jsonl", apiLog(t, decided{user: "u1", outcome: "admitted", rate: 10, burst: 10})))
	var kinds []record.InputKind
	for _, in := range r.Inputs {
		kinds = append(kinds, in.Kind)
	}
	require.Equal(t, []record.InputKind{record.InputRun, record.InputAccessLog, record.InputRun, record.InputAccessLog, record.InputAPILog}, kinds)
	require.EqualValues(t, 8, r.Runs[1].Seed)
	require.EqualValues(t, packed.Len(), r.Inputs[3].Bytes, "what the file has, not what is in it")
	require.Len(t, r.Logs[0].Log.Files, 2, "two files, one log")
	for _, p := range r.Plans {
		if p.Plan == reassess.Everybody {
			require.Equal(t, first+", "+second, p.WhatIf.Source)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	log := file(t, "access.log", week(1, 200))
	again := filepath.Join(t.TempDir(), "again.log")
	require.NoError(t, os.Link(log, again))
	sound := runFolder(t, "free", 0)
	text, err := os.ReadFile(filepath.Join(sound, record.RunFile))
	require.NoError(t, err)
	folder := func(old, new string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, record.RunFile), []byte(strings.Replace(string(text), old, new, 1)), 0o600))
		return dir
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, week(1, 200))
	require.NoError(t, z.Close())
	zipped := file(t, "access.log.gz", packed.String())
	for name, c := range map[string]struct {
		paths []string
		wrong string
	}{
		"nothing there":        {[]string{"/nonexistent/x"}, "/nonexistent/x: no such file or directory; accepted: a folder that brimline load left"},
		"twice":                {[]string{log, again}, again + ": given twice, first as " + log},
		"no run in a folder":   {[]string{t.TempDir()}, "a folder without run.json or capacity.json"},
		"a report":             {[]string{file(t, "report.json", `{"schema":"brimline.report/1"}`)}, `"brimline.report/1" is no record of traffic: an earlier report is given with --against`},
		"a run of the future":  {[]string{file(t, "run.json", `{"a":[1],"schema":"brimline.run/2"}`)}, `schema is "brimline.run/2"`},
		"figures that do not":  {[]string{folder(`"offered":9`, `"offered":8`)}, "run.json: plan free: planned and what became of it do not add up"},
		"an empty run":         {[]string{folder(string(text), `{"schema":"brimline.run/1"}`)}, "run.json: not a whole run: missing brimline, started, interrupted, planned_ms, actual_ms, scenario, target, plans, users, generator, limits, untold"},
		"a run cut out":        {[]string{folder(`"latency":`, `"tardiness":`)}, "run.json: not a whole run: missing plans[0].latency"},
		"no JSON":              {[]string{folder(string(text), "{\n  bad}\n")}, "run.json: line 2, byte 3: invalid character 'b'"},
		"words for figures":    {[]string{folder(`"seed":7`, `"seed":"x"`)}, "scenario.seed: got a string"},
		"a list":               {[]string{folder(string(text), "[]")}, "run.json: line 1, byte 1: got a list; accepted: an object"},
		"nothing in it":        {[]string{folder(string(text), "")}, "run.json: line 1, byte 1: unexpected end of JSON input"},
		"a log and its gzip":   {[]string{log, zipped}, zipped + ": holds the same lines as " + log + ", which would count twice"},
		"a run and its copy":   {[]string{sound, folder("", "")}, ": holds the same as " + sound + ", which would count twice"},
		"no log":               {[]string{file(t, "notes.txt", "words\n")}, "no entries in 1 lines"},
		"other JSON":           {[]string{file(t, "x.json", `{"level":"info"}`)}, "JSON of no known kind"},
		"cut JSON":             {[]string{file(t, "x.json", `{"schema`)}, "no entries"},
		"a log that turns out": {[]string{file(t, "x.log", strings.SplitAfter(week(0, 200), "\n")[0]+apiLog(t, decided{user: "u"}))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := reassess.Read(t.Context(), reassess.Files(c.paths...), accesslog.Options{})
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			require.ErrorContains(t, err, c.paths[len(c.paths)-1])
		})
	}
}
