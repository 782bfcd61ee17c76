// Package floors holds the module to its own plan: which package may import
// which, whose types may show in an exported API, and that docs/ has a reason
// for every dependency and every open clause. It has tests alone. They judge
// what is built; what a test imports is free.
package floors

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/invoicespec/brimline"
	root   = "../.."
)

// storeys lists every package of the module, ground floor first. A package
// imports its own floor or lower ones. [forbidden] has the rules beside that.
func storeys() [][]string {
	return [][]string{
		0: {
			"conformance/contract", "conformance/contract/control", "docs", "examples", "features",
			"internal/build", "internal/figure", "internal/files", "internal/floors", "internal/hostclock", "internal/pgtest", "internal/proxytest", "internal/settings", "internal/slownet", "internal/strictcsv", "internal/strictjson", "internal/strictyaml",
			"loadgen/arrival", "loadgen/dice", "loadgen/lean", "loadgen/manners",
			"reference/account", "reference/admission", "reference/bucket", "reference/bucket/buckettest",
			"reference/clientip", "reference/clock", "reference/permit", "reference/policy",
			"reports/render/chart",
			"scripts/loadcompare", "scripts/replaycompare", "scripts/slownet",
		},
		1: {
			"conformance/oracle", "conformance/target",
			"loadgen/machine", "loadgen/spool", "loadgen/measure", "loadgen/threshold", "loadgen/traffic",
			"reference/limiter",
			"reports/accesslog", "reports/evidence", "reports/record", "reports/roster", "reports/timeline",
		},
		2: {
			"conformance/steps",
			"loadgen/forecast", "loadgen/attack", "loadgen/metrics", "loadgen/capacity", "loadgen/merge",
			"reference/anonymous", "reference/apilog", "reference/dashboard", "reference/httpapi", "reference/invoice",
			"reference/limiter/limitertest", "reference/operator", "reference/store/memory", "reference/store/postgres", "reference/store/storetest", "reference/telemetry",
			"reports/prometheus", "reports/replay",
		},
		3: {
			"conformance",
			"reference/control", "reference/wiring",
			"reports/reassess", "reports/render",
		},
		4: {"conformance/conformancetest", "reference/fault"},
		5: {"reference/server"},
		6: {"cmd/brimline"},
	}
}

func TestPackagesKeepToTheirFloors(t *testing.T) {
	var units []unit
	for _, p := range list(t) {
		units = append(units, p.unit())
	}
	require.NotEmpty(t, units)
	report(t, violations(storeys(), units))
}

func TestThirdPartyTypesShowInOneAPI(t *testing.T) {
	packages := list(t, "-deps", "-export")
	modules := map[string]string{} // third-party package to its module
	for _, p := range packages {
		if !p.Standard && !p.ours() {
			modules[p.ImportPath] = p.Module.Path
		}
	}
	imported := importer(packages)
	shown := map[string][]string{}
	for _, p := range packages {
		if !p.ours() || p.Name == "main" || p.Export == "" {
			continue
		}
		api, err := imported.Import(p.ImportPath)
		require.NoError(t, err)
		for path := range exposed(api) {
			if m := modules[path]; m != "" {
				shown[m] = append(shown[m], p.unit().path)
			}
		}
	}
	report(t, spread(shown))
}

func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

// listed is what "go list" says of a package.
type listed struct {
	ImportPath, Name, Export string
	Standard                 bool
	Module                   *struct{ Path string }
	Imports                  []string
}

func (p listed) ours() bool { return p.Module != nil && p.Module.Path == module }

func (p listed) unit() unit {
	u := unit{path: below(p.ImportPath)}
	for _, i := range p.Imports {
		if strings.HasPrefix(i, module+"/") {
			u.imports = append(u.imports, below(i))
		}
	}
	return u
}

func below(path string) string { return strings.TrimPrefix(path, module+"/") }

// list asks the go command for the module's packages, and for more with flags.
func list(t *testing.T, flags ...string) []listed {
	t.Helper()
	touch(t)
	args := append([]string{"list", "-json=ImportPath,Name,Export,Standard,Module,Imports"}, flags...)
	out := run(t, "go", append(args, "./...")...)
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// touch opens every folder of the tree: the go command keeps a test's result
// until a file that the test itself opened changes, and "go list" is another
// process.
func touch(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		return err
	}))
}

// run runs a command in the module's root, without cgo, which nothing here needs.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = root
	c.Env = append(c.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%s: %s", c, &stderr)
	return out
}
