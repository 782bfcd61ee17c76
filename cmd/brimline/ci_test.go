package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

// runner is a machine that runs a job: its folders, and a go command that
// installs this test binary under the program's name.
type runner struct {
	*testing.T
	home string
	env  map[string]string
}

func newRunner(t *testing.T) runner {
	t.Helper()
	r := runner{t, t.TempDir(), map[string]string{}}
	bin := filepath.Join(r.home, "bin")
	for _, dir := range []string{bin, r.path("work"), r.path("temp")} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	this, err := filepath.Abs(os.Args[0])
	require.NoError(t, err)
	fake := fmt.Sprintf(`#!/bin/sh
echo "$@" >>%[1]q
mkdir -p "$GOBIN"
printf '#!/bin/sh\n%[2]s=1 exec %[3]s "$@"\n' >"$GOBIN/brimline"
chmod +x "$GOBIN/brimline"
`, r.path("go-commands"), asProcess, this)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o755))
	r.env["PATH"] = bin + ":" + os.Getenv("PATH")
	r.env["HOME"] = r.home
	return r
}

// served starts "brimline serve" on loopback and returns its target file.
func served(t *testing.T, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.yaml")
	c := exec.Command(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--clock", "frozen", "--write-target", path}, more...)...)
	c.Env = append(os.Environ(), asProcess+"=1")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n') // where it listens
	require.NoError(t, err)
	require.FileExists(t, path)
	return path
}

func (r runner) path(name string) string { return filepath.Join(r.home, name) }

// read is a file's text; empty: it is not there.
func (r runner) read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		require.ErrorIs(r, err, os.ErrNotExist)
	}
	return string(data)
}

// bash runs a script as both kinds of runners do, with its environment and
// nothing else.
func (r runner) bash(script string, env map[string]string) (code int, output string) {
	r.Helper()
	c := exec.CommandContext(r.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	c.Dir = r.path("work")
	for _, all := range []map[string]string{r.env, env} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			c.Env = append(c.Env, name+"="+all[name])
		}
	}
	out, err := c.CombinedOutput()
	if err != nil {
		require.IsType(r, &exec.ExitError{}, err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func readYAML(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalWithOptions(data, v, yaml.DisallowUnknownField()))
	require.NotContains(t, string(data), "://", "no host is named")
}

// action is a composite action, as far as ours goes.
type action struct {
	Name        string
	Description string
	Inputs      map[string]struct {
		Description string
		Required    bool
		Default     string
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			Name, ID, Shell, Run string
			Env                  map[string]string
		}
	}
}

// do carries out the action as a job with these inputs does.
func (a action) do(r runner, with map[string]string) (code int, output string, outputs map[string]string) {
	r.Helper()
	for name := range with {
		require.Contains(r, a.Inputs, name)
	}
	r.env["RUNNER_TEMP"] = r.path("temp")
	r.env["GITHUB_OUTPUT"], r.env["GITHUB_STEP_SUMMARY"] = r.path("outputs"), r.path("summary.md")
	for _, step := range a.Runs.Steps {
		require.Equal(r, "bash", step.Shell)
		require.NotContains(r, step.Run, "${{", "inputs come through the environment alone")
		env := map[string]string{}
		for name, value := range step.Env {
			in, ok := strings.CutPrefix(value, "${{ inputs.")
			in, closed := strings.CutSuffix(in, " }}")
			require.True(r, ok && closed, value)
			require.Contains(r, a.Inputs, in)
			env[name] = a.Inputs[in].Default
			if given, ok := with[in]; ok {
				env[name] = given
			}
		}
		var said string
		code, said = r.bash(step.Run, env)
		if output += said; code != 0 {
			break
		}
	}
	outputs = map[string]string{}
	for line := range strings.Lines(r.read(r.path("outputs"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		outputs[name] = value
	}
	return code, output, outputs
}

func TestTheGitHubAction(t *testing.T) {
	var a action
	readYAML(t, "../../deploy/ci/github/action.yml", &a)
	require.Equal(t, "composite", a.Runs.Using)
	for name, out := range a.Outputs {
		require.Equal(t, "${{ steps.check.outputs."+name+" }}", out.Value)
	}
	// One run at a time: whoever moves a server's clock moves it for all.
	correct, theirs := served(t), served(t)
	faulty, known := served(t, "--fault", "retry-after-plus-one"), served(t, "--fault", "retry-after-plus-one")
	features, err := filepath.Abs("../../examples/features")
	require.NoError(t, err)

	for name, c := range map[string]struct {
		with    map[string]string
		code    int
		outputs map[string]string
		says    string
		summary string
	}{
		"a correct server": {map[string]string{"target": correct, "clauses": "HDR-5,HDR-8"}, 0,
			map[string]string{"result": "success", "exit-code": "0", "badge": "brimline-out/badge.json"}, "success: 2 pass", "# ✓ Rate limits: success"},
		"a faulty one": {map[string]string{"target": faulty, "clauses": "HDR-5", "strict": "true", "budget": "5m", "out": "a folder"}, 1,
			map[string]string{"result": "failure", "exit-code": "1", "badge": "a folder/badge.json"}, "✗ HDR-5", "HDR-5"},
		"a fault that is known": {map[string]string{"target": known, "clauses": "HDR-5", "known-failing": "known.txt"}, 0,
			map[string]string{"result": "partial", "exit-code": "0", "badge": "brimline-out/badge.json"}, "HDR-5", "HDR-5"},
		"no target": {map[string]string{"target": "nowhere.yaml"}, 2,
			map[string]string{"result": "none", "exit-code": "2", "badge": ""}, "nowhere.yaml: no such file", ""},
		"own features": {map[string]string{"target": theirs, "features": features, "clauses": "TEAM-1"}, 0,
			map[string]string{"result": "success", "exit-code": "0", "badge": "brimline-out/badge.json"}, "1 pass", "TEAM-1"},
		"after an earlier run": {map[string]string{"target": correct, "clauses": "HDR-8", "against": "nothing.json"}, 2,
			map[string]string{"result": "none", "exit-code": "2", "badge": ""}, "nothing.json: no such file", ""},
		"no version":             {map[string]string{"version": "latest"}, 2, map[string]string{}, "::error::brimline: the version is none", ""},
		"a command in a version": {map[string]string{"version": "v1.2.3; touch x"}, 2, map[string]string{}, "the version is none", ""},
		"a command in a clause": {map[string]string{"target": correct, "clauses": "$(touch x)`touch x`"}, 2,
			map[string]string{"result": "none", "exit-code": "2", "badge": ""}, "there is no clause", ""},
		"a slip":                {map[string]string{"target": correct, "strict": "yes"}, 2, map[string]string{}, "strict is neither true nor false", ""},
		"an output in a folder": {map[string]string{"target": correct, "out": "x\nresult=success"}, 2, map[string]string{}, "out is no folder", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t)
			require.NoError(t, os.WriteFile(r.path("work/known.txt"), []byte("HDR-5 # mended next week\n"), 0o644))
			with := map[string]string{"version": "v1.2.3"}
			maps.Copy(with, c.with)
			code, output, outputs := a.do(r, with)
			require.Equal(t, c.code, code, output)
			require.Contains(t, output, c.says)
			require.Equal(t, c.outputs, outputs)
			require.Contains(t, r.read(r.path("summary.md")), c.summary)
			require.NoFileExists(t, r.path("work/x"), "what was filled in was carried out")
			if badge := outputs["badge"]; badge != "" {
				require.FileExists(t, r.path("work/"+badge))
			}
			if c.code < 2 {
				require.Contains(t, r.read(r.path("go-commands")), "install github.com/invoicespec/brimline/cmd/brimline@v1.2.3\n")
			}
		})
	}
}

// An earlier run's files are not taken for this one's.
func TestTheGitHubActionAfterAnotherRun(t *testing.T) {
	var a action
	readYAML(t, "../../deploy/ci/github/action.yml", &a)
	r := newRunner(t)
	code, output, _ := a.do(r, map[string]string{"version": "v1.2.3", "target": served(t), "clauses": "HDR-8"})
	require.Zero(t, code, output)
	_, _, outputs := a.do(r, map[string]string{"version": "v1.2.3", "target": "nowhere.yaml"})
	require.Equal(t, "none", outputs["result"])
}

// template is a GitLab job, as far as ours goes.
type template struct {
	Image        string
	Variables    map[string]string
	Rules        []struct{ If string }
	Script       []string
	AllowFailure struct {
		ExitCodes []int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
	ResourceGroup string `yaml:"resource_group"`
	Artifacts     struct {
		When     string
		ExpireIn string `yaml:"expire_in"`
		Paths    []string
		Reports  struct{ JUnit string }
	}
}

func TestTheGitLabTemplate(t *testing.T) {
	var file map[string]template
	readYAML(t, "../../deploy/ci/gitlab.yml", &file)
	job := file[".brimline-check"]
	require.NotEmpty(t, job.Rules)
	require.Equal(t, []int{exitCannotTell}, job.AllowFailure.ExitCodes)
	require.Equal(t, "always", job.Artifacts.When, "a failure is what its report is for")
	require.NotEmpty(t, job.ResourceGroup, "two runs at once draw on the same users")
	correct, theirs := served(t), served(t) // one run at a time
	faulty, known := served(t, "--fault", "retry-after-plus-one"), served(t, "--fault", "retry-after-plus-one")
	features, err := filepath.Abs("../../examples/features")
	require.NoError(t, err)

	for name, c := range map[string]struct {
		variables map[string]string
		code      int
		says      string
		junit     string
	}{
		"a correct server":      {map[string]string{"TARGET": correct, "CLAUSES": "HDR-5,HDR-8"}, 0, "success: 2 pass", `name="HDR-5`},
		"a faulty one":          {map[string]string{"TARGET": faulty, "CLAUSES": "HDR-5", "STRICT": "true", "BUDGET": "5m"}, 1, "✗ HDR-5", "<failure"},
		"a fault that is known": {map[string]string{"TARGET": known, "CLAUSES": "HDR-5", "KNOWN_FAILING": "known.txt"}, 0, "HDR-5", "HDR-5"},
		"own features":          {map[string]string{"TARGET": theirs, "FEATURES": features, "CLAUSES": "TEAM-1"}, 0, "1 pass", "TEAM-1"},
		"after an earlier run":  {map[string]string{"TARGET": correct, "CLAUSES": "HDR-8", "AGAINST": "nothing.json"}, 2, "nothing.json: no such file", ""},
		"no version":            {map[string]string{"VERSION": ""}, 2, "BRIMLINE_VERSION is no version", ""},
		"a command in a target": {map[string]string{"TARGET": "$(touch x)`touch x`"}, 2, "no such file", ""},
		"a slip":                {map[string]string{"TARGET": correct, "STRICT": "yes"}, 2, "BRIMLINE_STRICT is neither true nor false", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t)
			require.NoError(t, os.WriteFile(r.path("work/known.txt"), []byte("HDR-5 # mended next week\n"), 0o644))
			env := maps.Clone(job.Variables)
			env["BRIMLINE_VERSION"], env["CI_PROJECT_DIR"] = "v1.2.3", r.path("work")
			for name, value := range c.variables {
				require.Contains(t, job.Variables, "BRIMLINE_"+name)
				env["BRIMLINE_"+name] = value
			}
			code, output := r.bash(strings.Join(job.Script, "\n"), env)
			require.Equal(t, c.code, code, output)
			require.Contains(t, output, c.says)
			require.Contains(t, r.read(r.path("work/"+job.Artifacts.Reports.JUnit)), c.junit)
			require.NoFileExists(t, r.path("work/x"), "what was filled in was carried out")
			if c.code < 2 {
				require.DirExists(t, r.path("work/"+job.Artifacts.Paths[0]))
				require.Contains(t, r.read(r.path("go-commands")), "install github.com/invoicespec/brimline/cmd/brimline@v1.2.3\n")
			}
		})
	}
}

// What docs/ci.md shows can be copied: its target file is one, its inputs and
// variables exist.
func TestWhatTheDocsOfCIShow(t *testing.T) {
	data, err := os.ReadFile("../../docs/ci.md")
	require.NoError(t, err)
	var blocks []string
	for i, part := range strings.Split(string(data), "```") {
		if text, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			blocks = append(blocks, text)
		}
	}
	require.Len(t, blocks, 3)

	path := filepath.Join(t.TempDir(), "target.yaml")
	require.NoError(t, os.WriteFile(path, []byte(blocks[0]), 0o644))
	_, err = target.ReadFile(path)
	require.NoError(t, err)

	var a action
	readYAML(t, "../../deploy/ci/github/action.yml", &a)
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				ID   string
				With map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[1]), &workflow))
	for _, step := range workflow.Jobs["limits"].Steps {
		for name := range step.With {
			require.True(t, step.ID != "limits" || a.Inputs[name].Description != "", name)
		}
	}
	var pipeline struct {
		Limits struct{ Variables map[string]string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(blocks[2]), &pipeline))
	require.NotEmpty(t, pipeline.Limits.Variables)
	var file map[string]template
	readYAML(t, "../../deploy/ci/gitlab.yml", &file)
	for name := range pipeline.Limits.Variables {
		require.Contains(t, file[".brimline-check"].Variables, name)
	}
}
