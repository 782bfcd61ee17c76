package floors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

// TestDependenciesAreExplained compares the modules and tools that go.mod names
// for the module's own use with the rows of docs/dependencies.md.
func TestDependenciesAreExplained(t *testing.T) {
	read(t, "go.mod") // see touch
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	require.NoError(t, json.Unmarshal(run(t, "go", "mod", "edit", "-json"), &mod))
	var direct, explained []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	for _, tool := range mod.Tool {
		direct = append(direct, tool.Path)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(read(t, "docs/dependencies.md"), -1) {
		explained = append(explained, row[1])
	}
	require.ElementsMatch(t, direct, explained, "go.mod beside docs/dependencies.md")
}

// TestDecidedClausesHaveAReason finds each clause that the contract left open in
// the record of how it was settled.
func TestDecidedClausesHaveAReason(t *testing.T) {
	page := read(t, "docs/adr/0005-what-the-contract-left-open.md")
	for _, c := range contract.Clauses() {
		if c.Level == contract.Decided {
			require.Regexp(t, `(?m)^\|[^|]*\b`+c.ID+`\b`, page, "no row begins with it")
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(b)
}
