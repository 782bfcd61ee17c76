package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

const kubernetes = "../../deploy/kubernetes"

// object is what is looked at of an object that the API's own types have read.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		CompletionMode           string
		Completions, Parallelism int
		Template                 struct {
			Spec struct {
				AutomountServiceAccountToken *bool
				EnableServiceLinks           *bool
				RestartPolicy                string
				SecurityContext              struct {
					RunAsNonRoot   bool
					RunAsUser      int
					SeccompProfile struct{ Type string }
				}
				Containers []container
				Volumes    []struct {
					Name      string
					ConfigMap struct{ Name string }
					Secret    struct {
						SecretName  string
						DefaultMode int
					}
					PersistentVolumeClaim struct{ ClaimName string }
				}
			}
		}
	}
}

type container struct {
	Args    []string
	EnvFrom []struct{ ConfigMapRef struct{ Name string } }
	Env     []struct{ Name string }

	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   bool
		Capabilities             struct{ Drop []string }
	}
	VolumeMounts []struct{ Name, MountPath string }
}

// manifests are the objects of a kustomization, strictly decoded into the API's
// types by a program of a module of its own.
func manifests(t *testing.T, folder string) map[string]object {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "manifests")
	c := exec.Command("go", "build", "-o", tool, ".")
	c.Dir, c.Env = filepath.Join(kubernetes, "testdata", "manifests"), append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := exec.Command(tool, folder).Output()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit)
		require.NoError(t, err, string(exit.Stderr))
	}
	var list []object
	require.NoError(t, json.Unmarshal(text, &list))
	byKind := map[string]object{}
	for _, o := range list {
		byKind[o.Kind+" "+regexp.MustCompile(`-[0-9a-z]{10}$`).ReplaceAllString(o.Metadata.Name, "")] = o
	}
	return byKind
}

// TestKubernetesLoad: the shards are as many as the Job has pods, every argument
// is a flag of ours, files are where they are looked for, and nothing runs with
// more rights than it needs.
func TestKubernetesLoad(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(kubernetes, "load"))))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keys.csv"), []byte("user,plan,key\nu,free,isk_free_x\n"), 0o600))
	all := manifests(t, dir)
	job := all["Job brimline-load"]
	vars := all["ConfigMap brimline-run"].Data
	require.Equal(t, "Indexed", job.Spec.CompletionMode)
	shards, err := strconv.Atoi(vars["SHARDS"])
	require.NoError(t, err)
	require.Equal(t, shards, job.Spec.Completions)
	require.Equal(t, shards, job.Spec.Parallelism, "the last would miss the start")
	vars["JOB_COMPLETION_INDEX"], vars["POD_NAME"] = strconv.Itoa(shards-1), "brimline-load-3-x"
	args := restricted(t, job, vars)
	require.Contains(t, args, "--shard="+strconv.Itoa(shards-1)+"/"+vars["SHARDS"])

	volumes := map[string]string{}
	for _, v := range job.Spec.Template.Spec.Volumes {
		volumes[v.Name] = v.ConfigMap.Name + v.Secret.SecretName + v.PersistentVolumeClaim.ClaimName
		if v.Secret.SecretName != "" {
			require.Equal(t, 0o440, v.Secret.DefaultMode, "others would be refused by brimline, and 0400 by the kernel")
		}
	}
	require.Equal(t, map[string]string{
		"scenario": all["ConfigMap brimline-scenario"].Metadata.Name, "keys": all["Secret brimline-keys"].Metadata.Name,
		"runs": all["PersistentVolumeClaim brimline-runs"].Metadata.Name,
	}, volumes)

	files := all["ConfigMap brimline-scenario"].Data
	s, err := traffic.Parse("load.yaml", []byte(files["load.yaml"]))
	require.NoError(t, err)
	path := filepath.Join(dir, "target.yaml")
	f, err := target.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "/keys/keys.csv", f.KeysFile)
	flags := loadFlags{scenario: "load.yaml", target: path, allowHosts: hosts{"invoices.example"}}
	flags.part.shard.Shard = traffic.Shard{Of: shards}
	_, err = flags.cast(t.Context(), s, f)
	require.NoError(t, err, "the example's scenario and target go together")
}

func TestKubernetesMerge(t *testing.T) {
	all := manifests(t, filepath.Join(kubernetes, "merge"))
	job, load := all["Job brimline-merge"], filepath.Join(kubernetes, "load", "run.env")
	vars := all["ConfigMap brimline-merge"].Data
	require.Equal(t, []string{"load", "merge", "--out=/runs/monday-merged", "/runs/monday"}, restricted(t, job, vars))
	text, err := os.ReadFile(load)
	require.NoError(t, err)
	require.Contains(t, string(text), "RUN="+vars["RUN"]+"\n")
	require.Equal(t, "brimline-runs", job.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
}

// restricted looks at a job's one container and returns its arguments as the
// kubelet expands them, which this program accepts.
func restricted(t *testing.T, job object, vars map[string]string) []string {
	t.Helper()
	pod := job.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	c, no := pod.Containers[0], false
	require.Equal(t, &no, pod.AutomountServiceAccountToken)
	require.Equal(t, &no, pod.EnableServiceLinks)
	require.Equal(t, "Never", pod.RestartPolicy)
	require.True(t, pod.SecurityContext.RunAsNonRoot)
	require.NotZero(t, pod.SecurityContext.RunAsUser)
	require.Equal(t, "RuntimeDefault", pod.SecurityContext.SeccompProfile.Type)
	require.Equal(t, &no, c.SecurityContext.AllowPrivilegeEscalation)
	require.True(t, c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, []string{"ALL"}, c.SecurityContext.Capabilities.Drop)
	require.NotEmpty(t, c.Resources.Requests["cpu"])
	require.NotEmpty(t, c.Resources.Limits["memory"])
	require.NotContains(t, c.Resources.Limits, "cpu", "a load side that is throttled is late")
	var args []string
	for _, arg := range c.Args {
		args = append(args, regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(arg, func(v string) string {
			value, ok := vars[strings.Trim(v, "$()")]
			require.True(t, ok, "%s of %s is set by nobody", v, arg)
			return value
		}))
	}
	code, out, errs := call(t, append(args, "--help")...) // flags are read before help is given
	require.Equal(t, exitHolds, code, errs)
	require.Contains(t, out, "brimline load")
	return args
}
