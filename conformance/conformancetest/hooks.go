package conformancetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// Hooks are what a service's own tests can do behind the scenes. All are
// optional; those of one block make one feature of the control protocol, and go
// together. An error says that nothing was changed. They are called from other
// goroutines than the test's, those of different users at once.
//
// A plan, user or key that there is not has to be refused with an error: the suite
// begins by asking for one, and does not believe a feature that says yes to it.
//
// An override's value is nil, a bool, a string, a json.Number, []any or
// map[string]any: whatever an operator might write, most of it to be refused.
type Hooks struct {
	// Who asks: users with keys that nobody has used (up to 16 of them).
	NewUser   func(ctx context.Context, plan string, keys int) (control.User, error)
	AddKey    func(ctx context.Context, user string) (key string, err error)
	RevokeKey func(ctx context.Context, user, key string) error

	// The clock. With it the suite waits for nothing, and asks one thing at a time.
	// Frozen says that time stands still but for Advance; otherwise it goes on as
	// well. A negative d sets the date back, and no limit may follow it.
	Now     func(ctx context.Context) (time.Time, error)
	Advance func(ctx context.Context, d time.Duration) error
	Frozen  bool

	// The plan, in force with the next request.
	SetPlan func(ctx context.Context, user, plan string) error

	// Plans that take over at the end of the billing period.
	SchedulePlan func(ctx context.Context, user, plan string) error
	Period       func(ctx context.Context, user string) (control.Period, error)
	EndPeriod    func(ctx context.Context, user string) error

	// Overrides of a dimension: requests-per-minute, burst or concurrency.
	SetOverride func(ctx context.Context, user, dimension string, o control.Override) error
	EndOverride func(ctx context.Context, user, dimension string) error

	// All overrides that a user ever had, the oldest first.
	Overrides func(ctx context.Context, user string) ([]control.PastOverride, error)

	// What a broken store would hold for one user, past every check.
	StoreEntitlement  func(ctx context.Context, user, dimension, text string) error
	RemoveEntitlement func(ctx context.Context, user, dimension string) error
	MendEntitlements  func(ctx context.Context, user string) error
	StoreOverride     func(ctx context.Context, user, dimension string, s control.Stored) error

	// Paid operations.
	SetOperations func(ctx context.Context, user string, left int64) error
	Operations    func(ctx context.Context, user string) (control.Usage, error)

	// How the engine treats a user's calls.
	SetEngine func(ctx context.Context, user string, b control.Behaviour) error

	// What was logged, called and charged: for one request, and for all of a user's.
	Audit     func(ctx context.Context, request string) (control.Audit, error)
	UserAudit func(ctx context.Context, user string) (control.Audit, error)

	// Start anew on what is stored, as a new process would.
	Restart func(ctx context.Context) error

	// Gates hold requests; the service calls [Gates.Pass].
	Gates *Gates
}

// part is one hook of a feature.
type part struct {
	feature control.Feature
	name    string
	there   bool
}

func (h Hooks) parts() []part {
	return []part{
		{control.FeatureUsers, "NewUser", h.NewUser != nil},
		{control.FeatureUsers, "AddKey", h.AddKey != nil},
		{control.FeatureUsers, "RevokeKey", h.RevokeKey != nil},
		{control.FeatureClock, "Now", h.Now != nil},
		{control.FeatureClock, "Advance", h.Advance != nil},
		{control.FeaturePlan, "SetPlan", h.SetPlan != nil},
		{control.FeatureSchedule, "SchedulePlan", h.SchedulePlan != nil},
		{control.FeatureSchedule, "Period", h.Period != nil},
		{control.FeatureSchedule, "EndPeriod", h.EndPeriod != nil},
		{control.FeatureOverrides, "SetOverride", h.SetOverride != nil},
		{control.FeatureOverrides, "EndOverride", h.EndOverride != nil},
		{control.FeatureHistory, "Overrides", h.Overrides != nil},
		{control.FeatureEntitlements, "StoreEntitlement", h.StoreEntitlement != nil},
		{control.FeatureEntitlements, "RemoveEntitlement", h.RemoveEntitlement != nil},
		{control.FeatureEntitlements, "MendEntitlements", h.MendEntitlements != nil},
		{control.FeatureEntitlements, "StoreOverride", h.StoreOverride != nil},
		{control.FeatureOperations, "SetOperations", h.SetOperations != nil},
		{control.FeatureOperations, "Operations", h.Operations != nil},
		{control.FeatureEngine, "SetEngine", h.SetEngine != nil},
		{control.FeatureAudit, "Audit", h.Audit != nil},
		{control.FeatureAudit, "UserAudit", h.UserAudit != nil},
		{control.FeatureRestart, "Restart", h.Restart != nil},
		{control.FeatureGates, "Gates", h.Gates != nil},
	}
}

// features lists what the hooks offer. Half a feature is a mistake: it would be
// skipped where its author thinks that it is tested.
func (h Hooks) features() ([]control.Feature, error) {
	var order []control.Feature
	has, lacks := map[control.Feature][]string{}, map[control.Feature][]string{}
	for _, p := range h.parts() {
		if len(has[p.feature])+len(lacks[p.feature]) == 0 {
			order = append(order, p.feature)
		}
		if p.there {
			has[p.feature] = append(has[p.feature], p.name)
		} else {
			lacks[p.feature] = append(lacks[p.feature], p.name)
		}
	}
	var all []control.Feature
	for _, f := range order {
		switch {
		case len(has[f]) == 0:
		case len(lacks[f]) > 0:
			return nil, fmt.Errorf("hooks: %s without %s; accepted: both or neither", strings.Join(has[f], " and "), strings.Join(lacks[f], " and "))
		default:
			all = append(all, f)
		}
	}
	return all, nil
}

func (h Hooks) clock() control.ClockMode {
	switch {
	case h.Advance == nil:
		return control.ClockReal
	case h.Frozen:
		return control.ClockFrozen
	}
	return control.ClockShifted
}
