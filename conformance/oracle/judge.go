package oracle

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/invoicespec/brimline/conformance/contract"
)

// kind is what an answer says became of the request's token.
type kind uint8

const (
	untouched   kind = iota // no bucket was asked: a 401, a configuration failure
	spent                   // one token spent, whatever followed
	concurrency             // one token spent, then rejected for want of a permit
	rate                    // rejected for want of a token
	unclear                 // a 429 that could be either, or no answer
)

// Judge takes in one answer and says which clauses it breaks. A concurrency
// rejection, a 4xx and a 5xx of the engine have spent a token like a success; a
// 401 and a configuration failure (503) have not.
func (b *Bucket) Judge(a contract.Answer, s Span) []Finding {
	before, left := b.at(s)
	k, findings := classify(a, before, b.past.sure, b.is, b.crowd)
	b.crowd = b.crowd || a.Status >= http.StatusInternalServerError // its work may go on
	if k == untouched {
		return append(findings, bare(a)...)
	}
	sc := b.scene(a, k, before, left, s)
	v := sc.view()
	if b.doubt != nil {
		v = b.reconsider(sc, s, v)
	}
	b.settle(s, v.kept)
	b.remember(sc, v)
	b.doubt = v.doubt
	findings = sc.excess(append(append(findings, sc.plain()...), v.findings...))
	for _, f := range findings {
		b.past.blamed, b.past.slow = with(b.past.blamed, f.Clause), b.past.slow || f.Short
	}
	if v.liar != "" {
		b.past.liars = with(b.past.liars, v.liar)
	}
	return findings
}

func with(all []string, one string) []string {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}

// doubt is kept where it was open whether a level or RateLimit-Remaining was
// wrong and the level was blamed: the other story.
type doubt struct {
	kept    kept    // what the bucket holds if the header was wrong
	offset  int64   // and by how much it is
	finding Finding // and what was to be found then
}

// reconsider asks which of two stories explains this answer as well. Where only
// that of a RateLimit-Remaining that is off does, the header is blamed after all.
func (b *Bucket) reconsider(sc scene, s Span, v view) view {
	old := *b.doubt
	sc.before, sc.kept = b.from(old.kept, s)
	other := sc.view()
	found := slices.DeleteFunc(slices.Clone(other.findings), func(f Finding) bool { return f.Clause != old.finding.Clause || f.Field != old.finding.Field })
	if len(other.findings) > 0 {
		sc.answer.Remaining.Value = max(0, sc.answer.Remaining.Value-old.offset)
		other = sc.view()
	}
	switch {
	case len(other.findings) > 0: // the other story is wrong
	case len(v.findings) == 0: // both are possible
		v.doubt = &doubt{kept: other.kept, offset: old.offset, finding: old.finding}
	default:
		if len(found) == 0 { // this answer is right
			old.finding.Got += " on an answer before"
			found = []Finding{old.finding}
		}
		v = view{kept: other.kept, findings: found, liar: old.finding.Field}
	}
	return v
}

// Spend takes in a request that was seen to be in flight, so its token is spent
// although its answer is still to come.
func (b *Bucket) Spend(s Span) (Claim, []Finding) {
	before, left := b.at(s)
	sc := b.scene(contract.Answer{}, spent, before, left, s)
	v := sc.outcome()
	b.settle(s, v.kept)
	b.remember(sc, v)
	b.doubt, b.crowd = nil, true
	return b.claim(sc, v), v.findings
}

// claim is the right to a judgment of the headers by what the bucket held.
func (b *Bucket) claim(sc scene, left view) Claim {
	return Claim{judge: func(a contract.Answer) []Finding {
		k, findings := classify(a, levels{Token, sc.allowance.full()}, Token, sc.allowance, true)
		switch k {
		case untouched:
			return append(findings, bare(a)...)
		}
		sc.answer, sc.kind = a, k
		findings = append(findings, sc.plain()...)
		if k == rate { // then what was witnessed was no spending
			b.kept.hi = min(b.was.full(), b.kept.hi+Token)
			return sc.excess(findings)
		}
		return sc.excess(append(findings, sc.headers(left).findings...))
	}}
}

// remember keeps what blame will depend on.
func (b *Bucket) remember(sc scene, v view) {
	p := &b.past
	switch {
	case v.told:
		p.sure = v.after.lo / Token * Token // what came back of the next token is none of it
	case sc.kind == rate:
		p.sure = min(p.sure, Token-1)
	default:
		p.sure = max(p.sure, Token) - Token
	}
	if sc.before.lo == sc.allowance.full() {
		p.fullRun, p.promised = true, sc.resetOver
	}
	p.asked = true
	if sc.answer.Limit.State == contract.Good {
		p.from = Allowance{}
	}
	p.kind, p.status = sc.kind, sc.answer.Status
	p.retryAfter, p.reset = sc.answer.RetryAfter, sc.answer.Reset
	if sc.kind == rate {
		p.rejections++
		p.fullRun = false
	} else {
		p.rejections = 0
	}
}

// classify says what an answer means for the bucket, and where its status and
// error code do not go together. Only in a crowd can a cap be full, and only sure
// units, which nothing had to come back for, show that it was not the bucket.
func classify(a contract.Answer, before levels, sure int64, al Allowance, crowd bool) (kind, []Finding) {
	code := a.Body.ErrorCode.Value
	switch {
	case a.Status == http.StatusUnauthorized, code == contract.CodeConfigUnavailable:
		return untouched, nil
	case code == contract.CodeRateLimited && crowd && disguised(a, before):
		return concurrency, []Finding{wrongCode("CONC-1", contract.CodeConcurrencyLimited, a, before, al)}
	case code == contract.CodeRateLimited && a.Status != http.StatusTooManyRequests:
		return rate, []Finding{wrongStatus("ERR-3", a, before, al)}
	case code == contract.CodeRateLimited:
		return rate, nil
	case code == contract.CodeConcurrencyLimited && a.Status != http.StatusTooManyRequests:
		return concurrency, []Finding{wrongStatus("CONC-1", a, before, al)}
	case code == contract.CodeConcurrencyLimited:
		return concurrency, nil
	case a.Status != http.StatusTooManyRequests:
		return spent, nil
	case a.Bodiless:
		return silent(a, before, sure, crowd), nil
	case before.hi < Token || !crowd:
		return rate, []Finding{wrongCode("ERR-3", contract.CodeRateLimited, a, before, al)}
	case sure >= Token:
		return concurrency, []Finding{wrongCode("CONC-1", contract.CodeConcurrencyLimited, a, before, al)}
	}
	return unclear, []Finding{wrongCode("ERR-3", contract.CodeRateLimited+" or "+contract.CodeConcurrencyLimited, a, before, al)}
}

// silent says which limit a 429 without a body met, as far as its headers show:
// only a bucket makes anybody wait longer than a second, and only a cap leaves
// tokens.
func silent(a contract.Answer, before levels, sure int64, crowd bool) kind {
	left := a.Remaining
	switch {
	case left.State == contract.Good && left.Value > 0:
		return concurrency
	case before.hi < Token, a.RetryAfter.State == contract.Good && a.RetryAfter.Value > 1:
		return rate
	case crowd && sure >= Token:
		return concurrency
	case !crowd && left.State == contract.Good:
		return rate
	}
	return unclear
}

// disguised reports whether an answer calls itself a rate rejection, though a
// token was there and its headers show that it was spent.
func disguised(a contract.Answer, before levels) bool {
	return before.lo >= Token && a.Remaining.State == contract.Good && a.Remaining.Value > 0 &&
		before.spent().remaining().has(a.Remaining.Value)
}

func wrongCode(clause, expected string, a contract.Answer, before levels, al Allowance) Finding {
	got := a.Body.ErrorCode.Value
	if got == "" {
		got = a.Body.ErrorCode.State.String()
	}
	return Finding{Clause: clause, Field: contract.MemberErrorCode, Expected: expected, Ground: al.held(before), Got: got,
		Consequence: "a client cannot tell which limit it met"}
}

func wrongStatus(clause string, a contract.Answer, before levels, al Allowance) Finding {
	return Finding{Clause: clause, Field: "status", Expected: "429", Ground: al.held(before), Got: fmt.Sprint(a.SaidStatus()),
		Consequence: "a client does not see that it met a limit"}
}

// bare finds RateLimit headers where there is no bucket to describe.
func bare(a contract.Answer) []Finding {
	clause, ground := "CFG-4", "no allowance could be resolved"
	if a.Status == http.StatusUnauthorized {
		clause, ground = "AUTH-1", "nobody was authenticated"
	}
	var findings []Finding
	for _, h := range rateLimitHeaders(a) {
		if h.State != contract.Absent {
			findings = append(findings, Finding{Clause: clause, Field: h.name, Expected: "absent", Ground: ground, Got: h.String(),
				Consequence: "it describes a bucket that is not the caller's"})
		}
	}
	return findings
}

type header struct {
	name string
	contract.Number
}

func rateLimitHeaders(a contract.Answer) []header {
	return []header{{contract.HeaderLimit, a.Limit}, {contract.HeaderRemaining, a.Remaining}, {contract.HeaderReset, a.Reset}}
}

// held says in words what a bucket held.
func (a Allowance) held(l levels) string {
	return fmt.Sprintf("the bucket held %s, %d a minute", l, a.RequestsPerMinute)
}
