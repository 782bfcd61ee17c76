package server

import (
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/reference/policy"
)

//go:embed plans.yaml
var defaultPlans []byte

// planName is the form of a plan's name: it goes into the plan's API keys.
var planName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// plansFile is a plan table.
type plansFile struct {
	Plans map[string]entitlements `yaml:"plans"`
}

type entitlements struct {
	RequestsPerMinute int64 `yaml:"requests-per-minute"`
	Burst             int64 `yaml:"burst"`
	Concurrency       int64 `yaml:"concurrency"`
	Operations        int64 `yaml:"operations"`
}

// DefaultPlans is the plan table of a server that is given none.
func DefaultPlans() map[string]policy.Plan {
	plans, err := parsePlans("plans.yaml", defaultPlans)
	if err != nil {
		panic(err) // it is part of the program
	}
	return plans
}

// ReadPlans reads a plan table from a YAML file; "brimline serve --help" shows
// the form.
func ReadPlans(path string) (map[string]policy.Plan, error) {
	var f plansFile
	doc, err := strictyaml.Read(path, &f)
	if err != nil {
		return nil, err
	}
	return checkPlans(doc, f)
}

func parsePlans(name string, data []byte) (map[string]policy.Plan, error) {
	var f plansFile
	doc, err := strictyaml.Parse(name, data, &f)
	if err != nil {
		return nil, err
	}
	return checkPlans(doc, f)
}

func checkPlans(doc *strictyaml.Document, f plansFile) (map[string]policy.Plan, error) {
	if len(f.Plans) == 0 {
		return nil, doc.Refuse("plans", "no plan", "at least one")
	}
	plans := map[string]policy.Plan{}
	for _, name := range sortedNames(f.Plans) {
		e, key := f.Plans[name], "plans."+name
		if !planName.MatchString(name) {
			return nil, doc.Refuse(key, "no name for a plan", "1 to 32 of a-z, 0-9 and -")
		}
		if e.Operations < 0 || e.Operations > math.MaxInt32 {
			return nil, doc.Refuse(key+".operations", fmt.Sprintf("%d is out of range", e.Operations), fmt.Sprintf("0 to %d", math.MaxInt32))
		}
		p := policy.Plan{Name: name, Entitlements: map[policy.Dimension]string{}, Operations: e.Operations}
		for d, n := range map[policy.Dimension]int64{
			policy.RequestsPerMinute: e.RequestsPerMinute,
			policy.Burst:             e.Burst,
			policy.Concurrency:       e.Concurrency,
		} {
			text := strconv.FormatInt(n, 10)
			if _, err := policy.ParseValue(d, text); err != nil {
				return nil, doc.Refuse(key+"."+string(d), text+" is out of range", fmt.Sprintf("1 to %d", d.Max()))
			}
			p.Entitlements[d] = text
		}
		plans[name] = p
	}
	return plans, nil
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
