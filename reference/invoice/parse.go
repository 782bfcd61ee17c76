package invoice

import (
	"fmt"
	"regexp"

	"github.com/cockroachdb/apd/v3"

	"github.com/invoicespec/brimline/internal/strictjson"
)

// maxDescription is the most bytes of a line's description.
const maxDescription = 500

// decimal is the form of every number: no sign, exponent or leading zero, a bounded
// number of digits, so that no input is dear to calculate with.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$`)

// Parse reads an invoice from JSON, strictly:
//
//	{"currency": "EUR", "lines": [{"description": "Work", "quantity": "2.5",
//	 "unitPrice": "120.00", "taxRate": "19", "discount": "10"}]}
//
// Numbers may be given as numbers or as strings; discount may be left out. An
// error names the field at fault, as in "lines[2].quantity".
func Parse(data []byte) (Invoice, error) {
	var in Invoice
	var code string
	err := strictjson.Parse(data, strictjson.Object(map[string]strictjson.Value{
		"currency": strictjson.Text(&code, 3),
		"lines": strictjson.Array(MaxLines, func(i int) strictjson.Value {
			in.Lines = append(in.Lines, Line{})
			return lineShape(&in.Lines[i])
		}),
	}))
	if err != nil {
		return Invoice{}, err
	}
	if in.Currency, err = ParseCurrency(code); err != nil {
		return Invoice{}, strictjson.Fail("currency", "%v", err)
	}
	return in, nil
}

func lineShape(l *Line) strictjson.Value {
	return strictjson.Object(map[string]strictjson.Value{
		"description": description(&l.Description),
		"quantity":    number(&l.Quantity, "above 0", func(d *apd.Decimal) bool { return d.Sign() > 0 }),
		"unitPrice":   number(&l.UnitPrice, "of 0 or more", func(*apd.Decimal) bool { return true }), // the form has no sign
		"taxRate":     number(&l.TaxRate, "from 0 to 100", percentage),
		"discount":    number(&l.Discount, "from 0 to 100", percentage),
	}, "discount")
}

func percentage(d *apd.Decimal) bool { return d.Cmp(apd.New(100, 0)) <= 0 }

func description(dst *string) strictjson.Value {
	text := strictjson.Text(dst, maxDescription)
	return func(r *strictjson.Reader, place string) error {
		if err := text(r, place); err != nil {
			return err
		}
		if *dst == "" {
			return strictjson.Fail(place, "empty")
		}
		return nil
	}
}

// number is a decimal for which ok holds; want says so in words.
func number(dst *apd.Decimal, want string, ok func(*apd.Decimal) bool) strictjson.Value {
	return strictjson.Decimal(func(text string) error {
		if decimal.MatchString(text) {
			if _, _, err := dst.SetString(text); err == nil && ok(dst) {
				return nil
			}
		}
		return fmt.Errorf("want a decimal %s with at most 12 digits before and 6 after the point, without exponent", want)
	})
}
