package floors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDependenciesAreExplained compares the modules that go.mod names for this
// module's own use, tools included, with the rows of docs/dependencies.md.
func TestDependenciesAreExplained(t *testing.T) {
	_, err := os.Stat(filepath.Join(root, "go.mod")) // see touch
	require.NoError(t, err)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	require.NoError(t, json.Unmarshal(run(t, "go", "mod", "edit", "-json"), &mod))
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	for _, tool := range mod.Tool {
		direct = append(direct, tool.Path)
	}

	page, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	require.NoError(t, err)
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		explained = append(explained, row[1])
	}
	require.ElementsMatch(t, direct, explained,
		"go.mod has %s; docs/dependencies.md has %s", strings.Join(direct, ", "), strings.Join(explained, ", "))
}
