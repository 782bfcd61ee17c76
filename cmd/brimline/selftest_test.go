package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// A self-test leaves the kill table for machines, in its published form, and for
// people; on every kind of target.
func TestSelfTestLeavesTheKillTable(t *testing.T) {
	for _, kind := range record.Settings() {
		t.Run(string(kind), func(t *testing.T) {
			dir := t.TempDir()
			code, stdout, stderr := runCheck(t, "--self-test", "--clauses", "ERR-1,ANON-3", "--on", string(kind), "--out", dir)
			out := filepath.Join(dir, "selftest.json")
			var st record.SelfTest
			require.NoError(t, json.Unmarshal([]byte(textOf(t, out)), &st))
			requireSelfTestSchema(t, textOf(t, out))
			require.Equal(t, kind, st.Setting)
			page := textOf(t, filepath.Join(dir, "selftest.md"))
			for _, f := range st.Faults {
				require.Contains(t, page, "| `"+f.Name+"` | "+f.Clause+" |")
				require.Contains(t, stdout, f.Name)
				if f.Clause == "ERR-1" {
					require.True(t, f.Caught, f.Name)
				}
			}
			require.Contains(t, stdout, out)
			if kind == record.PlainHTTP { // the validation of a key cannot be held there
				require.Equal(t, exitFails, code, stderr)
				require.Contains(t, stdout, "not caught: nothing to run: the target is out of reach for all of it: needs hold-auth")
				return
			}
			require.Equal(t, exitHolds, code, stderr)
		})
	}
}

func requireSelfTestSchema(t *testing.T, text string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/selftest.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(doc))
	extra, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text, `"caught"`, `"cought"`, 1)))
	require.NoError(t, err)
	require.Error(t, schema.Validate(extra))
}

// With --whole others than the scenarios of its clause say what they noticed.
func TestSelfTestOfTheWholeSuite(t *testing.T) {
	noticed := func(args ...string) int {
		code, stdout, stderr := runCheck(t, append([]string{"--self-test", "--clauses", "HDR-2", "--json"}, args...)...)
		require.Equal(t, exitHolds, code, stderr)
		var st record.SelfTest
		require.NoError(t, json.Unmarshal([]byte(stdout), &st))
		return len(st.Faults[0].By)
	}
	require.Greater(t, noticed("--whole"), noticed())
}

func TestSelfTestRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"an unknown kind":       {[]string{"--self-test", "--on", "paper"}, `--on: got "paper"; accepted: moved-clock, real-clock, plain-http`},
		"a kind of no target":   {[]string{"--on", "real-clock"}, "--whole and --on go with --self-test"},
		"the whole of no suite": {[]string{"--whole"}, "--whole and --on go with --self-test"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := runCheck(t, tc.args...)
			require.Equal(t, exitUsage, code)
			require.Contains(t, stderr, tc.says)
		})
	}
}
