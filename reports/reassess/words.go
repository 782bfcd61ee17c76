package reassess

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// headline is the verdict in a few words.
func headline(p record.ReportPlan) string {
	v := p.Verdict
	switch v.Word {
	case record.Raise:
		return "raise to " + change(v.Today, v.Target)
	case record.Lower:
		return "lower to " + change(v.Today, v.Target)
	case record.Keep:
		text := "keep " + spoken(p.Allowance.RequestsPerMinute, p.Allowance.Burst)
		switch v.Keep {
		case record.KeepBeyond:
			text += "; nothing that was tried is enough"
		case record.KeepUnagreed:
			text += " for now"
		case record.KeepCapacity:
			text += "; the engine has no room for more"
		}
		return text
	}
	if v.Target != nil {
		return "not enough evidence to raise to " + change(v.Today, v.Target)
	}
	return "not enough evidence"
}

// change is what an allowance becomes, with concurrency where that changes.
func change(from, to *record.Cell) string {
	if to.Concurrency == from.Concurrency {
		return spoken(to.Rate, to.Burst)
	}
	places := fmt.Sprintf("%s at a time", figure.Grouped(to.Concurrency))
	if to.Rate == from.Rate && to.Burst == from.Burst {
		return places
	}
	return spoken(to.Rate, to.Burst) + ", " + places
}

func spoken(rate, burst int64) string {
	return fmt.Sprintf("%s a minute, burst %s", figure.Grouped(rate), figure.Grouped(burst))
}

// goal is what an allowance has to reach.
func goal(w *record.ReportWhatIf, rules record.ReportRules) string {
	return fmt.Sprintf("the goal, that %s of its %ss are OK,", figure.Short(rules.UsersOK), who(w))
}

// who is what the log can tell users by.
func who(w *record.ReportWhatIf) string { return noun(w.Pool) }

func noun(p record.Pool) string {
	if p == record.PoolClient {
		return "client"
	}
	return "user"
}

// because says why, in sentences.
func because(p record.ReportPlan, rules record.ReportRules) []string {
	list := undue(p)
	v, w := p.Verdict, p.WhatIf
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	lacks := func() {
		if len(v.Missing) > 0 {
			say("%s.", capital(strings.Join(v.Missing, "; ")))
		}
	}
	if v.Uncapped == nil {
		lacks()
	}
	switch {
	case v.Uncapped != nil && v.Word != record.Lower:
		to := cmp.Or(v.Target, v.Uncapped)
		say("%s; at %s it would be %s (%d).", todays(p), at(v.Today, to), figure.Short(to.UsersAffectedShare), to.UsersAffected)
		lacks()
	case v.Today != nil && v.Keep != record.KeepGoalMet && v.Word != record.Lower:
		say("%s.", todays(p))
	}
	switch {
	case v.Word == record.Raise && v.HeldBy != "":
		say("The goal alone would take %s; %s holds it.", at(v.Today, v.Uncapped), v.HeldBy)
	case v.Word == record.NotEnoughEvidence && v.Target != nil && *v.Target != *v.Uncapped:
		say("The goal alone would take %s, which reaches into the plan %s.", at(v.Today, v.Uncapped), p.Next)
	case v.Word == record.Lower:
		list = append(list, okay(v.Today, w))
		say("At %s still %s of them would be OK (%d more with a 429), and the engine would have more room: it is over what it may be asked for.",
			at(v.Today, v.Target), figure.Short(v.Target.UsersOKShare), v.Target.UsersAffected-v.Today.UsersAffected)
	case v.Keep == record.KeepGoalMet:
		list = append(list, okay(v.Today, w))
		if c := v.LookAt; c != nil {
			say("Something to look at, not a recommendation: %s would meet %s too (%d more %ss with a 429).",
				pair(c.Rate, c.Burst), goal(w, rules), c.UsersAffected-v.Today.UsersAffected, who(w))
		}
	case v.Keep == record.KeepTooFew:
		say("%s is missed, but a raise would spare only %s.", capital(goal(w, rules)), figure.Count(int64(v.Moved), who(w)))
	case v.Keep == record.KeepNextPlan:
		say("%s would take what the plan %s is for: an upgrade for those who need it, not a raise for all.", capital(goal(w, rules)), v.NextPlan)
	case v.Keep == record.KeepCapacity:
		say("The engine has no room for it: %s.", strings.TrimPrefix(v.HeldBy, "the engine: "))
	case v.Keep == record.KeepUnagreed:
		say("A change takes %d reports or %s that agree; earlier reports are given with --against.", rules.AgreeReports, figure.Count(int64(rules.AgreeDays), "day"))
	case v.Keep == record.KeepOther:
		list = append(list, "Most of its users run out of paid operations before the rate limit refuses anything: it is not what holds them.")
	case v.Keep == record.KeepBeyond:
		say("No allowance that was tried, up to %s, meets %s: whoever needs so much is to be looked at one by one.", pair(most(w, rules)), strings.TrimSuffix(goal(w, rules), ","))
	}
	if v.Today != nil && v.Today.Rejected > 0 {
		list = append(list, oneUser(v.Today, w, rules))
	}
	if v.Uncapped != nil && v.Word != record.Lower {
		list = append(list, alternatives(p)...)
	}
	list = append(list, otherwise(p)...)
	if w != nil && w.LeftOut > 0 {
		say("%s with an allowance of their own at some time %s left out.", figure.Count(int64(w.LeftOut), "user"), plural(w.LeftOut, "is", "are"))
	}
	return list
}

// at is a cell as a pair, with the concurrency where that is another.
func at(from, to *record.Cell) string {
	if to.Concurrency == from.Concurrency {
		return pair(to.Rate, to.Burst)
	}
	return pair(to.Rate, to.Burst) + fmt.Sprintf(" and %s at a time", figure.Grouped(to.Concurrency))
}

// length is how much traffic there is: days with some, or the span of less.
func length(w *record.ReportWhatIf) string {
	if w.Days > 1 && w.SpanS >= 86400 {
		return figure.Count(int64(w.Days), "day")
	}
	return figure.Seconds(w.SpanS)
}

// todays says whom today's allowance hits.
func todays(p record.ReportPlan) string {
	c, w := p.Verdict.Today, p.WhatIf
	return fmt.Sprintf("At today's %s, %s of its %ss (%s of %s, 95 %% interval %s %%) meet a 429 in %s of traffic",
		pair(c.Rate, c.Burst), figure.Short(c.UsersAffectedShare), who(w), figure.Grouped(int64(c.UsersAffected)),
		figure.Grouped(int64(w.Users)), figure.Interval(c.UsersAffected95), length(w))
}

func okay(c *record.Cell, w *record.ReportWhatIf) string {
	return fmt.Sprintf("%s of its %ss (%s of %s, 95 %% interval %s %%) have fewer than one in a thousand of their requests rejected, in %s of traffic.",
		figure.Short(c.UsersOKShare), who(w), figure.Grouped(int64(c.UsersOK)), figure.Grouped(int64(w.Users)),
		figure.Interval(c.UsersOK95), length(w))
}

// oneUser says how much of the rejections one user makes.
func oneUser(c *record.Cell, w *record.ReportWhatIf, rules record.ReportRules) string {
	if c.TopShare >= rules.TopShare && c.UsersAffected > 1 {
		return fmt.Sprintf("The number of rejections is one %s's story: it makes %s of them.", who(w), figure.Short(c.TopShare))
	}
	return fmt.Sprintf("One %s makes %s of all rejections.", who(w), figure.Short(c.TopShare))
}

// most is the largest allowance that was tried in today's proportion.
func most(w *record.ReportWhatIf, rules record.ReportRules) (rate, burst int64) {
	line := policyLine(w, rules.Burst)
	last := line[len(line)-1]
	return last.Rate, last.Burst
}

// alternatives are other allowances that would do.
func alternatives(p record.ReportPlan) (list []string) {
	v := p.Verdict
	if c := v.WithoutRefused; c != nil {
		list = append(list, fmt.Sprintf("Had the %s refused at the time not been made, %s would do.",
			figure.Count(p.WhatIf.AlreadyRefused, "attempt"), pair(c.Rate, c.Burst)))
	}
	var others []string
	for _, c := range v.Alternatives {
		others = append(others, pair(c.Rate, c.Burst))
	}
	if len(others) > 0 {
		list = append(list, fmt.Sprintf("With the burst in another proportion to the rate it would take %s.", strings.Join(others, " or ")))
	}
	return list
}

// undue says what a run saw that no limiter of this allowance decides.
func undue(p record.ReportPlan) (list []string) {
	list = []string{}
	for _, s := range p.Scores {
		if s.RateJudged == nil {
			continue
		}
		if n := s.RateJudged.Undue; n > 0 {
			list = append(list, fmt.Sprintf("%s: %s for the rate though there surely was a token.", s.Source, figure.Count(n, "rejection")))
		}
		if n := s.ConcurrencyJudged.Undue; n > 0 {
			list = append(list, fmt.Sprintf("%s: %s for concurrency though there surely was a place.", s.Source, figure.Count(n, "rejection")))
		}
		if n := s.Rejected - s.RateJudged.Plus(*s.ConcurrencyJudged).Sum(); n > 0 {
			list = append(list, fmt.Sprintf("%s: %s could not be judged: they name no known cause, or came as before authentication.", s.Source, figure.Count(n, "429")))
		}
		if n := *s.WithoutToken; n > 0 {
			list = append(list, fmt.Sprintf("%s: %s got past the limit though there surely was no token.", s.Source, figure.Count(n, "request")))
		}
	}
	return list
}

// doubted says which runs tell nothing of the plan.
func (s *subject) doubted() (list []string) {
	for _, r := range s.runs {
		if len(r.doubts) > 0 {
			list = append(list, fmt.Sprintf("%s says nothing of this plan: %s.", r.name, strings.Join(r.doubts, "; ")))
		}
	}
	return list
}

// capital begins a sentence.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// otherwise says which runs were made under another allowance than today's.
func otherwise(p record.ReportPlan) (list []string) {
	for _, s := range p.Scores {
		if a := s.Allowance; s.Basis == record.BasisMeasured && a != nil && p.Allowance != nil &&
			(a.RequestsPerMinute != p.Allowance.RequestsPerMinute || a.Burst != p.Allowance.Burst) {
			list = append(list, fmt.Sprintf("%s was made at %s and not at today's %s.", s.Source,
				pair(a.RequestsPerMinute, a.Burst), pair(p.Allowance.RequestsPerMinute, p.Allowance.Burst)))
		}
	}
	return list
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
