package account

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what a store keeps of one user.
const (
	MaxKeys        = 64     // that are good
	MaxOverrides   = 10_000 // in force or over
	MaxStoredBytes = 256    // of an entitlement's text, well-formed or not
)

// StoredInstant is what a store keeps of an instant: microseconds, in UTC.
func StoredInstant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// CheckStored refuses, with [ErrRefused], a text that not even a broken store
// could hold.
func CheckStored(text string) error {
	if len(text) > MaxStoredBytes || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return fmt.Errorf("%w: a stored value is text of at most %d bytes", ErrRefused, MaxStoredBytes)
	}
	return nil
}
