package conformance

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

// killsText is what self-tests found: "make kills" makes it anew.
//
//go:embed kills.json
var killsText []byte

// Kill is a known fault and which scenarios of its clause catch it.
type Kill struct {
	Fault  string                      `json:"fault"`
	Clause string                      `json:"clause"`
	By     map[record.Setting][]string `json:"by"` // names of scenarios, by the kind of target
}

// Kills is what is known of each fault, as self-tests found it on every kind of
// target. The list is the caller's to read and nobody's to change.
func Kills() []Kill { return kills() }

var kills = sync.OnceValue(func() []Kill {
	var all []Kill
	if err := json.Unmarshal(killsText, &all); err != nil {
		panic("conformance/kills.json: " + err.Error()) // it is part of the program
	}
	return all
})

// settingOf is the kind of target that offers these needs.
func settingOf(offers []string) record.Setting {
	switch {
	case slices.Contains(offers, string(contract.NeedClock)):
		return record.MovedClock
	case slices.Contains(offers, string(contract.NeedPolicy)):
		return record.RealClock
	}
	return record.PlainHTTP
}

// chance is what became of a fault's best chance to be noticed.
type chance int

const (
	unseen chance = iota
	outside
	unselected
	unanswered
	detectable
)

// power is which known faults a run can have noticed.
func power(known []Kill, c record.Conformance, outcomes []outcome) record.Power {
	m := sight{offers: c.Target.Offers, setting: settingOf(c.Target.Offers), answered: map[string]bool{}, planned: map[string]outcome{}}
	for _, cl := range c.Clauses {
		for _, s := range cl.Scenarios {
			if !s.InPassing && slices.Contains([]record.Verdict{record.Pass, record.Fail, record.Differs}, s.Verdict) {
				m.answered[cl.ID+" "+s.Name] = true
			}
		}
	}
	for _, o := range outcomes {
		for _, id := range o.Clauses {
			m.planned[id+" "+o.Name] = o
		}
	}
	p := record.Power{Known: len(known), Measured: m.setting, Further: []record.Further{}}
	for _, k := range known {
		switch best, lacking := m.of(k); best {
		case detectable:
			p.Detectable++
		case unanswered:
			p.Unanswered++
		case unselected:
			p.Unselected++
		case outside:
			p.Further = further(p.Further, lacking)
		case unseen:
			p.Unseen++
		}
	}
	slices.SortStableFunc(p.Further, func(a, b record.Further) int { return b.Faults - a.Faults })
	return p
}

// sight is what a run could see.
type sight struct {
	offers   []string
	setting  record.Setting
	answered map[string]bool    // scenarios that came to an answer, by clause and name
	planned  map[string]outcome // all that apply to the target, likewise
}

// of is a fault's best chance in this run, and where that lies outside of what
// the target offers the least that is lacking.
func (m sight) of(k Kill) (chance, []string) {
	best := unseen
	for _, name := range k.By[m.setting] {
		o, applies := m.planned[k.Clause+" "+name]
		switch {
		case m.answered[k.Clause+" "+name]:
			return detectable, nil
		case !applies || o.lacks != "":
		case o.NotRun == notSelected:
			best = max(best, unselected)
		default:
			best = max(best, unanswered)
		}
	}
	if best != unseen {
		return best, nil
	}
	least := m.lacking(k)
	if least == nil {
		return unseen, nil
	}
	return outside, least
}

// lacking is the least that a target has to offer beside what it does for a
// fault to be noticed; nil: nothing would help.
func (m sight) lacking(k Kill) []string {
	var least []string
	for _, setting := range record.Settings() {
		for _, name := range k.By[setting] {
			o, applies := m.planned[k.Clause+" "+name]
			if !applies {
				continue
			}
			missing := m.missing(o.Needs, setting)
			if len(missing) == 0 && o.lacks != "" {
				missing = []string{string(contract.NeedPlans)} // there is nobody on the plan of its row
			}
			if len(missing) > 0 && (least == nil || len(missing) < len(least)) {
				least = missing
			}
		}
	}
	return least
}

// missing is which of a scenario's needs the target does not meet, and what it
// lacks of being a target of that kind.
func (m sight) missing(needs []contract.Need, setting record.Setting) []string {
	switch { // what makes a target one of this kind
	case setting == record.MovedClock:
		needs = append(slices.Clone(needs), contract.NeedClock)
	case setting == record.RealClock && m.setting == record.PlainHTTP:
		needs = append(slices.Clone(needs), contract.NeedPolicy)
	}
	var all []string
	for _, meaning := range contract.Needs() { // in their order
		if slices.Contains(needs, meaning.Need) && !slices.Contains(m.offers, string(meaning.Need)) {
			all = append(all, string(meaning.Need))
		}
	}
	return all
}

// further counts one more fault of those that need the same.
func further(all []record.Further, needs []string) []record.Further {
	key := strings.Join(needs, " ")
	i := slices.IndexFunc(all, func(f record.Further) bool { return strings.Join(f.Needs, " ") == key })
	if i < 0 {
		return append(all, record.Further{Needs: needs, Faults: 1})
	}
	all[i].Faults++
	return all
}
