package traffic

import (
	"fmt"
	"strings"
)

// Operation is what a request asks for.
type Operation uint8

// The operations. Their requests and what they end with are the target's.
const (
	Valid           Operation = iota // succeeds
	Invalid                          // fails validation
	Slow                             // succeeds, after a while
	Unauthenticated                  // the valid one with a key that nobody has
	operations
)

// Operations lists all of them.
func Operations() []Operation { return []Operation{Valid, Invalid, Slow, Unauthenticated} }

func (o Operation) String() string {
	return [operations]string{"valid", "invalid", "slow", "unauthenticated"}[o]
}

// Mix is how often users ask for what, as weights.
type Mix struct {
	Valid           int64 `yaml:"valid,omitempty"`
	Invalid         int64 `yaml:"invalid,omitempty"`
	Slow            int64 `yaml:"slow,omitempty"`
	Unauthenticated int64 `yaml:"unauthenticated,omitempty"`
}

const maxWeight = 1_000_000

func (m *Mix) weights() [operations]int64 {
	if m == nil {
		return [operations]int64{Valid: 1}
	}
	return [operations]int64{m.Valid, m.Invalid, m.Slow, m.Unauthenticated}
}

func mixMakesSense(here at, p Population) error {
	sum := int64(0)
	for o, w := range p.Mix.weights() {
		if w < 0 || w > maxWeight {
			return here.refuse("mix."+Operation(o).String(), fmt.Sprintf("%d is out of range", w), fmt.Sprintf("0 to %d", maxWeight))
		}
		sum += w
	}
	if sum == 0 {
		return here.refuse("mix", "nothing is asked for", "a weight above 0")
	}
	return nil
}

// Share is which part of all requests asks for an operation.
func (m *Mix) Share(o Operation) float64 {
	sum := int64(0)
	for _, w := range m.weights() {
		sum += w
	}
	return float64(m.weights()[o]) / float64(sum)
}

// at is the operation at a place between 0 and 1.
func (m *Mix) at(place float64) Operation {
	w := m.weights()
	sum := int64(0)
	for _, n := range w {
		sum += n
	}
	left := place * float64(sum)
	for _, o := range Operations() {
		if left -= float64(w[o]); left < 0 {
			return o
		}
	}
	return Valid // by rounding
}

// String is the mix as weights; empty: valid operations alone.
func (m *Mix) String() string {
	if m == nil {
		return ""
	}
	var parts []string
	for o, w := range m.weights() {
		if w > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", Operation(o), w))
		}
	}
	return strings.Join(parts, ", ")
}
