package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func markdownOf(t *testing.T, c record.Conformance) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, render.ConformanceMarkdown(&b, c))
	return b.String()
}

func TestConformanceMarkdown(t *testing.T) {
	for name, c := range map[string]record.Conformance{"conformance-fail.md.txt": judged(), "conformance-expected.md.txt": expected(), "conformance-pass.md.txt": kept()} {
		t.Run(name, func(t *testing.T) { golden(t, name, []byte(markdownOf(t, c))) })
	}
}

// What a target sends cannot become a table's cell, a fence's end or a tag.
func TestConformanceMarkdownOfHostileAnswers(t *testing.T) {
	c := judged()
	f := &c.Clauses[4].Scenarios[1].Findings[0]
	f.Got, f.Exchange = "a | `b` <img src=x onerror=y>\n# head", "curl '```\n# head'"
	text := markdownOf(t, c)
	require.Contains(t, text, "| got | a \\| \\`b\\` &lt;img src=x onerror=y&gt;")
	require.Contains(t, text, "\n````\ncurl '```\\u000a# head'\n````\n")
	require.NotContains(t, text, "\n# head")
}

// A summary that is too large is refused by its reader as a whole.
func TestConformanceMarkdownIsCutHonestly(t *testing.T) {
	c := judged()
	long := c.Clauses[4]
	c.Clauses = nil
	for i := range 100 {
		cl := long
		cl.ID = fmt.Sprintf("HDR-%d", i+1)
		cl.Scenarios = []record.Scenario{long.Scenarios[1]}
		f := cl.Scenarios[0].Findings[0]
		f.Got = strings.Repeat("x", 20_000)
		cl.Scenarios[0].Findings = []record.Finding{f}
		c.Clauses = append(c.Clauses, cl)
	}
	text := markdownOf(t, c.Summed())
	require.Less(t, len(text), render.MarkdownLimit)
	require.Greater(t, len(text), render.MarkdownLimit*9/10)
	shown := strings.Count(text, "\n### ")
	require.Contains(t, text, fmt.Sprintf("**Cut: %d more clauses that are not kept would not fit in here.**", 100-shown))
	require.Contains(t, text, "## Where this comes from", "the end is there")
}

func TestBadge(t *testing.T) {
	only := func(verdicts ...record.Verdict) record.Conformance {
		c := record.Conformance{}
		for i, v := range verdicts {
			c.Clauses = append(c.Clauses, record.Clause{ID: fmt.Sprintf("HDR-%d", i+1), Verdict: v})
		}
		return c.Summed()
	}
	chosen := only(record.Pass, record.NotRun)
	chosen.Selected = []string{"HDR-1"}
	for name, tc := range map[string]struct {
		c              record.Conformance
		message, color string
		final          bool
	}{
		"success":     {only(record.Pass, record.Pass), "2 of 2 kept", "brightgreen", false},
		"a selection": {chosen.Summed(), "1 of 1 kept", "brightgreen", false},
		"differs":     {only(record.Pass, record.Differs), "1 of 2 kept", "brightgreen", false},
		"partial":     {only(record.Pass, record.NotRun, record.KnownFails), "1 of 3 kept", "yellowgreen", false},
		"failure":     {only(record.Pass, record.Fail, record.Fail), "2 not kept", "red", true},
		"stale":       {only(record.Pass, record.Stale), "known failures out of date", "red", true},
		"nothing":     {only(record.NotRun, record.Inconclusive), "not told", "lightgrey", false},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, render.Badge(&b, tc.c))
			var got struct {
				SchemaVersion         int
				Label, Message, Color string
				IsError               bool
			}
			d := json.NewDecoder(&b)
			d.DisallowUnknownFields()
			require.NoError(t, d.Decode(&got))
			require.Equal(t, 1, got.SchemaVersion)
			require.Equal(t, "rate limits", got.Label)
			require.Equal(t, []any{tc.message, tc.color, tc.final}, []any{got.Message, got.Color, got.IsError})
		})
	}
}
