package record

import "slices"

// Retold is c with every text told again by tell that may quote somebody: a
// server, a command, whoever wrote the target file or features of their own. What
// stays is what we name ourselves: ids, levels, verdicts.
func (c Conformance) Retold(tell func(string) string) Conformance {
	each := func(texts ...*string) {
		for _, t := range texts {
			*t = tell(*t)
		}
	}
	each(&c.Target.Description, &c.Target.Server, &c.Aborted)
	c.Target.Plans = slices.Clone(c.Target.Plans)
	for i := range c.Target.Plans {
		each(&c.Target.Plans[i])
	}
	c.Clauses = slices.Clone(c.Clauses)
	for i := range c.Clauses {
		cl := &c.Clauses[i]
		each(&cl.Group, &cl.Sentence, &cl.Decision, &cl.Reason)
		cl.Scenarios = slices.Clone(cl.Scenarios)
		for j := range cl.Scenarios {
			s := &cl.Scenarios[j]
			each(&s.Name, &s.At, &s.Reason)
			s.Findings = slices.Clone(s.Findings)
			for k := range s.Findings {
				f := &s.Findings[k]
				each(&f.Step, &f.Field, &f.Expected, &f.Ground, &f.Got, &f.Consequence, &f.Exchange, &f.Answer)
			}
		}
	}
	return c
}
