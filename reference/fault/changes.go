package fault

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func changeFaults() []Fault {
	return []Fault{
		{"enterprise-unlimited", "PLAN-1", "Enterprise is never refused",
			decisions(func(_ context.Context, _ *wiring.Parts, x *httpapi.Exchange, d *limiter.Decision) {
				if x.Effective.Plan == "enterprise" {
					d.Outcome = admission.Admitted
				}
			})},
		{"plus-is-starter", "PLAN-1", "Plus gets what Starter is entitled to",
			allowances(func(x *httpapi.Exchange, a policy.Allowance) policy.Allowance {
				if x.Effective.Plan == "plus" {
					return allowance(60, 20, 5)
				}
				return a
			})},

		{"plan-change-full", "CHG-1", "an upgrade fills the bucket", changing(up, full)},
		{"plan-change-absolute", "CHG-1", "an upgrade keeps the number of tokens", changing(up, kept)},
		{"plan-change-deficit", "CHG-1", "an upgrade keeps the number of tokens used",
			changing(up, func(old bucket.State, burst int64) int64 { return (burst-old.Burst)*bucket.Token + old.Level })},
		{"plan-change-empty", "CHG-1", "an upgrade empties the bucket", changing(up, empty)},
		{"plan-change-ignored", "CHG-1", "a user keeps the limits of the first plan it was seen on",
			resolving(func(first, now policy.Effective) (remember, answer policy.Effective) { return first, first })},

		{"downgrade-keeps-tokens", "CHG-2", "a downgrade keeps the tokens, even more than the new burst", changing(down, kept)},
		{"downgrade-clips", "CHG-2", "a downgrade keeps the tokens up to the new burst, not the share",
			changing(down, func(old bucket.State, burst int64) int64 { return min(old.Level, full(old, burst)) })},
		{"downgrade-empties", "CHG-2", "a downgrade empties the bucket", changing(down, empty)},

		{"rate-change-refills", "CHG-3", "a change of the rate alone fills the bucket",
			changing(func(s bucket.State, a policy.Allowance) bool {
				return s.Burst == a.Burst() && s.Rate != a.RequestsPerMinute()
			}, full)},
		{"change-pays-new-rate", "CHG-3", "the time before a change is paid at the new rate",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				s.Rate = a.RequestsPerMinute()
				return s.Take(a, now)
			})},
		{"change-comes-late", "CHG-3", "a change reaches the second request after it",
			resolving(func(before, now policy.Effective) (remember, answer policy.Effective) { return now, before })},
		{"proportion-truncates", "CHG-3", "a change rounds down to whole tokens",
			changing(burstDiffers, func(old bucket.State, burst int64) int64 {
				return old.Level / old.Burst * burst / bucket.Token * bucket.Token
			})},
		{"flip-flop-mints", "CHG-3", "a change rounds up to whole tokens",
			changing(burstDiffers, func(old bucket.State, burst int64) int64 {
				return ceil(ceil(old.Level, old.Burst)*burst, bucket.Token) * bucket.Token
			})},

		{"cap-lowered-late", "CHG-4", "a lower cap counts once nothing is in flight", capWhileBusy(func(old, now int64) int64 { return max(old, now) })},
		{"cap-raised-late", "CHG-4", "a higher cap counts once nothing is in flight", capWhileBusy(func(old, now int64) int64 { return min(old, now) })},
		{"cap-change-forgets", "CHG-4", "a changed cap forgets who is in flight",
			limiting(func(l *steps) {
				l.capOf = func(x *httpapi.Exchange) string {
					return x.Account.User + "/" + strconv.FormatInt(x.Effective.Allowance.Concurrency(), 10)
				}
			})},
	}
}

// What a change of a bucket's limits is.
func up(s bucket.State, a policy.Allowance) bool           { return s.Burst < a.Burst() }
func down(s bucket.State, a policy.Allowance) bool         { return s.Burst > a.Burst() }
func burstDiffers(s bucket.State, a policy.Allowance) bool { return s.Burst != a.Burst() }

// What a level can become by it.
func full(_ bucket.State, burst int64) int64 { return burst * bucket.Token }
func kept(old bucket.State, _ int64) int64   { return old.Level }
func empty(bucket.State, int64) int64        { return 0 }

// changing gives a bucket that was settled under its old limits a level of
// another making when these change.
func changing(on func(bucket.State, policy.Allowance) bool, level func(old bucket.State, burst int64) int64) alteration {
	return spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
		if s.Level > full(s, s.Burst) {
			s.At = max(s.At, now) // more than full does not grow
		}
		if s.Burst != 0 && on(s, a) {
			s = s.Settled(allowance(s.Rate, s.Burst, 1), now)
			s.Level = level(s, a.Burst())
			s.Rate, s.Burst = a.RequestsPerMinute(), a.Burst()
		}
		return s.Take(a, now)
	})
}

// resolving answers a user's requests by what was remembered of it when its plan
// is another than then.
func resolving(changed func(remembered, now policy.Effective) (remember, answer policy.Effective)) alteration {
	return func(p *wiring.Parts) {
		resolve := p.Resolve
		var mu sync.Mutex
		remembered := map[string]policy.Effective{}
		p.Resolve = func(rec account.Record, now time.Time) (policy.Effective, error) {
			eff, err := resolve(rec, now)
			if err != nil {
				return eff, err
			}
			mu.Lock()
			defer mu.Unlock()
			keep, answer := eff, eff
			if old, ok := remembered[rec.User]; ok && old.Plan != eff.Plan {
				keep, answer = changed(old, eff)
			}
			remembered[rec.User] = keep
			return answer, nil
		}
	}
}

// capWhileBusy chooses between the cap of a user's first request in flight and
// the one of now, as long as something is in flight.
func capWhileBusy(choose func(old, now int64) int64) alteration {
	return limiting(func(l *steps) {
		table := permit.New()
		var mu sync.Mutex
		caps := map[string]int64{}
		l.permits = cappedTable{table, func(subject string, limit int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			if old, ok := caps[subject]; ok && table.InFlight(subject) > 0 {
				limit = choose(old, limit)
			}
			caps[subject] = limit
			return limit
		}}
	})
}
