package attack_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// TestEverythingPlannedIsSentOnTime: no slot is lost, none is early, and each
// leaves when its schedule says.
func TestEverythingPlannedIsSentOnTime(t *testing.T) {
	for name, p := range map[string]arrival.Process{
		"constant": arrival.Constant(perSecond(t, 5)),
		"poisson":  arrival.Poisson(perSecond(t, 5)),
		"bursts":   arrival.Bursts(7, 3*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 20 * time.Second
				list := members(p, 10, d)
				c := &canned{answer: always(200, 20*time.Millisecond)}
				r, err := start(t, list, d, c).Run(t.Context())
				require.NoError(t, err)
				plan := whole(t, r, list, c)
				require.False(t, r.Interrupted)
				require.Equal(t, plan.Planned, plan.Sent)
				require.Equal(t, plan.Sent, plan.Admitted)
				require.Zero(t, r.Generator.Lag.MaxUS, "in this bubble nothing takes time but waiting")
				require.Zero(t, r.Generator.WorkersReached)
				require.Equal(t, r.Generator.Results, r.Generator.Attempts)
				due := map[string]*arrival.Schedule{}
				for _, m := range list {
					due[m.Name] = p.Schedule(seed, m.Name)
				}
				for _, l := range c.log {
					require.Equal(t, due[l.user].Next(), l.at, l.user)
				}
			})
		})
	}
}

func TestStop(t *testing.T) {
	for name, c := range map[string]struct {
		at      time.Duration
		took    time.Duration
		cut     bool
		lasting time.Duration // of the run
	}{
		"between requests":        {5 * time.Second, time.Millisecond, false, 5 * time.Second},
		"with answers on the way": {5 * time.Second, 500 * time.Millisecond, false, 5*time.Second + 500*time.Millisecond},
		"with answers that hang":  {5 * time.Second, time.Hour, true, 6 * time.Second},
		"before the first":        {0, time.Millisecond, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 20 * time.Second
				list := members(arrival.Constant(perSecond(t, 1)), 20, d)
				server := &canned{answer: always(200, c.took)}
				a := start(t, list, d, server)
				ctx, cancel := context.WithCancel(t.Context())
				if c.at == 0 {
					cancel()
				} else {
					time.AfterFunc(c.at, cancel)
				}
				r, err := a.Run(ctx)
				require.NoError(t, err)
				p := whole(t, r, list, server)
				require.True(t, r.Interrupted)
				require.Positive(t, p.Unsent)
				require.Equal(t, c.at > 0, p.Sent > 0)
				for _, l := range server.log {
					require.LessOrEqual(t, l.at, c.at, "nothing is sent after the stop")
				}
				require.LessOrEqual(t, r.ActualMS, c.lasting.Milliseconds())
				if c.cut {
					require.Equal(t, []record.Count{{Name: "cut off", N: p.Sent}}, p.TransportErrors)
				} else {
					require.Empty(t, p.TransportErrors)
					require.Equal(t, p.Sent, p.Admitted)
				}
			})
		})
	}
}

// TestSlowTargetMeetsTheCap: while every worker waits, slots are dropped; once it
// is over nothing is caught up.
func TestSlowTargetMeetsTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 30 * time.Second
		list := members(arrival.Constant(perSecond(t, 2)), 20, d) // 40 a second, so 40 workers
		c := &canned{answer: func(_ string, at time.Duration) (int, string, time.Duration, error) {
			if at > 10*time.Second && at < 11*time.Second {
				return 200, "", 15*time.Second - at, nil // until the fifteenth second
			}
			return 200, "", 10 * time.Millisecond, nil
		}}
		r, err := start(t, list, d, c).Run(t.Context())
		require.NoError(t, err)
		p := whole(t, r, list, c)
		require.EqualValues(t, 40, r.Generator.Workers)
		require.Equal(t, 40, c.most, "never more in flight than there are workers")
		require.Greater(t, p.Dropped, int64(150), "4 seconds of 40 each, roughly")
		require.Less(t, p.Dropped, int64(170))
		require.Equal(t, p.Dropped, p.DroppedBusy, "it was the target")
		require.Positive(t, r.Generator.WorkersReached)
		// In 100 ms 4 are due; those that were late by less are sent on top.
		require.LessOrEqual(t, c.fullest(100*time.Millisecond), 9)
		require.LessOrEqual(t, r.Generator.Lag.MaxUS, attack.MostLate.Microseconds())
		require.Equal(t, p.Planned-p.Dropped, p.Sent)
		require.Zero(t, p.Unsent+p.HeldOff)
	})
}

// TestStoppedInTheCrush: however a run ends, its slots add up.
func TestStoppedInTheCrush(t *testing.T) {
	for i := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			const d = 10 * time.Second
			list := members(arrival.Poisson(perSecond(t, 20)), 20, d)
			for i := range list {
				if i%2 == 0 {
					list[i].On429 = manners.Obey()
				}
			}
			random := rand.New(rand.NewPCG(i, 1))
			times := make([]time.Duration, 10_000)
			for i := range times {
				times[i] = time.Duration(random.ExpFloat64() * 2 * float64(time.Second)) // the workers are for 1 s
			}
			n := 0
			c := &canned{}
			c.answer = func(string, time.Duration) (int, string, time.Duration, error) {
				c.mu.Lock()
				defer c.mu.Unlock()
				n++
				switch n % 10 {
				case 0:
					return 429, "1", times[n], nil
				case 1:
					return 0, "", times[n], errors.New("broken")
				}
				return 200, "", times[n], nil
			}
			a := start(t, list, d, c)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(times[0]+3*time.Second, cancel)
			r, err := a.Run(ctx)
			require.NoError(t, err)
			p := whole(t, r, list, c)
			require.Positive(t, p.Dropped)
			require.Positive(t, p.HeldOff)
			require.Positive(t, p.Sent)
		})
	}
}

// TestObeyingUsersWait: after a 429 nothing of the user's is sent before the
// answer's time is over, and what would have been is counted.
func TestObeyingUsersWait(t *testing.T) {
	for name, c := range map[string]struct {
		wait  string
		pause time.Duration
		known bool
	}{
		"as told":       {"3", 3 * time.Second, true},
		"told nothing":  {"", time.Second, false},
		"told 0":        {"0", time.Second, false},
		"told nonsense": {"soon", time.Second, false},
		"told less":     {"-3", time.Second, false},
		"told a part":   {"1.5", time.Second, false},
		"told a date":   {"Mon, 30 Nov 2026 20:00:00 GMT", time.Second, false},
		"told two":      {"3, 4", time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 20 * time.Second
				list := members(arrival.Constant(perSecond(t, 4)), 10, d)
				for i := range list {
					if i < 5 {
						list[i].On429 = manners.Obey()
					}
				}
				server := &canned{answer: func(string, time.Duration) (int, string, time.Duration, error) {
					return 429, c.wait, 5 * time.Millisecond, nil
				}}
				r, err := start(t, list, d, server).Run(t.Context())
				require.NoError(t, err)
				p := whole(t, r, list, server)
				last := map[string]time.Duration{}
				for _, l := range server.log {
					if at, ok := last[l.user]; ok && l.user <= "free-005" {
						require.GreaterOrEqual(t, l.at-at, c.pause+5*time.Millisecond, l.user)
						require.LessOrEqual(t, l.at-at, c.pause+5*time.Millisecond+250*time.Millisecond, "and no longer than to the next slot")
					}
					last[l.user] = l.at
				}
				for i, u := range r.Users {
					if i >= 5 {
						require.EqualValues(t, 80, u.Sent, "who ignores it goes on")
					}
				}
				require.Positive(t, p.HeldOff)
				require.Equal(t, p.Planned, p.Sent+p.HeldOff)
				require.Equal(t, !c.known, len(r.Limits) > 2, "%q", r.Limits)
			})
		})
	}
}

// TestNothingSecretLeaves: neither vegeta's headers nor our numbers reach the
// server, and no key reaches the record.
func TestNothingSecretLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 5 * time.Second
		list := members(arrival.Constant(perSecond(t, 2)), 3, d)
		c := &canned{answer: func(user string, _ time.Duration) (int, string, time.Duration, error) {
			return 0, "", 0, errors.New("Authorization: Bearer isk_test_" + user)
		}}
		a := start(t, list, d, c)
		r, err := a.Run(t.Context())
		require.NoError(t, err)
		whole(t, r, list, c)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		for _, m := range list {
			require.False(t, m.Keys[0].In(string(text)))
		}
		require.Contains(t, string(text), `"transport_errors":[{"name":"other","n":30}]`)
		for _, h := range c.heads {
			names := []string{}
			for name := range h {
				names = append(names, name)
			}
			require.ElementsMatch(t, []string{"Authorization", "User-Agent"}, names)
		}
	})
}

// TestOwnShortagesAreTold: what this machine ran out of is no failure of the
// target's, and the run says nothing of it.
func TestOwnShortagesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		err  syscall.Errno
		kind string
		want string
	}{
		"descriptors": {syscall.EMFILE, record.ErrorNoDescriptor, "this machine had no file descriptor left for 10 requests"},
		"ports":       {syscall.EADDRNOTAVAIL, record.ErrorNoPort, "this machine had no port left for 10 requests"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 5 * time.Second
				list := members(arrival.Constant(perSecond(t, 2)), 10, d)
				n := 0
				server := &canned{answer: func(string, time.Duration) (int, string, time.Duration, error) {
					if n++; n > 90 {
						return 0, "", 0, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", c.err)}
					}
					return 200, "", 0, nil
				}}
				r, err := start(t, list, d, server).Run(t.Context())
				require.NoError(t, err)
				require.Equal(t, []record.Count{{Name: c.kind, N: 10}}, r.Plans[0].TransportErrors)
				require.Len(t, r.Untold, 1)
				require.Empty(t, r.Untold[0].Plan, "of any plan")
				require.Contains(t, r.Untold[0].Why, c.want)
			})
		})
	}
}

func TestReplicasAreAskedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 5 * time.Second
		list := members(arrival.Constant(perSecond(t, 2)), 2, d)
		hosts := map[string]int{}
		o := site()
		o.BaseURLs = []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}
		c := &canned{answer: always(200, 0)}
		a, err := attack.New(attack.Config{Members: list, Duration: d, Seed: seed, Site: o, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			hosts[r.URL.Host]++
			require.Equal(t, "/v1/invoice/calculate", r.URL.RequestURI())
			return c.RoundTrip(r)
		})})
		require.NoError(t, err)
		_, err = a.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int{"127.0.0.1:1": 10, "127.0.0.1:2": 10}, hosts)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestOperationsThatCannotBeSent(t *testing.T) {
	for name, spoil := range map[string]func(*attack.Site){
		"no URL":      func(s *attack.Site) { s.BaseURLs = nil },
		"broken URL":  func(s *attack.Site) { s.BaseURLs = []string{"127.0.0.1:80"} },
		"no path":     func(s *attack.Site) { alter(s, func(r *attack.Request) { r.Path = "" }) },
		"two slashes": func(s *attack.Site) { alter(s, func(r *attack.Request) { r.Path = "//v1" }) },
	} {
		t.Run(name, func(t *testing.T) {
			o := site()
			spoil(&o)
			_, err := attack.New(attack.Config{Site: o})
			require.Error(t, err)
		})
	}
}

func TestNobodyIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := start(t, []traffic.Member{}, time.Second, &canned{}).Run(t.Context())
		require.NoError(t, err)
		require.Empty(t, r.Plans)
	})
}
