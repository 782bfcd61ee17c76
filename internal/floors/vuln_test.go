package floors

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVulnerableModuleIsReported lets scripts/vuln.sh judge a program that calls
// a module of ours, by a database whose only entry is invented.
func TestVulnerableModuleIsReported(t *testing.T) {
	read(t, "scripts/vuln.sh") // see touch
	read(t, "scripts/vuln/go.mod")
	const called = "golang.org/x/time"
	version := strings.TrimSpace(string(run(t, "go", "list", "-m", "-f", "{{.Version}}", called)))
	program := folder(t, map[string]string{
		"go.mod":  "module example.com/program\ngo 1.26.0\nrequire " + called + " " + version + "\n",
		"go.sum":  read(t, "go.sum"),
		"main.go": "package main\nimport \"golang.org/x/time/rate\"\nfunc main() { rate.NewLimiter(1, 1).Allow() }\n",
	})
	for _, tc := range []struct {
		name, events, says string // empty: nothing is wrong
	}{
		{"mended later", `{"introduced": "0"}, {"fixed": "99.0.0"}`,
			called + "@" + version + ": go get " + called + "@v99.0.0; called at main.go:3:42. GO-2000-0001: Tokens out of thin air\n"},
		{"never mended", `{"introduced": "0"}`,
			called + "@" + version + ": no version mends it; called at main.go:3:42. GO-2000-0001: Tokens out of thin air\n"},
		{"mended long ago", `{"introduced": "0"}, {"fixed": "0.0.1"}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			database := folder(t, map[string]string{"GO-2000-0001.json": fmt.Sprintf(`{
				"schema_version": "1.3.1", "id": "GO-2000-0001", "summary": "Tokens out of thin air",
				"modified": "2000-01-01T00:00:00Z", "published": "2000-01-01T00:00:00Z", "database_specific": {},
				"affected": [{
					"package": {"name": %q, "ecosystem": "Go"},
					"ranges": [{"type": "SEMVER", "events": [%s]}],
					"ecosystem_specific": {"imports": [{"path": "golang.org/x/time/rate", "symbols": ["Limiter.Allow"]}]}
				}]
			}`, called, tc.events)})
			c := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/vuln.sh"), program, database)
			out, err := c.Output()
			require.Equal(t, tc.says, string(out))
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode())
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
