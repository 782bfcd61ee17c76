package render

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// JUnit writes a run of the suite as JUnit XML: a suite per group, a case per
// clause and scenario, the clause's id in the class name and among the
// properties. What was not run, or could not be told, is skipped with its
// reason; a DECIDED clause that differs is a case that says so and passes.
func JUnit(w io.Writer, c record.Conformance) error {
	doc := junitSuites{Name: "brimline", Time: junitTime(c.DurationMS)}
	for _, cl := range c.Clauses {
		if n := len(doc.Suites); n == 0 || doc.Suites[n-1].Name != cl.Group {
			doc.Suites = append(doc.Suites, junitSuite{Name: cl.Group, Timestamp: c.Started.UTC().Format(time.RFC3339)})
		}
		suite := &doc.Suites[len(doc.Suites)-1]
		for _, k := range junitCases(cl) {
			suite.add(k)
		}
	}
	for i := range doc.Suites {
		s := &doc.Suites[i]
		s.Time = junitTime(s.ms)
		doc.Tests += s.Tests
		doc.Failures += s.Failures
		doc.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
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
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
	ms        int64
}

type junitCase struct {
	Class      string          `xml:"classname,attr"`
	Name       string          `xml:"name,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Skipped    *junitMessage   `xml:"skipped"`
	Failure    *junitMessage   `xml:"failure"`
	Output     string          `xml:"system-out,omitempty"`
	ms         int64
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitMessage struct {
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
// sees is one skipped case.
func junitCases(c record.Clause) []junitCase {
	if len(c.Scenarios) == 0 {
		return []junitCase{junitCaseOf(c, record.Scenario{Name: c.Sentence, Verdict: c.Verdict, Reason: c.Reason})}
	}
	var cases []junitCase
	for _, s := range c.Scenarios {
		cases = append(cases, junitCaseOf(c, s))
	}
	return cases
}

func junitCaseOf(c record.Clause, s record.Scenario) junitCase {
	k := junitCase{
		Class: "brimline." + c.ID, Name: s.Name, Time: junitTime(s.DurationMS), ms: s.DurationMS,
		Properties: []junitProperty{{"clause", c.ID}, {"level", c.Level}, {"verdict", string(s.Verdict)}, {"at", s.At}},
	}
	switch s.Verdict {
	case record.Fail:
		k.Failure = &junitMessage{Message: c.Sentence, Text: junitFindings(s)}
	case record.Differs:
		k.Output = "differs from the reference: " + c.Sentence + "\n" + junitFindings(s)
	case record.NotRun, record.Inconclusive, record.SetupFailed, record.Untrue:
		k.Skipped = &junitMessage{Message: word(s.Verdict) + ": " + s.Reason}
	}
	return k
}

func junitFindings(s record.Scenario) string {
	var b strings.Builder
	for _, f := range s.Findings {
		fmt.Fprintf(&b, "when:     %s\nexpected: %s: %s  %s\ngot:      %s: %s  %s\nexchange: %s\n%s\n\n",
			f.Step, f.Field, f.Expected, f.Ground, f.Field, f.Got, f.Consequence, f.Exchange, f.Answer)
	}
	return strings.TrimSpace(b.String())
}

func junitTime(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
