package invoice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/invoice"
)

// document is an invoice with one line, or several with commas between them.
func document(currency string, lines ...string) string {
	return fmt.Sprintf(`{"currency":%q,"lines":[%s]}`, currency, strings.Join(lines, ","))
}

func line(quantity, price, rate string) string {
	return fmt.Sprintf(`{"description":"x","quantity":%q,"unitPrice":%q,"taxRate":%q}`, quantity, price, rate)
}

func discounted(quantity, price, rate, discount string) string {
	return strings.TrimSuffix(line(quantity, price, rate), "}") + fmt.Sprintf(`,"discount":%q}`, discount)
}

func TestCalculate(t *testing.T) {
	for name, c := range map[string]struct {
		document        string
		nets            []string
		taxes           []string // rate net tax
		net, tax, gross string
	}{
		"one line": {document("EUR", line("2.5", "120.00", "19")),
			[]string{"300.00"}, []string{"19 300.00 57.00"}, "300.00", "57.00", "357.00"},
		"numbers as numbers": {`{"currency":"EUR","lines":[{"description":"x","quantity":3,"unitPrice":0.1,"taxRate":7.5}]}`,
			[]string{"0.30"}, []string{"7.5 0.30 0.02"}, "0.30", "0.02", "0.32"},
		"half a cent rounds up": {document("EUR", line("1", "0.005", "0")),
			[]string{"0.01"}, []string{"0 0.01 0.00"}, "0.01", "0.00", "0.01"},
		"just below half does not": {document("EUR", line("1", "0.004999", "0")),
			[]string{"0.00"}, []string{"0 0.00 0.00"}, "0.00", "0.00", "0.00"},
		"half to even would differ": {document("EUR", line("1", "0.025", "0"), line("1", "0.035", "0")),
			[]string{"0.03", "0.04"}, []string{"0 0.07 0.00"}, "0.07", "0.00", "0.07"},
		"tax is rounded once a rate, not once a line": {document("EUR", line("1", "0.03", "19"), line("1", "0.03", "19.00"), line("1", "0.03", "19.0")),
			[]string{"0.03", "0.03", "0.03"}, []string{"19 0.09 0.02"}, "0.09", "0.02", "0.11"}, // each alone: 0.0057, so 0.01; thrice 0.03
		"rates in rising order, ten not as an exponent": {document("EUR", line("1", "1", "19"), line("1", "1", "7"), line("1", "1", "10"), line("1", "1", "100"), line("1", "1", "7.0")),
			[]string{"1.00", "1.00", "1.00", "1.00", "1.00"}, []string{"7 2.00 0.14", "10 1.00 0.10", "19 1.00 0.19", "100 1.00 1.00"}, "5.00", "1.43", "6.43"},
		"discount before rounding": {document("EUR", discounted("3", "33.335", "0", "10")),
			[]string{"90.00"}, []string{"0 90.00 0.00"}, "90.00", "0.00", "90.00"}, // 100.005 × 0.9 = 90.0045
		"a discount of all": {document("EUR", discounted("1", "99.99", "19", "100")),
			[]string{"0.00"}, []string{"19 0.00 0.00"}, "0.00", "0.00", "0.00"},
		"a currency without minor unit": {document("JPY", line("3", "33.5", "10")),
			[]string{"101"}, []string{"10 101 10"}, "101", "10", "111"},
		"a currency with three places": {document("KWD", line("1", "0.0005", "5")),
			[]string{"0.001"}, []string{"5 0.001 0.000"}, "0.001", "0.000", "0.001"},
		"the largest line": {document("EUR", line("999999999999.999999", "999999999999.999999", "100")),
			[]string{"999999999999999998000000.00"}, []string{"100 999999999999999998000000.00 999999999999999998000000.00"},
			"999999999999999998000000.00", "999999999999999998000000.00", "1999999999999999996000000.00"},
		"binary fractions would drift": {document("EUR", line("0.1", "0.2", "0"), line("1.1", "1.1", "0")),
			[]string{"0.02", "1.21"}, []string{"0 1.23 0.00"}, "1.23", "0.00", "1.23"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := invoice.Parse([]byte(c.document))
			require.NoError(t, err)
			got, err := invoice.Calculate(in)
			require.NoError(t, err)
			var nets, taxes []string
			for _, l := range got.Lines {
				nets = append(nets, l.Net)
			}
			for _, x := range got.Taxes {
				taxes = append(taxes, x.Rate+" "+x.Net+" "+x.Tax)
			}
			require.Equal(t, c.nets, nets)
			require.Equal(t, c.taxes, taxes)
			require.Equal(t, []string{c.net, c.tax, c.gross}, []string{got.Net, got.Tax, got.Gross})
		})
	}
}

func TestMostLines(t *testing.T) {
	lines := slices.Repeat([]string{line("999999999999.999999", "999999999999.999999", "99.999999")}, invoice.MaxLines)
	in, err := invoice.Parse([]byte(document("EUR", lines...)))
	require.NoError(t, err)
	got, err := invoice.Calculate(in)
	require.NoError(t, err)
	require.Equal(t, "999999999999999998000000000.00", got.Net)
	_, err = invoice.Parse([]byte(document("EUR", append(lines, lines[0])...)))
	require.EqualError(t, err, "lines: more than 1000")
}

func TestParseNamesTheField(t *testing.T) {
	const form = " with at most 12 digits before and 6 after the point, without exponent"
	good := line("1", "1", "1")
	for name, c := range map[string]struct{ document, want string }{
		"quantity 0":          {document("EUR", good, good, line("0", "1", "1")), "lines[2].quantity: want a decimal above 0" + form},
		"quantity below 0":    {document("EUR", line("-1", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"price below 0":       {document("EUR", line("1", "-0.01", "1")), "lines[0].unitPrice: want a decimal of 0 or more" + form},
		"price minus 0":       {document("EUR", line("1", "-0", "1")), "lines[0].unitPrice: want a decimal of 0 or more" + form},
		"rate above 100":      {document("EUR", line("1", "1", "100.000001")), "lines[0].taxRate: want a decimal from 0 to 100" + form},
		"rate below 0":        {document("EUR", line("1", "1", "-1")), "lines[0].taxRate: want a decimal from 0 to 100" + form},
		"discount above 100":  {document("EUR", discounted("1", "1", "1", "101")), "lines[0].discount: want a decimal from 0 to 100" + form},
		"an exponent":         {document("EUR", line("1e999999999", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"not a number":        {document("EUR", line("NaN", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"infinite":            {document("EUR", line("Infinity", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"thirteen digits":     {document("EUR", line("1000000000000", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"seven places":        {document("EUR", line("0.0000001", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"a leading zero":      {document("EUR", line("01", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"a plus":              {document("EUR", line("+1", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"a point at the end":  {document("EUR", line("1.", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"an empty number":     {document("EUR", line("", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"a space":             {document("EUR", line(" 1", "1", "1")), "lines[0].quantity: want a decimal above 0" + form},
		"no description":      {`{"currency":"EUR","lines":[{"description":"","quantity":1,"unitPrice":1,"taxRate":1}]}`, "lines[0].description: empty"},
		"a novel":             {`{"currency":"EUR","lines":[{"description":"` + strings.Repeat("x", 501) + `"}]}`, "lines[0].description: longer than 500 bytes"},
		"no lines":            {document("EUR"), "lines: empty"},
		"a missing rate":      {`{"currency":"EUR","lines":[{"description":"x","quantity":1,"unitPrice":1}]}`, "lines[0].taxRate: missing"},
		"an unknown field":    {`{"currency":"EUR","lines":[{"tax":1}]}`, `lines[0]: unknown member "tax"; known: description, discount, quantity, taxRate, unitPrice`},
		"empty":               {`{}`, "currency: missing"},
		"currency unknown":    {document("EUX", good), `currency: "EUX" is no ISO 4217 currency code`},
		"currency lower-case": {document("eur", good), `currency: "eur" is no ISO 4217 currency code`},
		"currency of blanks":  {document("R E", good), `currency: "R E" is no ISO 4217 currency code`},
		"currency long":       {document("EUROS", good), "currency: longer than 3 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := invoice.Parse([]byte(c.document))
			require.EqualError(t, err, c.want)
		})
	}
}

// TestAgainstRationals compares with an arithmetic of its own: rationals, rounded
// by adding a half and cutting.
func TestAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := rapid.SampledFrom([]string{"EUR", "JPY", "KWD"}).Draw(t, "currency")
		places := map[string]int{"EUR": 2, "JPY": 0, "KWD": 3}[code]
		decimal := func(name string, whole int64) string {
			n := rapid.Int64Range(0, whole).Draw(t, name)
			digits := rapid.IntRange(0, 6).Draw(t, name+" places")
			if digits == 0 {
				return fmt.Sprint(n)
			}
			return fmt.Sprintf("%d.%0*d", n, digits, rapid.Int64Range(0, pow10(digits)-1).Draw(t, name+" fraction"))
		}
		percent := func(name string) string {
			if rapid.Bool().Draw(t, name+" whole") {
				return fmt.Sprint(rapid.IntRange(0, 100).Draw(t, name))
			}
			return decimal(name, 99)
		}
		var lines []string
		net := new(big.Rat)
		groups := map[string]*big.Rat{}
		var nets []string
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			quantity, price := decimal("quantity", 999_999_999_999), decimal("price", 999_999_999_999)
			if rat(quantity).Sign() == 0 {
				quantity = "1"
			}
			rate, discount := percent("rate"), percent("discount")
			lines = append(lines, discounted(quantity, price, rate, discount))

			share := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(rat(discount), big.NewRat(100, 1)))
			amount := round(new(big.Rat).Mul(new(big.Rat).Mul(rat(quantity), rat(price)), share), places)
			nets = append(nets, amount.FloatString(places))
			net.Add(net, amount)
			group := rat(rate).RatString()
			if groups[group] == nil {
				groups[group] = new(big.Rat)
			}
			groups[group].Add(groups[group], amount)
		}
		tax := new(big.Rat)
		for rate, sum := range groups {
			tax.Add(tax, round(new(big.Rat).Quo(new(big.Rat).Mul(sum, rat(rate)), big.NewRat(100, 1)), places))
		}

		in, err := invoice.Parse([]byte(document(code, lines...)))
		require.NoError(t, err)
		got, err := invoice.Calculate(in)
		require.NoError(t, err)
		for i, l := range got.Lines {
			require.Equal(t, nets[i], l.Net)
		}
		require.Len(t, got.Taxes, len(groups))
		require.Equal(t, net.FloatString(places), got.Net)
		require.Equal(t, tax.FloatString(places), got.Tax)
		require.Equal(t, new(big.Rat).Add(net, tax).FloatString(places), got.Gross)
	})
}

func rat(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return r
}

// round rounds x, which is not negative, half up.
func round(x *big.Rat, places int) *big.Rat {
	scale := big.NewInt(pow10(places))
	scaled := new(big.Rat).Mul(x, new(big.Rat).SetInt(scale))
	scaled.Add(scaled, big.NewRat(1, 2))
	return new(big.Rat).SetFrac(new(big.Int).Div(scaled.Num(), scaled.Denom()), scale)
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

func TestEngineDoesNotStartForNobody(t *testing.T) {
	in, err := invoice.Parse([]byte(document("EUR", line("1", "1", "1"))))
	require.NoError(t, err)
	_, err = invoice.Engine{}.Calculate(t.Context(), in)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = invoice.Engine{}.Calculate(ctx, in)
	require.ErrorIs(t, err, context.Canceled)
}

// FuzzParse looks for documents that are taken and then cannot be calculated,
// and for totals that are not the sum of their parts.
func FuzzParse(f *testing.F) {
	f.Add(document("EUR", line("2.5", "120.00", "19")))
	f.Add(document("JPY", discounted("0.000001", "999999999999.999999", "7.5", "33.333333")))
	f.Add(document("KWD", line("1", "-0", "0"), line("1", "0.0005", "100")))
	f.Fuzz(func(t *testing.T, text string) {
		in, err := invoice.Parse([]byte(text))
		if err != nil {
			return
		}
		got, err := invoice.Calculate(in)
		require.NoError(t, err)
		net, tax := new(big.Rat), new(big.Rat)
		for _, l := range got.Lines {
			net.Add(net, rat(l.Net))
		}
		for _, x := range got.Taxes {
			tax.Add(tax, rat(x.Tax))
		}
		require.Zero(t, net.Cmp(rat(got.Net)))
		require.Zero(t, tax.Cmp(rat(got.Tax)))
		require.Zero(t, new(big.Rat).Add(net, tax).Cmp(rat(got.Gross)))
		require.NotContains(t, got.Gross, "E")
		require.NotContains(t, got.Gross, "-")
		_, err = json.Marshal(got)
		require.NoError(t, err)
	})
}

func ExampleCalculate() {
	in, err := invoice.Parse([]byte(`{"currency": "EUR", "lines": [
		{"description": "Consulting", "quantity": "2.5", "unitPrice": "120.00", "taxRate": "19", "discount": "10"},
		{"description": "Book", "quantity": 1, "unitPrice": "24.90", "taxRate": "7"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := invoice.Calculate(in)
	fmt.Println(out.Net, out.Tax, out.Gross, err)
	// Output: 294.90 53.04 347.94 <nil>
}
