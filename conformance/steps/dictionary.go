package steps

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Sentence is a sentence as those who write features see it.
type Sentence struct {
	Topic    string          `json:"topic"`
	Keyword  string          `json:"keyword"` // Given, When or Then
	Text     string          `json:"text"`    // <1>, <2>, … stand for what a feature fills in
	Fill     [][]string      `json:"fill"`    // for each of them what is accepted, "…" being any words
	Table    bool            `json:"table"`   // a table of two columns follows
	Means    string          `json:"means"`
	Needs    []contract.Need `json:"needs"`   // of a target, whatever is filled in
	Pattern  string          `json:"pattern"` // a regular expression
	compiled *regexp.Regexp
}

// Dictionary is all sentences, ready to read features with.
type Dictionary struct{ all []Sentence }

// NewDictionary lists the sentences that features may use, by topic.
func NewDictionary() Dictionary {
	var d Dictionary
	patterns := compiled()
	for _, t := range new(Scenario).topics() {
		for _, x := range t.sentences {
			r := Sentence{
				Topic: t.name, Keyword: string(x.keyword), Means: x.means, Needs: append([]contract.Need{}, x.needs...),
				Pattern: x.pattern, compiled: patterns[x.pattern], Table: takesTable(x.does),
			}
			r.Text, r.Fill = readable(x.pattern)
			d.all = append(d.all, r)
		}
	}
	return d
}

// Sentences lists them.
func (d Dictionary) Sentences() []Sentence { return slices.Clone(d.all) }

func takesTable(does any) bool {
	f := reflect.TypeOf(does)
	return f.NumIn() > 0 && f.In(f.NumIn()-1) == reflect.TypeFor[*godog.Table]()
}

// UnknownError is a sentence that nobody understands.
type UnknownError struct {
	Keyword, Text string
	Nearest       []string // known ones, the most alike first
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no sentence \"%s %s\"; the nearest: %s", e.Keyword, e.Text, strings.Join(e.Nearest, "; "))
}

// Understand looks a sentence up and says what it needs of a target, what was
// filled in included. Its error is an [*UnknownError], or says that a table is
// missing or in vain.
func (d Dictionary) Understand(keyword, text string, table bool) ([]contract.Need, error) {
	for _, s := range d.all {
		if s.Keyword != keyword {
			continue
		}
		filled := s.compiled.FindStringSubmatch(text)
		if filled == nil {
			continue
		}
		if s.Table != table {
			return nil, fmt.Errorf("%q: %s", text, map[bool]string{true: "a table has to follow", false: "no table may follow"}[s.Table])
		}
		all := slices.Clone(s.Needs)
		for _, word := range filled[1:] {
			if err := inRange(word); err != nil {
				return nil, fmt.Errorf("%q: %w", text, err)
			}
			all = append(all, singular(word).needs()...)
		}
		return all, nil
	}
	return nil, &UnknownError{Keyword: keyword, Text: text, Nearest: d.nearest(keyword, text)}
}

// inRange is for a word that stands where a sentence has a number, and says
// nothing of others.
func inRange(word string) error {
	if strings.Trim(word, "0123456789") != "" {
		return nil
	}
	if n, err := strconv.Atoi(word); word != "" && (err != nil || n > mostAtOnce) {
		return fmt.Errorf("%.30s is too large; accepted: a number up to %d", word, mostAtOnce)
	}
	return nil
}

// nearest lists the sentences that share most words with a text. Another keyword
// counts as a word that differs.
func (d Dictionary) nearest(keyword, text string) []string {
	words := strings.Fields(strings.ToLower(text))
	unlike := func(s Sentence) int {
		theirs := strings.Fields(strings.ToLower(s.Written()))
		n := distance(words, theirs)
		if s.Keyword != keyword {
			n++
		}
		return n
	}
	all := slices.Clone(d.all)
	slices.SortStableFunc(all, func(a, b Sentence) int { return cmp.Compare(unlike(a), unlike(b)) })
	var near []string
	for _, s := range all[:3] {
		near = append(near, fmt.Sprintf("%q", s.Keyword+" "+s.Written()))
	}
	return near
}

// distance is how many words have to be put in, taken out or replaced.
func distance(a, b []string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		before := row[0]
		row[0] = i + 1
		for j, y := range b {
			here := before
			if x != y {
				here = 1 + min(before, row[j], row[j+1])
			}
			before, row[j+1] = row[j+1], here
		}
	}
	return row[len(b)]
}

// longest is how long the choices of a place may be to stand in the sentence.
const longest = 40

// Written is the sentence with its short choices in it.
func (s Sentence) Written() string {
	text := s.Text
	for i, fill := range s.Fill {
		if all := strings.Join(fill, "|"); len(all) <= longest {
			text = strings.Replace(text, fmt.Sprintf("<%d>", i+1), "<"+all+">", 1)
		}
	}
	return text
}

// Says reports whether a text is this sentence.
func (s Sentence) Says(text string) bool { return s.compiled.MatchString(text) }
