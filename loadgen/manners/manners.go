// Package manners is what a user does who meets a 429.
//
// A load is an open model: requests come due whatever became of earlier ones. So
// manners decide of a request that is due whether the user asks after all; one
// that is not asked is held off, for good, and never made up for later. Most
// callers take a [Manners], keep a [User] for everybody, tell it how every
// request ended ([Manners.Refused], [Manners.Passed]) and ask [User.Holds].
//
//   - [Ignore]: asks on as if nothing had been.
//   - [Obey]: holds off until the time that the 429 names is over, a second at
//     least, whatever is named.
//   - [ObeyWithJitter]: the same for up to half as long again.
//   - [BackOff]: holds off for a time of its own, which doubles with every 429 in
//     a row, up to a longest; what the 429 names is not looked at.
//   - any of them, [Manners.GivingUpAfter] so many 429s in a row: holds off for
//     the rest of the run.
//
// In a row are 429s to requests of which each left when the one before it had
// been answered: a burst that is refused is refused once. A request that left
// later and got another answer ends the row.
package manners

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/loadgen/dice"
)

// Floor is the least that a user waits who obeys: what a 429 names that is no
// positive number of seconds would have them ask again at once, for ever.
const Floor = time.Second

type kind uint8

const (
	ignoring kind = iota
	obeying
	jittering
	backingOff
)

// Manners are what users of one kind do. The zero value ignores 429s.
type Manners struct {
	kind        kind
	first, most time.Duration
	last        int64 // 429s in a row, after which they give up; 0: never
}

// Ignore asks on.
func Ignore() Manners { return Manners{} }

// Obey waits as long as the 429 says.
func Obey() Manners { return Manners{kind: obeying} }

// ObeyWithJitter waits as long as the 429 says, and up to half of that on top.
func ObeyWithJitter() Manners { return Manners{kind: jittering} }

// BackOff waits first, and twice as long after each further 429 in a row, but not
// longer than most; of that between half and the whole.
func BackOff(first, most time.Duration) Manners {
	return Manners{kind: backingOff, first: first, most: most}
}

// GivingUpAfter are the same manners of a user who gives up after so many 429s in
// a row; 0: never.
func (m Manners) GivingUpAfter(n int64) Manners {
	m.last = n
	return m
}

// Listens reports whether what a 429 names is looked at.
func (m Manners) Listens() bool { return m.kind == obeying || m.kind == jittering }

func (m Manners) String() string {
	words := [...]string{ignoring: "ignore", obeying: "obey-retry-after", jittering: "obey-with-jitter", backingOff: "backoff"}
	var b strings.Builder
	b.WriteString(words[m.kind])
	if m.kind == backingOff {
		fmt.Fprintf(&b, " from %v to %v", m.first, m.most)
	}
	if m.last > 0 {
		fmt.Fprintf(&b, ", give up after %d", m.last)
	}
	return b.String()
}

// User is what one user remembers. The zero value has met no 429 yet. It is safe
// for concurrent use.
type User struct {
	until atomic.Int64 // no request that is due before this, in nanoseconds

	mu       sync.Mutex
	row      int64         // 429s in a row
	rows     int64         // 429s that began or lengthened one
	answered time.Duration // the latest of them
}

// Holds reports whether the user does not ask what is due then.
func (u *User) Holds(due time.Duration) bool { return u.until.Load() > int64(due) }

// Dice are what a user's waits are drawn with.
func Dice(seed int64, user string) dice.Dice { return dice.New(seed, "wait", user) }

// Refused tells the user of a 429 to a request that left at one time and was
// answered at another, both from the start of the run; named is the wait that it
// names, 0 if none that can be obeyed.
func (m Manners) Refused(u *User, d dice.Dice, sent, answered, named time.Duration) {
	if m == (Manners{}) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.row == 0 || sent >= u.answered {
		u.row++
		u.rows++
		u.answered = answered
	}
	until := time.Duration(math.MaxInt64)
	if m.last == 0 || u.row < m.last {
		until = answered + m.wait(u, d, named)
	}
	if m.kind != ignoring || until == math.MaxInt64 {
		u.until.Store(max(u.until.Load(), int64(until)))
	}
}

// wait is how long to hold off.
func (m Manners) wait(u *User, d dice.Dice, named time.Duration) time.Duration {
	named = max(named, Floor)
	switch m.kind {
	case obeying:
		return named
	case jittering:
		return named + time.Duration(d.At(u.rows)*float64(named/2))
	case backingOff:
		most := m.most
		if doublings := u.row - 1; doublings < 62 && m.first <= m.most>>doublings {
			most = m.first << doublings
		}
		return most/2 + time.Duration(d.At(u.rows)*float64(most-most/2))
	}
	return 0
}

// Passed tells the user of an answer to a request that was no 429.
func (m Manners) Passed(u *User, sent time.Duration) {
	if m == (Manners{}) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if sent >= u.answered {
		u.row = 0
	}
}
