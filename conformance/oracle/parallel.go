package oracle

import (
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract"
)

// JudgeParallel takes in simultaneous requests, of which only the bounds are
// known: no more tokens were spent than the bucket can have held and gained from
// the first send to the last answer, and none was refused while one was
// certainly there (RATE-9). It returns one claim per sample still in flight, in
// their order.
func (b *Bucket) JudgeParallel(samples []Sample) ([]Claim, []Finding) {
	b.crowd = true
	c, findings := b.sort(samples)
	if len(c.asked) == 0 {
		return nil, findings
	}
	// The first decision settles a change, so what refills before it does so at
	// the old rate, and what refills after it at the new one.
	start, left := b.at(Span{c.whole.From, c.firstTo})
	refill := gain(b.is.RequestsPerMinute, c.whole.To-c.whole.From)
	wrong := b.bounds(c, start, refill)
	findings = append(findings, wrong...)

	full := b.is.full()
	most := min(full, start.hi+refill)
	after := kept{max(0, start.lo-(c.spent+c.unclear)*Token), left.hi - c.spent*Token}
	sc := b.scene(contract.Answer{}, spent, start, kept(start), c.whole)
	sc.parallel = true
	var claims []Claim
	for _, one := range c.asked {
		sc.kind = one.kind
		own := levels{after.lo, most - Token}
		if one.kind == rate {
			own.hi = Token - 1
		}
		switch {
		case one.Answer == nil:
			claims = append(claims, b.claim(sc, view{after: own}))
		default:
			sc.answer = *one.Answer
			found := sc.plain()
			if !own.empty() {
				found = append(found, sc.headers(view{after: own}).findings...)
			}
			findings = append(findings, sc.excess(found)...)
		}
	}

	if c.rejected > 0 { // less than a token was there at some moment, the first one if it has to be
		after.hi = min(after.hi, Token-1)
	}
	if len(wrong) > 0 { // then nothing is known
		after = kept{0, full}
	}
	b.settle(c.whole, after)
	b.forget(c.spent + c.unclear)
	b.past.fullRun = b.past.fullRun && c.rejected == 0
	return claims, findings
}

// crowd is simultaneous requests, sorted by what became of their tokens.
type crowd struct {
	asked                    []judged // those for which the bucket was asked
	whole                    Span     // all their spans
	firstTo                  int64    // the end of the span that ends first
	spent, rejected, unclear int64
}

type judged struct {
	Sample
	kind kind
}

func (b *Bucket) sort(samples []Sample) (crowd, []Finding) {
	var c crowd
	var findings []Finding
	for _, s := range samples {
		k := spent
		if s.Answer != nil {
			// Of one among many it is open whether a token was there.
			var wrong []Finding
			k, wrong = classify(*s.Answer, levels{0, b.is.full()}, 0, b.is, b.crowd)
			findings = append(findings, wrong...)
		}
		switch k {
		case untouched:
			findings = append(findings, bare(*s.Answer)...)
			continue
		case spent, concurrency:
			c.spent++
		case rate:
			c.rejected++
		case unclear:
			c.unclear++
		}
		if len(c.asked) == 0 {
			c.whole, c.firstTo = s.Span, s.Span.To
		}
		c.whole = Span{min(c.whole.From, s.Span.From), max(c.whole.To, s.Span.To)}
		c.firstTo = min(c.firstTo, s.Span.To)
		c.asked = append(c.asked, judged{s, k})
	}
	return c, findings
}

// bounds checks the number of tokens spent against what was there.
func (b *Bucket) bounds(c crowd, start levels, refill int64) []Finding {
	most := (start.hi + refill) / Token
	least := start.lo / Token
	f := Finding{Clause: "RATE-9", Also: []string{"RATE-1"}, Field: "tokens",
		Ground: fmt.Sprintf("%s, and at most %s came back meanwhile", b.is.held(start), levels{refill, refill})}
	switch {
	case c.spent > most:
		f.Expected, f.Got = fmt.Sprintf("at most %d spent", most), fmt.Sprintf("%d spent", c.spent)
		f.Consequence = "simultaneous requests share a token"
	case c.rejected > 0 && c.spent+c.unclear < least:
		f.Expected, f.Got = fmt.Sprintf("at least %d spent before any rejection", least), fmt.Sprintf("%d spent, %d rejected", c.spent, c.rejected)
		f.Consequence = "simultaneous requests lose tokens"
	default:
		return nil
	}
	return []Finding{f}
}
