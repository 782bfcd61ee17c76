package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

const foreignPath = "../docs/foreign.md"

// published is docs/foreign.md: parts between <!-- NAME --> and <!-- /NAME --> are
// made, the rest is written by hand.
type published struct{ text string }

func readForeignPage(t testing.TB) *published {
	t.Helper()
	text, err := os.ReadFile(foreignPath)
	require.NoError(t, err)
	return &published{string(text)}
}

// made is where a part lies between its marks.
func (p *published) made(t testing.TB, name string) (from, to int) {
	t.Helper()
	open, shut := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	from, to = strings.Index(p.text, open), strings.Index(p.text, shut)
	require.True(t, 0 <= from && from < to, "docs/foreign.md has no part %s", name)
	return from + len(open), to
}

func (p *published) replace(t testing.TB, name, part string) {
	from, to := p.made(t, name)
	p.text = p.text[:from] + part + p.text[to:]
}

// standing is what several runs say of a clause together.
type standing string

// As a line of the page begins; what is kept and what was not run has none.
const (
	kept       standing = "kept"
	notKept    standing = "not kept"
	nowAndThen standing = "not kept now and then"
	differs    standing = "differs"
	untold     standing = "could not be told"
	unasked    standing = "not run"
)

// standings in the order in which a cell counts them, each with its sign there.
var standings = []struct {
	standing
	sign string
}{{kept, "✓"}, {notKept, "✗"}, {nowAndThen, "~"}, {differs, "≠"}, {untold, "?"}, {unasked, "·"}}

// standingOf sums up what a clause was in each of several runs.
func standingOf(verdicts []record.Verdict) standing {
	count := map[record.Verdict]int{}
	for _, v := range verdicts {
		count[v]++
	}
	n := len(verdicts)
	switch broken := count[record.Fail] + count[record.Differs]; {
	case count[record.Fail] == n:
		return notKept
	case count[record.Differs] == n:
		return differs
	case broken > 0:
		return nowAndThen
	case count[record.NotRun] == n:
		return unasked
	case count[record.Pass] == n:
		return kept
	}
	return untold
}

// clauses reads what is published of a limiter.
func (p *published) clauses(t testing.TB, limiter string) map[string]standing {
	t.Helper()
	from, to := p.made(t, limiter)
	out := map[string]standing{}
	for _, c := range contract.Clauses() {
		out[c.ID] = kept
	}
	for line := range strings.Lines(p.text[from:to]) {
		for _, s := range standings {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "- "+string(s.standing)+": "); ok {
				for _, id := range strings.Split(rest, ", ") {
					out[id] = s.standing
				}
			}
		}
	}
	return out
}

// write puts the results of complete runs on the page.
func (p *published) write(t testing.TB, results map[string][]record.Conformance) {
	t.Helper()
	rows := map[string]map[string]standing{}
	for _, f := range foreigners {
		rows[f.name] = map[string]standing{}
		lines := map[standing][]string{}
		for i, cl := range results[f.name][0].Clauses {
			var verdicts []record.Verdict
			for _, c := range results[f.name] {
				verdicts = append(verdicts, c.Clauses[i].Verdict)
			}
			s := standingOf(verdicts)
			rows[f.name][cl.ID], lines[s] = s, append(lines[s], cl.ID)
		}
		var longest int64
		for _, c := range results[f.name] {
			longest = max(longest, c.DurationMS/1000)
		}
		text := fmt.Sprintf("\n%s; %d runs, the longest of %d seconds.\n\n", f.version(t), len(results[f.name]), longest)
		for _, s := range standings {
			if ids := lines[s.standing]; len(ids) > 0 && s.standing != kept && s.standing != unasked {
				text += fmt.Sprintf("- %s: %s\n", s.standing, strings.Join(ids, ", "))
			}
		}
		p.replace(t, f.name, text+"\n")
	}
	p.replace(t, "verdicts", standingTable(rows))
	require.NoError(t, os.WriteFile(foreignPath, []byte(p.text), 0o644))
}

// standingTable has a row for each limiter and a column for each group of which
// anything was run.
func standingTable(rows map[string]map[string]standing) string {
	var groups []contract.Group
	for _, g := range contract.Groups() {
		if slices.ContainsFunc(g.Clauses, func(c contract.Clause) bool { return rows[foreigners[0].name][c.ID] != unasked }) {
			groups = append(groups, g)
		}
	}
	var b strings.Builder
	b.WriteString("| limiter |")
	for _, g := range groups {
		fmt.Fprintf(&b, " %s |", g.Name)
	}
	fmt.Fprintf(&b, "\n|---%s|\n", strings.Repeat("|---", len(groups)))
	for _, f := range foreigners {
		fmt.Fprintf(&b, "| [%s](#%s) |", f.name, f.name)
		for _, g := range groups {
			for _, s := range standings {
				n := 0
				for _, c := range g.Clauses {
					if rows[f.name][c.ID] == s.standing {
						n++
					}
				}
				if n > 0 {
					fmt.Fprintf(&b, " %d%s", n, s.sign)
				}
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

var (
	foreignVersions  = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)$`)
	foreignSection   = regexp.MustCompile(`(?m)^## (.+)$`)
	foreignStatement = regexp.MustCompile(`(?m)^- \*\*([a-z ]+)\*\*, ([A-Z]+-[0-9]+(?:, [A-Z]+-[0-9]+)*): (.+)$`)
)

// version is a library's in the module's go.mod, or that of the proxy that is
// installed.
func (f foreign) version(t testing.TB) string {
	t.Helper()
	if f.proxy != nil {
		flag := map[string]string{"nginx": "-v", "haproxy": "-v"}[f.name]
		out, err := exec.CommandContext(t.Context(), "/usr/sbin/"+f.name, flag).CombinedOutput()
		require.NoError(t, err)
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	text, err := os.ReadFile(foreignFolder + "/go.mod")
	require.NoError(t, err)
	for _, m := range foreignVersions.FindAllStringSubmatch(string(text), -1) {
		if m[1] == f.module {
			return "`" + m[1] + "` " + m[2]
		}
	}
	t.Fatalf("go.mod does not name %s", f.module)
	return ""
}

// Every clause that a limiter does not keep is explained once, in its section and
// under its group, and nothing is explained that is kept.
func TestForeignPageExplainsWhatIsNotKept(t *testing.T) {
	page := readForeignPage(t)
	sections := map[string]string{}
	at := foreignSection.FindAllStringSubmatchIndex(page.text, -1)
	for i, m := range at {
		end := len(page.text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections[page.text[m[2]:m[3]]] = page.text[m[0]:end]
	}
	for _, f := range foreigners {
		t.Run(f.name, func(t *testing.T) {
			var broken, explained []string
			for id, s := range page.clauses(t, f.name) {
				if s == notKept || s == nowAndThen || s == differs {
					broken = append(broken, id)
				}
			}
			for _, m := range foreignStatement.FindAllStringSubmatch(sections[f.name], -1) {
				for _, id := range strings.Split(m[2], ", ") {
					c, ok := contract.FindClause(id)
					require.True(t, ok, id)
					require.Equal(t, c.Group, m[1], id)
					explained = append(explained, id)
				}
			}
			slices.Sort(broken)
			slices.Sort(explained)
			require.Equal(t, broken, explained, "not kept, beside explained")
			if f.proxy == nil {
				require.Contains(t, sections[f.name], f.version(t))
			}
		})
	}
}
