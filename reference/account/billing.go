package account

import (
	"time"

	"github.com/invoicespec/brimline/reference/policy"
)

// ReservationLapse is when an operation that a request has reserved is there for
// others again, if nothing was heard of the request until then (LOG-7): its
// process has died. It is longer than any engine may work.
const ReservationLapse = 30 * time.Second

// Period is a billing period, from Start to just before End.
type Period struct{ Start, End time.Time }

// PeriodAt is the period that now lies in: a month by the calendar, counted
// from the anchor, so that one that began on the 31st begins on a shorter
// month's last day and on the 31st again after it. A clock that was set back to
// before the anchor is still in the first.
func PeriodAt(anchor, now time.Time) Period {
	anchor, now = anchor.UTC(), Later(anchor, now).UTC()
	k := 12*(now.Year()-anchor.Year()) + int(now.Month()) - int(anchor.Month())
	if monthsLater(anchor, k).After(now) {
		k--
	}
	return Period{Start: monthsLater(anchor, k), End: monthsLater(anchor, k+1)}
}

// Later is the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func monthsLater(t time.Time, k int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(k), 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	lastDay := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(t.Day(), lastDay)-1)
}

// Billing is what a user is entitled to and has used, all of one instant. It
// holds no reason and no author of an override (BILL-1).
type Billing struct {
	Record // of no key: KeyID is empty
	Period Period
	Used   int64 // operations charged in Period
	Left   int64 // operations of Period that are not charged; some may be reserved
}

// OverrideEntry is one line of the history of a user's overrides (OVR-7).
// Nothing is ever removed from it.
type OverrideEntry struct {
	policy.Override
	Set   time.Time
	By    Note
	Ended time.Time // by a replacement or an operator; zero: it was left to expire, or still holds
	EndBy Note
}
