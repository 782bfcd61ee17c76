package anonymous_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/bucket/buckettest"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
)

// Whatever comes, waits, leaves, is answered, is revoked or is let go by: each
// gets what the model says. (In a bubble rapid must not ask when the test ends.)
func TestGateIsTheModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { rapid.Check(struct{ testing.TB }{t}, compare) })
}

// compared is a gate beside its model.
type compared struct {
	gate  *anonymous.Gate
	clock clock.Movable
	*model
}

func compare(t *rapid.T) {
	const keep = 30 * time.Second
	m := &model{
		rpm:   rapid.Int64Range(1, 120).Draw(t, "rate"),
		burst: rapid.Int64Range(1, 6).Draw(t, "burst"),
		cap:   rapid.Int64Range(1, 4).Draw(t, "cap"),
		keep:  keep.Microseconds(),
		pools: map[string]*buckettest.Model{},
		seen:  map[int]int64{},
	}
	a, err := policy.NewAllowance(m.rpm, m.burst, m.cap)
	require.NoError(t, err)
	c := newFrozen()
	both := compared{anonymous.New(c, anonymous.Config{Allowance: a, KnownFor: keep}), c, m}
	defer both.end()
	t.Repeat(map[string]func(*rapid.T){
		"time":    both.time,
		"no key":  both.noKey,
		"attempt": both.attempt,
		"again":   both.attempt, // oftener than the rest
		"answer":  both.answer,
		"leave":   both.leave,
		"revoke": func(t *rapid.T) {
			n := drawKey(t)
			both.gate.Forget(key(n))
			both.revoke(n)
		},
		"": both.check,
	})
}

func drawKey(t *rapid.T) int     { return rapid.IntRange(1, 3).Draw(t, "key") }
func drawPool(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool") }

func (b compared) time(t *rapid.T) {
	d := rapid.Int64Range(0, 20_000_000).Draw(t, "microseconds")
	b.clock.Advance(time.Duration(d) * time.Microsecond)
	b.now += d
}

func (b compared) noKey(t *rapid.T) {
	pool := drawPool(t)
	require.Equal(t, b.pay(pool), noKey(b.gate, pool))
}

func (b compared) attempt(t *rapid.T) {
	pool, n := drawPool(t), drawKey(t)
	store := hold()
	a := begin(b.gate, pool, n, store.lookup)
	if b.knows(n) {
		b.lookups = append(b.lookups, &lookingUp{pool: pool, key: n, known: true, waiting: []waiter{{a, pool}}, store: store})
		return
	}
	if l := b.flight(n); l != nil {
		require.Zero(t, store.asked)
		l.waiting = append(l.waiting, waiter{a, pool})
		return
	}
	if refused := b.refusal(pool); refused != "" {
		require.Zero(t, store.asked)
		require.Equal(t, refused, a.got)
		return
	}
	b.lookups = append(b.lookups, &lookingUp{pool: pool, key: n, current: true, waiting: []waiter{{a, ""}}, store: store})
}

func (b compared) drawLookup(t *rapid.T) *lookingUp {
	if len(b.lookups) == 0 {
		t.Skip("nothing is looked up")
	}
	return rapid.SampledFrom(b.lookups).Draw(t, "lookup")
}

func (b compared) answer(t *rapid.T) {
	l := b.drawLookup(t)
	word := rapid.SampledFrom([]string{"good alice", "bad", "away"}).Draw(t, "answer")
	l.store.tell(map[string]anonymous.Lookup{"good alice": good, "bad": bad, "away": away}[word])
	var got []string
	for _, w := range l.waiting {
		got = append(got, w.pays+" "+w.got)
	}
	slices.Sort(got)
	require.Equal(t, b.model.answer(l, word), got)
}

func (b compared) leave(t *rapid.T) {
	l := b.drawLookup(t)
	i := rapid.IntRange(0, len(l.waiting)-1).Draw(t, "who")
	a := l.waiting[i]
	a.leave()
	synctest.Wait()
	require.Equal(t, "context canceled", a.got)
	b.model.leave(l, i)
}

// check is what holds after every step.
func (b compared) check(t *rapid.T) {
	undecided := map[string]bool{}
	for _, l := range b.lookups {
		require.Equal(t, 1, l.store.asked)
		for _, w := range l.waiting {
			require.Empty(t, w.got)
		}
		if !l.known {
			undecided[l.pool] = true
		}
	}
	require.Equal(t, len(undecided), b.gate.Stats().Undecided)
}

// end leaves nobody waiting.
func (b compared) end() {
	for _, l := range b.lookups {
		for _, w := range l.waiting {
			w.going.leave()
		}
	}
	synctest.Wait()
}
