package anonymous_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
)

// held is a store that answers when it is told to.
type held struct {
	asked  int
	answer chan anonymous.Lookup
}

func hold() *held { return &held{answer: make(chan anonymous.Lookup)} }

// lookup obeys its context, as a store should.
func (h *held) lookup(ctx context.Context) (account.Record, error) {
	h.asked++
	select {
	case as := <-h.answer:
		return as(ctx)
	case <-ctx.Done():
		return account.Record{}, ctx.Err()
	}
}

// deaf does not.
func (h *held) deaf(ctx context.Context) (account.Record, error) {
	h.asked++
	return (<-h.answer)(ctx)
}

// going is an attempt on its way.
type going struct {
	leave context.CancelFunc
	got   string // once it is over
}

// begin begins an attempt and comes back when it waits for something or is over.
func begin(g *anonymous.Gate, pool string, n int, lookup anonymous.Lookup) *going {
	ctx, cancel := context.WithCancel(context.Background())
	a := &going{leave: cancel}
	go func() {
		defer cancel()
		a.got = outcome(g.Authenticate(ctx, pool, key(n), lookup))
	}()
	synctest.Wait()
	return a
}

// tell has the store give its answer to whom it keeps waiting.
func (h *held) tell(as anonymous.Lookup) {
	h.answer <- as
	synctest.Wait()
}

// free is how many bad attempts pool still takes, and takes them.
func free(t testing.TB, g *anonymous.Gate, pool string) (n int) {
	for noKey(g, pool) == "bad" {
		n++
		require.Less(t, n, 1000)
	}
	return n
}

func bubble(t *testing.T, name string, f func(t *testing.T, g *anonymous.Gate)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, anonymous.New(newFrozen(), anonymous.Config{})) })
	})
}

// ANON-3: five are undecided at once; the sixth is refused, whatever it brings,
// and pays nothing. What it finds is a place, once one is decided.
func TestConcurrency(t *testing.T) {
	for name, answer := range map[string]anonymous.Lookup{"good": good, "bad": bad, "away": away} {
		bubble(t, name, func(t *testing.T, g *anonymous.Gate) {
			h := hold()
			var inside []*going
			for n := range 5 {
				inside = append(inside, begin(g, "a", n, h.lookup))
			}
			require.Equal(t, 1, g.Stats().Undecided)
			require.Equal(t, "concurrency 1", attempt(t, g, "a", 5, unasked(t)))
			require.Equal(t, "concurrency 1", noKey(g, "a"))
			require.Equal(t, "bad", attempt(t, g, "b", 5, bad), "another address")

			h.tell(answer)
			sixth := begin(g, "a", 6, h.lookup)
			require.Empty(t, sixth.got, "there is a place again")
			require.Equal(t, "concurrency 1", attempt(t, g, "a", 7, unasked(t)), "one")
			for range 5 {
				h.tell(answer)
			}
			want := map[string]string{"good": "good alice", "bad": "bad", "away": "away"}[name]
			for _, a := range append(inside, sixth) {
				require.Equal(t, want, a.got)
			}
			require.Zero(t, g.Stats().Undecided)
			require.Equal(t, map[string]int{"good": 10, "bad": 4, "away": 10}[name], free(t, g, "a"))
		})
	}
}

// A token that is set aside is nobody else's, and an empty pool is told before a
// full one, as for users.
func TestUndecidedTokensAreSetAside(t *testing.T) {
	bubble(t, "frozen clock", func(t *testing.T, g *anonymous.Gate) {
		for range 5 {
			require.Equal(t, "bad", noKey(g, "a"))
		}
		h := hold()
		for n := range 5 {
			begin(g, "a", n, h.lookup)
		}
		require.Equal(t, "rate 2", noKey(g, "a"))
		for range 3 {
			h.tell(good)
		}
		require.Equal(t, 3, free(t, g, "a"))
		h.tell(bad)
		require.Zero(t, free(t, g, "a"))
		h.tell(good)
		require.Equal(t, 1, free(t, g, "a"))
	})
}

// However long an attempt was undecided, a good one leaves the burst that it
// found, and a bad one a token less: nothing is ever minted.
func TestGivingBackIsExact(t *testing.T) {
	for _, name := range []string{"good", "bad"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFrozen()
				g := anonymous.New(c, anonymous.Config{})
				h := hold()
				begin(g, "a", 1, h.lookup)
				c.Advance(time.Hour)
				require.Equal(t, 9, free(t, g, "a"), "the pool is full and one token is set aside")
				if name == "good" {
					h.tell(good)
					require.Equal(t, 1, free(t, g, "a"), "ten in all at one instant")
				} else {
					h.tell(bad)
				}
				require.Zero(t, free(t, g, "a"))
				c.Advance(2 * time.Second)
				require.Equal(t, 1, free(t, g, "a"))
			})
		})
	}
}

// ANON-7: a key that many present at once for the first time is looked up once;
// those who wait hold no place and no token, even where there are none.
func TestFirstUsesShareOneLookup(t *testing.T) {
	for name, tc := range map[string]struct {
		answer anonymous.Lookup
		want   string
		free   int
	}{"good": {good, "good alice", 4}, "away": {away, "away", 4}} {
		bubble(t, name, func(t *testing.T, g *anonymous.Gate) {
			for range 6 {
				require.Equal(t, "bad", noKey(g, "a"))
				require.Equal(t, "bad", noKey(g, "empty"))
			}
			for range 4 {
				require.Equal(t, "bad", noKey(g, "empty"))
			}
			h := hold()
			var all []*going
			for range 20 {
				all = append(all, begin(g, "a", 1, h.lookup), begin(g, "empty", 1, h.lookup))
			}
			require.Equal(t, 1, h.asked)
			require.Equal(t, 3, free(t, g, "a"), "one is set aside")
			h.tell(tc.answer)
			for _, a := range all {
				require.Equal(t, tc.want, a.got)
			}
			require.Equal(t, 1, h.asked)
			require.Equal(t, tc.free-3, free(t, g, "a"))
		})
	}
	bubble(t, "bad", func(t *testing.T, g *anonymous.Gate) {
		h := hold()
		var all []*going
		for range 40 {
			all = append(all, begin(g, "a", 1, h.lookup))
		}
		h.tell(bad)
		require.Equal(t, 1, h.asked)
		got := map[string]int{}
		for _, a := range all {
			got[a.got]++
		}
		require.Equal(t, map[string]int{"bad": 10, "rate 2": 30}, got, "each counts once it is known to be bad")
	})
}

// Whoever goes away takes nobody along, not even who came first.
func TestLeaving(t *testing.T) {
	for name, leaver := range map[string]int{"the first": 0, "another": 1} {
		bubble(t, name, func(t *testing.T, g *anonymous.Gate) {
			h := hold()
			var all []*going
			for range 3 {
				all = append(all, begin(g, "a", 1, h.lookup))
			}
			all[leaver].leave()
			synctest.Wait()
			require.Equal(t, "context canceled", all[leaver].got)
			h.tell(good)
			for i, a := range all {
				if i != leaver {
					require.Equal(t, "good alice", a.got)
				}
			}
			require.Equal(t, 1, h.asked)
			require.Equal(t, 10, free(t, g, "a"))
			require.Equal(t, "good alice", attempt(t, g, "a", 1, good), "it is known")
		})
	}
}

// When all have gone the lookup is told, and its token stays spent: nobody makes
// the store work for nothing. The place stays taken until the work has ended.
func TestAllLeave(t *testing.T) {
	bubble(t, "a store that obeys", func(t *testing.T, g *anonymous.Gate) {
		h := hold()
		for n := range 10 {
			a, b := begin(g, "a", n, h.lookup), begin(g, "a", n, h.lookup)
			a.leave()
			b.leave()
			synctest.Wait()
			require.Equal(t, "context canceled", a.got)
			require.Zero(t, g.Stats().Undecided)
		}
		require.Zero(t, free(t, g, "a"))
		require.Equal(t, 10, h.asked)
	})
	for name, tc := range map[string]struct {
		answer anonymous.Lookup
		free   int
	}{"good": {good, 10}, "bad": {bad, 9}, "away": {away, 9}} {
		bubble(t, "a store that does not, "+name, func(t *testing.T, g *anonymous.Gate) {
			h := hold()
			a := begin(g, "a", 1, h.deaf)
			a.leave()
			synctest.Wait()
			require.Equal(t, 1, g.Stats().Undecided)

			again := hold()
			b := begin(g, "a", 1, again.deaf)
			require.Equal(t, 1, again.asked, "whoever comes next begins anew")
			h.tell(tc.answer)
			require.Empty(t, b.got)
			again.tell(away)
			require.Equal(t, "away", b.got)
			require.Equal(t, tc.free, free(t, g, "a"))
			require.Zero(t, g.Stats().Known, "an answer that nobody waited for is not remembered")
		})
	}
}

// A key revoked while it is looked up is not remembered as good, and whoever
// comes after the revocation is not served from before it.
func TestForgetDuringALookup(t *testing.T) {
	bubble(t, "first use", func(t *testing.T, g *anonymous.Gate) {
		before, after := hold(), hold()
		a := begin(g, "a", 1, before.lookup)
		g.Forget(key(1))
		b := begin(g, "a", 1, after.lookup)
		require.Equal(t, 1, after.asked)
		before.tell(good)
		require.Equal(t, "good alice", a.got)
		require.Empty(t, b.got)
		require.Zero(t, g.Stats().Known)
		after.tell(bad)
		require.Equal(t, "bad", b.got)
		require.Equal(t, 9, free(t, g, "a"))
	})
	bubble(t, "known key", func(t *testing.T, g *anonymous.Gate) {
		require.Equal(t, "good alice", attempt(t, g, "a", 1, good))
		h := hold()
		a := begin(g, "a", 1, h.lookup)
		g.Forget(key(1))
		h.tell(good)
		require.Equal(t, "good alice", a.got)
		require.Zero(t, g.Stats().Known)
	})
}

// A lookup that panics, or ends its goroutine, is a store that failed.
func TestLookupThatDoesNotReturn(t *testing.T) {
	for name, answer := range map[string]anonymous.Lookup{
		"panic":  func(context.Context) (account.Record, error) { panic("broken store") },
		"goexit": func(context.Context) (account.Record, error) { runtime.Goexit(); return account.Record{}, nil },
	} {
		bubble(t, name, func(t *testing.T, g *anonymous.Gate) {
			h := hold()
			first, second := begin(g, "a", 1, h.lookup), begin(g, "a", 1, h.lookup)
			h.tell(answer)
			require.Contains(t, first.got, map[string]string{"panic": "panicked: broken store\n", "goexit": "without an answer"}[name])
			require.Equal(t, first.got, second.got)
			require.Equal(t, name == "panic", strings.Contains(first.got, "flight_test.go"), "where it was")
			require.Equal(t, 10, free(t, g, "a"))
			require.Zero(t, g.Stats().Undecided)
		})
	}
}

// The lookup keeps the values of the request that began it and none of its
// deadline, so that those who joined are not cut short.
func TestContextOfALookup(t *testing.T) {
	bubble(t, "frozen clock", func(t *testing.T, g *anonymous.Gate) {
		type name struct{}
		cause := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), name{}, "request 7"), time.Minute, cause)
		defer cancel()
		h := hold()
		var err error
		go func() { _, err = g.Authenticate(ctx, "a", key(1), h.lookup) }()
		synctest.Wait()
		joined := begin(g, "a", 1, unasked(t))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.ErrorIs(t, err, cause)
		h.tell(func(ctx context.Context) (account.Record, error) {
			_, limited := ctx.Deadline()
			require.False(t, limited)
			return account.Record{User: ctx.Value(name{}).(string)}, ctx.Err()
		})
		require.Equal(t, "good request 7", joined.got)
	})
}
