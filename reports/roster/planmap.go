package roster

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictcsv"
	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/reports/record"
)

// File is a plan map as it is written.
type File struct {
	Plans     map[string]FilePlan `yaml:"plans"`
	UsersFile string              `yaml:"users-file,omitempty"` // a table, from the map's folder
	Users     []FileUser          `yaml:"users,omitempty"`
	Overrides []FileOverride      `yaml:"overrides,omitempty"`
	Changes   []FileChange        `yaml:"changes,omitempty"`
	Restarts  []Time              `yaml:"restarts,omitempty"`
}

// FilePlan is a plan.
type FilePlan struct {
	RequestsPerMinute int64  `yaml:"requests-per-minute"`
	Burst             int64  `yaml:"burst"`
	Concurrency       *int64 `yaml:"concurrency,omitempty"`
	Paid              *bool  `yaml:"paid,omitempty"`
	Price             *Price `yaml:"price,omitempty"`
	Operations        *int64 `yaml:"operations,omitempty"`        // paid ones
	OperationsPeriod  string `yaml:"operations-period,omitempty"` // month unless it says year
}

// FileUser is a user with all clients whose requests are the user's.
type FileUser struct {
	User       ID     `yaml:"user"`
	Plan       string `yaml:"plan"`
	Clients    []ID   `yaml:"clients,omitempty"` // addresses, ranges of them, or names as the log has them
	BillingDay *int64 `yaml:"billing-day,omitempty"`
}

// FileOverride is an allowance of a user's own. What it leaves out is the plan's.
type FileOverride struct {
	User              ID     `yaml:"user"`
	RequestsPerMinute *int64 `yaml:"requests-per-minute,omitempty"`
	Burst             *int64 `yaml:"burst,omitempty"`
	Concurrency       *int64 `yaml:"concurrency,omitempty"`
	From              *Time  `yaml:"from,omitempty"`
	Until             *Time  `yaml:"until,omitempty"`
	Reason            string `yaml:"reason,omitempty"`
}

// FileChange is a change of a user's plan.
type FileChange struct {
	User ID     `yaml:"user"`
	Plan string `yaml:"plan"`
	At   Time   `yaml:"at"`
}

// ID names a user or a client. It is text even where it looks like a number.
type ID string

// maxID is the longest name of a user or client, in bytes.
const maxID = 256

const ids = "a name of at most 256 bytes on one line"

// UnmarshalText reads a name. Its error does not repeat it.
func (i *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 || len(text) > maxID || strings.ContainsFunc(string(text), func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("it is no name; accepted: " + ids)
	}
	*i = ID(text)
	return nil
}

// Time is an instant: a day, which is its midnight in UTC, or a time with offset.
type Time struct{ time.Time }

// UnmarshalText reads an instant.
func (t *Time) UnmarshalText(text []byte) error {
	at, _, err := strictcsv.Instant(string(text))
	if err != nil {
		return fmt.Errorf("got %q; accepted: %w", text, err)
	}
	t.Time = at
	return nil
}

// Map is a plan map that has been read.
type Map struct {
	name     string
	plans    []Plan // in order of allowance
	place    map[string]int
	users    map[string]*user
	exact    map[string]string // client to user
	ranges   map[netip.Prefix]string
	lengths  []int // of the prefixes in ranges, the longest first
	restarts []int64
	table    string // path of the users' table; empty: none
}

// user is what the map says of a user.
type user struct {
	plans     []stretch // in order of time
	overrides []override
	billing   int
}

// stretch is a plan from an instant on.
type stretch struct {
	from int64
	plan int
}

type override struct {
	from, until              int64
	rate, burst, concurrency *int64
}

// Files are the paths of all that was read.
func (m *Map) Files() []string {
	if m.table == "" {
		return []string{m.name}
	}
	return []string{m.name, m.table}
}

// Read reads a plan map and the table that it names. Its errors name file, line,
// key or column, and what is accepted; they name no user and no client.
func Read(path string) (*Map, error) {
	var f File
	doc, err := strictyaml.Read(path, &f)
	if err != nil {
		return nil, err
	}
	return f.build(path, doc, func(m *Map) error {
		m.table = filepath.Join(filepath.Dir(path), f.UsersFile)
		if filepath.IsAbs(f.UsersFile) {
			m.table = f.UsersFile
		}
		if _, err := os.Stat(m.table); errors.Is(err, os.ErrNotExist) {
			return doc.Refuse("users-file", "no such file", "a path from the folder of the plan map")
		}
		return strictcsv.Read(m.table, userColumns(), m.row)
	})
}

// Parse is [Read] of a document in memory, which can name no table.
func Parse(name string, data []byte) (*Map, error) {
	var f File
	doc, err := strictyaml.Parse(name, data, &f)
	if err != nil {
		return nil, err
	}
	return f.build(name, doc, func(*Map) error {
		return doc.Refuse("users-file", "there is no folder to look in", "users in the plan map")
	})
}

func (f File) build(name string, doc *strictyaml.Document, table func(*Map) error) (*Map, error) {
	m := &Map{name: name, place: map[string]int{}, users: map[string]*user{}, exact: map[string]string{}, ranges: map[netip.Prefix]string{}}
	if err := m.takePlans(f.Plans, doc); err != nil {
		return nil, err
	}
	for i, u := range f.Users {
		key := fmt.Sprintf("users[%d]", i)
		if err := m.takeUser(u, math.MinInt64, func(part, problem, accepted string) error {
			return doc.Refuse(key+"."+part, problem, accepted)
		}); err != nil {
			return nil, err
		}
	}
	if f.UsersFile != "" {
		if err := table(m); err != nil {
			return nil, err
		}
	}
	if len(m.users) == 0 && (len(f.Overrides) > 0 || len(f.Changes) > 0) {
		return nil, doc.Refuse("", "overrides or changes of users, and no users", "users or users-file")
	}
	if err := m.takeChanges(f.Changes, doc); err != nil {
		return nil, err
	}
	if err := m.takeOverrides(f.Overrides, doc); err != nil {
		return nil, err
	}
	for _, at := range f.Restarts {
		m.restarts = append(m.restarts, at.UnixMicro())
	}
	slices.Sort(m.restarts)
	m.restarts = slices.Compact(m.restarts)
	for p := range m.ranges {
		if !slices.Contains(m.lengths, p.Bits()) {
			m.lengths = append(m.lengths, p.Bits())
		}
	}
	slices.SortFunc(m.lengths, func(a, b int) int { return cmp.Compare(b, a) })
	return m, nil
}

func (m *Map) takePlans(plans map[string]FilePlan, doc *strictyaml.Document) error {
	if len(plans) == 0 {
		return doc.Refuse("plans", "there are none", "a mapping of names to plans")
	}
	money := ""
	for _, name := range sortedKeys(plans) {
		p, key := plans[name], "plans."+name
		wrong := func(part, problem, accepted string) error { return doc.Refuse(key+"."+part, problem, accepted) }
		if err := inRange(&p.RequestsPerMinute, &p.Burst, p.Concurrency, wrong); err != nil {
			return err
		}
		plan := Plan{Name: name, Today: &record.ReportAllowance{RequestsPerMinute: p.RequestsPerMinute, Burst: p.Burst}, Paid: p.Paid, Price: p.Price}
		if p.Concurrency != nil {
			plan.Today.Concurrency = *p.Concurrency
		}
		if p.Price != nil {
			if part, problem, accepted := p.Price.Check(); problem != "" {
				return wrong("price."+part, problem, accepted)
			}
			if money = cmp.Or(money, p.Price.Currency); money != p.Price.Currency {
				return wrong("price.currency", fmt.Sprintf("got %q beside %q", p.Price.Currency, money), "one currency for all plans, since prices are compared")
			}
			if p.Paid == nil {
				paid := p.Price.Amount > 0
				plan.Paid = &paid
			} else if !*p.Paid && p.Price.Amount > 0 {
				return wrong("paid", "got false, and the plan has a price", "true")
			}
		}
		if p.OperationsPeriod != "" && !slices.Contains(Periods(), p.OperationsPeriod) {
			return wrong("operations-period", fmt.Sprintf("got %q", p.OperationsPeriod), "month or year")
		}
		if p.Operations != nil {
			if *p.Operations < 0 {
				return wrong("operations", fmt.Sprintf("got %d", *p.Operations), "a whole number from 0 on")
			}
			n := *p.Operations
			if p.OperationsPeriod == "year" {
				n /= 12
			}
			plan.Operations = &n
		}
		m.plans = append(m.plans, plan)
	}
	slices.SortStableFunc(m.plans, func(a, b Plan) int {
		return cmp.Or(cmp.Compare(a.Today.RequestsPerMinute, b.Today.RequestsPerMinute), cmp.Compare(a.Today.Burst, b.Today.Burst))
	})
	for i, p := range m.plans {
		m.place[p.Name] = i
	}
	return nil
}
