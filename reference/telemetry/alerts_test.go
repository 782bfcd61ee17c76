package telemetry_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/strictyaml"
)

const (
	rulesFile   = "../../deploy/alerts/brimline.rules.yaml"
	rulesTest   = "../../deploy/alerts/brimline.rules.test.yaml"
	alertsPage  = "../../docs/alerts.md"
	metricsPage = "../../docs/metrics.md"
)

// ruleFile is what an operator loads; a rule that lacks a severity, a summary or
// what to do is refused when it is read.
type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert  string `yaml:"alert"`
	Expr   string `yaml:"expr"`
	For    string `yaml:"for,omitempty"`
	Labels struct {
		Severity string `yaml:"severity"`
	} `yaml:"labels"`
	Annotations struct {
		Summary string `yaml:"summary"`
		Action  string `yaml:"action"`
		Runbook string `yaml:"runbook"`
	} `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	var f ruleFile
	_, err := strictyaml.Read(rulesFile, &f)
	require.NoError(t, err)
	require.Len(t, f.Groups, 1)
	require.NotEmpty(t, f.Groups[0].Rules)
	return f.Groups[0].Rules
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	require.NoError(t, err, "this test needs promtool; install it and run it again, on Debian: apt-get update && apt-get install -y --no-install-recommends prometheus")
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "promtool %s: %s", strings.Join(args, " "), out)
}

func TestRules(t *testing.T) {
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "test", "rules", rulesTest)
}

func TestEveryRuleSaysWhatToDo(t *testing.T) {
	page := readFile(t, alertsPage)
	for _, r := range rules(t) {
		require.Contains(t, []string{"critical", "warning"}, r.Labels.Severity, r.Alert)
		require.Equal(t, "docs/alerts.md#"+strings.ToLower(r.Alert), r.Annotations.Runbook)
		severity := strings.ToUpper(r.Labels.Severity[:1]) + r.Labels.Severity[1:]
		require.Regexp(t, `(?m)^## `+r.Alert+`\n\n`+severity+`\b`, page, "its section in docs/alerts.md")
	}
	require.Len(t, regexp.MustCompile(`(?m)^## `).FindAllString(page, -1), len(rules(t)), "a section for no rule")
}

// TestEveryRuleIsTested: there is a case in which it fires and one in which it
// does not.
func TestEveryRuleIsTested(t *testing.T) {
	var f struct {
		Files    []string `yaml:"rule_files"`
		Interval string   `yaml:"evaluation_interval"`
		Tests    []struct {
			Name     string              `yaml:"name"`
			Interval string              `yaml:"interval"`
			Series   []map[string]string `yaml:"input_series"`
			Alerts   []struct {
				At       string `yaml:"eval_time"`
				Name     string `yaml:"alertname"`
				Expected []struct {
					Labels      map[string]string `yaml:"exp_labels"`
					Annotations map[string]string `yaml:"exp_annotations"`
				} `yaml:"exp_alerts,omitempty"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	_, err := strictyaml.Read(rulesTest, &f)
	require.NoError(t, err)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range f.Tests {
		for _, a := range test.Alerts {
			if len(a.Expected) > 0 {
				fires[a.Name] = true
			} else {
				silent[a.Name] = true
			}
		}
	}
	for _, r := range rules(t) {
		require.True(t, fires[r.Alert], "%s never fires", r.Alert)
		require.True(t, silent[r.Alert], "%s always fires", r.Alert)
	}
}

// TestRulesAskForWhatThereIs: each meter that a rule or a documented query names
// is on the page, and so is each label and value that it selects by.
func TestRulesAskForWhatThereIs(t *testing.T) {
	expressions := map[string]string{}
	for _, r := range rules(t) {
		expressions[r.Alert] = r.Expr
	}
	for name, m := range documented(t) {
		expressions["query of "+name] = m.query
	}
	there := map[string]bool{}
	for _, s := range exercised(t) {
		there[s.name] = true
	}
	for who, expr := range expressions {
		names := metersOf(expr)
		require.NotEmpty(t, names, who)
		for _, name := range names {
			require.True(t, name == "up" || there[name], "%s: %s is not on the page", who, name)
		}
		for _, l := range matcher.FindAllStringSubmatch(expr, -1) {
			if label, value := l[1], l[2]; label != "job" { // given by the scraper
				require.Contains(t, allowed, label, who)
				require.Regexp(t, allowed[label], value, "%s: %s", who, label)
			}
		}
	}
	require.Equal(t, []string{"a", "b"}, metersOf(`sum by (instance) (rate(a{x="y", z!="b"}[5m])) / 2 > 1e3 and on (job) max(b) offset 5m`))
}

var (
	matcher  = regexp.MustCompile(`([a-z_]+)\s*!?=~?\s*"([^"]*)"`)
	notMeter = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|on|without|ignoring) *\([^)]*\)`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\b *\(?`)
	digits   = regexp.MustCompile(`\b[0-9][0-9a-z.]*`)
	operator = regexp.MustCompile(`^(and|or|unless|offset|bool)$`)
)

// metersOf is the meters that an expression names: the words outside selectors
// that are neither functions nor operators.
func metersOf(expr string) []string {
	var names []string
	expr = digits.ReplaceAllString(notMeter.ReplaceAllString(expr, " "), " ")
	for _, w := range word.FindAllString(expr, -1) {
		function := strings.HasSuffix(w, "(")
		if w = strings.TrimSpace(w); !function && !operator.MatchString(w) {
			names = append(names, w)
		}
	}
	return names
}

// meter is a row of docs/metrics.md.
type meter struct {
	kind   string
	labels string
	query  string
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+), [a-z]+ \\|([^|]*)\\| [^|]+ \\| [^`|]*`([^`|]+)` \\|$")

func documented(t *testing.T) map[string]meter {
	t.Helper()
	all := map[string]meter{}
	for _, r := range row.FindAllStringSubmatch(readFile(t, metricsPage), -1) {
		all[r[1]] = meter{kind: r[2], labels: strings.ReplaceAll(strings.TrimSpace(r[3]), "`", ""), query: r[4]}
	}
	return all
}

// TestMetersAreDocumented compares docs/metrics.md with the page: names, types and
// labels.
func TestMetersAreDocumented(t *testing.T) {
	page := scrape(t, newMeters().Handler())
	kinds := map[string]string{}
	for _, f := range regexp.MustCompile(`(?m)^# TYPE (invoicespec_\S+) (\S+)$`).FindAllStringSubmatch(page, -1) {
		kinds[f[1]] = f[2]
	}
	require.NotEmpty(t, kinds)
	docs := documented(t)
	for name, kind := range kinds {
		require.Contains(t, docs, name)
		require.Equal(t, kind, docs[name].kind, name)
	}
	require.Len(t, docs, len(kinds), "documented and not on the page")
	for _, s := range exercised(t) {
		name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(s.name, "")
		m, ours := docs[name]
		if !ours {
			continue
		}
		var labels []string
		for l := range s.labels {
			if l != "le" {
				labels = append(labels, l)
			}
		}
		require.ElementsMatch(t, strings.Fields(m.labels), labels, name)
	}
}

// TestQueriesAreValid has promtool read every documented query.
func TestQueriesAreValid(t *testing.T) {
	file := "groups: [{ name: queries, rules: [\n"
	for name, m := range documented(t) {
		file += "{ record: 'query:" + name + "', expr: '" + m.query + "' },\n"
	}
	path := filepath.Join(t.TempDir(), "queries.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file+"] }]\n"), 0o600))
	promtool(t, "check", "rules", path)
}
