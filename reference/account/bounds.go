package account

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/invoicespec/brimline/reference/policy"
)

// Bounds of what a store keeps of one user.
const (
	MaxKeys        = 64     // that are good
	MaxOverrides   = 10_000 // in force or over
	MaxStoredBytes = 256    // of an entitlement's text, well-formed or not
)

// StoredInstant is what a store keeps of an instant: microseconds, in UTC.
func StoredInstant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// CheckOverride refuses, with [ErrRefused], what must not be set: a value that is
// no whole number in range (OVR-3), or a note that does not say who and why.
func CheckOverride(o policy.Override, by Note) error {
	if len(o.Value) > MaxStoredBytes {
		return fmt.Errorf("%w: %s of %d bytes", ErrRefused, o.Dimension, len(o.Value))
	}
	if _, err := policy.ParseValue(o.Dimension, o.Value); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return by.Check()
}

// StoredOverride is what a store keeps of an override that is set at now. One
// that would be over at once is refused.
func StoredOverride(o policy.Override, now time.Time) (policy.Override, error) {
	if o.Expires = StoredInstant(o.Expires); !o.ActiveAt(now) {
		return o, fmt.Errorf("%w: the override would have expired already, at %s", ErrRefused, o.Expires.Format(time.RFC3339))
	}
	return o, nil
}

// CheckStored refuses, with [ErrRefused], a text that not even a broken store
// could hold.
func CheckStored(text string) error {
	if len(text) > MaxStoredBytes || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return fmt.Errorf("%w: a stored value is text of at most %d bytes", ErrRefused, MaxStoredBytes)
	}
	return nil
}
