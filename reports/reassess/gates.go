package reassess

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/reports/record"
)

// The gates of S0 are a file that people edit. What the file leaves out is as in
// the one that brimline brings along, which is where the usual values are from.

//go:embed gates.yaml
var usualGates []byte

// UsualGates is the gates file that brimline prints, with a comment for each
// bound.
func UsualGates() []byte { return slices.Clone(usualGates) }

// Gates are the bounds of a recommendation, and what only the owner of a
// deployment can say of it.
type Gates struct {
	Rules      record.ReportRules
	Deployment *Deployment // nil: not described
	Exempt     []Exemption

	input record.ReportInput // the file; without a name: none
}

// GatesFile is a gates file as it is written. Every part may be left out.
type GatesFile struct {
	Users      *gateUsers    `yaml:"users,omitempty"`
	Traffic    *gateTraffic  `yaml:"traffic,omitempty"`
	Change     *gateChange   `yaml:"change,omitempty"`
	Capacity   *gateCapacity `yaml:"capacity,omitempty"`
	Evidence   []string      `yaml:"evidence,omitempty"`
	NoticeDays *int64        `yaml:"notice-days,omitempty"`
	Burst      string        `yaml:"burst,omitempty"`
	Draws      *int64        `yaml:"draws,omitempty"`
	Deployment *Deployment   `yaml:"deployment,omitempty"`
	Exempt     []Exemption   `yaml:"exempt,omitempty"`
}

type gateUsers struct {
	OK      *Share `yaml:"ok,omitempty"`
	AtLeast *int64 `yaml:"at-least,omitempty"`
}

type gateTraffic struct {
	Days    *int64 `yaml:"days,omitempty"`
	OneUser *Share `yaml:"one-user,omitempty"`
}

type gateChange struct {
	Users   *int64 `yaml:"users,omitempty"`
	Reports *int64 `yaml:"reports,omitempty"`
	Days    *int64 `yaml:"days,omitempty"`
}

type gateCapacity struct {
	Peak *Share         `yaml:"peak,omitempty"`
	P99  *time.Duration `yaml:"p99,omitempty"`
}

// Deployment is what S14 asks of the owner: how the limiter's state is kept and
// what is planned.
type Deployment struct {
	Storage         string `yaml:"storage,omitempty"`          // local or distributed
	PlannedReplicas *int64 `yaml:"planned-replicas,omitempty"` // of the engine
	RestartsAllowed *bool  `yaml:"restarts-allowed,omitempty"` // the window in which the one instance restarts is acceptable
	GrowthPerMonth  *Share `yaml:"growth-per-month,omitempty"` // of the traffic
	Processors      *int64 `yaml:"processors,omitempty"`       // that the engine's machine has
}

// Exemption is a reduction that needs no notice: the contract knows abuse and
// incidents.
type Exemption struct {
	Plan     string `yaml:"plan"`
	Why      string `yaml:"why"` // abuse or incident
	Evidence string `yaml:"evidence"`
}

// Share is a share of one as people write it: "99 %", "99%" or 0.99.
type Share float64

// UnmarshalText reads a share.
func (s *Share) UnmarshalText(text []byte) error {
	word, percent := strings.CutSuffix(string(text), "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 10) { // NaN too
		return fmt.Errorf("got %q; accepted: a share such as 70 %%", text)
	}
	*s = Share(x)
	return nil
}

// MarshalText writes it in percent.
func (s Share) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(100*float64(s), 'g', -1, 64) + " %"), nil
}

// ReadGates reads a gates file. Its errors name file, line and key.
func ReadGates(path string) (Gates, error) {
	data, in, err := readWhole(path, strictyaml.MaxSize, record.InputGates)
	if err != nil {
		return Gates{}, err
	}
	g, err := ParseGates(path, data)
	g.input = in
	return g, err
}

// ParseGates is [ReadGates] of a document in memory.
func ParseGates(name string, data []byte) (Gates, error) {
	var f GatesFile
	doc, err := strictyaml.Parse(name, data, &f)
	if err != nil {
		return Gates{}, err
	}
	g, err := f.over(Rules(), doc)
	g.Rules.From = name
	return g, err
}

// Rules are the usual gates of a recommendation.
func Rules() record.ReportRules {
	var f GatesFile
	doc, err := strictyaml.Parse("gates.yaml", usualGates, &f)
	if err != nil {
		panic(err) // a test reads the file
	}
	g, err := f.over(record.ReportRules{}, doc)
	if err != nil {
		panic(err)
	}
	return g.Rules
}

// over is the file's gates on top of others, each within its range.
func (f GatesFile) over(rules record.ReportRules, doc *strictyaml.Document) (Gates, error) {
	g := Gates{Rules: rules, Deployment: f.Deployment, Exempt: f.Exempt}
	r := &g.Rules
	var wrong []error
	whole := func(key string, to *int, from *int64, least, most int64) {
		if from == nil {
			return
		}
		if *from < least || *from > most {
			wrong = append(wrong, doc.Refuse(key, fmt.Sprintf("got %d", *from), fmt.Sprintf("a whole number from %d to %d", least, most)))
		}
		*to = int(*from)
	}
	share := func(key string, to *float64, from *Share, least, most Share) {
		if from == nil {
			return
		}
		if *from < least || *from > most {
			got, _ := from.MarshalText()
			low, _ := least.MarshalText()
			high, _ := most.MarshalText()
			wrong = append(wrong, doc.Refuse(key, fmt.Sprintf("got %s", got), fmt.Sprintf("a share from %s to %s", low, high)))
		}
		*to = float64(*from)
	}
	if u := f.Users; u != nil {
		share("users.ok", &r.UsersOK, u.OK, 0.5, 0.9999)
		whole("users.at-least", &r.MinUsers, u.AtLeast, 1, 10_000_000)
	}
	if x := f.Traffic; x != nil {
		whole("traffic.days", &r.MinDays, x.Days, 1, 3650)
		share("traffic.one-user", &r.TopShare, x.OneUser, 0.01, 1)
	}
	if c := f.Change; c != nil {
		whole("change.users", &r.MinMoved, c.Users, 1, 10_000_000)
		whole("change.reports", &r.AgreeReports, c.Reports, 1, 1000)
		whole("change.days", &r.AgreeDays, c.Days, 1, 3650)
	}
	if c := f.Capacity; c != nil {
		share("capacity.peak", &r.PeakShare, c.Peak, 0.01, 1)
		if c.P99 != nil {
			if *c.P99 < time.Millisecond || *c.P99 > 10*time.Minute {
				wrong = append(wrong, doc.Refuse("capacity.p99", "got "+c.P99.String(), "a time from 1ms to 10m"))
			}
			r.P99US = c.P99.Microseconds()
		}
	}
	whole("notice-days", &r.NoticeDays, f.NoticeDays, 0, 3650)
	whole("draws", &r.Draws, f.Draws, 200, 2000)
	if f.Burst != "" {
		r.Burst = record.BurstPolicy(f.Burst)
		if !slices.Contains(record.BurstPolicies(), r.Burst) {
			wrong = append(wrong, doc.Refuse("burst", fmt.Sprintf("got %q", f.Burst), listed(record.BurstPolicies())))
		}
	}
	if doc.Has("evidence") {
		r.Required = []record.EvidenceKind{}
	}
	for i, word := range f.Evidence {
		kind := record.EvidenceKind(word)
		key := fmt.Sprintf("evidence[%d]", i)
		switch {
		case !slices.Contains(record.EvidenceKinds(), kind):
			wrong = append(wrong, doc.Refuse(key, fmt.Sprintf("got %q", word), listed(record.EvidenceKinds())))
		case slices.Contains(r.Required, kind):
			wrong = append(wrong, doc.Refuse(key, fmt.Sprintf("%q is there twice", word), ""))
		}
		r.Required = append(r.Required, kind)
	}
	if d := f.Deployment; d != nil {
		if d.Storage != "" && d.Storage != "local" && d.Storage != "distributed" {
			wrong = append(wrong, doc.Refuse("deployment.storage", fmt.Sprintf("got %q", d.Storage), "local or distributed"))
		}
		for _, c := range []struct {
			key string
			n   *int64
		}{{"planned-replicas", d.PlannedReplicas}, {"processors", d.Processors}} {
			if c.n != nil && (*c.n < 1 || *c.n > 10_000) {
				wrong = append(wrong, doc.Refuse("deployment."+c.key, fmt.Sprintf("got %d", *c.n), "a whole number from 1 to 10000"))
			}
		}
	}
	for i, x := range f.Exempt {
		if x.Why != "abuse" && x.Why != "incident" {
			wrong = append(wrong, doc.Refuse(fmt.Sprintf("exempt[%d].why", i), fmt.Sprintf("got %q", x.Why), "abuse or incident"))
		}
		if strings.TrimSpace(x.Evidence) == "" {
			wrong = append(wrong, doc.Refuse(fmt.Sprintf("exempt[%d].evidence", i), "it is empty", "where the evidence is"))
		}
	}
	return g, errors.Join(wrong[:min(1, len(wrong))]...)
}

func listed[T ~string](words []T) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return strings.Join(list, ", ")
}
