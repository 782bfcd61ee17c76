package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const ownFeatures = "../../examples/features"

// The worked example of docs/writing-features.md, against a server that keeps its
// promises and one that does not.
func TestCheckByFeaturesOfOnesOwn(t *testing.T) {
	code, stdout, stderr := runCheck(t, "--target", checkSite(t, ""), "--features", ownFeatures, "--clauses", "TEAM-1,TEAM-2,TEAM-3,HDR-5")
	require.Equal(t, exitHolds, code, stderr)
	require.Contains(t, stdout, "Promises of our team")
	require.Contains(t, stdout, "success: 4 pass")

	out := t.TempDir()
	code, stdout, _ = runCheck(t, "--target", checkSite(t, "no-headers-200"), "--features", ownFeatures, "--clauses", "TEAM-1,TEAM-2", "--out", out)
	require.Equal(t, exitFails, code)
	require.Contains(t, stdout, "✗ TEAM-1")
	require.Contains(t, stdout, "own/promises.feature:")
	junit, err := os.ReadFile(filepath.Join(out, "junit.xml"))
	require.NoError(t, err)
	require.Contains(t, string(junit), "TEAM-1")
	requireSchema(t, filepath.Join(out, "conformance.json"))

	code, stdout, stderr = runCheck(t, "--features", ownFeatures, "--list")
	require.Equal(t, exitHolds, code, stderr)
	require.Contains(t, stdout, "Promises of our team\n  TEAM-1    MUST")
}

func TestCheckRefusesFeatures(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clauses.yaml": "group: G\nclauses:\n  - { id: TEAM-1, level: MUST, sentence: S. }\n",
		"x.feature":    "Feature: F\n  @TEAM-1 @MUST\n  Scenario: S\n    Given a rested user on a plan with roam\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	code, stdout, stderr := runCheck(t, "--features", dir)
	require.Equal(t, exitUsage, code)
	require.Empty(t, stdout)
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	require.Contains(t, stderr, `x.feature:4: no sentence "Given a rested user on a plan with roam"; the nearest: "Given a rested user on a plan with room"`)

	code, _, stderr = runCheck(t, "--clauses", "TEAM-1")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, `there is no clause "TEAM-1"`)
}
