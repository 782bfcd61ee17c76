package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
)

// What nobody has, so that whoever says yes to it cannot be believed.
const (
	nobody    = "brimline-asks-about-nobody"
	noPlan    = "brimline-asks-for-no-plan"
	noKey     = "brimline-asks-for-no-key"
	noPlace   = "brimline-asks-for-no-place"
	noRequest = "brimline-asks-for-no-request"
)

// openBehind opens every means that the file names, and asks each for something
// that shows whether it is one. It returns how the target's clock runs.
func (t *Target) openBehind(ctx context.Context, o Options) (control.ClockMode, error) {
	f, mode := t.file, control.ClockReal
	lookup := o.Environment
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if f.Can.SQL != nil {
		q, err := f.openSQL(lookup)
		if err != nil {
			return mode, err
		}
		t.secrets.add(q.secrets()...)
		t.behind.means = append(t.behind.means, q)
	}
	if len(f.Can.Commands) > 0 {
		c := &commands{folder: f.folder, of: f.Can.Commands, mask: t.Mask, lookup: lookup}
		t.secrets.add(c.passed()...)
		t.behind.means = append(t.behind.means, c)
	}
	if c := f.Can.Control; c != nil {
		token, err := o.ControlToken, error(nil)
		if token == (Secret{}) {
			if token, err = readToken(f.in(c.TokenFile)); err != nil {
				return mode, f.at("can.control.token-file", err)
			}
		}
		t.secrets.add(token)
		spoken, err := openControl(ctx, c.URL, token, t.trust, t.agent, t.patience.control())
		if err != nil {
			return mode, err
		}
		t.behind.means, mode = append(t.behind.means, spoken), spoken.clock
	}
	for _, r := range routes() {
		if !t.behind.declared(r.feature) || t.behind.doubted[r.feature] != "" {
			continue
		}
		answer, why, err := t.behind.probe(ctx, r)
		if err != nil {
			return mode, err
		}
		if why != "" {
			t.behind.doubt(r.feature, why)
		} else if c, ok := answer.(*control.Clock); ok {
			mode = c.Mode
		}
	}
	return mode, nil
}

func (b *behind) doubt(f control.Feature, why string) {
	if b.doubted == nil {
		b.doubted = map[control.Feature]string{}
	}
	b.doubted[f] = why
}

// probe asks for what changes nothing: about a user, a place or a request that
// there is not, which has to be refused or to come back empty, or what the time
// is. Its error is that the control server is away; why says what was wrong.
func (b *behind) probe(ctx context.Context, r route) (answer any, why string, err error) {
	c, ok := r.harmless()
	if !ok {
		return nil, "", nil
	}
	m := b.of(r.action)
	by := m.name(r.action)
	answer = blank(r.action)
	err = m.do(ctx, c, answer)
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case errors.Is(err, ErrUnsupported):
		return nil, by + ": listed as a feature, and not supported", nil
	case errors.Is(err, ErrAway):
		return nil, "", err
	case refused(err) && r.feature != control.FeatureClock:
		return answer, "", nil
	case err != nil:
		return nil, strings.TrimPrefix(err.Error(), ErrUntrue.Error()+": "), nil
	case r.feature == control.FeatureClock || empty(answer):
		return answer, "", nil
	}
	return nil, fmt.Sprintf("%s: it says yes to what nobody has: %s", by, c.about()), nil
}

// harmless is a call that changes nothing; false: there is none.
func (r route) harmless() (call, bool) {
	c := call{action: r.action, in: map[string]string{}}
	for _, name := range r.names() {
		switch name {
		case "user":
			c.in[name] = nobody
		case "dimension":
			c.in[name] = string(Burst)
		case "place":
			c.in[name] = noPlace
		case "request":
			c.in[name] = noRequest
		}
	}
	switch r.action {
	case makeUser:
		c.body = control.NewUser{Plan: noPlan, Keys: 1}
	case setPlan, schedulePlan:
		c.body = control.Plan{Plan: noPlan}
	case revokeKey:
		c.body = control.Key{Key: noKey}
	case setOverride:
		c.body = control.Override{Value: 1}
	case storeEntitlement, storeOverride:
		c.body = control.Stored{Text: "1"}
	case setOperations:
		c.body = control.Operations{}
	case setEngine:
		c.body = control.Engine{Behaviour: noPlace}
	case advanceClock:
		c.body = control.Advance{}
	case restart:
		return c, false
	}
	return c, true
}

// about names what a harmless call asks about.
func (c call) about() string {
	values, _ := c.values()
	for _, value := range []string{nobody, noPlan, noPlace, noRequest} {
		for name, v := range values {
			if v == value {
				return name + " " + value
			}
		}
	}
	return string(c.action)
}

// blank is an answer of an action's kind; nil: it has none.
func blank(a action) any {
	switch a {
	case makeUser:
		return new(control.User)
	case addKey:
		return new(control.Key)
	case readPeriod, endPeriod:
		return new(control.Period)
	case readOverrides:
		return new(control.History)
	case readOperations:
		return new(control.Usage)
	case readClock, advanceClock:
		return new(control.Clock)
	case readGate:
		return new(control.Gate)
	case readAudit, readUserAudit:
		return new(control.Audit)
	}
	return nil
}

// empty reports whether an answer says that there is nothing.
func empty(answer any) bool {
	switch a := answer.(type) {
	case *control.History:
		return len(a.Entries) == 0
	case *control.Audit:
		return len(a.Entries) == 0 && a.EngineCalls == 0 && a.Charges == 0 && a.KeyLookups <= 0
	}
	return false
}

// featuresOf lists the features that a need takes.
func featuresOf(n contract.Need) []control.Feature {
	switch n {
	case contract.NeedGates, contract.NeedHoldAuth, contract.NeedHold:
		return []control.Feature{control.FeatureGates}
	case contract.NeedKeys:
		return []control.Feature{control.FeatureUsers}
	case contract.NeedFail, contract.NeedEngine:
		return []control.Feature{control.FeatureEngine}
	case contract.NeedPolicy:
		return []control.Feature{control.FeaturePlan, control.FeatureOverrides, control.FeatureUsers}
	case contract.NeedOperations:
		return []control.Feature{control.FeatureOperations}
	case contract.NeedSchedule:
		return []control.Feature{control.FeatureSchedule}
	case contract.NeedHistory:
		return []control.Feature{control.FeatureHistory}
	case contract.NeedEntitlements:
		return []control.Feature{control.FeatureEntitlements, control.FeatureUsers}
	case contract.NeedRestart:
		return []control.Feature{control.FeatureRestart}
	case contract.NeedClock:
		return []control.Feature{control.FeatureClock}
	case contract.NeedAudit:
		return []control.Feature{control.FeatureAudit}
	}
	return nil
}

// behindHas reports whether all that a need takes behind the scenes is there.
func (t *Target) behindHas(n contract.Need) bool {
	return !slices.ContainsFunc(featuresOf(n), func(f control.Feature) bool { return !t.behind.has(f) })
}

// Untrue says why what the file declares for a need was found not to be so when
// the target was opened; empty: it was not.
func (t *Target) Untrue(n contract.Need) string {
	return t.Excerpt(t.doubts(n), mostError) // a server or a command may be quoted
}

func (t *Target) doubts(n contract.Need) string {
	if why := t.untrue[n]; why != "" {
		return why
	}
	for _, f := range featuresOf(n) {
		if !t.behind.declared(f) {
			return ""
		}
	}
	for _, f := range featuresOf(n) {
		if why := t.behind.doubted[f]; why != "" {
			return why
		}
	}
	return ""
}

// disbelieve keeps why what is declared for a need is not so.
func (t *Target) disbelieve(n contract.Need, why string) {
	if t.untrue == nil {
		t.untrue = map[contract.Need]string{}
	}
	t.untrue[n] = why
}
