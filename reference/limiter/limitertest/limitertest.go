// Package limitertest is the contract that every adapter of the port
// [limiter.Limiter] keeps, as tests: RATE-1, RATE-6, RATE-8 to RATE-10, HDR-6,
// HDR-7, POOL-3, CONC-1, CONC-3, CONC-6, PERMIT-8 and CHG-1 to CHG-4.
//
// An adapter's own test is one call of [Run]. It serves adapters on any clock: a
// frozen one, one that runs and can be moved, and one that nobody can move, such
// as a remote store's. Nothing is taken on a tolerance: a decision says the
// instant it was made at, that instant must lie between two readings of the same
// timeline, and every figure must be exactly what it implies. The arithmetic
// behind the verdicts is that of package buckettest, not the adapter's.
package limitertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/limiter"
)

// Harness is a fresh adapter: every bucket full, nothing in flight.
type Harness struct {
	Limiter limiter.Limiter

	// Instant reads the timeline that the limiter decides on.
	Instant func() bucket.Instant

	// Advance moves that timeline forward. It is nil where nobody can; tests
	// then wait, a few milliseconds at a time, until Instant has come far enough.
	Advance func(time.Duration)
}

// Finding is a sentence of the contract that an adapter does not keep.
type Finding struct {
	Case string // the case of this package that found it
	What error
}

func (f Finding) String() string { return fmt.Sprintf("%s: %v", f.Case, f.What) }

// Run tests the adapter that open makes, a fresh one for every case.
func Run(t *testing.T, open func(testing.TB) Harness) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(newSession(open(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check does what Run does and returns what it finds instead of failing t, for
// tests that want an adapter to be found out.
func Check(t testing.TB, open func(testing.TB) Harness) []Finding {
	t.Helper()
	var findings []Finding
	for _, c := range cases {
		if err := c.run(newSession(open(t))); err != nil {
			findings = append(findings, Finding{Case: c.name, What: err})
		}
	}
	return findings
}

// Cases names the cases in the order they run in.
func Cases() []string {
	names := make([]string, len(cases))
	for i, c := range cases {
		names[i] = c.name
	}
	return names
}
