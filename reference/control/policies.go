package control

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/gorilla/mux"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/strictjson"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// The longest texts that are looked at.
const (
	maxPlan   = 64
	maxDate   = 64
	maxValue  = 64
	maxStored = 200
	maxReason = 500
	maxAuthor = 200
)

// note is of whatever is changed by way of the protocol by somebody who does not
// say more.
func note() account.Note {
	return account.Note{Author: "control protocol", Reason: "asked for by a suite"}
}

func (c *Control) setPlan(user string, r *http.Request) (int, any, error) {
	plan, err := planOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.SetPlan(r.Context(), user, plan)
}

func (c *Control) schedulePlan(user string, r *http.Request) (int, any, error) {
	plan, err := planOf(r)
	if err != nil {
		return 0, nil, err
	}
	_, err = c.parts.Operator.SchedulePlan(r.Context(), user, plan)
	return http.StatusNoContent, nil, err
}

func planOf(r *http.Request) (plan string, err error) {
	err = read(r, strictjson.Object(map[string]strictjson.Value{"plan": strictjson.Text(&plan, maxPlan)}))
	return plan, err
}

func (c *Control) readPeriod(user string, r *http.Request) (int, any, error) {
	b, err := c.parts.Operator.Billing(r.Context(), user)
	if err != nil {
		return 0, nil, err
	}
	out := wire.Period{Start: date(b.Period.Start), End: date(b.Period.End), Plan: b.PlanAt(c.cfg.Clock.Now())}
	if s := b.Subscription.Scheduled; s != "" {
		out.Scheduled = b.Plans[s].Name
	}
	return http.StatusOK, out, nil
}

func (c *Control) endPeriod(user string, r *http.Request) (int, any, error) {
	if _, err := c.parts.Operator.EndPeriod(r.Context(), user); err != nil {
		return 0, nil, err
	}
	return c.readPeriod(user, r)
}

// date is an instant as the protocol writes it; empty for none.
func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// expiry is the other way round.
func expiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, invalid(fmt.Sprintf("expires %q: want a date as in RFC 3339", text))
	}
	return t, nil
}

func dimensionOf(r *http.Request) (policy.Dimension, error) {
	d := policy.Dimension(mux.Vars(r)["dimension"])
	return d, oneOf("dimension", d, policy.Dimensions()...)
}

// setOverride hands the value on as it is spelled: what an override may be is for
// the store to say, the operator boundary (OVR-3).
func (c *Control) setOverride(user string, r *http.Request) (int, any, error) {
	d, err := dimensionOf(r)
	if err != nil {
		return 0, nil, err
	}
	o, by, expires := policy.Override{Dimension: d}, note(), ""
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"value":   strictjson.Scalar(&o.Value, maxValue),
		"expires": strictjson.Text(&expires, maxDate),
		"reason":  strictjson.Text(&by.Reason, maxReason),
		"author":  strictjson.Text(&by.Author, maxAuthor),
	}, "expires", "reason", "author")); err != nil {
		return 0, nil, err
	}
	if o.Expires, err = expiry(expires); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.SetOverride(r.Context(), user, o, by)
}

func (c *Control) endOverride(user string, r *http.Request) (int, any, error) {
	d, err := dimensionOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.EndOverride(r.Context(), user, d, note())
}

func (c *Control) history(user string, r *http.Request) (int, any, error) {
	entries, err := c.parts.Operator.Overrides(r.Context(), user)
	if err != nil {
		return 0, nil, err
	}
	out := wire.History{Entries: []wire.PastOverride{}}
	for _, e := range entries {
		out.Entries = append(out.Entries, wire.PastOverride{
			Dimension: string(e.Dimension), Value: e.Value, Set: date(e.Set), Expires: date(e.Expires), Ended: date(e.Ended),
			Reason: e.By.Reason, Author: e.By.Author,
		})
	}
	return http.StatusOK, out, nil
}

// storeOverride and the three below it go past the boundary, to where a broken
// store would be (CFG-1, CFG-5).
func (c *Control) storeOverride(user string, r *http.Request) (int, any, error) {
	d, err := dimensionOf(r)
	if err != nil {
		return 0, nil, err
	}
	o, expires := policy.Override{Dimension: d}, ""
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"text":    strictjson.Text(&o.Value, maxStored),
		"expires": strictjson.Text(&expires, maxDate),
	}, "expires")); err != nil {
		return 0, nil, err
	}
	if o.Expires, err = expiry(expires); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.StoreOverride(r.Context(), user, o)
}

func (c *Control) storeEntitlement(user string, r *http.Request) (int, any, error) {
	d, err := dimensionOf(r)
	if err != nil {
		return 0, nil, err
	}
	var text string
	if err := read(r, strictjson.Object(map[string]strictjson.Value{"text": strictjson.Text(&text, maxStored)})); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.StoreEntitlement(r.Context(), user, d, text)
}

func (c *Control) removeEntitlement(user string, r *http.Request) (int, any, error) {
	d, err := dimensionOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.RemoveEntitlement(r.Context(), user, d)
}

func (c *Control) mendEntitlements(user string, r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, c.parts.Operator.MendEntitlements(r.Context(), user)
}

func (c *Control) setOperations(user string, r *http.Request) (int, any, error) {
	var remaining int64
	if err := read(r, strictjson.Object(map[string]strictjson.Value{
		"remaining": strictjson.Int(&remaining, 0, math.MaxInt32),
	})); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.parts.Operator.SetOperations(r.Context(), user, remaining)
}

func (c *Control) readOperations(user string, r *http.Request) (int, any, error) {
	b, err := c.parts.Operator.Billing(r.Context(), user)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, wire.Usage{Left: b.Left, Used: b.Used}, nil
}

func (c *Control) restart(r *http.Request) (int, any, error) {
	if c.parts.Restart == nil {
		return 0, nil, unsupported("what this server stores ends with its process")
	}
	return http.StatusNoContent, nil, c.parts.Restart(r.Context())
}
