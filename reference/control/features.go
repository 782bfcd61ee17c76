package control

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
)

// The dates between which a clock can be moved, and the furthest its timeline
// goes: what a duration can hold.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

const furthest = 250 * 365 * 24 * time.Hour

func (c *Control) capabilities(*http.Request) (int, any, error) {
	features := []wire.Feature{
		wire.FeatureUsers, wire.FeaturePlan, wire.FeatureSchedule, wire.FeatureOverrides, wire.FeatureHistory,
		wire.FeatureEntitlements, wire.FeatureOperations, wire.FeatureGates, wire.FeatureEngine, wire.FeatureAudit,
	}
	if c.parts.Restart != nil {
		features = append(features, wire.FeatureRestart)
	}
	if _, ok := c.cfg.Clock.(clock.Movable); ok {
		features = append(features, wire.FeatureClock)
	}
	return http.StatusOK, wire.Capabilities{Protocol: 1, Server: c.cfg.Server, Features: features, Clock: c.cfg.Mode}, nil
}

func (c *Control) now() wire.Clock {
	return wire.Clock{Mode: c.cfg.Mode, Now: c.cfg.Clock.Now().UTC().Format(time.RFC3339Nano)}
}

func (c *Control) readClock(*http.Request) (int, any, error) { return http.StatusOK, c.now(), nil }

func (c *Control) advanceClock(r *http.Request) (int, any, error) {
	movable, ok := c.cfg.Clock.(clock.Movable)
	if !ok {
		return 0, nil, unsupported("a real clock cannot be moved")
	}
	var body wire.Advance
	const limit = int64(furthest / time.Microsecond)
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"microseconds": strictjson.Int(&body.Microseconds, -limit, limit),
	})); err != nil {
		return 0, nil, err
	}
	c.moving.Lock()
	defer c.moving.Unlock()
	d := time.Duration(body.Microseconds) * time.Microsecond
	if to := movable.Now().Add(d); to.Before(earliest) || to.After(latest) {
		return 0, nil, invalid(fmt.Sprintf("microseconds %d lead to the year %d: want 1970 to 2199", body.Microseconds, to.Year()))
	}
	if int64(movable.Instant())+max(body.Microseconds, 0) > limit {
		return 0, nil, invalid(fmt.Sprintf("microseconds %d: all moves forward must not exceed %d together", body.Microseconds, limit))
	}
	movable.Advance(d)
	return http.StatusOK, c.now(), nil
}

func (c *Control) createUser(r *http.Request) (int, any, error) {
	var plan string
	var keys int64
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"plan": strictjson.Text(&plan, 64),
		"keys": strictjson.Int(&keys, 1, 16),
	})); err != nil {
		return 0, nil, err
	}
	id, issued, err := c.parts.Operator.CreateUser(r.Context(), plan, int(keys))
	if err != nil {
		return 0, nil, err
	}
	out := wire.User{ID: id, Plan: plan}
	for _, k := range issued {
		out.Keys = append(out.Keys, k.Reveal())
	}
	return http.StatusCreated, out, nil
}

func (c *Control) addKey(user string, r *http.Request) (int, any, error) {
	k, err := c.parts.Operator.AddKey(r.Context(), user)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, wire.Key{Key: k.Reveal()}, nil
}

func (c *Control) revokeKey(user string, r *http.Request) (int, any, error) {
	var text string
	if err := read(r, strictjson.Object(map[string]strictjson.Value{"key": strictjson.Text(&text, account.MaxKeyBytes)})); err != nil {
		return 0, nil, err
	}
	k, err := account.ParseKey(text)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.RevokeKey(r.Context(), user, k)
}

// gate reads, closes or opens a gate, by the method.
func (c *Control) gate(user string, r *http.Request) (int, any, error) {
	place := wire.Place(mux.Vars(r)["place"])
	if err := oneOf("place", place, places()...); err != nil {
		return 0, nil, err
	}
	g := c.subject(user).gates[place]
	switch r.Method {
	case http.MethodPut:
		g.shut()
	case http.MethodDelete:
		g.open()
	}
	return http.StatusOK, g.state(), nil
}

func (c *Control) setEngine(user string, r *http.Request) (int, any, error) {
	var word string
	if err := read(r, strictjson.Object(map[string]strictjson.Value{"behaviour": strictjson.Text(&word, 64)})); err != nil {
		return 0, nil, err
	}
	b := wire.Behaviour(word)
	if err := oneOf("behaviour", b, wire.EngineOK, wire.EngineFail, wire.EnginePanic, wire.EngineTimeout, wire.EngineStubborn); err != nil {
		return 0, nil, err
	}
	c.subject(user).set(b)
	return http.StatusNoContent, nil, nil
}

func (c *Control) auditUser(user string, _ *http.Request) (int, any, error) {
	return http.StatusOK, c.recorder.user(user), nil
}

// auditRequest tells what became of a request. Of one that this process knows
// nothing of, as of those that an earlier one answered, the log is asked.
func (c *Control) auditRequest(r *http.Request) (int, any, error) {
	id := mux.Vars(r)["request"]
	a, known := c.recorder.request(id)
	if known || c.parts.Logged == nil {
		return http.StatusOK, a, nil
	}
	logged, err := c.parts.Logged(r.Context(), id)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range logged {
		x, err := entryOf(e)
		if err != nil {
			return 0, nil, err
		}
		a.Entries = append(a.Entries, x)
	}
	return http.StatusOK, a, nil
}
