// Package target is a deployment as a black box: what its target file says of
// it, the users it lends out, the requests it is sent, the clock it runs on and,
// where it offers the control protocol, what can be set and read behind the
// scenes. It knows no limiter's insides and judges nothing by itself; package
// oracle does, and every [Exchange] carries what the oracle found.
//
// Most callers want [ReadFile] and [Open], then [Target.Lease], [Target.Send] and
// [Target.Hold].
//
// Requests are written to fresh connections as HTTP/1.1 by code of this package,
// not by net/http's transport: nothing is retried, no redirect is followed, no
// proxy of the environment is used, a request target goes out as it is spelled,
// and the oracle's span begins when the first byte is about to leave.
package target

import (
	"context"
	"errors"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// Errors that callers tell apart.
var (
	ErrAway        = errors.New("the target is away")                            // could not be told: exit code 3
	ErrUnsupported = errors.New("the target does not offer this")                // a scenario that needs it is not run
	ErrBudget      = errors.New("limits.max-operations is reached")              // nothing was sent
	ErrNoUser      = errors.New("no user of this kind is left to be leased")     // the scenario could not be set up
	ErrNoWitness   = errors.New("the request was not seen to be in flight")      // the scenario could not be set up
	ErrTimeline    = errors.New("the target's clock is no longer where we know") // inconclusive
)

// Options are what a target file does not hold. The zero value takes keys and
// token from the files that the target file names.
type Options struct {
	Keys         []Key  // users in memory, instead of the keys file
	ControlToken Secret // instead of the token file
}

// Target is an open target. Its methods may be called concurrently; those that
// move a clock or take a [User] want that user's scenario to be alone with it.
type Target struct{}

// Open reaches the target described by f: it asks the base URLs for one of the
// paths outside the quotas (or connects, if none is named), asks the control
// server what it can do, and makes sure that it says no to what it cannot.
// Close it when done.
func Open(ctx context.Context, f File, o Options) (*Target, error) { return nil, ErrAway }

// Close gives up all connections and opens every gate that is still closed.
func (t *Target) Close() error { return nil }

// Has reports whether the target offers what a scenario needs.
func (t *Target) Has(n contract.Need) bool { return false }

// Plans lists the plans that users can be leased on, sorted.
func (t *Target) Plans() []string { return nil }

// Allowance is what the target file says that a plan allows.
func (t *Target) Allowance(plan string) (oracle.Allowance, bool) { return oracle.Allowance{}, false }

// OutsideQuotas lists the paths that no quota applies to.
func (t *Target) OutsideQuotas() []string { return nil }

// Describe is the target in one line: host, protocol, users, plans, clock, what it can.
func (t *Target) Describe() string { return "" }

// Server is what the control server calls itself; empty without one.
func (t *Target) Server() string { return "" }

// Clock says how the target's clock runs; real where there is no control server.
func (t *Target) Clock() control.ClockMode { return control.ClockReal }

// Movable reports whether waiting moves the target's clock instead of taking
// time. The clock is everybody's: run one scenario at a time then.
func (t *Target) Movable() bool { return false }

// Charged is how many operations the target can have charged so far, at most.
func (t *Target) Charged() int64 { return 0 }

// Wait returns once the target's timeline has surely moved by d: it sleeps on a
// real clock and advances a movable one.
func (t *Target) Wait(ctx context.Context, d time.Duration) error { return nil }

// Advance moves a movable clock; a negative d moves the date back, which the
// timeline of limits must not follow.
func (t *Target) Advance(ctx context.Context, d time.Duration) error { return nil }

// Now is the date by the target's movable clock.
func (t *Target) Now(ctx context.Context) (time.Time, error) { return time.Time{}, nil }
