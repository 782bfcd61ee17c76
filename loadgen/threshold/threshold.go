// Package threshold holds a load run against what was asked of it: "of the free
// plan's requests fewer than 5 % are rejected", "no 429 is undue".
//
// Most callers [Parse] thresholds, or read them with a scenario, and [Evaluate]
// them on a run's record. A [Watch] says during a run whether it is worth going
// on.
//
// A threshold is a figure, a comparison and a value:
//
//	free.rejected.rate < 5%
//	pro.admitted.latency.p99 < 250ms
//	undue-429 == 0
//
// A figure begins with a plan, or else is over all plans; [Subjects] are counted,
// and of some there are latencies. A figure that rests on nothing is no pass: the
// verdict is that there was no data.
package threshold

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Threshold is one, read. Two of the same text are equal.
type Threshold struct {
	text    string
	plan    string // empty: over all plans
	subject string
	measure measure
	from    string // of a latency: due, service or first-byte
	stat    string // of a latency, such as p99
	compare string
	value   fraction // in the unit of the figure
}

// fraction is an exact number.
type fraction struct{ num, den int64 }

// measure is what is told of a subject.
type measure string

const (
	count     measure = "count"
	rate      measure = "rate"       // a share
	perSecond measure = "per-second" // over the run's length
	latency   measure = "latency"    // in microseconds
)

// What a latency is counted from and to.
const (
	fromDue   = "due"
	service   = "service"    // from the first byte sent
	firstByte = "first-byte" // from the first byte sent to the first byte of the answer
)

// longestText bounds a threshold.
const longestText = 200

var (
	parts      = regexp.MustCompile(`^([^\s<>=]+) *(<=|>=|==|<|>) *([^\s<>=]+)$`)
	values     = regexp.MustCompile(`^([0-9]{1,9})(?:\.([0-9]{1,4}))?([^0-9.]*)$`)
	statistics = []string{"p50", "p90", "p95", "p99", "p99.9", "mean", "min", "max"}
)

// Parse reads a threshold. Its error says what would be accepted.
func Parse(text string) (Threshold, error) {
	if len(text) > longestText {
		return Threshold{}, fmt.Errorf("a threshold of %d bytes; accepted: at most %d", len(text), longestText)
	}
	p := parts.FindStringSubmatch(text)
	if p == nil {
		return Threshold{}, fmt.Errorf("%q is no threshold; accepted: a figure, one of <, <=, ==, >=, > and a value, such as free.rejected.rate < 5%%", text)
	}
	t := Threshold{text: text, compare: p[2]}
	if err := t.figure(p[1]); err != nil {
		return Threshold{}, err
	}
	var err error
	if t.value, err = t.measure.value(p[3]); err != nil {
		return Threshold{}, err
	}
	return t, t.sensible()
}

// UnmarshalText reads one.
func (t *Threshold) UnmarshalText(text []byte) (err error) {
	*t, err = Parse(string(text))
	return err
}

// String is the threshold as it was written.
func (t Threshold) String() string { return t.text }

// Plan is the plan that the threshold is about; empty: all together.
func (t Threshold) Plan() string { return t.plan }

// figure reads what stands before the comparison. No word of what is told of a
// subject is a subject, so the last subject is the one, whatever plans are called.
func (t *Threshold) figure(text string) error {
	words := strings.Split(text, ".")
	at := len(words) - 1
	for at >= 0 && !slices.Contains(Subjects(), words[at]) {
		at--
	}
	if at < 0 {
		return fmt.Errorf("%q names nothing that is counted; accepted, after a plan's name and a point or alone: %s", text, strings.Join(Subjects(), ", "))
	}
	t.plan, t.subject = strings.Join(words[:at], "."), words[at]
	if at > 0 && t.plan == "" {
		return fmt.Errorf("%q begins with a point; accepted: a plan's name before it, or no point", text)
	}
	return t.told(strings.Join(words[at+1:], "."))
}

// told reads what is told of the subject.
func (t *Threshold) told(text string) error {
	of := subjectOf(t.subject)
	switch m := measure(text); {
	case text == "" || m == count:
		t.measure = count
		return nil
	case m == perSecond && of.flows, m == rate && of.of != "":
		t.measure = m
		return nil
	}
	rest, isLatency := strings.CutPrefix(text, string(latency)+".")
	if isLatency && len(of.outcomes) > 0 {
		t.measure, t.from, t.stat = latency, fromDue, rest
		for _, from := range []string{service, firstByte} {
			if stat, ok := strings.CutPrefix(rest, from+"."); ok {
				t.from, t.stat = from, stat
			}
		}
		if slices.Contains(statistics, t.stat) {
			return nil
		}
		return fmt.Errorf("%q is no figure of latencies; accepted: %s, after service. or first-byte. if not from the due time", rest, strings.Join(statistics, ", "))
	}
	accepted := []string{string(count)}
	if of.of != "" {
		accepted = append(accepted, string(rate))
	}
	if of.flows {
		accepted = append(accepted, string(perSecond))
	}
	if len(of.outcomes) > 0 {
		accepted = append(accepted, "latency.p99")
	}
	return fmt.Errorf("%q is not told of %s; accepted: %s", text, t.subject, strings.Join(accepted, ", "))
}

// value reads a value in the unit of the measure.
func (m measure) value(text string) (fraction, error) {
	units := map[measure]map[string]fraction{ // of one unit
		count:     {"": {1, 1}},
		rate:      {"%": {1, 100}},
		perSecond: {"/s": {1, 1}, "/min": {1, 60}},
		latency:   {"us": {1, 1}, "µs": {1, 1}, "ms": {1000, 1}, "s": {1_000_000, 1}},
	}
	accepted := map[measure]string{
		count: "a whole number", rate: "a share such as 5%", perSecond: "a rate such as 12.5/s or 300/min",
		latency: "a time such as 250ms, 1.5s or 800us",
	}
	p := values.FindStringSubmatch(text)
	if p == nil {
		return fraction{}, fmt.Errorf("%q is no value; accepted: %s", text, accepted[m])
	}
	unit, ok := units[m][p[3]]
	if !ok || m == count && p[2] != "" {
		return fraction{}, fmt.Errorf("%q does not fit; accepted: %s", text, accepted[m])
	}
	n, err := strconv.ParseInt(p[1]+p[2], 10, 64) // at most 13 digits
	if err != nil {
		return fraction{}, err
	}
	v := fraction{n * unit.num, unit.den}
	for range p[2] {
		v.den *= 10
	}
	if m == rate && v.num > v.den {
		return fraction{}, fmt.Errorf("%s is more than all; accepted: up to 100%%", text)
	}
	return v, nil
}

// sensible refuses a threshold whose verdict is known before the run.
func (t Threshold) sensible() error {
	whole := t.measure == rate && t.value.num == t.value.den
	switch {
	case t.value.num == 0 && t.compare == "<", whole && t.compare == ">":
		return errors.New("it can never hold; accepted: one that may")
	case t.value.num == 0 && t.compare == ">=", whole && t.compare == "<=":
		return errors.New("it always holds; accepted: one that may be broken")
	}
	return nil
}
