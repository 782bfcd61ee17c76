package traffic

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/invoicespec/brimline/loadgen/arrival"
)

// Rate is how often one user asks: requests per minute, or a share of what the
// plan allows. The zero value is a rate that was not given.
type Rate struct {
	text    string
	number  int64 // thousandths
	ofShare bool
}

const thousandth = 1000

var rateText = regexp.MustCompile(`^([0-9]{1,7})(?:\.([0-9]{1,3}))?(x?)$`)

// UnmarshalText reads "90" or "1.2x".
func (r *Rate) UnmarshalText(text []byte) error {
	if err := (*Level)(r).UnmarshalText(text); err != nil {
		return err
	}
	if r.number == 0 {
		return errors.New("a rate of 0 is no load; accepted: more than 0")
	}
	return nil
}

// String is the rate as it was written.
func (r Rate) String() string { return r.text }

// of is the rate for an allowance of so many requests per minute.
func (r Rate) of(perMinute int64) (arrival.Rate, error) {
	if r.ofShare {
		return arrival.NewRate(r.number*perMinute, thousandth)
	}
	return arrival.NewRate(r.number, thousandth)
}

// Level is a rate that may be 0, as a part of a curve may.
type Level Rate

// UnmarshalText reads "0", "90" or "1.2x".
func (l *Level) UnmarshalText(text []byte) error {
	parts := rateText.FindStringSubmatch(string(text))
	if parts == nil {
		return fmt.Errorf("%.12q is no rate; accepted: 90 or 12.5 per minute, or a share as 1.2x", text)
	}
	n, _ := strconv.ParseInt(parts[1]+(parts[2] + "000")[:3], 10, 64) // at most ten digits
	*l = Level{text: string(text), number: n, ofShare: parts[3] != ""}
	switch {
	case l.ofShare && n > maxShare*thousandth:
		return fmt.Errorf("%s is more than %dx", text, maxShare)
	case n > arrival.MaxRate*thousandth:
		return fmt.Errorf("%s is more than %d requests per minute", text, arrival.MaxRate)
	}
	return nil
}

// String is the rate as it was written.
func (l Level) String() string { return l.text }

func (l Level) of(perMinute int64) (arrival.Rate, error) {
	if l.number == 0 {
		return arrival.Rate{}, nil
	}
	return Rate(l).of(perMinute)
}

// Number is a decimal number with up to three places.
type Number struct {
	text   string
	number int64 // thousandths
}

// UnmarshalText reads "10" or "0.5".
func (n *Number) UnmarshalText(text []byte) error {
	parts := rateText.FindStringSubmatch(string(text))
	if parts == nil || parts[3] != "" {
		return fmt.Errorf("%.12q is no number; accepted: such as 10 or 0.5, up to three places", text)
	}
	n.text = string(text)
	n.number, _ = strconv.ParseInt(parts[1]+(parts[2] + "000")[:3], 10, 64)
	return nil
}

// String is the number as it was written.
func (n Number) String() string { return n.text }

func (n Number) value() float64 { return float64(n.number) / thousandth }
