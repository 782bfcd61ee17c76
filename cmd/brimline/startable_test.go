package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// asProgram is a program that is this one, for verbs that start it.
func asProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "brimline")
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProcess, self)
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

// checkStarting is runCheck for a program that can start itself.
func checkStarting(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"check"}, args...), world{
		getenv: noEnvironment, executable: asProgram(t), stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// operation is the clauses that are judged by servers that are started, and by
// the page of metrics.
const operation = "GUARD-1,GUARD-2,RESTART-1,ANON-8,METRIC-1,METRIC-2"

func TestCheckStartsServers(t *testing.T) {
	t.Parallel()
	code, out, errs := checkStarting(t, "--json", "--clauses", operation)
	require.Equal(t, exitHolds, code, "%s%s", out, errs)
	requireAllPass(t, out)
}

func requireAllPass(t *testing.T, asJSON string) {
	t.Helper()
	var c record.Conformance
	require.NoError(t, json.Unmarshal([]byte(asJSON), &c))
	for _, cl := range c.Clauses {
		if cl.Verdict != record.Pass && cl.Verdict != record.NotRun {
			t.Errorf("%s %s: %s %+v", cl.ID, cl.Verdict, cl.Reason, cl.Scenarios)
		}
	}
	require.Equal(t, record.ResultSuccess, c.Result)
	require.Equal(t, strings.Count(operation, ",")+1, c.Counts.Pass)
}

// The self-test hands a fault on to the servers that it starts.
func TestSelfTestOfServersThatAreStarted(t *testing.T) {
	t.Parallel()
	code, out, errs := checkStarting(t, "--self-test", "--clauses", "GUARD-1")
	require.Equal(t, exitHolds, code, "%s%s", out, errs)
	require.Contains(t, out, "2 of 2")
}

// What serve writes is enough to start servers like it, and to read its metrics.
func TestWriteTargetOffersServersAndMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plans := filepath.Join(dir, "plans.yaml")
	require.NoError(t, os.WriteFile(plans, []byte("plans:\n  tiny: { requests-per-minute: 60, burst: 4, concurrency: 2, operations: 1000 }\n"), 0o600))
	path := filepath.Join(dir, "t.yaml")
	s := runServeWith(t, world{executable: asProgram(t)}, "--users", "4", "--metrics", "127.0.0.1:0", "--plans", plans, "--write-target", path)
	defer s.stop()
	f, err := target.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, f.Can.Metrics.URL, "/metrics")
	command := strings.Join(f.Can.Process.Command, " ")
	require.Contains(t, command, "serve --listen 127.0.0.1:{port} --metrics 127.0.0.1:{metrics-port} --keys-file {keys-file}")
	require.True(t, strings.HasSuffix(command, " --plans "+plans), command)
	code, out, errs := checkStarting(t, "--json", "--target", path, "--clauses", "RESTART-1,GUARD-1,METRIC-1")
	require.Equal(t, exitHolds, code, errs)
	var c record.Conformance
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.Equal(t, 3, c.Counts.Pass, "%s", out)
}

func TestKeysFileIsForServersWithoutOtherUsers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.keys")
	key := "isk_free_0123456789abcdef0123"
	require.NoError(t, os.WriteFile(path, []byte("user,plan,key\nu,free,"+key+"\n"), 0o600))
	bad := filepath.Join(dir, "bad.keys")
	require.NoError(t, os.WriteFile(bad, []byte("user,plan,key\nu,free,"+strings.Replace(key, "isk", "xyz", 1)+"\n"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"with users":      {[]string{"--keys-file", path, "--users", "1"}, "--keys-file and --users exclude each other"},
		"with a database": {[]string{"--keys-file", path, "--database-url", "postgres://nowhere", "--key-secret-file", secretFile(t)}, "--keys-file and --database-url exclude each other"},
		"no such file":    {[]string{"--keys-file", filepath.Join(dir, "none")}, "none: no such file"},
		"no key of ours":  {[]string{"--keys-file", bad}, `bad.keys: user "u": malformed API key`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0"}, tc.args...), world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
			require.Equal(t, exitUsage, code)
			require.Contains(t, errs.String(), tc.says)
			require.NotContains(t, errs.String(), key[9:])
		})
	}
	s := runServe(t, "--keys-file", path)
	defer s.stop()
	require.Contains(t, s.stdout.String(), "try it as u, plan free")
}

func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key.secret")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600))
	return path
}
