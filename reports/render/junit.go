package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// JUnit writes a run of the suite as JUnit XML: a suite per clause with its id,
// level and verdict among its properties, and in it a case per scenario. The
// class of a case is the clause below its group, so that servers which sort by
// package show groups. What was not run, could not be told or is known to fail
// is skipped with its reason and never an error; a DECIDED clause that differs
// passes and says so.
func JUnit(w io.Writer, c record.Conformance) error {
	doc := junitSuites{Name: "brimline", Time: junitTime(c.DurationMS)}
	for _, cl := range c.Clauses {
		suite := junitSuite{
			Name: cl.ID, Timestamp: c.Started.UTC().Format(time.RFC3339),
			Properties: []junitProperty{{"clause", cl.ID}, {"level", cl.Level}, {"group", cl.Group}, {"verdict", string(cl.Verdict)}, {"sentence", cl.Sentence}},
		}
		for _, k := range junitCases(cl) {
			suite.add(k)
		}
		suite.Time = junitTime(suite.ms)
		doc.Suites = append(doc.Suites, suite)
		doc.Tests += suite.Tests
		doc.Failures += suite.Failures
	}
	return doc.write(w)
}

func (s junitSuites) write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return fmt.Errorf("write JUnit XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	ms         int64
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Skipped *junitMessage `xml:"skipped"`
	Failure *junitMessage `xml:"failure"`
	Output  string        `xml:"system-out,omitempty"`
	ms      int64
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitMessage struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (s *junitSuite) add(k junitCase) {
	s.Cases = append(s.Cases, k)
	s.Tests++
	s.ms += k.ms
	if k.Failure != nil {
		s.Failures++
	}
	if k.Skipped != nil {
		s.Skipped++
	}
}

// junitCases is a case for each of a clause's scenarios; a clause that none
// sees is one skipped case, and one that is kept against a list one that fails.
func junitCases(c record.Clause) []junitCase {
	if len(c.Scenarios) == 0 {
		return []junitCase{junitCaseOf(c, record.Scenario{Name: c.Sentence, Verdict: c.Verdict, Reason: c.Reason})}
	}
	var cases []junitCase
	for _, s := range c.Scenarios {
		cases = append(cases, junitCaseOf(c, s))
	}
	if c.Verdict == record.Stale {
		cases = append(cases, junitCase{
			Class: junitClass(c), Name: "the list of known failures is up to date", Time: junitTime(0),
			Failure: &junitMessage{Type: string(c.Verdict), Message: c.ID + ": " + c.Reason},
		})
	}
	return cases
}

func junitCaseOf(c record.Clause, s record.Scenario) junitCase {
	k := junitCase{Class: junitClass(c), Name: s.Name, Time: junitTime(s.DurationMS), ms: s.DurationMS}
	skip := func(v record.Verdict, reason string) {
		k.Skipped = &junitMessage{Type: string(v), Message: remark(word(v), reason)}
	}
	switch {
	case s.Verdict == record.Fail && c.Verdict == record.KnownFails:
		skip(c.Verdict, c.Reason)
		k.Output = junitFindings(c, s)
	case s.Verdict == record.Fail:
		k.Failure = &junitMessage{Type: string(s.Verdict), Message: junitMessageOf(c, s), Text: junitFindings(c, s)}
	case s.Verdict == record.Differs:
		k.Output = "differs from the reference\n" + junitFindings(c, s) + "\n" + c.Decision
	case unjudged(s.Verdict):
		skip(s.Verdict, s.Reason)
	}
	return k
}

// junitClass puts a clause below its group.
func junitClass(c record.Clause) string {
	return "brimline." + junitWord(c.Group) + "." + c.ID
}

// junitWord is a name that can be a part of a class.
func junitWord(s string) string { return strings.NewReplacer(" ", "_", ".", "_").Replace(Visible(s)) }

// junitMessageOf is what is seen where there is room for one line.
func junitMessageOf(c record.Clause, s record.Scenario) string {
	if len(s.Findings) == 0 {
		return c.ID + ": " + c.Sentence
	}
	f := s.Findings[0]
	return fmt.Sprintf("%s: %s: expected %s, got %s", c.ID, f.Field, Visible(f.Expected), Visible(f.Got))
}

func junitFindings(c record.Clause, s record.Scenario) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n%s  %s\n", c.ID, c.Sentence, s.Name, s.At)
	for _, f := range s.Findings {
		b.WriteString("\n")
		for _, part := range []struct{ name, text string }{
			{"when", f.Step}, {"expected", f.Field + ": " + f.Expected}, {"since", f.Ground}, {"got", f.Field + ": " + f.Got},
			{"so", f.Consequence}, {"exchange", f.Exchange},
		} {
			if part.text != "" {
				fmt.Fprintf(&b, "%-9s %s\n", part.name, part.text)
			}
		}
		if f.Answer != "" {
			fmt.Fprintf(&b, "%s\n", f.Answer)
		}
	}
	return b.String()
}

func junitTime(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
