package steps

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// Offered is the topic of the sentences that the contract's own features do not
// use: those of others may hold numbers, and ask for headers that the contract
// does not know.
const Offered = "for features of your own"

func (s *Scenario) offered() []sentence {
	return []sentence{
		{when, `^they send ([1-9]\d*) valid requests?$`, "one after the other, 1000 at most", nil, s.sendNumber},
		{then, `^none of them was rejected$`, "neither for the rate nor for the cap", nil, s.noneRejected},
		{then, `^each answer has the header (\S+)$`, "once or more often, whatever it says; one of the contract's by its own name or by the deployment's", nil, func(name string) error { return s.eachHas(name, func(string) bool { return true }, "present") }},
		{then, `^each answer has the header (\S+) with the text (.+)$`, "one of its lines holds that text", nil, func(name, text string) error {
			return s.eachHas(name, func(line string) bool { return strings.Contains(line, text) }, "with "+text)
		}},
		{then, `^no answer has the header (\S+)$`, "of those that the sentence before collected", nil, s.noneHas},
	}
}

// mostAtOnce bounds what one sentence sends.
const mostAtOnce = 1000

func (s *Scenario) sendNumber(ctx context.Context, n int) error {
	return s.theySend(ctx, kindValid, n)
}

func (s *Scenario) noneRejected() error {
	for _, u := range s.asked() {
		s.claim(u)
	}
	for _, e := range s.got {
		if rateRejected(e) || capRejected(e) {
			return s.broken(e, "status", "no rejection", statusAndCode(e))
		}
	}
	return s.verdict()
}

func (s *Scenario) eachHas(name string, right func(line string) bool, expected string) error {
	name = s.called(name)
	for _, e := range s.got {
		if lines := e.Header.Values(name); !slices.ContainsFunc(lines, right) {
			return s.broken(e, http.CanonicalHeaderKey(name), expected, orAbsent(s.short(strings.Join(lines, ", "))))
		}
	}
	return s.verdict()
}

// called is what the deployment calls a header, if it is one of the contract's.
func (s *Scenario) called(name string) string {
	return s.Wording().Name(http.CanonicalHeaderKey(name))
}

func (s *Scenario) noneHas(name string) error {
	name = s.called(name)
	for _, e := range s.got {
		if lines := e.Header.Values(name); len(lines) > 0 {
			return s.broken(e, http.CanonicalHeaderKey(name), "absent", s.short(strings.Join(lines, ", ")))
		}
	}
	return s.verdict()
}
