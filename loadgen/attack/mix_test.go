package attack_test

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

// siteOfAll is one with every operation, told apart by their paths.
func siteOfAll() attack.Site {
	s := site()
	s.Stranger = target.NewSecret("isk_test_stranger")
	s.Requests[traffic.Invalid] = attack.Request{Method: "POST", Path: "/invalid", Body: []byte("{"), Expect: 422}
	s.Requests[traffic.Slow] = attack.Request{Method: "POST", Path: "/slow", Body: []byte("{}"), Expect: 200, Takes: 2 * time.Second}
	s.Requests[traffic.Unauthenticated] = attack.Request{Method: "POST", Path: "/v1/invoice/calculate", Body: []byte("{}")}
	return s
}

// TestMix: each request is the one that its member says, ends as its operation
// does, and what strangers meet is said of nobody's bucket.
func TestMix(t *testing.T) {
	for name, stranger := range map[string]int{"unauthenticated": 401, "the address's pool": 429, "let in by mistake": 200} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 20 * time.Second
				s, err := traffic.Parse("load.yaml", []byte("duration: 20s\nseed: 7\npopulations:\n  - { plan: free, users: 5, keys: 2, arrival: constant, rate: 300, mix: { valid: 6, invalid: 2, slow: 1, unauthenticated: 1 }, on-429: { give-up-after: 1 } }\n"))
				require.NoError(t, err)
				list, err := s.Cast(map[string]target.Allowance{"free": {RequestsPerMinute: 1_000_000, Burst: 1_000_000, Concurrency: 100_000}})
				require.NoError(t, err)
				want := map[string]int64{}
				for i := range list {
					list[i].Rested = true
					list[i].Keys = []target.Secret{target.NewSecret("isk_test_" + list[i].Name), target.NewSecret("isk_test_" + list[i].Name + "b")}
					for n := range list[i].Planned {
						want[list[i].Operation(n).String()]++
					}
				}
				var mu sync.Mutex
				got, keys := map[string]int64{}, map[string]int{}
				c := &canned{}
				start := time.Now()
				c.began = start
				c.answer = func(user string, _ time.Duration) (int, string, time.Duration, error) {
					return 0, "", 0, errors.New("not asked")
				}
				a, err := attack.New(attack.Config{Members: list, Duration: d, Seed: seed, Site: siteOfAll(), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer isk_test_")
					mu.Lock()
					operation, answer := "valid", always(200, time.Millisecond)
					switch {
					case key == "stranger":
						operation, answer = "unauthenticated", always(stranger, time.Millisecond)
					case r.URL.RequestURI() == "/invalid":
						operation, answer = "invalid", always(422, time.Millisecond)
					case r.URL.RequestURI() == "/slow":
						operation, answer = "slow", always(200, 2*time.Second)
					}
					got[operation]++
					keys[key]++
					mu.Unlock()
					return (&canned{began: start, answer: answer}).RoundTrip(r)
				})})
				require.NoError(t, err)
				r, err := a.Run(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, got)
				p := r.Plans[0]
				require.Equal(t, p.Planned, p.Sent, "a stranger's 429 makes nobody give up")
				require.Equal(t, want["valid"]+want["invalid"]+want["slow"], p.Admitted)
				require.Zero(t, p.UsersAffected+p.RateJudged.Sum()+p.ConcurrencyJudged.Sum()+p.Missing)
				switch stranger {
				case 401:
					require.Equal(t, want["unauthenticated"], p.Unauthenticated)
				case 200:
					require.Equal(t, want["unauthenticated"], p.OtherStatuses[0].N)
				default:
					require.Equal(t, want["unauthenticated"], p.OtherStatuses[0].N, "with RateLimit headers it is no address's")
				}
				require.Len(t, keys, 11)
				require.InDelta(t, keys["free-001"], keys["free-001b"], 30)
				r.Schema = "brimline.run/1"
				require.NoError(t, r.Check())
			})
		})
	}
}

func TestWhatTheTargetLacks(t *testing.T) {
	_, err := attack.New(attack.Config{Site: site(), Members: []traffic.Member{{Name: "free-001", Mix: &traffic.Mix{Valid: 1, Slow: 1}}}})
	require.EqualError(t, err, "free-001 asks for slow operations, and the target has none")
}

// TestEveryReactionAddsUp: whatever users do, planned is sent and held off.
func TestEveryReactionAddsUp(t *testing.T) {
	for name, c := range map[string]struct {
		manners manners.Manners
		sent    [2]int64 // of 80 planned for each of 5, at least and at most
	}{
		"ignore":   {manners.Ignore(), [2]int64{400, 400}},
		"obey":     {manners.Obey(), [2]int64{5 * 9, 5 * 11}},           // told 2 s
		"jitter":   {manners.ObeyWithJitter(), [2]int64{5 * 7, 5 * 10}}, // 2 s to 3 s
		"back off": {manners.BackOff(time.Second, 8*time.Second), [2]int64{5 * 4, 5 * 8}},
		"give up":  {manners.Ignore().GivingUpAfter(3), [2]int64{15, 15}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 20 * time.Second
				list := members(arrival.Constant(perSecond(t, 4)), 5, d)
				for i := range list {
					list[i].On429 = c.manners
				}
				server := &canned{answer: func(string, time.Duration) (int, string, time.Duration, error) {
					return 429, "2", 5 * time.Millisecond, nil
				}}
				r, err := start(t, list, d, server).Run(t.Context())
				require.NoError(t, err)
				p := whole(t, r, list, server)
				require.Equal(t, p.Planned, p.Sent+p.HeldOff)
				require.GreaterOrEqual(t, p.Sent, c.sent[0])
				require.LessOrEqual(t, p.Sent, c.sent[1])
			})
		})
	}
}

// TestAddresses: a member's requests come from where they are to come from, or
// name it.
func TestAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 2 * time.Second
		list := members(arrival.Constant(perSecond(t, 2)), 2, d)
		list[0].From = &target.Sender{From: netip.MustParseAddr("127.0.9.1"), Header: http.Header{"X-Forwarded-For": {"198.18.0.7"}}}
		c := &canned{answer: always(200, 0)}
		r, err := start(t, list, d, c).Run(t.Context())
		require.NoError(t, err)
		whole(t, r, list, c)
		for i, h := range c.heads {
			named := ""
			if c.log[i].user == "free-001" {
				named = "198.18.0.7"
			}
			require.Equal(t, named, h.Get("X-Forwarded-For"))
		}
	})
}
