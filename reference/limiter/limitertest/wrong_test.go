package limitertest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
)

// composed is a limiter put together from the parts of the local one, a step a
// field. As [newComposed] makes it, it is right.
type composed struct {
	clock   clock.Clock
	permits *permit.Table

	resolve  func(policy.Allowance) (policy.Allowance, error)
	key      func(subject, id string) string // of the bucket asked
	update   func(key string, f func(bucket.State) bucket.State)
	inFlight func(subject string) int64
	decide   func(bucket.State, int64, policy.Allowance, bucket.Instant) (bucket.State, admission.Decision)
	take     func(subject, id string, d admission.Decision) error
	number   func(admission.Decision) uint64
	release  func(ctx context.Context, subject, id string) error
}

func newComposed(c clock.Clock) *composed {
	var order atomic.Uint64
	table := permit.New()
	return &composed{
		clock: c, permits: table,
		resolve: func(a policy.Allowance) (policy.Allowance, error) {
			if a.IsZero() {
				return a, limiter.ErrNoAllowance
			}
			return a, nil
		},
		key:      func(subject, _ string) string { return subject },
		update:   limiter.NewBuckets(limiter.Config{}).Update,
		inFlight: table.InFlight,
		decide:   admission.Decide,
		take: func(subject, id string, d admission.Decision) error {
			if d.Outcome == admission.Admitted {
				if _, ok := table.Take(subject, id, d.Allowance.Concurrency()); !ok {
					return limiter.ErrDoubledID
				}
			}
			return nil
		},
		number: func(admission.Decision) uint64 { return order.Add(1) },
		release: func(_ context.Context, subject, id string) error {
			table.Release(subject, id)
			return nil
		},
	}
}

func (c *composed) Admit(_ context.Context, subject string, a policy.Allowance, id string) (d limiter.Decision, err error) {
	if a, err = c.resolve(a); err != nil {
		return d, err
	}
	c.update(c.key(subject, id), func(s bucket.State) bucket.State {
		next, decided := c.decide(s, c.inFlight(subject), a, c.clock.Instant())
		if err = c.take(subject, id, decided); err != nil {
			return s
		}
		d = limiter.Decision{Decision: decided, Order: c.number(decided)}
		return next
	})
	return d, err
}

func (c *composed) Release(ctx context.Context, subject, id string) error {
	return c.release(ctx, subject, id)
}

var wrongLimiters = []struct {
	name   string
	change func(*composed)
	by     []string // the cases that must find it out
}{
	{"a bucket for every request", func(c *composed) {
		c.key = func(subject, id string) string { return subject + id }
	}, []string{"RATE-1 a full bucket admits its burst", "RATE-9 all at once"}},

	{"one bucket for all", func(c *composed) {
		c.key = func(string, string) string { return "all" }
	}, []string{"POOL-3 subjects are apart"}},

	{"gives the token of a concurrency rejection back", func(c *composed) {
		c.decide = changed(func(was, next bucket.State, d *admission.Decision) bucket.State {
			if d.Outcome != admission.ConcurrencyRejected {
				return next
			}
			return was.Settled(d.Allowance, d.At)
		})
	}, []string{"RATE-6 CONC-3 the token, then the permit", "RATE-9 all at once"}},

	{"asks for the permit first", func(c *composed) {
		c.decide = func(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, admission.Decision) {
			if inFlight < a.Concurrency() {
				return admission.Decide(s, inFlight, a, now)
			}
			s = s.Settled(a, now)
			d := admission.Of(s, a, now)
			d.Outcome, d.InFlight = admission.ConcurrencyRejected, inFlight
			return s, d
		}
	}, []string{"RATE-6 CONC-3 the token, then the permit"}},

	{"takes a permit at a rate rejection", func(c *composed) {
		take := c.take
		c.take = func(subject, id string, d admission.Decision) error {
			if d.Outcome == admission.RateRejected {
				c.permits.Take(subject, id, math.MaxInt64)
			}
			return take(subject, id, d)
		}
	}, []string{"RATE-10 HDR-6 a token when it is due"}},

	{"one above the cap", func(c *composed) {
		c.decide = func(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, admission.Decision) {
			next, d := admission.Decide(s, inFlight-1, a, now)
			if d.Outcome != admission.RateRejected {
				d.InFlight = inFlight
			}
			return next, d
		}
		c.take = takeUnlimited(c)
	}, []string{"RATE-6 CONC-3 the token, then the permit", "CHG-4 a lower cap lets running requests finish", "CONC-6 coming and going at once"}},

	{"a release of anybody's permit, as often as it is asked for", func(c *composed) {
		var mu sync.Mutex
		held := map[string]int64{}
		c.inFlight = func(subject string) int64 {
			mu.Lock()
			defer mu.Unlock()
			return held[subject]
		}
		c.take = func(subject, _ string, d admission.Decision) error {
			mu.Lock()
			defer mu.Unlock()
			if d.Outcome == admission.Admitted {
				held[subject]++
			}
			return nil
		}
		c.release = func(_ context.Context, subject, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			held[subject] = max(held[subject]-1, 0)
			return nil
		}
	}, []string{"PERMIT-8 released once, by its holder"}},

	{"a release that needs a live context", func(c *composed) {
		release := c.release
		c.release = func(ctx context.Context, subject, id string) error {
			if ctx.Err() != nil {
				return nil
			}
			return release(ctx, subject, id)
		}
	}, []string{"PERMIT-7 released when the context is gone"}},

	{"an update that is lost", func(c *composed) {
		c.update = readThenWrite(c.update)
	}, []string{"RATE-9 all at once"}},

	{"looks for a slot, then takes one", func(c *composed) {
		c.update = readThenWrite(c.update)
		c.take = takeUnlimited(c)
	}, []string{"RATE-9 all at once", "CONC-6 coming and going at once"}},

	{"refills once a second", func(c *composed) {
		c.decide = func(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, admission.Decision) {
			next, d := admission.Decide(s, inFlight, a, now-now%1_000_000)
			d.At = now
			return next, d
		}
	}, []string{"RATE-10 HDR-6 a token when it is due", "RATE-3 HDR-7 full when it is due, and no fuller"}},

	{"tells the wait rounded down", func(c *composed) {
		c.decide = changed(func(_, next bucket.State, d *admission.Decision) bucket.State {
			if next.Level < bucket.Token {
				d.ToToken = (bucket.Token - next.Level) / next.Rate
			}
			return next
		})
	}, []string{"RATE-10 HDR-6 a token when it is due"}},

	{"punishes whoever asks too early", func(c *composed) {
		c.decide = changed(func(_, next bucket.State, d *admission.Decision) bucket.State {
			if d.Outcome == admission.RateRejected {
				next.At += 1_000_000
			}
			return next
		})
	}, []string{"RATE-8 rejections cost nothing"}},

	{"a change fills the bucket", func(c *composed) {
		c.decide = onChange(func(bucket.State, policy.Allowance, bucket.Instant) bucket.State { return bucket.State{} })
	}, []string{"CHG-1 a change keeps the used share", "CHG-3 changes mint nothing"}},

	{"a change keeps the number of tokens", func(c *composed) {
		c.decide = onChange(func(s bucket.State, a policy.Allowance, now bucket.Instant) bucket.State {
			level := s.Level
			s = s.Settled(a, now)
			s.Level = min(level, a.Burst()*bucket.Token)
			return s
		})
	}, []string{"CHG-1 a change keeps the used share"}},

	{"a change rounds up", func(c *composed) {
		c.decide = onChange(func(s bucket.State, a policy.Allowance, now bucket.Instant) bucket.State {
			s = s.Settled(a, now)
			s.Level = (s.Level + bucket.Token - 1) / bucket.Token * bucket.Token
			return s
		})
	}, []string{"CHG-3 changes mint nothing"}},

	{"the zero allowance is unlimited", func(c *composed) {
		c.resolve = func(a policy.Allowance) (policy.Allowance, error) {
			if a.IsZero() {
				return policy.NewAllowance(1_000_000, 1_000_000, 100_000)
			}
			return a, nil
		}
	}, []string{"CFG-2 no allowance is not unlimited"}},

	{"an id in flight is let in on the slot it has", func(c *composed) {
		take := c.take
		c.take = func(subject, id string, d admission.Decision) error {
			if err := take(subject, id, d); !errors.Is(err, limiter.ErrDoubledID) {
				return err
			}
			return nil
		}
	}, []string{"an id in flight is refused"}},

	{"numbers only what it admits", func(c *composed) {
		number := c.number
		c.number = func(d admission.Decision) uint64 {
			if d.Outcome == admission.Admitted {
				return number(d)
			}
			return 0
		}
	}, []string{"RATE-1 a full bucket admits its burst", "RATE-8 rejections cost nothing"}},

	{"decides at an instant that nobody asked at", func(c *composed) {
		c.decide = func(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, admission.Decision) {
			return admission.Decide(s, inFlight, a, now+1)
		}
	}, []string{"RATE-1 a full bucket admits its burst"}},
}

// changed is right but for what change makes of the decision and of the state to
// be stored; what the decision says of the bucket is of that state.
func changed(change func(was, next bucket.State, d *admission.Decision) bucket.State) func(bucket.State, int64, policy.Allowance, bucket.Instant) (bucket.State, admission.Decision) {
	return func(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, admission.Decision) {
		next, d := admission.Decide(s, inFlight, a, now)
		next = change(s, next, &d)
		d.Level = next.Level
		return next, d
	}
}

// onChange is right but for the state that a changed allowance finds.
func onChange(f func(bucket.State, policy.Allowance, bucket.Instant) bucket.State) func(bucket.State, int64, policy.Allowance, bucket.Instant) (bucket.State, admission.Decision) {
	return func(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, admission.Decision) {
		if s.Burst != 0 && s.Burst != a.Burst() {
			s = f(s, a, now)
		}
		return admission.Decide(s, inFlight, a, now)
	}
}

// takeUnlimited takes whatever was decided to be free.
func takeUnlimited(c *composed) func(string, string, admission.Decision) error {
	return func(subject, id string, d admission.Decision) error {
		if d.Outcome == admission.Admitted {
			if _, ok := c.permits.Take(subject, id, math.MaxInt64); !ok {
				return fmt.Errorf("%w: %q", limiter.ErrDoubledID, id)
			}
		}
		return nil
	}
}

// readThenWrite makes two steps of one, and lets everybody else in between.
func readThenWrite(update func(string, func(bucket.State) bucket.State)) func(string, func(bucket.State) bucket.State) {
	return func(key string, f func(bucket.State) bucket.State) {
		var state bucket.State
		update(key, func(s bucket.State) bucket.State {
			state = s
			return s
		})
		runtime.Gosched()
		state = f(state)
		update(key, func(bucket.State) bucket.State { return state })
	}
}
