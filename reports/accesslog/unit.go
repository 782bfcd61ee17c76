package accesslog

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/invoicespec/brimline/reports/timeline"
)

// Unit is what a log counts a duration in.
type Unit string

// The units.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Microseconds Unit = "us"
	Nanoseconds  Unit = "ns"
)

// Set takes a unit as it is written.
func (u *Unit) Set(text string) error {
	switch Unit(text) {
	case Seconds, Milliseconds, Microseconds, Nanoseconds:
		*u = Unit(text)
		return nil
	}
	return errors.New("it is s, ms, us or ns")
}

func (u *Unit) String() string { return string(*u) }

// Type names the value for a command's help.
func (u *Unit) Type() string { return "UNIT" }

// mostHold bounds durations: a request that took a year is none.
const mostHold = 365 * 24 * 3600 * 1e6

// of is so many units in microseconds; [timeline.NoHold] for what is no duration.
func (u Unit) of(x float64) int64 {
	switch u {
	case Seconds:
		x *= 1e6
	case Milliseconds:
		x *= 1e3
	case Nanoseconds:
		x /= 1e3
	}
	if math.IsNaN(x) || x < 0 || x > mostHold {
		return timeline.NoHold
	}
	return int64(math.Round(x))
}

// parse reads a duration; what is none is [timeline.NoHold].
func (u Unit) parse(text []byte) int64 {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return timeline.NoHold
	}
	return u.of(x)
}

// last is the duration that ends a line, if one does: a number with a unit, as
// Traefik writes it, one with a decimal point, in seconds as nginx counts, or a
// whole one in the unit that was said.
func (u Unit) last(tail []byte) int64 {
	tail = bytes.TrimRight(tail, " ")
	word := tail[bytes.LastIndexByte(tail, ' ')+1:]
	number, milliseconds := bytes.CutSuffix(word, []byte("ms"))
	switch {
	case len(number) == 0 || number[0] < '0' || number[0] > '9':
		return timeline.NoHold
	case milliseconds:
		return Milliseconds.parse(number)
	case u != "":
		return u.parse(number)
	case bytes.IndexByte(number, '.') > 0:
		return Seconds.parse(number)
	}
	return timeline.NoHold
}
