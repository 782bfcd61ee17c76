// Package invoice is the engine behind the API: invoice arithmetic in exact
// decimals. [Parse] reads an invoice and refuses what makes no sense, naming
// the field; [Calculate] returns its amounts. Neither knows of limits.
//
// Rounding, to the currency's minor unit, half away from zero ("half up"):
//   - a line's net is quantity × unit price × (1 − discount), rounded once;
//   - lines are grouped by tax rate, and the tax of a group is its net × rate,
//     rounded once; so the sum of the parts is always the total.
package invoice

import (
	"context"
	"slices"

	"github.com/cockroachdb/apd/v3"
)

// MaxLines is the most lines of one invoice.
const MaxLines = 1000

// Invoice is a well-formed invoice, as [Parse] returns it.
type Invoice struct {
	Currency Currency
	Lines    []Line
}

// Line is one line of an invoice. Rates are in percent.
type Line struct {
	Description string
	Quantity    apd.Decimal // above 0
	UnitPrice   apd.Decimal // 0 or more
	TaxRate     apd.Decimal // 0 to 100
	Discount    apd.Decimal // 0 to 100
}

// Result is what an invoice comes to. Amounts are decimal text with the
// currency's number of places.
type Result struct {
	Currency string       `json:"currency"`
	Lines    []LineResult `json:"lines"`
	Taxes    []TaxResult  `json:"taxes"` // by rising rate
	Net      string       `json:"net"`
	Tax      string       `json:"tax"`
	Gross    string       `json:"gross"`
}

// LineResult is what one line comes to.
type LineResult struct {
	Description string `json:"description"`
	Net         string `json:"net"`
}

// TaxResult is the tax on all lines of one rate.
type TaxResult struct {
	Rate string `json:"rate"`
	Net  string `json:"net"`
	Tax  string `json:"tax"`
}

// exact has more digits than any product of well-formed fields and sum of
// [MaxLines] of them, so that only rounding to the minor unit ever rounds.
var exact = apd.Context{
	Precision:   100,
	MaxExponent: apd.MaxExponent,
	MinExponent: apd.MinExponent,
	Traps:       apd.DefaultTraps | apd.Inexact,
	Rounding:    apd.RoundHalfUp,
}

// Calculate returns what in comes to.
func Calculate(in Invoice) (Result, error) {
	c := calculator{places: in.Currency.Places}
	out := Result{Currency: in.Currency.Code}
	var groups []group
	net := new(apd.Decimal)
	for i := range in.Lines {
		l := &in.Lines[i]
		amount := c.lineNet(l)
		out.Lines = append(out.Lines, LineResult{Description: l.Description, Net: c.text(amount)})
		c.add(net, amount)
		at, found := slices.BinarySearchFunc(groups, &l.TaxRate, func(g group, rate *apd.Decimal) int { return g.rate.Cmp(rate) })
		if !found {
			groups = slices.Insert(groups, at, group{rate: &l.TaxRate, net: new(apd.Decimal)})
		}
		c.add(groups[at].net, amount)
	}
	tax := new(apd.Decimal)
	for _, g := range groups {
		amount := c.percent(g.net, g.rate)
		out.Taxes = append(out.Taxes, TaxResult{Rate: plain(g.rate), Net: c.text(g.net), Tax: c.text(amount)})
		c.add(tax, amount)
	}
	gross := new(apd.Decimal)
	c.add(gross, net)
	c.add(gross, tax)
	out.Net, out.Tax, out.Gross = c.text(net), c.text(tax), c.text(gross)
	return out, c.err
}

// group is the lines of one tax rate.
type group struct{ rate, net *apd.Decimal }

// calculator keeps the first error, so that sums read as sums.
type calculator struct {
	places int32
	err    error
}

func (c *calculator) note(_ apd.Condition, err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *calculator) add(sum, x *apd.Decimal) { c.note(exact.Add(sum, sum, x)) }

// lineNet is the rounded net of a line: quantity × price × (100 − discount) ÷ 100.
func (c *calculator) lineNet(l *Line) *apd.Decimal {
	var amount, share apd.Decimal
	c.note(exact.Mul(&amount, &l.Quantity, &l.UnitPrice))
	c.note(exact.Sub(&share, apd.New(100, 0), &l.Discount))
	return c.percent(&amount, &share)
}

// percent is rate percent of x, rounded to the minor unit. Shifting the
// exponent divides by 100 without a rounding of its own.
func (c *calculator) percent(x, rate *apd.Decimal) *apd.Decimal {
	out := new(apd.Decimal)
	c.note(exact.Mul(out, x, rate))
	out.Exponent -= 2
	rounding := exact
	rounding.Traps &^= apd.Inexact
	c.note(rounding.Quantize(out, out, -c.places))
	return out
}

// text is x with the currency's number of places.
func (c *calculator) text(x *apd.Decimal) string {
	out := new(apd.Decimal)
	c.note(exact.Quantize(out, x, -c.places))
	return out.Text('f')
}

// plain is x without trailing zeros.
func plain(x *apd.Decimal) string {
	out, _ := new(apd.Decimal).Reduce(x)
	return out.Text('f')
}

// Engine is the arithmetic as a service: it does not start work that nobody
// waits for any more.
type Engine struct{}

// Calculate returns what in comes to.
func (Engine) Calculate(ctx context.Context, in Invoice) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return Calculate(in)
}
