package fault

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func overrideFaults() []Fault {
	return []Fault{
		{"override-ignored", "OVR-1", "an override has no effect",
			keep(func(policy.Override, policy.Plan) bool { return false })},
		{"override-skips-cap", "OVR-1", "an override of the cap has no effect",
			keep(func(o policy.Override, _ policy.Plan) bool { return o.Dimension != policy.Concurrency })},
		{"partial-override-clobbers", "OVR-1", "an override of one dimension replaces the others as well",
			overridden(func(o policy.Override, _ policy.Plan, _ time.Time) []policy.Override {
				var all []policy.Override
				for _, d := range policy.Dimensions() {
					value, err := strconv.ParseInt(o.Value, 10, 64)
					if err != nil {
						return []policy.Override{o}
					}
					all = append(all, policy.Override{Dimension: d, Value: strconv.FormatInt(min(value, d.Max()), 10), Expires: o.Expires})
				}
				return all
			})},
		{"override-for-everybody", "OVR-1", "an override holds for every user of the plan", overrideForEverybody()},

		{"override-raise-only", "OVR-2", "an override cannot lower", keep(raises)},
		{"override-lower-only", "OVR-2", "an override cannot raise",
			keep(func(o policy.Override, plan policy.Plan) bool { return !raises(o, plan) })},

		{"expired-override-active", "OVR-4", "an override never expires", expiring(func(time.Time, time.Time) time.Time { return time.Time{} })},
		{"override-expires-late", "OVR-4", "an override holds a second longer",
			expiring(func(expires, _ time.Time) time.Time { return expires.Add(time.Second) })},
		{"override-expires-early", "OVR-4", "an override ends a second too early",
			expiring(func(expires, _ time.Time) time.Time { return expires.Add(-time.Second) })},
		{"expiry-needs-poke", "OVR-4", "an override's expiry shows once /health was asked", expiryNeedsPoke()},

		{"override-fills", "OVR-5", "setting an override of the burst fills the bucket",
			negotiating(func(_, now bool) bool { return now }, full)},
		{"override-keeps-tokens", "OVR-5", "setting an override of the burst keeps the number of tokens, not the share",
			negotiating(func(_, now bool) bool { return now }, clipped)},
		{"override-change-empties", "OVR-5", "replacing an override of the burst empties the bucket",
			negotiating(func(before, now bool) bool { return before && now }, empty)},
		{"override-end-keeps-tokens", "OVR-5", "ending an override of the burst keeps the tokens up to the plan's burst, not the share",
			negotiating(func(before, now bool) bool { return before && !now }, clipped)},
		{"expiry-resets-full", "OVR-5", "an override of the burst that expires leaves a full bucket",
			negotiating(func(before, now bool) bool { return before && !now }, full)},

		{"override-again-fills", "OVR-5", "an override that is written again as it is fills the bucket", func(p *wiring.Parts) {
			l := limits(p)
			onOverride(func(user string) {
				l.buckets.Update(user, func(s bucket.State) bucket.State { s.Level = full(s, s.Burst); return s })
			})(p)
		}},

		{"overrides-stack", "OVR-7", "an override that ends gives way to the one that it had replaced", overridesStack()},

		{"override-enterprise-only", "OVR-8", "an override has an effect on Enterprise alone",
			keep(func(_ policy.Override, plan policy.Plan) bool { return plan.Name == "enterprise" })},
		{"plan-change-drops-override", "OVR-8", "a change of plan ends an override", planChangeDropsOverride()},
	}
}

// expiring gives overrides that expire another expiry.
func expiring(when func(expires, now time.Time) time.Time) alteration {
	return func(p *wiring.Parts) {
		withExpired(func(rec account.Record, expired []policy.Override) account.Record {
			rec.Overrides = append(rec.Overrides, expired...)
			for i, o := range rec.Overrides {
				if !o.Expires.IsZero() {
					rec.Overrides[i].Expires = when(o.Expires, p.Clock.Now())
				}
			}
			return rec
		})(p)
	}
}

func expiryNeedsPoke() alteration {
	return func(p *wiring.Parts) {
		var mu sync.Mutex
		var poked time.Time
		health := p.Outside["/health"]
		p.Outside["/health"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			poked = p.Clock.Now()
			mu.Unlock()
			health.ServeHTTP(w, r)
		})
		expiring(func(expires, _ time.Time) time.Time {
			mu.Lock()
			defer mu.Unlock()
			if expires.After(poked) {
				return time.Time{}
			}
			return expires
		})(p)
	}
}

// overrideForEverybody lends a user's overrides to those of the plan who have none.
func overrideForEverybody() alteration {
	type loan struct {
		owner     string
		overrides []policy.Override
	}
	lent := newNotes[loan]() // by plan
	return records(func(rec account.Record, now time.Time) account.Record {
		lent.change(planOf(rec, now).Name, func(old loan) loan {
			switch {
			case len(rec.Overrides) > 0:
				return loan{rec.User, rec.Overrides}
			case old.owner == rec.User:
				return loan{}
			}
			rec.Overrides = old.overrides
			return old
		})
		return rec
	})
}

// negotiating gives the bucket another level when its burst changes, depending on
// whether the burst was negotiated before and is now.
func negotiating(on func(before, now bool) bool, level func(old bucket.State, burst int64) int64) alteration {
	return limiting(func(l *steps) {
		negotiated := newNotes[bool]()
		l.spend = func(x *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
			is := x.Effective.Negotiated[policy.Burst]
			was := negotiated.change(x.Account.User, func(bool) bool { return is })
			if s.Burst != 0 && burstDiffers(s, a) && on(was, is) {
				s = s.Settled(allowance(s.Rate, s.Burst, 1), now)
				s.Level = level(s, a.Burst())
				s.Rate, s.Burst = a.RequestsPerMinute(), a.Burst()
			}
			return s.Take(a, now)
		}
	})
}

// clipped keeps the tokens that fit.
func clipped(old bucket.State, burst int64) int64 { return min(old.Level, full(old, burst)) }

// overridesStack remembers what it saw: where the latest override of a dimension
// is gone, the one before it holds.
func overridesStack() alteration {
	seen := newNotes[[]policy.Override]()
	return records(func(rec account.Record, now time.Time) account.Record {
		for _, d := range policy.Dimensions() {
			active := policy.Override{}
			for _, o := range rec.Overrides {
				if o.Dimension == d && o.ActiveAt(now) {
					active = o
				}
			}
			seen.change(rec.User+"/"+string(d), func(stack []policy.Override) []policy.Override {
				switch {
				case active.Value != "" && (len(stack) == 0 || stack[len(stack)-1] != active):
					return append(stack, active)
				case active.Value == "" && len(stack) > 1:
					rec.Overrides = append(rec.Overrides[:len(rec.Overrides):len(rec.Overrides)], stack[len(stack)-2])
				}
				return stack
			})
		}
		return rec
	})
}

func planChangeDropsOverride() alteration {
	agreedOn := newNotes[string]() // the plan that the user had when an override was first seen
	return records(func(rec account.Record, now time.Time) account.Record {
		plan := planOf(rec, now).Name
		first := ""
		agreedOn.change(rec.User, func(old string) string {
			if first = old; old == "" && len(rec.Overrides) > 0 {
				first = plan
			}
			return first
		})
		if first != "" && first != plan {
			rec.Overrides = nil
		}
		return rec
	})
}
