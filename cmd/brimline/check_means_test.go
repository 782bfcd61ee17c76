package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// site is the example of commands and queries around a server of this office:
// where its target file is.
func (o office) site(t *testing.T, alter func(billing string) string) string {
	t.Helper()
	dir := t.TempDir()
	// The program is this test binary, in an environment that says so.
	program := filepath.Join(dir, "brimline")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+asProcess+"=1 exec '"+os.Args[0]+"' \"$@\"\n"), 0o700))
	t.Setenv("BRIMLINE", program)
	t.Setenv("BRIMLINE_DATABASE_URL", o.url)
	t.Setenv("BRIMLINE_KEY_SECRET_FILE", o.secret)
	for name, change := range map[string]func(string) string{
		"billing": alter,
		"target.yaml": func(text string) string {
			text = regexp.MustCompile(`(?m)^  (starter|plus|enterprise): .*\n`).ReplaceAllString(text, "") // two plans show as much as five
			return strings.Replace(text, "http://127.0.0.1:8080", o.serve(t.TempDir()).url, 1)
		},
	} {
		text, err := os.ReadFile(filepath.Join("../../examples/commands", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(change(string(text))), 0o700))
	}
	return filepath.Join(dir, "target.yaml")
}

func asItIs(text string) string { return text }

// judged is what check says of clauses.
func judged(t *testing.T, path string, clauses ...string) (record.Conformance, int) {
	t.Helper()
	code, out, errs := runCheckIn(t, os.LookupEnv, "--target", path, "--clauses", strings.Join(clauses, ","), "--json")
	var c record.Conformance
	require.NoError(t, json.Unmarshal([]byte(out), &c), "%s%s", out, errs)
	require.NotContains(t, out+errs, "isk_free_0", "no key is shown")
	return c, code
}

func verdictOf(t *testing.T, c record.Conformance, id string) record.Clause {
	t.Helper()
	for _, cl := range c.Clauses {
		if cl.ID == id {
			return cl
		}
	}
	t.Fatalf("no clause %s", id)
	return record.Clause{}
}

// broken is what was found not to be kept.
func broken(c record.Conformance) (all []record.Clause) {
	for _, cl := range c.Clauses {
		if cl.Verdict == record.Fail {
			all = append(all, cl)
		}
	}
	return all
}

// The whole way: a deployment that speaks no control protocol is judged on what
// takes plans, overrides, keys, operations and its log.
func TestCheckByCommandsAndQueries(t *testing.T) {
	path := openOffice(t).site(t, asItIs)
	c, code := judged(t, path, "CHG-1", "OVR-2")
	require.NotEqual(t, exitFails, code, "%+v", broken(c))
	require.Zero(t, c.Counts.Untrue)
	// On a busy machine the database falls silent now and then, which the server
	// answers with a 503: a scenario that met one tells nothing, another does.
	for _, id := range []string{"CHG-1", "OVR-2"} {
		require.True(t, slices.ContainsFunc(verdictOf(t, c, id).Scenarios, func(s record.Scenario) bool { return s.Verdict == record.Pass }), "%+v", verdictOf(t, c, id))
	}
	require.Subset(t, c.Target.Offers, []string{"policy", "operations", "audit"})
}

// Commands that do nothing and say yes are the target file's fault: no clause of
// the deployment's is broken by them.
func TestCheckByCommandsThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(string) string
		want  string
	}{
		"to everybody": {func(string) string { return "#!/bin/sh\nexit 0\n" }, "can.commands.make-user: what it printed: the JSON text ends too early"},
		"about a plan": {func(text string) string {
			const change = `admin plan change --end-period-now -- "$2" "$3"`
			return strings.Replace(text, change, `admin user show -- "$2" >&2; case $3 in brimline*) exit 1;; esac`, 1)
		}, "can.commands.set-plan: it says that it is done, and plan "},
	} {
		t.Run(name, func(t *testing.T) {
			path := openOffice(t).site(t, c.alter)
			code, out, errs := runCheckIn(t, os.LookupEnv, "--target", path, "--clauses", "CHG-1", "--json")
			require.Equal(t, exitUsage, code, "%s%s", out, errs)
			require.Contains(t, out+errs, c.want)
			if out != "" {
				var got record.Conformance
				require.NoError(t, json.Unmarshal([]byte(out), &got))
				require.Zero(t, got.Counts.Fail)
				require.Equal(t, record.Untrue, verdictOf(t, got, "CHG-1").Verdict)
				require.Equal(t, record.ResultPartial, got.Result)
			}
		})
	}
}
