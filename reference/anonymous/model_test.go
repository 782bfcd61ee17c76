package anonymous_test

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/invoicespec/brimline/reference/bucket/buckettest"
)

// model is the gate told a second time: rational tokens, lists that are
// searched, one thing after another.
type model struct {
	rpm, burst, cap int64
	keep            int64 // microseconds that a key is known for
	now             int64 // microseconds
	pools           map[string]*buckettest.Model
	lookups         []*lookingUp
	seen            map[int]int64 // when a key was last good
}

// lookingUp is a lookup that the store has not answered yet.
type lookingUp struct {
	pool    string // whose place it holds
	key     int
	known   bool // it holds none: the key was known
	current bool // others may join, and a good answer is remembered
	waiting []waiter
	store   *held
}

// waiter is an attempt, and the pool that pays if the answer is bad; none where
// a place was reserved for that.
type waiter struct {
	*going
	pays string
}

func (m *model) knows(key int) bool {
	seen, ok := m.seen[key]
	return ok && m.now-seen < m.keep
}

// flight is the lookup that an attempt with key joins, or nil.
func (m *model) flight(key int) *lookingUp {
	for _, l := range m.lookups {
		if l.key == key && l.current {
			return l
		}
	}
	return nil
}

func (m *model) inFlight(pool string) (n int64) {
	for _, l := range m.lookups {
		if l.pool == pool && !l.known {
			n++
		}
	}
	return n
}

// refusal is how an attempt of pool would be refused; empty: not at all.
func (m *model) refusal(pool string) string {
	b := m.pools[pool]
	if b == nil {
		b = &buckettest.Model{}
		m.pools[pool] = b
	}
	b.Settle(m.rpm, m.burst, m.now)
	missing := new(big.Rat).Sub(big.NewRat(m.inFlight(pool)+1, 1), b.Tokens())
	if missing.Sign() > 0 {
		wait := missing.Mul(missing, big.NewRat(60, m.rpm))
		return fmt.Sprint("rate ", max(1, buckettest.Ceil(wait).Int64()))
	}
	if m.inFlight(pool) >= m.cap {
		return "concurrency 1"
	}
	return ""
}

func (m *model) spend(pool string) {
	if !m.pools[pool].Take(m.rpm, m.burst, m.now) {
		panic("a token that was set aside is gone")
	}
}

// pay is for an attempt that is bad and reserved nothing.
func (m *model) pay(pool string) string {
	if refused := m.refusal(pool); refused != "" {
		return refused
	}
	m.spend(pool)
	return "bad"
}

// revoke has nothing known of a key, and nobody join what is under way.
func (m *model) revoke(key int) {
	delete(m.seen, key)
	for _, l := range m.lookups {
		if l.key == key {
			l.current = false
		}
	}
}

func (m *model) drop(l *lookingUp) {
	m.lookups = slices.DeleteFunc(m.lookups, func(other *lookingUp) bool { return other == l })
}

// answer says what each who waits for l gets when the store answers. Those of
// one pool get theirs in any order.
func (m *model) answer(l *lookingUp, word string) []string {
	m.drop(l)
	switch {
	case word == "bad" && l.known:
		m.revoke(l.key)
	case word == "bad":
		m.spend(l.pool)
	case word == "good alice" && (l.current || l.known && m.knows(l.key)):
		m.seen[l.key] = m.now
	}
	var want []string
	for _, w := range l.waiting {
		if word == "bad" && w.pays != "" {
			want = append(want, w.pays+" "+m.pay(w.pays))
		} else {
			want = append(want, w.pays+" "+word)
		}
	}
	slices.Sort(want)
	return want
}

// leave takes a waiter from l. The last one ends it, and its token stays spent.
func (m *model) leave(l *lookingUp, i int) {
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) > 0 {
		return
	}
	m.drop(l)
	if !l.known {
		m.spend(l.pool)
	}
}
