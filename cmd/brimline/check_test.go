package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// runCheck runs "brimline check" and returns its exit code and outputs.
func runCheck(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runCheckIn(t, noEnvironment, args...)
}

// runCheckIn is runCheck in an environment.
func runCheckIn(t *testing.T, getenv func(string) (string, bool), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"check"}, args...), world{
		getenv: getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// checkSite starts a server on a frozen clock and leaves its target file. A
// fault's name makes it wrong.
func checkSite(t *testing.T, name string) string {
	t.Helper()
	cfg := server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: wire.ClockFrozen, Users: 1,
		Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix(proxiesOnLoopback)}},
	}
	if name != "" {
		f, err := fault.ByName(name)
		require.NoError(t, err)
		cfg.Alter = f.Apply
	}
	s, err := server.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	path := filepath.Join(t.TempDir(), "target.yaml")
	u := s.Users()[0]
	keys := []target.Key{{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(u.Keys[0].Reveal())}}
	require.NoError(t, target.Write(path, targetFile(s, cfg), keys, target.NewSecret(s.ControlToken())))
	return path
}

func TestCheckLeavesItsFiles(t *testing.T) {
	out := filepath.Join(t.TempDir(), "new", "out")
	code, stdout, stderr := runCheck(t, "--target", checkSite(t, ""), "--clauses", "HDR-5,HDR-8", "--out", out)
	require.Equal(t, exitHolds, code, stderr)
	require.Contains(t, stdout, "success: 2 pass")
	require.Contains(t, stdout, "report: "+filepath.Join(out, "index.html")+"  (conformance.json, ")
	for _, name := range resultFiles() {
		require.Contains(t, stdout, name)
		require.FileExists(t, filepath.Join(out, name))
	}

	c, err := record.ReadConformance(filepath.Join(out, "conformance.json"))
	require.NoError(t, err)
	require.Equal(t, record.ResultSuccess, c.Result)
	require.Len(t, c.Clauses, 100, "every clause is in it, run or not")
	require.Contains(t, c.Reproduce.Command, "target.yaml --clauses HDR-5,HDR-8")
	requireSchema(t, filepath.Join(out, "conformance.json"))
	require.NoError(t, xml.Unmarshal([]byte(textOf(t, filepath.Join(out, "junit.xml"))), new(struct{})))
}

// resultFiles is what --out leaves.
func resultFiles() []string {
	return []string{"conformance.json", "junit.xml", "index.html", "summary.md", "badge.json"}
}

// requireSchema asks that a file keeps the schema that is published for it.
func requireSchema(t *testing.T, path string) {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(textOf(t, "../../docs/conformance.schema.json")))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("conformance.schema.json", schema))
	compiled, err := compiler.Compile("conformance.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(textOf(t, path)))
	require.NoError(t, err)
	require.NoError(t, compiled.Validate(doc))
}

func TestCheckOfAWrongServerFails(t *testing.T) {
	path := checkSite(t, "retry-after-plus-one")
	code, stdout, _ := runCheck(t, "--target", path, "--clauses", "HDR-5")
	require.Equal(t, exitFails, code)
	require.Contains(t, stdout, "✗ HDR-5")
	require.Contains(t, stdout, "expected  Retry-After: 6")
	require.Contains(t, stdout, "got       Retry-After: 7")
	require.Contains(t, stdout, "curl ")
	require.NotRegexp(t, `isk_[a-z]+_[A-Za-z0-9]{8}`, stdout, "a key is shown")

	code, stdout, stderr := runCheck(t, "--target", path, "--clauses", "HDR-5", "--json")
	require.Equal(t, exitFails, code)
	require.Empty(t, stderr)
	var c record.Conformance
	require.NoError(t, json.Unmarshal([]byte(stdout), &c), "the result alone is on standard output")
	require.Equal(t, record.ResultFailure, c.Result)
}

func TestCheckOfADifference(t *testing.T) {
	path := checkSite(t, "rate-429-cacheable")
	code, stdout, _ := runCheck(t, "--target", path, "--clauses", "ERR-4")
	require.Equal(t, exitHolds, code, "what the contract leaves open is no failure")
	require.Contains(t, stdout, "≠ ERR-4")
	code, stdout, _ = runCheck(t, "--target", path, "--clauses", "ERR-4", "--strict")
	require.Equal(t, exitFails, code)
	require.Contains(t, stdout, "✗ ERR-4")
}

func TestCheckRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"an unknown clause":           {[]string{"--clauses", "RATE-1,RATE-99"}, exitUsage, `there is no clause "RATE-99"`},
		"a clause in another case":    {[]string{"--clauses", "rate-1"}, exitUsage, `there is no clause "rate-1"`},
		"a clause without a scenario": {[]string{"--clauses", "CACHE-1"}, exitUsage, "no scenario sees CACHE-1"},
		"an unknown clause to list":   {[]string{"--list", "--clauses", "X"}, exitUsage, `there is no clause "X"`},
		"an unknown clause to test":   {[]string{"--self-test", "--clauses", "X"}, exitUsage, "X"},
		"a clause nobody breaks":      {[]string{"--self-test", "--clauses", "CACHE-1"}, exitUsage, "no fault breaks CACHE-1"},
		"a missing target file":       {[]string{"--target", "/nowhere/target.yaml"}, exitUsage, `brimline: /nowhere/target.yaml: no such file or directory; "brimline check init" writes a first one`},
		"a target without its keys":   {[]string{"--target", "testdata/no-keys.yaml"}, exitUsage, "brimline: testdata/no-keys.yaml:3: keys-file: "},
		"an argument":                 {[]string{"target.yaml"}, exitUsage, `check takes no argument, got "target.yaml": a target file goes behind --target`},
		"list and plan":               {[]string{"--list", "--plan"}, exitUsage, "--list and --plan exclude each other"},
		"a list of a target":          {[]string{"--list", "--target", "t.yaml"}, exitUsage, "--list and --target exclude each other"},
		"a plan that leaves files":    {[]string{"--plan", "--out", "/nonexistent/x"}, exitUsage, "--plan and --out exclude each other"},
		"a lost target":               {[]string{"--target", "", "--clauses", "HDR-2"}, exitUsage, "--target is empty: give it a value, or leave it out"},
		"a target of blanks":          {[]string{"--target", " "}, exitUsage, "--target is empty"},
		"lost clauses":                {[]string{"--clauses", ""}, exitUsage, "--clauses is empty"},
		"a lost clause":               {[]string{"--clauses", "HDR-2,"}, exitUsage, "--clauses is empty"},
		"a lost folder":               {[]string{"--out", "", "--clauses", "ERR-5"}, exitUsage, "--out is empty"},
		"a lost argument":             {[]string{""}, exitUsage, "check takes no argument"},
		"a self-test of a target":     {[]string{"--self-test", "--target", "t.yaml"}, exitUsage, "--self-test and --target exclude each other"},
		"quiet and verbose":           {[]string{"--quiet", "--verbose"}, exitUsage, "--quiet and --verbose exclude each other"},
		"a list of an unknown clause": {[]string{"--known-failing", "testdata/known-unknown.txt"}, exitUsage, `--known-failing: testdata/known-unknown.txt:2: there is no clause "HDR-55"`},
		"a list that is missing":      {[]string{"--known-failing", "/nowhere/known.txt"}, exitUsage, "--known-failing: open /nowhere/known.txt"},
		"known failures to list":      {[]string{"--list", "--known-failing", "x"}, exitUsage, "--list and --known-failing exclude each other"},
		"an earlier run to plan":      {[]string{"--plan", "--against", "x"}, exitUsage, "--plan and --against exclude each other"},
		"an earlier run of nobody":    {[]string{"--against", "testdata/known-unknown.txt"}, exitUsage, "--against: testdata/known-unknown.txt: line 1"},
		"an earlier run of a load":    {[]string{"--against", "testdata/other-schema.json"}, exitUsage, `schema is "brimline.run/1", want "brimline.conformance/1"`},
		"an --out that is a file":     {[]string{"--clauses", "ERR-5", "--out", "check_test.go"}, exitUsage, "--out"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runCheck(t, tc.args...)
			require.Equal(t, tc.code, code)
			require.Contains(t, stderr, tc.says)
			require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %q", stderr)
			require.Empty(t, stdout)
		})
	}
}

func TestCheckOfATargetThatIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := target.File{
		BaseURLs:   []string{"http://" + l.Addr().String()},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/calculate"}},
		Allowances: map[string]target.Allowance{"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
	}
	require.NoError(t, l.Close())
	path := filepath.Join(t.TempDir(), "target.yaml")
	require.NoError(t, target.Write(path, f, []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret("k")}}, target.Secret{}))
	code, stdout, stderr := runCheck(t, "--target", path)
	require.Equal(t, exitCannotTell, code)
	require.Contains(t, stderr, "away")
	require.Empty(t, stdout)
}

func TestCheckThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	path := checkSite(t, "")
	cancel()
	code := run(ctx, []string{"check", "--target", path}, world{getenv: noEnvironment, stdout: &out, stderr: &errs})
	require.Equal(t, exitCannotTell, code)
}

func TestCheckLists(t *testing.T) {
	code, stdout, _ := runCheck(t, "--list")
	require.Equal(t, exitHolds, code)
	require.Equal(t, 100, strings.Count(stdout, " MUST ")+strings.Count(stdout, " DECIDED "))
	require.Contains(t, stdout, "request rate\n  RATE-1 ")

	code, stdout, _ = runCheck(t, "--list", "--clauses", "HDR-2,ERR-4", "--json")
	require.Equal(t, exitHolds, code)
	var clauses []struct{ ID, Level, Sentence string }
	require.NoError(t, json.Unmarshal([]byte(stdout), &clauses))
	require.Len(t, clauses, 2)
	require.Equal(t, "DECIDED", clauses[1].Level)
}

func TestCheckPlans(t *testing.T) {
	path := checkSite(t, "")
	code, stdout, stderr := runCheck(t, "--target", path, "--plan")
	require.Equal(t, exitHolds, code, stderr)
	require.Contains(t, stdout, "scenarios would be run")
	require.Less(t, strings.Index(stdout, "RATE-10 "), strings.Index(stdout, "CONC-1 "), "in the contract's order")
	for _, needs := range regexp.MustCompile(`scenarios?  needs ([a-z0-9, -]+)`).FindAllStringSubmatch(stdout, -1) {
		require.Contains(t, []string{"page", "restart", "process", "metrics", "http2"}, strings.Split(needs[1], ",")[0], "of the rest it offers all there is")
	}

	require.NotContains(t, stdout, "CACHE-")
	code, verbose, _ := runCheck(t, "--target", path, "--plan", "--verbose")
	require.Equal(t, exitHolds, code)
	require.Greater(t, strings.Count(verbose, "\n"), strings.Count(stdout, "\n")+20)

	code, stdout, _ = runCheck(t, "--target", path, "--plan", "--clauses", "RATE-1")
	require.Equal(t, exitHolds, code)
	require.Contains(t, stdout, "RATE-1    a rested user on the free plan spends the whole burst")

	code, _, stderr = runCheck(t, "--target", path, "--plan", "--clauses", "CACHE-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "no scenario sees CACHE-1")
}

func TestCheckCode(t *testing.T) {
	for name, tc := range map[string]struct {
		c    record.Conformance
		code int
	}{
		"all kept":                {record.Conformance{Result: record.ResultSuccess, Counts: record.Counts{Pass: 9}}, exitHolds},
		"partly judged":           {record.Conformance{Result: record.ResultPartial, Counts: record.Counts{Pass: 9, NotRun: 90}}, exitHolds},
		"a few not told":          {record.Conformance{Result: record.ResultPartial, Counts: record.Counts{Pass: 9, Inconclusive: 1, SetupFailed: 1}}, exitHolds},
		"declared and untrue":     {record.Conformance{Result: record.ResultPartial, Counts: record.Counts{Pass: 9, Untrue: 1}}, exitUsage},
		"untrue and failed":       {record.Conformance{Result: record.ResultFailure, Counts: record.Counts{Fail: 1, Untrue: 1}}, exitFails},
		"more not told than told": {record.Conformance{Result: record.ResultPartial, Counts: record.Counts{Pass: 1, Inconclusive: 1, SetupFailed: 1}}, exitCannotTell},
		"nothing told":            {record.Conformance{Result: record.ResultPartial, Counts: record.Counts{NotRun: 100}}, exitCannotTell},
		"cut short":               {record.Conformance{Result: record.ResultPartial, Aborted: "interrupted", Counts: record.Counts{Pass: 9}}, exitCannotTell},
		"cut short and failed":    {record.Conformance{Result: record.ResultFailure, Aborted: "interrupted", Counts: record.Counts{Fail: 1}}, exitFails},
		"failed":                  {record.Conformance{Result: record.ResultFailure, Counts: record.Counts{Pass: 9, Fail: 1}}, exitFails},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.code, checkCode(tc.c)) })
	}
}

func TestSelfTestOfOneClause(t *testing.T) {
	code, stdout, stderr := runCheck(t, "--self-test", "--clauses", "HDR-2", "--json")
	require.Equal(t, exitHolds, code, stderr)
	var st record.SelfTest
	require.NoError(t, json.Unmarshal([]byte(stdout), &st))
	require.Equal(t, record.ResultSuccess, st.Result)
	require.Len(t, st.Faults, 1)
	require.Equal(t, "limit-is-rpm", st.Faults[0].Name)
	require.True(t, st.Faults[0].Caught)
	require.Equal(t, "HDR-2", st.Faults[0].By[0].Clause)
}
