package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/internal/strictcsv"
	"github.com/invoicespec/brimline/reports/roster"
)

// Listed is a plan as a price list has it.
type Listed struct {
	Plan       string
	Price      roster.Price
	Operations *int64 // paid ones of a user and month; nil: the list does not say
}

// ReadPrices reads plan,amount,currency,period[,operations]; operations are for
// the same period as the price.
func ReadPrices(path string) ([]Listed, error) {
	var list []Listed
	err := strictcsv.Read(path, priceColumns(), pricesInto(&list))
	return list, err
}

func priceColumns() strictcsv.Columns {
	return strictcsv.Columns{Required: []string{"plan", "amount", "currency", "period"}, Optional: []string{"operations"}}
}

func pricesInto(list *[]Listed) func(strictcsv.Row) error {
	money := ""
	return func(r strictcsv.Row) error {
		l := Listed{Plan: r.Get("plan"), Price: roster.Price{Currency: r.Get("currency"), Period: r.Get("period")}}
		switch {
		case l.Plan == "":
			return r.Refuse("plan", "it is empty", "the plan's name as the log or the plan map has it")
		case slices.ContainsFunc(*list, func(other Listed) bool { return other.Plan == l.Plan }):
			return r.Refuse("plan", "it has a price already", "each plan once")
		case l.Price.Amount.UnmarshalText([]byte(r.Get("amount"))) != nil:
			return r.Refuse("amount", "it is no amount of money", roster.Amounts)
		}
		if part, problem, accepted := l.Price.Check(); problem != "" {
			return r.Refuse(part, problem, accepted)
		}
		if money = cmp.Or(money, l.Price.Currency); money != l.Price.Currency {
			return r.Refuse("currency", fmt.Sprintf("got %q beside %q", l.Price.Currency, money), "one currency for all plans, since prices are compared")
		}
		if r.Has("operations") {
			n, err := strconv.ParseInt(r.Get("operations"), 10, 64)
			if err != nil || n < 0 {
				return r.Refuse("operations", "it is no such number", "a whole number from 0 on")
			}
			if l.Price.Period == "year" {
				n /= 12
			}
			l.Operations = &n
		}
		*list = append(*list, l)
		return nil
	}
}

// Apply writes a price list into a roster's plans, over what the plan map says.
// Unlisted are the plans of the roster that the list does not have.
func Apply(list []Listed, r *roster.Roster) (unlisted []string) {
	for i := range r.Plans {
		p := &r.Plans[i]
		at := slices.IndexFunc(list, func(l Listed) bool { return strings.EqualFold(l.Plan, p.Name) })
		if at < 0 {
			unlisted = append(unlisted, p.Name)
			continue
		}
		price := list[at].Price
		p.Price, p.Operations = &price, cmp.Or(list[at].Operations, p.Operations)
		if p.Paid == nil {
			paid := price.Amount > 0
			p.Paid = &paid
		}
	}
	return unlisted
}
