package steps_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/steps"
)

func TestEverySentenceIsAnchoredAndExplained(t *testing.T) {
	written := map[string]bool{}
	for _, s := range steps.NewDictionary().Sentences() {
		require.True(t, strings.HasPrefix(s.Pattern, "^") && strings.HasSuffix(s.Pattern, "$"), "%s is not anchored at both ends", s.Pattern)
		require.NotEmpty(t, s.Means, s.Pattern)
		require.LessOrEqual(t, len(s.Means), 120, s.Means)
		require.NotContains(t, s.Means, "\n", s.Pattern)
		require.NotRegexp(t, `[\\^$()?+*]`, s.Text, "%s is shown as no plain sentence", s.Pattern)
		for i, choices := range s.Fill {
			require.NotEmpty(t, choices, "%s, place %d", s.Pattern, i+1)
			for _, c := range choices {
				require.NotRegexp(t, `[\\^$()?+*]`, c, s.Pattern)
			}
		}
		require.False(t, written[s.Keyword+s.Written()], "%s is there twice", s.Written())
		written[s.Keyword+s.Written()] = true
		for _, n := range s.Needs {
			_, err := contract.ParseNeed(string(n))
			require.NoError(t, err, s.Pattern)
		}
	}
}

func TestUnderstand(t *testing.T) {
	d := steps.NewDictionary()
	for name, c := range map[string]struct {
		keyword, text string
		table         bool
		needs         []contract.Need
		problem       string
	}{
		"plain":                      {"Given", "a rested user on the smallest plan", false, nil, ""},
		"what it needs":              {"Given", "a user with the whole cap in flight", false, []contract.Need{contract.NeedHold}, ""},
		"what is filled in needs":    {"When", "they send a request that fails validation", false, []contract.Need{contract.NeedInvalid}, ""},
		"in the plural as well":      {"When", "they send requests that make the engine panic, two of them", false, []contract.Need{contract.NeedEngine}, ""},
		"a table":                    {"Then", "it had these effects:", true, []contract.Need{contract.NeedAudit}, ""},
		"a table that is missing":    {"Then", "it had these effects:", false, nil, `"it had these effects:": a table has to follow`},
		"a table in vain":            {"Then", "it was authenticated", true, nil, `"it was authenticated": no table may follow`},
		"a slip":                     {"When", "they spend the whole bucket", false, nil, `no sentence "When they spend the whole bucket"; the nearest: "When they spend their whole bucket"`},
		"another keyword":            {"Then", "they spend their whole bucket", false, nil, `the nearest: "When they spend their whole bucket"`},
		"something else altogether":  {"Then", "the moon rises", false, nil, `no sentence "Then the moon rises"; the nearest: `},
		"no prefix is enough":        {"Given", "a user with tokens to spare and more", false, nil, `the nearest: "Given a user with tokens to spare"`},
		"a choice that there is not": {"When", "their quota is raised by an override", false, nil, `the nearest: "When their <rate|burst|cap> is <set|raised|lowered> by an override"`},
	} {
		t.Run(name, func(t *testing.T) {
			needs, err := d.Understand(c.keyword, c.text, c.table)
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			require.ElementsMatch(t, c.needs, needs)
		})
	}
}
