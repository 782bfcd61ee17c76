// Package evidence reads what people export beside logs: the paid operations that
// users used up, a price list, and support tickets, each a table (CSV) with a
// header line. The contract's "Quota reassessment" asks for it before an allowance
// is changed.
//
// Most callers want [ReadUsage], [ReadPrices] and [ReadTickets]. Errors name file,
// line, column and what is accepted, and no user. An empty table is evidence too:
// somebody looked, and there was nothing.
package evidence

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/invoicespec/brimline/internal/strictcsv"
)

// Usage is how many paid operations of a user's were used at a time, of those
// that are included.
type Usage struct {
	User     string // as logs and the plan map name the user; never to be shown
	At       time.Time
	Used     int64
	Included int64
}

// Exhausted reports whether none is left.
func (u Usage) Exhausted() bool { return u.Used >= u.Included }

// ReadUsage reads user,time,used,included; the answer is in order of time.
func ReadUsage(path string) ([]Usage, error) {
	list := []Usage{}
	err := strictcsv.Read(path, usageColumns(), usageInto(&list))
	return sortedUsage(list), err
}

func usageColumns() strictcsv.Columns {
	return strictcsv.Columns{Required: []string{"user", "time", "used", "included"}}
}

func sortedUsage(list []Usage) []Usage {
	slices.SortStableFunc(list, func(a, b Usage) int { return a.At.Compare(b.At) })
	return list
}

func usageInto(list *[]Usage) func(strictcsv.Row) error {
	return func(r strictcsv.Row) error {
		var u Usage
		var err error
		if u.User, err = user(r); err != nil {
			return err
		}
		if u.At, _, err = instant(r, "time"); err != nil {
			return err
		}
		if u.Used, err = whole(r, "used"); err != nil {
			return err
		}
		if u.Included, err = whole(r, "included"); err != nil {
			return err
		}
		*list = append(*list, u)
		return nil
	}
}

// FirstExhausted is when each user had no operation left for the first time. The
// list is in order of time.
func FirstExhausted(list []Usage) map[string]time.Time {
	first := map[string]time.Time{}
	for _, u := range list {
		if _, seen := first[u.User]; !seen && u.Exhausted() {
			first[u.User] = u.At
		}
	}
	return first
}

// Ticket is what a customer wrote.
type Ticket struct {
	ID      string
	User    string // never to be shown
	At      time.Time
	Hour    bool   // At is an instant within an hour, not only a day
	Symptom string // as written, without what may lead to somebody
}

// ReadTickets reads id,user,date,symptom; the answer is in order of time, then of
// id. A date is a day, or a time.
func ReadTickets(path string) ([]Ticket, error) {
	list := []Ticket{}
	err := strictcsv.Read(path, ticketColumns(), ticketsInto(&list))
	return sortedTickets(list), err
}

func ticketColumns() strictcsv.Columns {
	return strictcsv.Columns{Required: []string{"id", "user", "date", "symptom"}}
}

func sortedTickets(list []Ticket) []Ticket {
	slices.SortStableFunc(list, func(a, b Ticket) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return list
}

func ticketsInto(list *[]Ticket) func(strictcsv.Row) error {
	seen := map[string]int{}
	return func(r strictcsv.Row) error {
		t := Ticket{ID: r.Get("id")}
		switch line, doubled := seen[t.ID]; {
		case !ticketID.MatchString(t.ID):
			return r.Refuse("id", "it is no ticket's id", "up to 64 letters, digits and -_#/. without blanks")
		case doubled:
			return r.Refuse("id", "the ticket is there already, in line "+strconv.Itoa(line), "each ticket once")
		}
		seen[t.ID] = r.Line()
		var err error
		if t.User, err = user(r); err != nil {
			return err
		}
		var day bool
		if t.At, day, err = instant(r, "date"); err != nil {
			return err
		}
		t.Hour = !day
		if !r.Has("symptom") {
			return r.Refuse("symptom", "it is empty", "what the customer saw, in a few words")
		}
		t.Symptom = Masked(r.Get("symptom"), t.User)
		*list = append(*list, t)
		return nil
	}
}

func user(r strictcsv.Row) (string, error) {
	if !r.Has("user") {
		return "", r.Refuse("user", "it is empty", "the user as the log or the plan map names them")
	}
	return r.Get("user"), nil
}

func instant(r strictcsv.Row, column string) (at time.Time, day bool, err error) {
	at, day, err = strictcsv.Instant(r.Get(column))
	if err != nil {
		err = r.Refuse(column, "it is no time", strictcsv.Instants)
	}
	return at, day, err
}

func whole(r strictcsv.Row, column string) (int64, error) {
	n, err := strconv.ParseInt(r.Get(column), 10, 64)
	if err != nil || n < 0 {
		return 0, r.Refuse(column, "it is no such number", "a whole number from 0 on")
	}
	return n, nil
}
