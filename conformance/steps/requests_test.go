package steps

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

func TestPluralsSpeakOfTheSameKind(t *testing.T) {
	kinds := regexp.MustCompile("^(?:" + kindsPattern() + ")$")
	for plural, want := range map[string]kind{
		"requests that fail validation":        kindInvalid,
		"requests without operations left":     kindExhausted,
		"requests that the engine fails":       kindFails,
		"requests that make the engine panic":  kindPanics,
		"requests that run into their timeout": kindTimesOut,
	} {
		require.Equal(t, want, singular(plural))
		require.Regexp(t, kinds, string(singular(plural)))
	}
}

func TestSpellingsAreAllDifferent(t *testing.T) {
	const path = "/v1/invoice/calculate"
	seen := map[string]bool{path: true}
	for _, s := range spellings(path) {
		require.False(t, seen[s], s)
		seen[s] = true
		require.NotContains(t, s, " ")
	}
	for _, want := range []string{"//v1/invoice/calculate", "/v1%2Finvoice/calculate", "/%761/invoice/calculate", "/V1/INVOICE/CALCULATE", "/v1/./invoice/calculate"} {
		require.True(t, seen[want], want)
	}
}

func TestMarkedBodiesCanBeTold(t *testing.T) {
	require.Contains(t, string(marked()), bodyMark)
	require.NotEqual(t, marked(), marked())
}

func TestAnswersThatLookAlike(t *testing.T) {
	of := func(id, message string) exchange {
		return exchange{Exchange: answered("POST", "/v1/invoice/x", 401,
			map[string]string{"X-Request-Id": id, "Date": id, "Content-Type": "application/json"},
			`{"requestId":"`+id+`","errorCode":"UNAUTHENTICATED","message":"`+message+`"}`)}
	}
	look := func(e exchange) string { return looks(e, contract.Wording{}) }
	require.Equal(t, look(of("r1", "a key is required")), look(of("r22", "a key is required")))
	require.NotEqual(t, look(of("r1", "a key is required")), look(of("r1", "unknown key")))
	leaky := of("r1", "a key is required")
	leaky.Header.Set("RateLimit-Limit", "10")
	require.NotEqual(t, look(of("r1", "a key is required")), look(leaky))
}

func TestClaimsAndBlame(t *testing.T) {
	u, v := &subject{}, &subject{}
	s := &Scenario{Target: &target.Target{}, clause: clauseOf(t, "POOL-1")}
	at := func(clause, field string, who *subject) {
		s.add(found{Finding: record.Finding{Clause: clause, Field: field}, who: who, bucket: ofBucket(clause)})
	}
	at("RATE-2", "status", u) // before the Givens were done
	s.mark = len(s.found)
	at("RATE-4", "RateLimit-Remaining", u)
	at("HDR-4", "RateLimit-Reset", u) // a header, not the bucket
	at("RATE-4", "RateLimit-Remaining", v)
	at("RATE-8", "Retry-After", u) // what a rejection cost
	s.claim(u)
	require.Equal(t, []string{"RATE-2", "POOL-1", "HDR-4", "RATE-4", "RATE-8"}, blamed(s))
	require.ErrorIs(t, s.verdict(), ErrBroken)

	s.found[1].Clause = "RATE-4"
	s.blameHeaders(u)
	require.Equal(t, []string{"RATE-2", "HDR-3", "HDR-4", "RATE-4", "RATE-8"}, blamed(s))
	require.NoError(t, s.verdict())
}

func TestAFewFindingsOfAKindAreEnough(t *testing.T) {
	s := &Scenario{Target: &target.Target{}}
	for range 100 {
		s.add(found{Finding: record.Finding{Clause: "HDR-3", Field: "f", Got: strings.Repeat("x", len(s.found))}})
	}
	s.add(found{Finding: record.Finding{Clause: "HDR-4", Field: "f"}})
	require.Len(t, s.Findings(), enough+1)
}

func TestDecisionsAreToldFromHeaders(t *testing.T) {
	require.True(t, exchange{Exchange: withFinding("RATE-1", "status")}.decidedWrongly())
	require.False(t, exchange{Exchange: withFinding("RATE-1", "RateLimit-Remaining")}.decidedWrongly())
	require.False(t, exchange{Exchange: withFinding("ERR-3", "status")}.decidedWrongly())
}

func TestAnswersAreCut(t *testing.T) {
	e := answered("POST", "/v1/invoice/x", 429, map[string]string{"Retry-After": "6", "Set-Cookie": "secret"}, strings.Repeat("é", 1000))
	s := &Scenario{Target: &target.Target{}}
	text := s.answerText(e)
	require.Contains(t, text, "429 Too Many Requests\nRetry-After: 6\n")
	require.NotContains(t, text, "secret", "only what the contract speaks of is shown")
	require.Less(t, len(text), 400)
	require.True(t, strings.HasSuffix(text, "é…"))
	e.Header.Set("RateLimit-Limit", strings.Repeat("9", 500_000))
	require.Less(t, len(s.answerText(e)), 800, "a header too")
}

func withFinding(clause, field string) (e target.Exchange) {
	e.Findings = []oracle.Finding{{Clause: clause, Field: field}}
	return e
}

func clauseOf(t *testing.T, id string) contract.Clause {
	t.Helper()
	c, ok := contract.FindClause(id)
	require.True(t, ok)
	return c
}

func blamed(s *Scenario) []string {
	var all []string
	for _, f := range s.found {
		all = append(all, f.Clause)
	}
	return all
}
