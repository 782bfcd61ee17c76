package oracle

import (
	"fmt"
	"math"

	"github.com/invoicespec/brimline/conformance/contract"
)

// scene is one answer with all that its judgment depends on.
type scene struct {
	allowance Allowance
	answer    contract.Answer
	kind      kind
	before    levels // what the request met
	kept      kept   // the same, as the bucket keeps it
	past      past
	least     int64 // microseconds since the last decision, at the least
	gained    int64 // units that can have refilled since then, at the most
	resetOver bool  // the last answer's Reset is over
	retryOver bool  // the last rejection's Retry-After is over
	parallel  bool  // one of several at once, of which only bounds are known
}

func (b *Bucket) scene(a contract.Answer, k kind, before levels, left kept, s Span) scene {
	least, most := b.elapsed(s)
	return scene{
		allowance: b.is, answer: a, kind: k, before: before, kept: left, past: b.past,
		least: least, gained: gain(b.was.RequestsPerMinute, most),
		resetOver: over(b.past.reset, least),
		retryOver: b.past.kind == rate && over(b.past.retryAfter, least),
	}
}

// over reports whether the seconds that a header promised have surely passed.
func over(n contract.Number, micros int64) bool {
	return n.State == contract.Good && n.Value+n.Slack <= micros/1_000_000
}

// view is how one request looks, given what the bucket held before it.
type view struct {
	after    levels // what is left
	kept     kept   // the same, as the bucket keeps it
	findings []Finding
	doubt    *doubt
	told     bool   // a header that can be relied on says so
	liar     string // the header that another one beside it proves wrong
}

// view judges the request by the level that it met.
func (sc scene) view() view { return sc.headers(sc.outcome()) }

// outcome says what the request left in the bucket, and whether what became of
// it is possible at all.
func (sc scene) outcome() view {
	switch sc.kind {
	case rate:
		if after := sc.before.short(); !after.empty() {
			return view{after: after, kept: sc.kept.short()}
		}
		return view{after: levels{0, Token - 1}, kept: kept{0, Token - 1}, findings: []Finding{sc.undue()}}
	case unclear:
		left := kept{sc.kept.spent().lo, max(sc.kept.spent().hi, sc.kept.short().hi)}
		return view{after: levels{0, sc.allowance.full()}, kept: left}
	}
	if after := sc.before.spent(); !after.empty() {
		return view{after: after, kept: sc.kept.spent()}
	}
	most := sc.allowance.full() - Token
	return view{after: levels{0, most}, kept: kept{0, most}, findings: []Finding{sc.early()}}
}

// headers checks the headers against what the request left in the bucket, and
// learns from them.
func (sc scene) headers(v view) view {
	a := sc.answer
	switch sc.kind {
	case unclear:
		return v
	case rate:
		if a.Remaining.State == contract.Good && a.Remaining.Value != 0 {
			v.findings = append(v.findings, sc.wrong("HDR-3", contract.HeaderRemaining, "0", a.Remaining, v.after))
		}
		sc.weigh(&v, sc.readings(v.after, contract.HeaderReset, contract.HeaderRetryAfter))
		return v
	case concurrency:
		v.findings = append(v.findings, sc.concurrencyRetryAfter()...)
	}
	readings := sc.readings(v.after, contract.HeaderRemaining)
	if len(readings) == 1 && readings[0].right() && !sc.parallel {
		// Learn from it, so that Reset has to fit it.
		v.after, v.kept, v.told = v.after.and(readings[0].levels), v.kept.and(readings[0].levels), true
	}
	sc.weigh(&v, append(readings, sc.readings(v.after, contract.HeaderReset)...))
	return v
}

// reading is a header's value beside what it should have been.
type reading struct {
	name     string
	number   contract.Number
	expected values
	levels   levels // that explain the number
}

func (r reading) right() bool {
	n := r.number
	return r.expected.lo <= n.Value+n.Slack && n.Value-n.Slack <= r.expected.hi
}

// off is how far the number is from what it should have been.
func (r reading) off() int64 {
	return r.number.Value - min(max(r.number.Value, r.expected.lo), r.expected.hi)
}

// readings is the headers of these names that can be read.
func (sc scene) readings(after levels, names ...string) []reading {
	al, a := sc.allowance, sc.answer
	var rs []reading
	for _, name := range names {
		r := reading{name: name}
		switch name {
		case contract.HeaderRemaining:
			r.number, r.expected, r.levels = a.Remaining, after.remaining(), al.readRemaining(a.Remaining.Value)
		case contract.HeaderReset:
			r.number, r.expected, r.levels = a.Reset, al.reset(after), sc.readReset()
		case contract.HeaderRetryAfter:
			r.number, r.expected, r.levels = a.RetryAfter, al.retryAfter(after), al.readRetryAfter(a.RetryAfter.Value)
		}
		if r.number.State == contract.Good {
			rs = append(rs, r)
		}
	}
	return rs
}

// readReset is the levels that explain RateLimit-Reset, which may be off by its
// slack.
func (sc scene) readReset() levels {
	n := sc.answer.Reset
	return levels{sc.allowance.readReset(n.Value + n.Slack).lo, sc.allowance.readReset(max(0, n.Value-n.Slack)).hi}
}

// weigh says what is wrong with readings. A header that was found to lie by
// itself is no witness of the level any more. Wrong ones of the others that agree
// with each other show a bucket whose level is wrong, and what is known of it
// afterwards is what they claim; one that is wrong beside a right one is a wrong
// header. Where a right RateLimit-Reset is too coarse to contradict a wrong
// RateLimit-Remaining, it may be either.
func (sc scene) weigh(v *view, readings []reading) {
	claimed := levels{math.MinInt64, math.MaxInt64}
	var wrong []reading // of the witnesses
	witnesses := 0
	lies := false
	for _, r := range readings {
		switch {
		case sc.past.lies(r.name):
			if lies = true; !r.right() {
				v.findings = append(v.findings, sc.single(r, v.after))
			}
			continue
		case r.right():
			v.told = true
		default:
			wrong = append(wrong, r)
		}
		witnesses++
		claimed = claimed.and(r.levels)
	}
	if len(wrong) == 0 {
		return
	}
	one := wrong[0]
	certain := len(wrong) == witnesses && (one.name == contract.HeaderRemaining || !lies)
	eitherWay := one.name == contract.HeaderRemaining && !sc.parallel
	if claimed.empty() && len(wrong) > 1 && one.name == contract.HeaderRemaining && sc.untimely(v.after, one.levels) {
		// Both are wrong in their own way: with a Reset that is, Remaining may be right.
		v.liar, sc.past.liars = contract.HeaderReset, with(sc.past.liars, contract.HeaderReset)
		sc.weigh(v, readings)
		return
	}
	contradicts := sc.kind == rate && claimed.lo >= Token // then it would not have been rejected
	if claimed.empty() || contradicts || !certain && !eitherWay {
		for _, r := range wrong {
			v.findings = append(v.findings, sc.single(r, v.after))
		}
		if claimed.empty() && len(wrong) == 1 && sc.kind != rate {
			v.liar = one.name
		}
		return
	}
	v.findings = append(v.findings, sc.level(one, v.after, claimed))
	if sc.parallel {
		return
	}
	if !certain {
		v.doubt = &doubt{kept: v.kept, finding: sc.single(one, v.after), offset: one.off()}
	}
	most := sc.allowance.full()
	if sc.kind == rate {
		most = Token - 1
	}
	if c := claimed.and(levels{0, most}); !c.empty() {
		v.after, v.kept, v.told = c, kept(c), true
	}
}

// single is the finding for a header that is wrong by itself.
func (sc scene) single(r reading, after levels) Finding {
	return sc.wrong(sc.headerClause(r), r.name, r.expected.String(), r.number, after)
}

// headerClause is the clause that a single wrong header breaks.
func (sc scene) headerClause(r reading) string {
	switch {
	case r.name == contract.HeaderReset:
		return "HDR-4"
	case r.name == contract.HeaderRetryAfter && sc.past.rejections > 0 && r.number.Value > sc.past.retryAfter.Value:
		return "RATE-8" // it grew while nothing but rejections came
	case r.name == contract.HeaderRetryAfter:
		return "HDR-5"
	case sc.kind == concurrency && r.number.Value < r.expected.lo && !sc.past.lies(r.name):
		return "HDR-9"
	}
	return "HDR-3"
}

func (sc scene) wrong(clause, name, expected string, n contract.Number, after levels) Finding {
	f := Finding{Clause: clause, Field: name, Expected: expected, Ground: sc.allowance.held(after), Got: n.String()}
	f.Consequence = consequence(name, n.Value, expected)
	if n.Slack > 0 { // it is an instant
		f.Expected += " s from now"
	}
	return f
}

func consequence(name string, got int64, expected string) string {
	var lo int64
	_, _ = fmt.Sscan(expected, &lo)
	switch low := got < lo; {
	case name == contract.HeaderRemaining && low:
		return "the client would hold back requests that are allowed"
	case name == contract.HeaderRemaining:
		return "the client would count on tokens that are not there"
	case low && name == contract.HeaderRetryAfter:
		return "the client would come back too early and be refused again"
	case low:
		return "the client would come back before the burst is there"
	}
	return "the client would wait longer than it has to"
}

func (sc scene) concurrencyRetryAfter() []Finding {
	n := sc.answer.RetryAfter
	if n.State == contract.Good && n.Value == 1 {
		return nil
	}
	return []Finding{{Clause: "CONC-2", Field: contract.HeaderRetryAfter, Expected: "1", Ground: "the cap was full, not the bucket empty",
		Got: n.String(), Consequence: "the client would not know when to come back"}}
}

// limit is the finding for a RateLimit-Limit that is not the burst.
func (sc scene) limit() Finding {
	f := Finding{Clause: "HDR-2", Field: contract.HeaderLimit, Expected: fmt.Sprint(sc.allowance.Burst),
		Ground: fmt.Sprintf("the allowance has a burst of %d", sc.allowance.Burst), Got: sc.answer.Limit.String(),
		Consequence: "the client would plan with a burst that it does not have"}
	if sc.changed() && sc.answer.Limit.Value == sc.past.from.Burst {
		f.Clause, f.Also = sc.changeClause(), []string{"HDR-2"}
		f.Consequence = "the change has not reached the limiter"
	}
	return f
}

// plain is what the headers show by themselves, whatever the level is.
func (sc scene) plain() []Finding {
	findings := sc.form()
	if n := sc.answer.Limit; n.State == contract.Good && n.Value != sc.allowance.Burst {
		findings = append(findings, sc.limit())
	}
	return findings
}

// excess finds a Remaining above Limit. Where it is wrong anyway that is the same
// observation.
func (sc scene) excess(findings []Finding) []Finding {
	limit, n := sc.answer.Limit, sc.answer.Remaining
	if limit.State != contract.Good || n.State != contract.Good || n.Value <= limit.Value {
		return findings
	}
	for i, f := range findings {
		if f.Field == contract.HeaderRemaining {
			findings[i].Also = append(f.Also, "HDR-8")
			return findings
		}
	}
	return append(findings, Finding{Clause: "HDR-8", Field: contract.HeaderRemaining, Expected: "at most " + limit.String(),
		Ground: "the same answer says " + contract.HeaderLimit + ": " + limit.String(), Got: n.String(),
		Consequence: "the client cannot tell how much of its burst is left"})
}

// form finds headers that are missing, doubled or no plain number.
func (sc scene) form() []Finding {
	hs := rateLimitHeaders(sc.answer)
	if sc.kind == rate {
		hs = append(hs, header{contract.HeaderRetryAfter, sc.answer.RetryAfter})
	}
	var findings []Finding
	var missing []string
	for _, h := range hs {
		switch h.State {
		case contract.Absent:
			if h.name == contract.HeaderRetryAfter {
				findings = append(findings, Finding{Clause: "HDR-5", Field: h.name, Expected: "present", Ground: "it is a rate rejection", Got: "absent",
					Consequence: "the client does not know when to come back"})
				continue
			}
			missing = append(missing, h.name)
		case contract.Malformed, contract.Doubled:
			f := Finding{Clause: "HDR-8", Field: h.name, Expected: "one plain decimal integer", Ground: "a client parses it as such",
				Got: h.State.String() + ": " + h.String()}
			switch {
			case h.State == contract.Doubled:
			case h.name == contract.HeaderRetryAfter:
				f.Also = []string{"HDR-5"}
			case h.name == contract.HeaderRemaining && sc.kind == rate:
				f.Also = []string{"HDR-3"}
			}
			findings = append(findings, f)
		}
	}
	if len(missing) > 0 {
		findings = append(findings, sc.missing(missing))
	}
	return findings
}
