// Package dice draws numbers that belong to a user and a place: each is a pure
// function of seed, purpose, user and number, so that it does not matter who
// draws, how often, and in which order. What a [Dice] draws is even over [0, 1).
package dice

import (
	"crypto/sha256"
	"encoding/binary"
)

// Dice are those of one user for one purpose.
type Dice uint64

// New is a user's dice. Purposes of one user draw numbers that have nothing to
// do with each other.
func New(seed int64, purpose, user string) Dice {
	text := binary.BigEndian.AppendUint64(nil, uint64(seed))
	text = append(append(append(text, purpose...), 0), user...)
	sum := sha256.Sum256(text)
	return Dice(binary.BigEndian.Uint64(sum[:]))
}

// At is the number at a place: SplitMix64 from a start of its own.
func (d Dice) At(place int64) float64 {
	z := uint64(d) + (uint64(place)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
