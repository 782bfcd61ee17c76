package target

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// action is one thing that can be set or read behind the scenes, by the name
// that target files give it.
type action string

// The actions.
const (
	makeUser          action = "make-user"
	addKey            action = "add-key"
	revokeKey         action = "revoke-key"
	setPlan           action = "set-plan"
	schedulePlan      action = "schedule-plan"
	readPeriod        action = "read-period"
	endPeriod         action = "end-period"
	setOverride       action = "set-override"
	endOverride       action = "end-override"
	readOverrides     action = "read-overrides"
	storeEntitlement  action = "store-entitlement"
	removeEntitlement action = "remove-entitlement"
	mendEntitlements  action = "mend-entitlements"
	storeOverride     action = "store-override"
	setOperations     action = "set-operations"
	readOperations    action = "read-operations"
	readClock         action = "read-clock"
	advanceClock      action = "advance-clock"
	closeGate         action = "close-gate"
	openGate          action = "open-gate"
	readGate          action = "read-gate"
	setEngine         action = "set-engine"
	readAudit         action = "read-audit"
	readUserAudit     action = "read-user-audit"
	restart           action = "restart"
)

// route is how the control protocol names an action, and what it is part of.
type route struct {
	action  action
	feature control.Feature
	method  string
	path    string   // below [control.Prefix]
	members []string // of the body; those of the path are in it as {user}
	answers func(answer any) shape
}

// routes lists all actions. A feature is offered where all of its actions are.
// The list is made once, since whatever a target has is looked up in it, and is
// not to be changed.
var routes = sync.OnceValue(func() []route {
	return []route{
		{makeUser, control.FeatureUsers, post, "/users", []string{"plan", "keys"}, userShape},
		{addKey, control.FeatureUsers, post, "/users/{user}/keys", nil, keyShape},
		{revokeKey, control.FeatureUsers, post, "/users/{user}/keys/revoke", []string{"key"}, nil},
		{setPlan, control.FeaturePlan, put, "/users/{user}/plan", []string{"plan"}, nil},
		{schedulePlan, control.FeatureSchedule, put, "/users/{user}/schedule", []string{"plan"}, nil},
		{readPeriod, control.FeatureSchedule, get, "/users/{user}/period", nil, periodShape},
		{endPeriod, control.FeatureSchedule, post, "/users/{user}/period/end", nil, periodShape},
		{setOverride, control.FeatureOverrides, put, "/users/{user}/overrides/{dimension}", []string{"value", "expires", "reason", "author"}, nil},
		{endOverride, control.FeatureOverrides, remove, "/users/{user}/overrides/{dimension}", nil, nil},
		{readOverrides, control.FeatureHistory, get, "/users/{user}/overrides", nil, historyShape},
		{storeEntitlement, control.FeatureEntitlements, put, "/users/{user}/entitlements/{dimension}", []string{"text"}, nil},
		{removeEntitlement, control.FeatureEntitlements, remove, "/users/{user}/entitlements/{dimension}", nil, nil},
		{mendEntitlements, control.FeatureEntitlements, post, "/users/{user}/entitlements/mend", nil, nil},
		{storeOverride, control.FeatureEntitlements, put, "/users/{user}/overrides/{dimension}/stored", []string{"text", "expires"}, nil},
		{setOperations, control.FeatureOperations, put, "/users/{user}/operations", []string{"remaining"}, nil},
		{readOperations, control.FeatureOperations, get, "/users/{user}/operations", nil, usageShape},
		{readClock, control.FeatureClock, get, "/clock", nil, clockShape},
		{advanceClock, control.FeatureClock, post, "/clock/advance", []string{"microseconds"}, clockShape},
		{closeGate, control.FeatureGates, put, "/users/{user}/gates/{place}", nil, nil},
		{openGate, control.FeatureGates, remove, "/users/{user}/gates/{place}", nil, nil},
		{readGate, control.FeatureGates, get, "/users/{user}/gates/{place}", nil, gateShape},
		{setEngine, control.FeatureEngine, put, "/users/{user}/engine", []string{"behaviour"}, nil},
		{readAudit, control.FeatureAudit, get, "/audit/requests/{request}", nil, auditShape},
		{readUserAudit, control.FeatureAudit, get, "/users/{user}/audit", nil, auditShape},
		{restart, control.FeatureRestart, post, "/restart", nil, nil},
	}
})

func routeOf(a action) (route, bool) {
	all := routes()
	i := slices.IndexFunc(all, func(r route) bool { return r.action == a })
	if i < 0 {
		return route{}, false
	}
	return all[i], true
}

// actionsOf lists the actions of a feature.
func actionsOf(f control.Feature) []action {
	var all []action
	for _, r := range routes() {
		if r.feature == f {
			all = append(all, r.action)
		}
	}
	return all
}

// names lists what may vary in an action, as placeholders call it.
func (r route) names() []string {
	var all []string
	for _, part := range strings.Split(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			all = append(all, strings.TrimSuffix(name, "}"))
		}
	}
	return append(all, r.members...)
}

// call is an action to be carried out.
type call struct {
	action action
	in     map[string]string // what stands for the names in the action's path
	body   any               // of the control protocol; nil: none
}

func ofUser(a action, id string) call { return call{action: a, in: map[string]string{"user": id}} }

func (c call) with(name, value string) call {
	in := map[string]string{name: value}
	for n, v := range c.in {
		in[n] = v
	}
	c.in = in
	return c
}

func (c call) saying(body any) call {
	c.body = body
	return c
}

// values is what stands for each of the action's names: text as it is, any other
// value as JSON spells it, and so an override's, of which it matters which it is.
func (c call) values() (map[string]string, error) {
	all := map[string]string{}
	for name, value := range c.in {
		all[name] = value
	}
	data, err := json.Marshal(c.body)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	for name, raw := range members {
		var text string
		if name == "value" || json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		all[name] = text
	}
	return all, nil
}

// means is a way in which some actions can be carried out: the control protocol,
// commands, queries.
type means interface {
	can(action) bool
	name(action) string // for people: which of the target file's keys it is
	// do carries out an action, whose answer it stores. That it was refused, so
	// that nothing has changed, is a [*ControlError].
	do(ctx context.Context, c call, answer any) error
	close()
}

// behind is all that a target can set and read behind the scenes.
type behind struct {
	means   []means // the first one that can carry out an action does
	doubted map[control.Feature]string
}

// of is what carries out an action; nil: nothing does.
func (b *behind) of(a action) means {
	for _, m := range b.means {
		if m.can(a) {
			return m
		}
	}
	return nil
}

// declared reports whether every action of a feature is said to be there.
func (b *behind) declared(f control.Feature) bool {
	return !slices.ContainsFunc(actionsOf(f), func(a action) bool { return b.of(a) == nil })
}

// has reports whether a feature is declared, and not found to be untrue.
func (b *behind) has(f control.Feature) bool { return b.declared(f) && b.doubted[f] == "" }

func (b *behind) do(ctx context.Context, c call, answer any) error {
	m := b.of(c.action)
	if m == nil {
		return fmt.Errorf("%w: %s", ErrUnsupported, c.action)
	}
	if _, ok := m.(*commands); ok {
		return b.confirmed(ctx, m, c, answer)
	}
	return m.do(ctx, c, answer)
}

func (b *behind) close() {
	for _, m := range b.means {
		m.close()
	}
}
