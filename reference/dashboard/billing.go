package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// billing shows the user of a session what they are entitled to now. A policy
// that does not resolve is said to be a failure: no values are shown then, least
// of all somebody else's (CFG-2).
func (h *page) billing(w http.ResponseWriter, r *http.Request) {
	digest, ok := h.sessions.of(r)
	if !ok {
		http.Redirect(w, r, SignInPath, http.StatusSeeOther)
		return
	}
	b, err := h.lookup(r.Context(), digest)
	if errors.Is(err, account.ErrUnknownKey) || errors.Is(err, account.ErrUnknownUser) {
		h.sessions.end(w, r)
		http.Redirect(w, r, SignInPath, http.StatusSeeOther)
		return
	}
	if err != nil {
		h.Logger.Error("no answer for a billing page", "error", err)
		h.notice(w, away())
		return
	}
	now := h.Clock.Now()
	eff, err := h.Resolve(b.Record, now)
	if err != nil {
		h.Logger.Error("no policy for a billing page", "user", b.User, "error", err)
		h.notice(w, unresolved(b.User))
		return
	}
	v := show(b, eff, now)
	h.write(w, http.StatusOK, view{Title: "Billing", User: b.User, Billing: &v})
}

func (h *page) lookup(ctx context.Context, d account.Digest) (account.Billing, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	rec, err := h.Accounts.Lookup(ctx, d)
	if err != nil {
		return account.Billing{}, err
	}
	return h.Accounts.Billing(ctx, rec.User)
}

// billingView is what the page says.
type billingView struct {
	Plan       string
	Next       string // plan; empty: none is scheduled
	NextFrom   stamp
	Limits     []limitView
	Operations operationsView
}

type limitView struct {
	Name, Note string
	Value      int64
	Own        bool  // negotiated for this user, not the plan's
	Until      stamp // of an own value; zero: no end
}

type operationsView struct {
	Used, Of, Left int64
	From, To       stamp
}

// limitWords are the three dimensions, as a user calls them.
var limitWords = map[policy.Dimension][2]string{
	policy.RequestsPerMinute: {"Requests per minute", "the rate you can keep up"},
	policy.Burst:             {"Burst", "requests at once, after a rest"},
	policy.Concurrency:       {"Concurrency", "requests in flight together"},
}

func show(b account.Billing, eff policy.Effective, now time.Time) billingView {
	sub := b.Subscription
	v := billingView{Plan: eff.Plan, Operations: operations(b)}
	if sub.Scheduled != "" && now.Before(sub.Boundary) {
		v.Next, v.NextFrom = b.Plans[sub.Scheduled].Name, stamp(sub.Boundary)
	}
	for _, d := range policy.Dimensions() {
		l := limitView{Name: limitWords[d][0], Note: limitWords[d][1], Own: eff.Negotiated[d]}
		switch d {
		case policy.RequestsPerMinute:
			l.Value = eff.Allowance.RequestsPerMinute()
		case policy.Burst:
			l.Value = eff.Allowance.Burst()
		case policy.Concurrency:
			l.Value = eff.Allowance.Concurrency()
		}
		for _, o := range b.Overrides { // the last one holds, as in policy.Resolve
			if l.Own && o.Dimension == d && o.ActiveAt(now) {
				l.Until = stamp(o.Expires)
			}
		}
		v.Limits = append(v.Limits, l)
	}
	return v
}

// operations says how many were used of how many: all that a user has, which can
// be more or less than the plan gives.
func operations(b account.Billing) operationsView {
	return operationsView{Used: b.Used, Of: b.Used + b.Left, Left: b.Left, From: stamp(b.Period.Start), To: stamp(b.Period.End)}
}

// Share is what was used in tenths of a percent. Only nothing is 0, and only
// everything is 1000.
func (v operationsView) Share() int64 {
	switch {
	case v.Used <= 0:
		return 0
	case v.Used >= v.Of:
		return 1000
	}
	return max(8, min(992, int64(1000*float64(v.Used)/float64(v.Of))))
}

// Percent is what was used of what there is, where that says something.
func (v operationsView) Percent() string {
	if v.Of == 0 {
		return ""
	}
	return figure.Short(float64(v.Used) / float64(v.Of))
}

// stamp is an instant as the page shows it.
type stamp time.Time

// IsZero reports whether there is no instant.
func (s stamp) IsZero() bool { return time.Time(s).IsZero() }

// Machine is the instant for programs.
func (s stamp) Machine() string { return time.Time(s).UTC().Format(time.RFC3339) }

// Date is the day of the instant.
func (s stamp) Date() string { return time.Time(s).UTC().Format("2 January 2006") }

// Clock is the time of day of the instant, rounded down to a minute.
func (s stamp) Clock() string { return time.Time(s).UTC().Format("15:04 UTC") }
