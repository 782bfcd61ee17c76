package traffic

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/invoicespec/brimline/loadgen/dice"
)

// Spread is how a population's rate is spread over its users: the word equal, or
// one of two laws. The zero value is equal.
type Spread struct {
	Word      string
	Lognormal Number `yaml:"lognormal,omitempty"` // sigma of the logarithm
	Zipf      Number `yaml:"zipf,omitempty"`      // exponent: the k-th user asks 1/k^s as often as the first
}

const equal = "equal"

// UnmarshalText reads a word.
func (s *Spread) UnmarshalText(text []byte) error {
	if s.Word = string(text); s.Word != equal {
		return fmt.Errorf("%.12q is no spread; accepted: %s, {lognormal: 0.8}, {zipf: 1.1}", text, equal)
	}
	return nil
}

// even reports whether all users are alike.
func (s Spread) even() bool { return s.Lognormal.text == "" && s.Zipf.text == "" }

// String is the spread in words; empty: equal.
func (s Spread) String() string {
	switch {
	case s.Lognormal.text != "":
		return "lognormal " + s.Lognormal.text
	case s.Zipf.text != "":
		return "zipf " + s.Zipf.text
	}
	return ""
}

const maxSpread = 5 * thousandth

func spreadMakesSense(here at, p Population) error {
	s := p.Spread
	switch {
	case !here.has("spread"):
		return nil
	case s.Word == "" && s.even() || here.has("spread.lognormal") && here.has("spread.zipf"):
		return here.refuse("spread", "says not how", "equal, {lognormal: 0.8}, {zipf: 1.1}")
	case !s.even() && (p.Arrival.Bursts > 0 || p.Arrival.Replay != ""):
		return here.refuse("spread", "this arrival is the same or given for every user", "equal, or another arrival")
	}
	for key, n := range map[string]Number{"lognormal": s.Lognormal, "zipf": s.Zipf} {
		if n.text != "" && (n.number < 1 || n.number > maxSpread) {
			return here.refuse("spread."+key, n.text+" is out of range", "0.001 to 5")
		}
	}
	return nil
}

// shares deals out units, at least one for each of the users, in the proportions
// of the spread. They sum to units to the last one, so that a population asks as
// much as if all were equal. The seed says who is where in the order; the order
// itself is that of the law, so that no seed draws an unusual population.
func (s Spread) shares(units int64, seed int64, names []string) []int64 {
	list := make([]int64, len(names))
	if s.even() {
		for i := range list {
			list[i] = units / int64(len(names))
		}
		return list
	}
	n := float64(len(names))
	sums, sum := make([]float64, len(names)), 0.0
	for k := range sums {
		if s.Zipf.text != "" {
			sum += math.Pow(float64(k+1), -s.Zipf.value())
		} else { // the middle of the k-th of n equal parts
			sum += math.Exp(s.Lognormal.value() * math.Sqrt2 * math.Erfinv((2*float64(k)+1)/n-1))
		}
		sums[k] = sum
	}
	free, dealt := units-int64(len(names)), int64(0)
	for k, user := range shuffled(seed, names) {
		upTo := free
		if k < len(names)-1 {
			upTo = min(free, int64(sums[k]/sum*float64(free)))
		}
		list[user] = 1 + upTo - dealt
		dealt = upTo
	}
	return list
}

// shuffled is an order of the users that is the seed's and theirs.
func shuffled(seed int64, names []string) []int {
	type place struct {
		at   float64
		user int
	}
	places := make([]place, len(names))
	for i, name := range names {
		places[i] = place{dice.New(seed, "spread", name).At(0), i}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.user, b.user))
	})
	order := make([]int, len(places))
	for i, p := range places {
		order[i] = p.user
	}
	return order
}
