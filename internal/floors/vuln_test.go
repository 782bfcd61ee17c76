package floors

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVulnerabilitiesAreReported lets scripts/vuln.sh judge a program that calls
// a module of ours, by databases that are invented.
func TestVulnerabilitiesAreReported(t *testing.T) {
	read(t, "scripts/vuln.sh") // see touch
	read(t, "scripts/vuln/go.mod")
	const called = "golang.org/x/time"
	version := strings.TrimSpace(string(run(t, "go", "list", "-m", "-f", "{{.Version}}", called)))
	program := folder(t, map[string]string{
		"go.mod":  "module example.com/program\ngo 1.26.0\nrequire " + called + " " + version + "\n",
		"go.sum":  read(t, "go.sum"),
		"main.go": "package main\nimport \"golang.org/x/time/rate\"\nfunc main() { rate.NewLimiter(1, 1).Allow() }\n",
	})
	entry := func(id, module, path, symbol string, fixed ...string) string {
		events := `{"introduced": "0"}`
		for _, version := range fixed {
			events += fmt.Sprintf(`, {"fixed": %q}`, version)
		}
		return fmt.Sprintf(`{
			"schema_version": "1.3.1", "id": %q, "summary": "Tokens out of thin air",
			"modified": "2000-01-01T00:00:00Z", "published": "2000-01-01T00:00:00Z", "database_specific": {},
			"affected": [{
				"package": {"name": %q, "ecosystem": "Go"},
				"ranges": [{"type": "SEMVER", "events": [%s]}],
				"ecosystem_specific": {"imports": [{"path": %q, "symbols": [%q]}]}
			}]
		}`, id, module, events, path, symbol)
	}
	found := called + "@" + version + ": "
	const rest = "; called at main.go:3:42. GO-2000-000%d: Tokens out of thin air\n"
	warning := "warning: " + runtime.Version() + ": build with go99.0.10; called here: GO-2000-0006 GO-2000-0005\n"
	goItself := map[string]string{
		"GO-2000-0005.json": entry("GO-2000-0005", "stdlib", "time", "Now", "99.0.9"),
		"GO-2000-0006.json": entry("GO-2000-0006", "stdlib", "time", "Now", "99.0.10"),
	}
	modules := map[string]string{
		"GO-2000-0001.json": entry("GO-2000-0001", called, called+"/rate", "Limiter.Allow", "99.0.0"),
		"GO-2000-0002.json": entry("GO-2000-0002", called, called+"/rate", "Limiter.Allow"),
		"GO-2000-0003.json": entry("GO-2000-0003", called, called+"/rate", "Limiter.Allow", "0.0.1"), // mended before
		"GO-2000-0004.json": entry("GO-2000-0004", called, called+"/rate", "Limiter.Wait"),           // not called
	}
	maps.Copy(modules, goItself)
	for _, tc := range []struct {
		name     string
		database map[string]string
		says     string
		code     int
	}{
		{"of modules", modules, fmt.Sprintf(found+"no version mends it"+rest, 2) +
			fmt.Sprintf(found+"go get "+called+"@v99.0.0"+rest, 1) + warning, 1},
		{"of Go alone", goItself, warning, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/vuln.sh"), program, folder(t, tc.database))
			out, err := c.Output()
			require.Equal(t, tc.says, string(out))
			require.Equal(t, tc.code, c.ProcessState.ExitCode(), err)
		})
	}
}

// folder makes a folder of files that are given by their names.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}
