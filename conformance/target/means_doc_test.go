package target_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

// Every example of the page about commands and queries is read as it stands there,
// and the two together as well.
func TestExamplesOfThePageAboutMeans(t *testing.T) {
	page, err := os.ReadFile("../../docs/target-means.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```yaml\ncan:\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, found, 2)
	all := []string{found[0][1] + found[1][1], found[1][1] + "  commands: { set-operations: { exec: [x, \"{user}\"] } }\n"}
	for _, lines := range all {
		text, _ := inCan(t, lines)
		path := filepath.Join(folder(t, map[string]string{"t.yaml": text, "ok.json": "{}"}), "t.yaml")
		f, err := target.ReadFile(path)
		require.NoError(t, err)
		require.NotNil(t, f.Can.SQL)
	}
	f, err := target.ReadFile("../../examples/commands/target.yaml")
	require.NoError(t, err)
	require.Len(t, f.Can.Commands, 9)
	for name := range f.Can.Commands {
		require.Contains(t, string(page), "`"+name+"`")
	}
	require.False(t, strings.Contains(string(page), "postgres://"), "no connection string in a file")
}
