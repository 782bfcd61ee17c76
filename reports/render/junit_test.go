package render_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// junitElement is what the schema that Jenkins publishes for JUnit files allows
// of an element.
type junitElement struct {
	children []string
	required []string
	optional []string
	text     bool
}

func junitElements() map[string]junitElement {
	message := junitElement{optional: []string{"type", "message"}, text: true}
	return map[string]junitElement{
		"":           {children: []string{"testsuites"}},
		"testsuites": {children: []string{"testsuite"}, optional: []string{"name", "time", "tests", "failures", "errors"}},
		"testsuite": {
			children: []string{"testsuite", "properties", "testcase", "system-out", "system-err"},
			required: []string{"name", "tests", "failures", "errors"},
			optional: []string{"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
		},
		"properties": {children: []string{"property"}},
		"property":   {required: []string{"name", "value"}},
		"testcase": {
			children: []string{"skipped", "error", "failure", "system-out", "system-err"},
			required: []string{"name"}, optional: []string{"time", "classname", "group"},
		},
		"skipped": message, "failure": message, "error": message,
		"system-out": {text: true}, "system-err": {text: true},
	}
}

// junitErrors holds a file to those rules.
func junitErrors(data []byte) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	open := []string{""}
	elements := junitElements()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		in := open[len(open)-1]
		switch x := token.(type) {
		case xml.StartElement:
			name := x.Name.Local
			if !slices.Contains(elements[in].children, name) {
				return fmt.Errorf("<%s> in <%s>", name, in)
			}
			rule := elements[name]
			missing := slices.Clone(rule.required)
			for _, a := range x.Attr {
				if !slices.Contains(rule.required, a.Name.Local) && !slices.Contains(rule.optional, a.Name.Local) {
					return fmt.Errorf("<%s %s>", name, a.Name.Local)
				}
				missing = slices.DeleteFunc(missing, func(m string) bool { return m == a.Name.Local })
				if a.Name.Local == "time" && !regexp.MustCompile(`^[0-9]+\.[0-9]{3}$`).MatchString(a.Value) {
					return fmt.Errorf("<%s time=%q>", name, a.Value)
				}
			}
			if len(missing) > 0 {
				return fmt.Errorf("<%s> without %v", name, missing)
			}
			open = append(open, name)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if !elements[in].text && strings.TrimSpace(string(x)) != "" {
				return fmt.Errorf("text in <%s>", in)
			}
		}
	}
}

func junit(t *testing.T, c record.Conformance) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, render.JUnit(&b, c))
	return b.Bytes()
}

func TestJUnit(t *testing.T) {
	for name, c := range map[string]record.Conformance{"junit.xml": judged(), "junit-expected.xml": expected()} {
		t.Run(name, func(t *testing.T) {
			data := junit(t, c)
			golden(t, name, data)
			require.NoError(t, junitErrors(data))
		})
	}
}

func TestJUnitCounts(t *testing.T) {
	var counts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Name    string `xml:"name,attr"`
			Skipped int    `xml:"skipped,attr"`
			Cases   []struct {
				Class string `xml:"classname,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(junit(t, judged()), &counts))
	require.Equal(t, 10, counts.Tests)
	require.Equal(t, 2, counts.Failures, "HDR-5 in two scenarios")
	require.Zero(t, counts.Errors)
	skipped := 0
	for _, s := range counts.Suites {
		skipped += s.Skipped
	}
	require.Equal(t, 5, skipped, "what was not run or could not be told")
	require.Equal(t, "brimline.request_rate.RATE-9", counts.Suites[2].Cases[0].Class)
}

// The rules are rules: what Jenkins would refuse is refused.
func TestJUnitRules(t *testing.T) {
	whole := string(junit(t, judged()))
	for name, change := range map[string][2]string{
		"an element of another place": {"</properties>", "</properties><failure/>"},
		"an unknown attribute":        {`<testcase `, `<testcase at="x" `},
		"a suite without counts":      {`errors="0" skipped`, `skipped`},
		"a time with a unit":          {`time="0.012"`, `time="12ms"`},
		"text between":                {"</testsuite>", "x</testsuite>"},
		"not closed":                  {"</testsuites>", ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, whole, change[0])
			require.Error(t, junitErrors([]byte(strings.Replace(whole, change[0], change[1], 1))))
		})
	}
}

// Whatever a target sends, the report stays well-formed.
func TestJUnitOfHostileAnswers(t *testing.T) {
	c := judged()
	c.Clauses[4].Scenarios[0].Findings[0].Got = "]]> <x a=\"b\"> & \x00\x1b[31m \xff"
	require.NoError(t, junitErrors(junit(t, c)))
}
