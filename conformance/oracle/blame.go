package oracle

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
)

// The same wrong answer can come from several mistakes. What is chosen here is
// the clause that explains most: one that speaks of this kind of answer, then
// one that speaks of what happened just before, then the plain rate.

// changed reports whether this is the first answer under another allowance.
func (sc scene) changed() bool { return sc.past.from != Allowance{} }

// changeClause is the clause of a change that went wrong.
func (sc scene) changeClause() string {
	switch {
	case sc.allowance.Burst == sc.past.from.Burst:
		return "CHG-3"
	case sc.allowance.Burst < sc.past.from.Burst:
		return "CHG-2"
	}
	return "CHG-1"
}

// byStatus is the clause that speaks of the tokens of answers with a status.
func byStatus(status int) (clause string, also []string) {
	switch {
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "SCOPE-3", []string{"RATE-4"}
	case status >= http.StatusBadRequest:
		return "RATE-4", nil
	}
	return "", nil
}

// early is the finding for a request that was let in though no whole token can
// have been there.
func (sc scene) early() Finding {
	f := Finding{Field: "status", Expected: "429 RATE_LIMIT_EXCEEDED", Ground: sc.allowance.held(sc.before), Got: fmt.Sprint(sc.answer.SaidStatus()),
		Consequence: "more gets in than the allowance says"}
	if sc.answer.Status == 0 {
		f.Got = "in flight"
	}
	scope, also := byStatus(sc.answer.Status)
	switch {
	case sc.changed():
		f.Clause = sc.changeClause()
	case sc.past.slow && !sc.past.fullRun:
		f.Clause, f.Also, f.Short = "RATE-2", []string{"RATE-10"}, true
	case sc.kind == concurrency:
		f.Clause, f.Got = "RATE-6", "429 CONCURRENCY_LIMIT_EXCEEDED"
		f.Consequence = "the cap is asked before the bucket"
	case sc.answer.Remaining.State == contract.Good && sc.allAtOnce(sc.answer.Remaining.Value*Token),
		slices.Contains(sc.past.blamed, "HDR-3"): // then the level was counted, and nothing confirmed it
		f.Clause, f.Also = "RATE-2", []string{"RATE-10"}
	case scope == "SCOPE-3":
		f.Clause, f.Also = scope, also
	case scope != "" && sc.answer.Status < http.StatusInternalServerError:
		f.Clause, f.Also = "RATE-5", []string{"RATE-4"}
		f.Consequence = "the request is looked at before it has paid"
	case sc.past.fullRun:
		f.Clause, f.Also = "RATE-1", []string{"RATE-2"}
	default:
		f.Clause, f.Also = "RATE-2", []string{"RATE-10"}
	}
	return f
}

// allAtOnce reports whether what is claimed to be left may be a full bucket but
// for this request, as where a window ends: then it cost what it had to.
func (sc scene) allAtOnce(claimed int64) bool {
	return sc.gained > 0 && claimed == sc.allowance.full()-Token
}

// undue is the finding for a rate rejection though a whole token was there.
func (sc scene) undue() Finding {
	f := Finding{Field: "status", Expected: "no rate rejection", Ground: sc.allowance.held(sc.before), Got: statusAndCode(sc.answer),
		Consequence: "the client gets less than its allowance", Short: true}
	switch {
	case sc.changed():
		f.Clause = sc.changeClause()
	case sc.retryOver:
		f.Clause, f.Also = "HDR-6", []string{"RATE-2", "RATE-10"}
		f.Consequence = "the client waited as long as it was told and is refused again"
	case sc.past.fullRun || sc.before.lo == sc.allowance.full():
		f.Clause, f.Also = "RATE-1", sc.alsoPromised()
	default:
		f.Clause, f.Also = "RATE-2", []string{"RATE-10"}
	}
	return f
}

// statusAndCode is a rejection for people.
func statusAndCode(a contract.Answer) string {
	code := a.Body.ErrorCode.Value
	if code == "" {
		code = "without an errorCode"
	}
	return fmt.Sprintf("%d %s", a.SaidStatus(), code)
}

func (sc scene) alsoPromised(also ...string) []string {
	if sc.past.promised || sc.resetOver {
		also = append(also, "HDR-7")
	}
	return also
}

// level is the finding for headers that agree with each other on a level that
// the bucket cannot have. r is one of them.
func (sc scene) level(r reading, after, claimed levels) Finding {
	f := sc.wrong("", r.name, r.expected.String(), r.number, after)
	f.Consequence, f.Short = "the bucket holds less than it should", true
	if claimed.lo > after.hi {
		f.Consequence, f.Short = "the bucket holds more than it should", false
	}
	var also []string
	switch {
	case sc.parallel:
		f.Clause = "RATE-9"
	case sc.changed():
		f.Clause, also = sc.changeClause(), []string{"CHG-3"}
		if f.Clause == "CHG-3" {
			also = nil
		}
	case claimed.lo > after.hi:
		f.Clause, also = sc.tooMuch(after, claimed)
	default:
		f.Clause, also = sc.tooLittle(after, claimed)
	}
	f.Also, f.Short = append(f.Also, also...), f.Short || f.Clause == "RATE-2" && sc.past.slow
	return f
}

// tooMuch is the clause for a bucket that claims more than it can hold.
func (sc scene) tooMuch(after, claimed levels) (string, []string) {
	oneMore := claimed.lo <= after.hi+Token && !sc.allAtOnce(claimed.lo)
	over := claimed.lo - sc.allowance.full()
	var cs candidates
	cs.add(oneMore && sc.kind == concurrency, "CONC-3", "RATE-4")
	cs.addStatus(oneMore, sc.answer.Status)
	cs.add(oneMore && sc.past.kind == concurrency, "CONC-3", "RATE-4")
	cs.addStatus(oneMore && sc.past.kind == spent, sc.past.status)
	cs.add(over > -Token && sc.past.asked, "RATE-3")
	cs.add(over > 0, "RATE-1")
	cs.add(over > -Token || oneMore && claimed.lo > after.hi+sc.gained, "RATE-4")
	cs.add(true, "RATE-2", "RATE-10")
	return cs.pick(sc.past.blamed)
}

// tooLittle is the clause for a bucket that claims less than it must hold. What
// is lacking can be what did not come back since the level was last confirmed:
// then no request need have cost too much.
func (sc scene) tooLittle(after, claimed levels) (string, []string) {
	var cs candidates
	cs.add(!sc.past.asked, "RATE-1")
	cs.add(sc.onlySlow(after, claimed) || sc.past.late(), "RATE-2", sc.alsoPromised("RATE-10")...)
	cs.add(sc.past.rejections > 0 || sc.kind == rate, "RATE-8")
	cs.add(sc.kind != rate, "RATE-4")
	return cs.pick(sc.past.blamed)
}

// onlySlow reports whether a claim that is too low needs no other explanation than
// that nothing came back since the level was last confirmed.
func (sc scene) onlySlow(after, claimed levels) bool {
	sure := sc.past.sure
	if sc.kind != rate {
		sure -= Token
	}
	return claimed.hi < after.lo && claimed.hi >= sure
}

// untimely reports whether a claim needs no other explanation than tokens that did
// not come back when they had to, or were there before they had to be.
func (sc scene) untimely(after, claimed levels) bool {
	return sc.onlySlow(after, claimed) || claimed.hi < after.lo && sc.past.late() ||
		after.hi < claimed.lo && claimed.lo <= sc.allowance.full()-Token
}

// candidates are the clauses that explain one observation, the likeliest first.
type candidates []candidate

type candidate struct {
	clause string
	also   []string
}

func (cs *candidates) add(explains bool, clause string, also ...string) {
	if explains {
		*cs = append(*cs, candidate{clause, also})
	}
}

// addStatus adds the clause that speaks of the tokens of answers with a status.
func (cs *candidates) addStatus(explains bool, status int) {
	clause, also := byStatus(status)
	cs.add(explains && clause != "", clause, also...)
}

// pick prefers a clause that was blamed already: one mistake is likelier than two.
func (cs candidates) pick(blamed []string) (string, []string) {
	best := cs[0]
	for _, c := range cs {
		if slices.Contains(blamed, c.clause) {
			best = c
			break
		}
	}
	return best.clause, best.also
}

// missing is the finding for RateLimit headers that did not come.
func (sc scene) missing(names []string) Finding {
	f := Finding{Clause: "HDR-1", Field: strings.Join(names, ", "), Expected: "present", Ground: "the request was authenticated and its allowance resolved",
		Got: "absent", Consequence: "the client cannot see its bucket"}
	switch {
	case sc.kind == concurrency:
		f.Clause, f.Also = "CONC-2", []string{"HDR-1"}
	case sc.answer.Status == http.StatusNotFound, sc.answer.Status == http.StatusMethodNotAllowed:
		f.Also = []string{"SCOPE-3"}
	}
	return f
}
