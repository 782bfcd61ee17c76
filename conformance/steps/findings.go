package steps

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// found is a finding and what it takes to say whose fault it is.
type found struct {
	record.Finding
	who    *subject
	bucket bool // the bucket is not where it has to be, by an admission, a rejection or headers that agree
	short  bool // it gives less than it should
	status int  // of the answer
}

// note adds what the oracle or a check found in an exchange.
func (s *Scenario) note(e exchange, findings []oracle.Finding) {
	curl := e.Curl
	if e.who != nil && curl != "" && (e.Key > 0 || strings.HasPrefix(s.clause.ID, "POOL-") && e.who.Keys() > 1) {
		curl += fmt.Sprintf(" # (key %d of %s)", e.Key+1, e.who.ID)
	}
	for _, f := range findings {
		if anotherBucket(e, f) {
			continue
		}
		if e.madeUp && e.Status == s.ExpectValid() {
			f.Got += ": a made-up key was accepted"
		}
		if e.who != nil && e.Refused() {
			f.Got += ": " + e.Asker + " is refused"
		}
		for _, clause := range append([]string{f.Clause}, f.Also...) {
			s.add(found{
				Finding: record.Finding{
					Clause: clause, Step: s.step, Field: f.Field,
					Expected: s.Excerpt(f.Expected, mostSaid), Ground: ground(f, e.who), Got: s.Excerpt(f.Got, mostSaid), Consequence: f.Consequence,
					Exchange: curl, Answer: s.answerText(e.Exchange),
				},
				who:    e.who,
				bucket: ofBucket(f.Clause),
				short:  f.Short,
				status: e.Status,
			})
		}
	}
}

// anotherBucket reports whether a level that is too low may be that of another
// key's bucket: what one key has spent the other's level does not show. Keys of one
// bucket, and tokens that come back too slowly, have scenarios of their own.
func anotherBucket(e exchange, f oracle.Finding) bool {
	return f.Short && f.Clause == "RATE-2" && f.Field != "status" && e.who != nil && e.who.SeveralKeys()
}

// ground is what a finding rests on. Where it is the level of a bucket that was
// used before, it also says whose: the mistake may be as old as that. What is missing
// somebody else may have taken, who is no user of this run's own.
func ground(f oracle.Finding, u *subject) string {
	switch {
	case u == nil && f.Clause == "ANON-1" && f.Short:
		return f.Ground + "; or somebody else has tried keys from this address"
	case f.Ground == "" || u == nil || !u.Used() || !ofBucket(f.Clause):
		return f.Ground
	case f.Short:
		return f.Ground + "; user " + u.ID + " may have been used before, or somebody else used it"
	}
	return f.Ground + "; user " + u.ID + " may have been used before"
}

// enough is how many findings of one kind are kept: a header that is wrong is
// wrong in every answer of a drain.
const enough = 3

// add keeps a finding unless there are enough of its kind.
func (s *Scenario) add(f found) {
	alike := 0
	for _, have := range s.found {
		if have.Clause == f.Clause && have.Field == f.Field && have.who == f.who {
			alike++
		}
	}
	if alike < enough {
		s.found = append(s.found, f)
	}
}

// decidedWrongly reports whether the oracle holds the decision itself against
// the answer: a request admitted without a token, or rejected with one there.
func (e exchange) decidedWrongly() bool {
	return slices.ContainsFunc(e.Findings, func(f oracle.Finding) bool { return f.Field == "status" && ofBucket(f.Clause) })
}

// late reports whether the bucket may just have given what it held back.
func (e exchange) late() bool {
	return slices.ContainsFunc(e.Findings, func(f oracle.Finding) bool { return f.Short })
}

// ofBucket reports whether the oracle blames a clause for where a bucket is, as
// opposed to what one header or a body says.
func ofBucket(clause string) bool {
	for _, family := range []string{"RATE-", "CHG-", "CONC-3", "SCOPE-3", "HDR-6", "HDR-7"} {
		if strings.HasPrefix(clause, family) {
			return true
		}
	}
	return false
}

// claim says that u's bucket not being where it has to be is a breach of the
// rule's own clause: what the scenario has done since its Givens is what this
// clause is about. The oracle, which knows nothing of that, can only guess. What
// a rejection costs shows at the rejection itself, though, and a bucket that only
// lacks what was to come back is the refill's matter, unless the rule is about
// rates. Of a user who was used before that can be all of it.
// What a request costs the oracle has told from what came back already.
func (s *Scenario) claim(u *subject) {
	for i := s.mark; i < len(s.found); i++ {
		f := &s.found[i]
		keys := s.clause.ID == "POOL-1" && f.Clause == "RATE-4"
		refill := f.short && (f.Clause == "RATE-2" || u.Used() && !keys) && !s.ownsRefill() || f.Clause == "RATE-2" && s.ownsCost()
		if f.bucket && f.who == u && f.Clause != "RATE-8" && !refill {
			f.Clause = s.clause.ID
		}
	}
}

// ownsRefill reports whether tokens that come back too slowly can be what the
// rule is about: what a user may do, at all or since something changed. RATE-3 is
// about too many, and whether a Reset was obeyed (HDR-7) the oracle knows.
func (s *Scenario) ownsRefill() bool {
	return s.ownsFirst() && s.clause.ID != "RATE-3" && s.clause.ID != "HDR-7"
}

// ownsCost reports whether the rule is about what a request costs.
func (s *Scenario) ownsCost() bool {
	return slices.Contains([]string{"RATE-4", "CONC-3", "SCOPE-3"}, s.clause.ID)
}

// begin says that what is found from here on is what the scenario is about, the
// first time it is called.
func (s *Scenario) begin() {
	for _, u := range s.they {
		u.emptied = false
	}
	if !s.begun {
		s.mark, s.begun = len(s.found), true
	}
}

// claimAllowance is claim for a scenario about what u may do: a RateLimit-Limit
// that is not the burst is its business as well.
func (s *Scenario) claimAllowance(u *subject) {
	s.claim(u)
	for i := s.mark; i < len(s.found); i++ {
		if f := &s.found[i]; f.who == u && f.Field == contract.HeaderLimit {
			f.Clause = s.clause.ID
		}
	}
}

// blameHeaders is the opposite of claim: the bucket has proved right, so headers
// that agree on another level are wrong.
func (s *Scenario) blameHeaders(u *subject) {
	header := map[string]string{contract.HeaderRemaining: "HDR-3", contract.HeaderReset: "HDR-4", contract.HeaderRetryAfter: "HDR-5"}
	for i := s.mark; i < len(s.found); i++ {
		f := &s.found[i]
		late := f.short && f.Clause == "RATE-2" && u.Used()
		if f.bucket && f.who == u && header[f.Field] != "" && f.Clause != "RATE-8" && !late {
			f.Clause = header[f.Field]
		}
	}
}

// verdict ends a sentence that judges: an error if the rule's clause is broken.
func (s *Scenario) verdict() error {
	for _, f := range s.found {
		if f.Clause == s.clause.ID {
			return fmt.Errorf("%w: %s", ErrBroken, s.clause.ID)
		}
	}
	return nil
}

// broken records a breach of the rule's own clause and ends the scenario.
func (s *Scenario) broken(e exchange, field, expected, got string) error {
	return s.brokenFor(s.clause.ID, e, field, expected, got)
}

// brokenFor is broken for another clause than the rule's.
func (s *Scenario) brokenFor(clause string, e exchange, field, expected, got string) error {
	s.note(e, []oracle.Finding{{Clause: clause, Field: field, Expected: expected, Got: got}})
	return fmt.Errorf("%w: %s", ErrBroken, clause)
}

// Findings is what was found, each with the clause it breaks, of headers and
// members as the deployment calls them.
func (s *Scenario) Findings() []record.Finding {
	var out []record.Finding
	for _, f := range s.found {
		f.Field = s.Wording().Name(f.Field)
		if !slices.Contains(out, f.Finding) {
			out = append(out, f.Finding)
		}
	}
	return out
}

// Bounds of what is quoted of a server, in bytes.
const (
	mostQuoted = 300  // of one header, of a body
	mostSaid   = 1000 // of what was expected and of what came
)

// short is what is quoted of a text.
func (s *Scenario) short(text string) string { return s.Excerpt(text, mostQuoted) }

// answerText is an answer for people: status, the contract's headers and the body,
// each cut short.
func (s *Scenario) answerText(e target.Exchange) string {
	if e.Status == 0 {
		return ""
	}
	w := s.Wording()
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", e.Status, http.StatusText(e.Status))
	for _, name := range []string{
		contract.HeaderLimit, contract.HeaderRemaining, contract.HeaderReset,
		contract.HeaderRetryAfter, contract.HeaderRequestID, "Content-Type", "Cache-Control",
	} {
		for _, v := range e.Header.Values(w.Name(name)) {
			fmt.Fprintf(&b, "\n%s: %s", w.Name(name), s.short(v))
		}
	}
	if e.Status >= http.StatusBadRequest && len(e.Body) > 0 {
		fmt.Fprintf(&b, "\n%s", s.short(string(e.Body)))
	}
	return b.String()
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
