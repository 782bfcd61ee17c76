package roster

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Price is what a user pays for a plan.
type Price struct {
	Amount   Amount `yaml:"amount"`
	Currency string `yaml:"currency"` // three capital letters
	Period   string `yaml:"period"`   // month or year
}

// Amount is money, in the currency's main unit.
type Amount float64

var (
	decimal  = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,4})?$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// Amounts is what [Amount.UnmarshalText] accepts.
const Amounts = "an amount such as 29 or 29.90"

// UnmarshalText reads an amount.
func (a *Amount) UnmarshalText(text []byte) error {
	if !decimal.Match(text) {
		return errors.New("it is no amount of money; accepted: " + Amounts)
	}
	x, err := strconv.ParseFloat(string(text), 64)
	*a = Amount(x)
	return err
}

// Periods lists what a price or a number of operations may be for.
func Periods() []string { return []string{"month", "year"} }

// Monthly is the price of a month.
func (p Price) Monthly() float64 {
	if p.Period == "year" {
		return float64(p.Amount) / 12
	}
	return float64(p.Amount)
}

// Check names the part that makes no sense; all is well where problem is empty.
func (p Price) Check() (part, problem, accepted string) {
	switch {
	case !currency.MatchString(p.Currency):
		return "currency", fmt.Sprintf("got %q", p.Currency), "three capital letters such as EUR"
	case !slices.Contains(Periods(), p.Period):
		return "period", fmt.Sprintf("got %q", p.Period), "month or year"
	}
	return "", "", ""
}
