package floors

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unit is a package of the module with those of the module that it imports,
// all by their paths below it.
type unit struct {
	path    string
	imports []string
}

// violations lists what breaks the plan, in the order of the packages given.
func violations(storeys [][]string, units []unit) []string {
	floor := map[string]int{}
	for n, paths := range storeys {
		for _, p := range paths {
			floor[p] = n
		}
	}
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, u := range units {
		if _, ok := floor[u.path]; !ok {
			add("%s has no floor: give it one in storeys, internal/floors/tree_test.go", u.path)
			continue
		}
		for _, i := range u.imports {
			if why := forbidden(u.path, i); why != "" {
				add("%s imports %s: %s", u.path, i, why)
			}
			if n, ok := floor[i]; ok && n > floor[u.path] {
				add("%s (floor %d) imports %s (floor %d): a package imports its own floor or lower ones",
					u.path, floor[u.path], i, n)
			}
		}
	}
	for _, paths := range storeys {
		for _, p := range paths {
			if !slices.ContainsFunc(units, func(u unit) bool { return u.path == p }) {
				add("%s has a floor but does not exist: take it out of storeys, internal/floors/tree_test.go", p)
			}
		}
	}
	return found
}

// forbidden says why a package may not import another, whatever their floors;
// empty: it may.
func forbidden(from, to string) string {
	switch {
	case within(from, "internal"):
		return "internal packages are leaves that know nothing of the module"
	case within(from, "reference") && !within(to, "reference", "conformance/contract", "internal"):
		return "the reference knows the contract's words, not its judge"
	case within(from, "reports/replay") && within(to, "reference") &&
		!within(to, "reference/admission", "reference/bucket", "reference/policy"):
		return "a replay decides by admission, bucket and policy alone"
	case within(to, "reference") && !within(from, "reference", "cmd", "reports/replay"):
		return "only reference, cmd and reports/replay know the reference"
	}
	return ""
}

func within(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool {
		return path == r || strings.HasPrefix(path, r+"/")
	})
}

// spread lists the third-party modules whose types show in the API of several
// packages, given where each shows.
func spread(shown map[string][]string) []string {
	var found []string
	for m, paths := range shown {
		if len(paths) > 1 {
			slices.Sort(paths)
			found = append(found, fmt.Sprintf("types of %s show in the exported API of %s: keep them to one package",
				m, strings.Join(paths, ", ")))
		}
	}
	slices.Sort(found)
	return found
}

func TestViolationsAreReported(t *testing.T) {
	plan := [][]string{
		0: {"conformance/contract", "internal/yaml", "internal/build", "reference/bucket", "reference/policy", "reference/admission"},
		1: {"conformance/oracle", "reference/limiter", "reports/record"},
		2: {"reports/replay", "reports/replay/table"},
		3: {"cmd/brimline"},
	}
	for name, c := range map[string]struct {
		from, to string
		want     string // empty: allowed
	}{
		"own floor":                    {"reference/admission", "reference/bucket", ""},
		"lower floor":                  {"conformance/oracle", "conformance/contract", ""},
		"higher floor":                 {"reports/record", "reports/replay", "reports/record (floor 1) imports reports/replay (floor 2)"},
		"no floor":                     {"loadgen/attack", "", "loadgen/attack has no floor: give it one in storeys"},
		"internal imports ours":        {"internal/yaml", "internal/build", "internal/yaml imports internal/build: internal packages are leaves"},
		"reference to contract":        {"reference/limiter", "conformance/contract", ""},
		"reference to internal":        {"reference/limiter", "internal/yaml", ""},
		"reference to its judge":       {"reference/limiter", "conformance/oracle", "reference/limiter imports conformance/oracle: the reference knows"},
		"judge to reference":           {"conformance/oracle", "reference/bucket", "conformance/oracle imports reference/bucket: only reference, cmd"},
		"records to reference":         {"reports/record", "reference/policy", "reports/record imports reference/policy: only reference, cmd"},
		"replay to the pure packages":  {"reports/replay", "reference/admission", ""},
		"replay to the limiter":        {"reports/replay", "reference/limiter", "reports/replay imports reference/limiter: a replay decides by"},
		"below replay, to the limiter": {"reports/replay/table", "reference/limiter", "reports/replay/table imports reference/limiter: a replay decides by"},
		"command to reference":         {"cmd/brimline", "reference/limiter", ""},
		"a name that merely begins so": {"cmd/brimline", "reference2/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var units []unit
			for _, p := range slices.Concat(plan...) {
				if p != c.from {
					units = append(units, unit{path: p})
				}
			}
			u := unit{path: c.from}
			if c.to != "" {
				u.imports = []string{c.to}
			}
			found := violations(plan, append(units, u))
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0], c.want)
		})
	}
	t.Run("a floor for nobody", func(t *testing.T) {
		require.Equal(t,
			[]string{"reports/gone has a floor but does not exist: take it out of storeys, internal/floors/tree_test.go"},
			violations([][]string{{"features", "reports/gone"}}, []unit{{path: "features"}}))
	})
}

func TestSpreadTypesAreReported(t *testing.T) {
	require.Equal(t,
		[]string{"types of example.org/b show in the exported API of features, reference/x: keep them to one package"},
		spread(map[string][]string{"example.org/a": {"features"}, "example.org/b": {"reference/x", "features"}}))
}
