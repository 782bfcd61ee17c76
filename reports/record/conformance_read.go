package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/internal/files"
)

// MaxConformanceSize bounds the text of a result, in bytes.
const MaxConformanceSize = 64 << 20

// ReadConformance reads a result from a file; see [ParseConformance].
func ReadConformance(path string) (Conformance, error) {
	f, err := files.Open(path)
	if err != nil {
		return Conformance{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxConformanceSize+1))
	if err == nil && len(data) > MaxConformanceSize {
		err = fmt.Errorf("more than %d bytes", MaxConformanceSize)
	}
	if err != nil {
		return Conformance{}, fmt.Errorf("%s: %w", path, err)
	}
	c, err := ParseConformance(data)
	if err != nil {
		return Conformance{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// ParseConformance reads the text of a result. One of another schema, one that
// lacks something and one whose totals are not those of its clauses are refused,
// never read in part.
func ParseConformance(data []byte) (Conformance, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Conformance{}, placed(data, err)
	}
	if head.Schema != ConformanceSchema { // another may have other keys
		return Conformance{}, fmt.Errorf("schema is %q, want %q", head.Schema, ConformanceSchema)
	}
	var c Conformance
	if err := json.Unmarshal(data, &c); err != nil {
		return Conformance{}, placed(data, err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return Conformance{}, err
	}
	if list := missing("", reflect.TypeFor[Conformance](), v); len(list) > 0 {
		return Conformance{}, fmt.Errorf("not a whole result: missing %s", strings.Join(list, ", "))
	}
	return c, c.Check()
}

// Check says what of a result does not fit the rest of it.
func (c Conformance) Check() error {
	if c.Schema != ConformanceSchema {
		return fmt.Errorf("schema is %q, want %q", c.Schema, ConformanceSchema)
	}
	if len(c.Clauses) == 0 {
		return errors.New("no clause is in it")
	}
	seen := map[string]bool{}
	for _, cl := range c.Clauses {
		if seen[cl.ID] {
			return fmt.Errorf("%s is in it twice", cl.ID)
		}
		seen[cl.ID] = true
		for _, v := range append([]Verdict{cl.Verdict}, verdictsOf(cl.Scenarios)...) {
			if !slices.Contains(Verdicts(), v) {
				return fmt.Errorf("%s: there is no verdict %q", cl.ID, v)
			}
		}
	}
	sum := c.Summed()
	switch {
	case c.Totals != sum.Totals:
		return fmt.Errorf("cut or edited: it says it holds %s, and holds %s", c.Totals, sum.Totals)
	case c.Counts != sum.Counts:
		return errors.New("cut or edited: its counts are not those of its clauses")
	case c.Result != sum.Result:
		return fmt.Errorf("cut or edited: its result is %q, and its clauses make a %s", c.Result, sum.Result)
	}
	return nil
}

func verdictsOf(scenarios []Scenario) []Verdict {
	list := make([]Verdict, len(scenarios))
	for i, s := range scenarios {
		list[i] = s.Verdict
	}
	return list
}

func (t Totals) String() string {
	return fmt.Sprintf("%d clauses, %d scenarios, %d findings", t.Clauses, t.Scenarios, t.Findings)
}
