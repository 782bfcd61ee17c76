package account

import (
	"time"

	"github.com/invoicespec/brimline/reference/policy"
)

// Period is a billing period, from Start to just before End.
type Period struct{ Start, End time.Time }

// Billing is what a user is entitled to and has used, all of one instant. It
// holds no reason and no author of an override (BILL-1).
type Billing struct {
	Record
	Period Period
	Used   int64 // operations charged in Period
	Left   int64 // operations that can still be reserved or charged in it
}

// Note says who changed something at the operator boundary, and why. It is for
// the audit trail alone: no page and no answer to a user shows it.
type Note struct{ Author, Reason string }

// OverrideEntry is one line of the history of a user's overrides (OVR-7).
// Nothing is ever removed from it.
type OverrideEntry struct {
	policy.Override
	Set   time.Time
	By    Note
	Ended time.Time // by a replacement or an operator; zero: it was left to expire, or still holds
	EndBy Note
}
