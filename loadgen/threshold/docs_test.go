package threshold_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/threshold"
)

// TestThePageNamesEverySubject: docs/load.md explains each word and no other, and
// its example is read.
func TestThePageNamesEverySubject(t *testing.T) {
	page, err := os.ReadFile("../../docs/load.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| subject | counts |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var words []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			words = append(words, word[1])
		}
	}
	require.Equal(t, threshold.Subjects(), words)

	_, example, found := strings.Cut(string(page), "thresholds:\n")
	require.True(t, found)
	example, _, _ = strings.Cut(example, "```")
	for line := range strings.Lines(example) {
		_, err := threshold.Parse(strings.TrimPrefix(strings.TrimSpace(line), "- "))
		require.NoError(t, err)
	}
}
