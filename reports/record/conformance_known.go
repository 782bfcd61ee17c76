package record

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/files"
)

// KnownFailing is a clause of which it is known that a deployment does not keep
// it.
type KnownFailing struct {
	Clause string `json:"clause"`
	Reason string `json:"reason,omitempty"` // as the list says it
}

// MaxKnownFailing bounds the text of a list, in bytes.
const MaxKnownFailing = 64 << 10

// maxKnownReason bounds one reason, in characters.
const maxKnownReason = 300

// ReadKnownFailing reads a list from a file; see [ParseKnownFailing].
func ReadKnownFailing(path string, exists func(id string) bool) ([]KnownFailing, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxKnownFailing+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ParseKnownFailing(path, data, exists)
}

// ParseKnownFailing reads a list: a clause's id a line, behind a # the reason;
// blank lines and lines that are all remark are passed over. A clause that does
// not exist or comes twice is an error, which names the line.
func ParseKnownFailing(name string, data []byte, exists func(id string) bool) ([]KnownFailing, error) {
	if len(data) > MaxKnownFailing {
		return nil, fmt.Errorf("%s: more than %d bytes; accepted: a list of clauses, one a line", name, MaxKnownFailing)
	}
	list := []KnownFailing{}
	seen := map[string]int{}
	n := 0
	for text := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		n++
		k, err := parseKnown(strings.TrimRight(text, "\r\n"), exists)
		switch before := seen[k.Clause]; {
		case err != nil:
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		case k.Clause == "":
		case before > 0:
			return nil, fmt.Errorf("%s:%d: %s is in line %d already", name, n, k.Clause, before)
		default:
			seen[k.Clause] = n
			list = append(list, k)
		}
	}
	return list, nil
}

// parseKnown reads one line; no clause: there is none in it.
func parseKnown(line string, exists func(id string) bool) (KnownFailing, error) {
	if strings.ContainsFunc(line, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) && r != '\t' }) {
		return KnownFailing{}, errors.New("something in it does not print; accepted: UTF-8 text")
	}
	id, reason, _ := strings.Cut(line, "#")
	k := KnownFailing{Clause: strings.TrimSpace(id), Reason: strings.TrimSpace(reason)}
	switch {
	case k.Clause == "":
		return KnownFailing{}, nil
	case strings.ContainsAny(k.Clause, " \t,;"):
		return k, fmt.Errorf("got %q; accepted: one clause a line, and a reason behind a #", k.Clause)
	case !exists(k.Clause):
		return k, fmt.Errorf("there is no clause %q; \"brimline check --list\" shows them all", k.Clause)
	case utf8.RuneCountInString(k.Reason) > maxKnownReason:
		return k, fmt.Errorf("the reason has more than %d characters", maxKnownReason)
	}
	return k, nil
}

// WithKnown is c held against a list of clauses that are known to fail: one that
// does is told apart and fails nobody, one that is kept is a stale entry.
func (c Conformance) WithKnown(list []KnownFailing) Conformance {
	c.KnownFailing = list
	c.Clauses = slices.Clone(c.Clauses)
	for i := range c.Clauses {
		cl := &c.Clauses[i]
		known := slices.IndexFunc(list, func(k KnownFailing) bool { return k.Clause == cl.ID })
		switch {
		case known < 0:
		case cl.Verdict == Fail:
			cl.Verdict, cl.Reason = KnownFails, list[known].Reason
		case cl.Verdict == Pass && !cl.leftOut():
			cl.Verdict, cl.Reason = Stale, "it is listed as known to fail and is kept: take it off the list"
		}
	}
	return c.Summed()
}

// leftOut reports whether some scenario of a clause could have been run and was
// not: it may be the one that fails.
func (c Clause) leftOut() bool {
	return slices.ContainsFunc(c.Scenarios, func(s Scenario) bool { return s.Verdict == NotRun && !s.OutOfReach })
}

// UntoldKnown lists the clauses that are known to fail and of which this run
// does not tell whether they still do.
func (c Conformance) UntoldKnown() []Clause {
	var list []Clause
	for _, k := range c.KnownFailing {
		for _, cl := range c.Clauses {
			if cl.ID == k.Clause && !slices.Contains([]Verdict{Fail, KnownFails, Stale, Differs}, cl.Verdict) {
				list = append(list, cl)
			}
		}
	}
	return list
}
