package operator

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// billing is the routes for users, their keys, plans, overrides and operations.
type billing struct{ Config }

func (b billing) routes() []route {
	return []route{
		{http.MethodPost, "/users", b.createUser},
		{http.MethodGet, "/users/{user}", b.show},
		{http.MethodPost, "/users/{user}/keys", b.addKey},
		{http.MethodGet, "/users/{user}/keys", b.keys},
		{http.MethodDelete, "/users/{user}/keys/{key:.+}", b.revokeKey},
		{http.MethodPut, "/users/{user}/scheduled-plan", b.schedulePlan},
		{http.MethodDelete, "/users/{user}/scheduled-plan", b.cancelPlan},
		{http.MethodPost, "/users/{user}/period/end", b.endPeriod},
		{http.MethodPut, "/users/{user}/operations", b.setOperations},
		{http.MethodGet, "/users/{user}/overrides", b.overrides},
		{http.MethodPut, "/users/{user}/overrides/{dimension}", b.setOverride},
		{http.MethodDelete, "/users/{user}/overrides/{dimension}", b.endOverride},
	}
}

// newKey shows a key, this once.
type newKey struct {
	Key string `json:"key"`
}

func (b billing) createUser(r *http.Request) (any, error) {
	var plan string
	var keys int64
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"plan": strictjson.Text(&plan, maxID), "keys": strictjson.Int(&keys, 0, maxKeys),
	})); err != nil {
		return nil, err
	}
	user, issued, err := b.Accounts.CreateUser(r.Context(), plan, int(keys))
	if err != nil {
		return nil, err
	}
	answer := struct {
		User string   `json:"user"`
		Plan string   `json:"plan"`
		Keys []string `json:"keys"`
	}{User: user, Plan: plan, Keys: []string{}}
	for _, k := range issued {
		answer.Keys = append(answer.Keys, k.Reveal())
	}
	return answer, nil
}

// entitlement is one value in force and where it comes from.
type entitlement struct {
	Value      int64      `json:"value"`
	Negotiated bool       `json:"negotiated"`
	Expires    *time.Time `json:"expires,omitempty"`
}

// overview is a user's entitlements and period.
type overview struct {
	User         string                           `json:"user"`
	Plan         string                           `json:"plan"`
	Scheduled    string                           `json:"scheduledPlan,omitempty"`
	Boundary     *time.Time                       `json:"boundary,omitempty"` // of the scheduled plan
	Entitlements map[policy.Dimension]entitlement `json:"entitlements,omitempty"`
	Broken       string                           `json:"broken,omitempty"` // why there are none (CFG-1)
	PeriodStart  time.Time                        `json:"periodStart"`
	PeriodEnd    time.Time                        `json:"periodEnd"`
	Used         int64                            `json:"operationsUsed"`
	Left         int64                            `json:"operationsLeft"`
}

func (b billing) show(r *http.Request) (any, error) {
	found, err := b.Accounts.Billing(r.Context(), mux.Vars(r)["user"])
	if err != nil {
		return nil, err
	}
	now := b.Clock.Now()
	o := overview{
		User: found.User, Plan: found.PlanAt(now),
		PeriodStart: found.Period.Start, PeriodEnd: found.Period.End, Used: found.Used, Left: found.Left,
	}
	if s := found.Subscription; s.Scheduled != "" && now.Before(s.Boundary) {
		o.Scheduled, o.Boundary = found.Plans[s.Scheduled].Name, &s.Boundary
	}
	effective, err := b.Resolve(found.Record, now)
	if err != nil {
		o.Broken = err.Error()
		return o, nil
	}
	o.Entitlements = map[policy.Dimension]entitlement{}
	for _, d := range policy.Dimensions() {
		e := entitlement{Value: effective.Allowance.Of(d), Negotiated: effective.Negotiated[d]}
		for _, x := range found.Overrides {
			if x.Dimension == d && x.ActiveAt(now) && !x.Expires.IsZero() {
				e.Expires = &x.Expires
			}
		}
		o.Entitlements[d] = e
	}
	return o, nil
}

func (b billing) addKey(r *http.Request) (any, error) {
	k, err := b.Accounts.AddKey(r.Context(), mux.Vars(r)["user"])
	if err != nil {
		return nil, err
	}
	return newKey{k.Reveal()}, nil
}

func (b billing) keys(r *http.Request) (any, error) {
	infos, err := b.Accounts.Keys(r.Context(), mux.Vars(r)["user"])
	if err != nil {
		return nil, err
	}
	type info struct {
		ID      string     `json:"id"`
		Prefix  string     `json:"prefix"`
		Created time.Time  `json:"created"`
		Revoked *time.Time `json:"revoked,omitempty"`
	}
	list := []info{}
	for _, k := range infos {
		list = append(list, info{k.ID, k.Prefix, k.Created, date(k.Revoked)})
	}
	return list, nil
}

func (b billing) revokeKey(r *http.Request) (any, error) {
	return nil, b.Accounts.RevokeKeyNamed(r.Context(), mux.Vars(r)["user"], mux.Vars(r)["key"])
}

// boundary answers with the instant at which something takes effect.
type boundary struct {
	Boundary time.Time `json:"boundary"`
}

func (b billing) schedulePlan(r *http.Request) (any, error) {
	var plan string
	if err := read(r, strictjson.Object(map[string]strictjson.Value{"plan": strictjson.Text(&plan, maxID)})); err != nil {
		return nil, err
	}
	at, err := b.Accounts.SchedulePlan(r.Context(), mux.Vars(r)["user"], plan)
	if err != nil {
		return nil, err
	}
	return boundary{at}, nil
}

func (b billing) cancelPlan(r *http.Request) (any, error) {
	return nil, b.Accounts.CancelPlan(r.Context(), mux.Vars(r)["user"])
}

func (b billing) endPeriod(r *http.Request) (any, error) {
	p, err := b.Accounts.EndPeriod(r.Context(), mux.Vars(r)["user"])
	if err != nil {
		return nil, err
	}
	return boundary{p.Start}, nil
}

func (b billing) setOperations(r *http.Request) (any, error) {
	var left int64
	if err := read(r, strictjson.Object(map[string]strictjson.Value{"left": strictjson.Int(&left, 0, 1<<31-1)})); err != nil {
		return nil, err
	}
	return nil, b.Accounts.SetOperations(r.Context(), mux.Vars(r)["user"], left)
}

// note is the members by which a change says who makes it and why.
func note(n *account.Note) map[string]strictjson.Value {
	return map[string]strictjson.Value{
		"author": strictjson.Text(&n.Author, 4*account.MaxAuthor),
		"reason": strictjson.Text(&n.Reason, 4*account.MaxReason),
	}
}

// setOverride takes the value as it is spelled, so that whatever is no positive
// whole number in range is refused by the store itself, and named (OVR-3).
func (b billing) setOverride(r *http.Request) (any, error) {
	var by account.Note
	var expires string
	o := policy.Override{Dimension: policy.Dimension(mux.Vars(r)["dimension"])}
	members := note(&by)
	members["value"] = strictjson.Scalar(&o.Value, account.MaxStoredBytes)
	members["expires"] = strictjson.Text(&expires, 64)
	if err := read(r, strictjson.Object(members, "expires")); err != nil {
		return nil, err
	}
	if expires != "" {
		at, err := time.Parse(time.RFC3339Nano, expires)
		if err != nil {
			return nil, fmt.Errorf("%w: expires is no RFC 3339 time such as 2027-01-31T00:00:00Z", account.ErrRefused)
		}
		o.Expires = at
	}
	return nil, b.Accounts.SetOverride(r.Context(), mux.Vars(r)["user"], o, by)
}

func (b billing) endOverride(r *http.Request) (any, error) {
	var by account.Note
	if err := read(r, strictjson.Object(note(&by))); err != nil {
		return nil, err
	}
	return nil, b.Accounts.EndOverride(r.Context(), mux.Vars(r)["user"], policy.Dimension(mux.Vars(r)["dimension"]), by)
}

func (b billing) overrides(r *http.Request) (any, error) {
	history, err := b.Accounts.Overrides(r.Context(), mux.Vars(r)["user"])
	if err != nil {
		return nil, err
	}
	type entry struct {
		Dimension policy.Dimension `json:"dimension"`
		Value     string           `json:"value"`
		Set       time.Time        `json:"set"`
		Author    string           `json:"author"`
		Reason    string           `json:"reason"`
		Expires   *time.Time       `json:"expires,omitempty"`
		Ended     *time.Time       `json:"ended,omitempty"`
		EndAuthor string           `json:"endAuthor,omitempty"`
		EndReason string           `json:"endReason,omitempty"`
	}
	list := []entry{}
	for _, h := range history {
		list = append(list, entry{h.Dimension, h.Value, h.Set, h.By.Author, h.By.Reason, date(h.Expires), date(h.Ended), h.EndBy.Author, h.EndBy.Reason})
	}
	return list, nil
}

// date is nil for no date.
func date(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
