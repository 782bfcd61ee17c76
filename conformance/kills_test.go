package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

var killsFrom = flag.String("kills", "", "take what the self-tests found that left their files below `DIR` into kills.json and docs/kill-table.md")

const (
	killsFile = "kills.json"
	killTable = "../docs/kill-table.md"
	howToKill = `"make kills CLAUSES=...", for the clauses it concerns, makes it anew`
)

// seenBy is the needs of every scenario, by a clause that it carries and its name.
func seenBy(t *testing.T) map[string][]string {
	t.Helper()
	plan, err := conformance.NewPlan(everything{}, features.FS, nil)
	require.NoError(t, err)
	all := map[string][]string{}
	for _, s := range plan.Scenarios {
		for _, id := range s.Clauses {
			require.NotContains(t, all, id+" "+s.Name, "two scenarios of %s share a name", id)
			needs := []string{}
			for _, n := range s.Needs {
				needs = append(needs, string(n))
			}
			all[id+" "+s.Name] = needs
		}
	}
	return all
}

// What a run says of its power rests on kills.json: it knows every fault there
// is, and no scenario that there is not.
func TestKillsAreComplete(t *testing.T) {
	all := conformance.Kills()
	if *killsFrom != "" {
		all = taken(t, all, *killsFrom)
		require.NoError(t, os.WriteFile(killsFile, killsJSON(t, all), 0o644))
	}
	scenarios := seenBy(t)
	var names []string
	for _, k := range all {
		names = append(names, k.Fault)
		require.NotEmpty(t, k.By[record.MovedClock], "no scenario is known to catch %s: %s", k.Fault, howToKill)
		for setting, by := range k.By {
			require.Contains(t, record.Settings(), setting)
			for _, name := range by {
				require.Contains(t, scenarios, k.Clause+" "+name, "%s is said to be caught by a scenario that is not there: %s", k.Fault, howToKill)
			}
		}
	}
	for i, f := range fault.All() {
		require.Contains(t, names, f.Name, "kills.json does not know it: %s", howToKill)
		require.Equal(t, f.Clause, all[slices.Index(names, f.Name)].Clause, f.Name)
		require.Equal(t, f.Name, names[i], "the order of reference/fault")
	}
	require.Len(t, names, len(fault.All()), "kills.json knows a fault that is not there")

	page := table(t, all, scenarios)
	if *killsFrom != "" {
		require.NoError(t, os.WriteFile(killTable, []byte(page), 0o644))
	}
	got, err := os.ReadFile(killTable)
	require.NoError(t, err)
	require.Equal(t, page, string(got), howToKill)
}

// taken is what is known with what self-tests have found since. Of several of
// one kind, what each of them found counts.
func taken(t *testing.T, known []conformance.Kill, folder string) []conformance.Kill {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*", "selftest.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "there is no */selftest.json in %s", folder)
	fresh := map[string]map[record.Setting][]string{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var st record.SelfTest
		require.NoError(t, json.Unmarshal(data, &st), path)
		require.Empty(t, st.Aborted, path)
		for _, f := range st.Faults {
			by := []string{}
			for _, c := range f.Catchers() {
				by = append(by, c.Scenario)
			}
			if fresh[f.Name] == nil {
				fresh[f.Name] = map[record.Setting][]string{}
			}
			if before, twice := fresh[f.Name][st.Setting]; twice {
				by = slices.DeleteFunc(by, func(s string) bool { return !slices.Contains(before, s) })
			}
			fresh[f.Name][st.Setting] = by
		}
	}
	var all []conformance.Kill
	for _, f := range fault.All() {
		k := conformance.Kill{Fault: f.Name, Clause: f.Clause, By: map[record.Setting][]string{}}
		if i := slices.IndexFunc(known, func(k conformance.Kill) bool { return k.Fault == f.Name }); i >= 0 && known[i].Clause == f.Clause {
			k.By = known[i].By
		}
		for setting, by := range fresh[f.Name] {
			delete(k.By, setting)
			if len(by) > 0 {
				k.By[setting] = by
			}
		}
		all = append(all, k)
	}
	return all
}

// killsJSON is one line a fault, so that a change shows where it is.
func killsJSON(t *testing.T, all []conformance.Kill) []byte {
	t.Helper()
	b := bytes.NewBufferString("[")
	for i, k := range all {
		line, err := json.Marshal(k)
		require.NoError(t, err)
		b.WriteString(map[bool]string{true: "\n", false: ",\n"}[i == 0])
		b.Write(line)
	}
	b.WriteString("\n]\n")
	return b.Bytes()
}

// table is the published kill table.
func table(t *testing.T, all []conformance.Kill, needs map[string][]string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Kill table

Which scenarios catch which of the [faults](faults.md): each fault was a running server, judged over HTTP by the scenarios of the clause that it breaks. A fault counts as caught only if a scenario of that clause found that clause broken. ⚠: one scenario alone catches it. "needs" is the least that a target has to offer for it to be caught; what the words mean is told by ` + "`brimline check --list --json`" + ` and [conformance-power.md](conformance-power.md), which says how this was measured.

This page is made from what self-tests found (` + "`make kills`" + `); a test holds it to the faults there are.

`)
	require.NoError(t, render.SelfTestMarkdown(&b, record.KillTable(record.MovedClock, faultsOn(record.MovedClock, all, needs))))
	b.WriteString("\n## On other kinds of target\n\nA clock that only the suite moves makes every level exact. Elsewhere some faults are not told from a correct server, by the same scenarios.\n\n| kind of target | caught | not caught there |\n|---|---|---|\n")
	for _, setting := range record.Settings() {
		st := record.KillTable(setting, faultsOn(setting, all, needs))
		var missed []string
		for _, f := range st.Faults {
			if !f.Caught {
				missed = append(missed, "`"+f.Name+"`")
			}
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %s |\n", setting, st.Caught, len(st.Faults), strings.Join(missed, ", "))
	}
	return b.String()
}

// faultsOn is what is known of the faults on one kind of target.
func faultsOn(setting record.Setting, all []conformance.Kill, needs map[string][]string) []record.Fault {
	var faults []record.Fault
	for _, k := range all {
		f := record.Fault{Name: k.Fault, Clause: k.Clause}
		for _, name := range k.By[setting] {
			f.By = append(f.By, record.CaughtBy{Clause: k.Clause, Scenario: name, Carries: true, Needs: needs[k.Clause+" "+name]})
		}
		faults = append(faults, f)
	}
	return faults
}

// The needs of a fault are those of the scenario that asks least.
func TestNeedsOfAKill(t *testing.T) {
	by := func(scenario string, needs ...string) record.CaughtBy {
		return record.CaughtBy{Clause: "HDR-5", Scenario: scenario, Carries: true, Needs: needs}
	}
	st := record.KillTable(record.PlainHTTP, []record.Fault{
		{Name: "two", Clause: "HDR-5", By: []record.CaughtBy{by("a", string(contract.NeedHold), string(contract.NeedKeys)), by("b", string(contract.NeedHold))}},
		{Name: "one", Clause: "HDR-5", By: []record.CaughtBy{by("a")}},
		{Name: "others", Clause: "HDR-4", By: []record.CaughtBy{by("a")}},
	})
	require.Equal(t, 2, st.Caught)
	require.Equal(t, 1, st.Fragile)
	require.Equal(t, []string{"hold"}, st.Faults[0].Needs)
	require.True(t, st.Faults[1].Fragile)
	require.False(t, st.Faults[2].Caught)
}
