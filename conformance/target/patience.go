package target

import (
	"fmt"
	"time"
)

// patience is how many times longer than usual everything may take. All bounds
// of time on a deployment are here, each with its reason; limits.patience of the
// target file widens them for one that is far away or slow. They decide when
// "no answer" is said, never whether an answer is right.
type patience int64

// mostPatience bounds limits.patience.
const mostPatience = 100

func (p patience) times(d time.Duration) time.Duration { return time.Duration(max(p, 1)) * d }

// first is for the first question: a server that is there answers at once.
func (p patience) first() time.Duration { return p.times(5 * time.Second) }

// dial is for a connection and its TLS handshake, three lost packets included.
func (p patience) dial() time.Duration { return p.times(10 * time.Second) }

// answer is for a whole answer: a server may let its engine work for a minute.
func (p patience) answer() time.Duration { return p.times(90 * time.Second) }

// silence is from when on a request without an answer says that nobody is there.
func (p patience) silence() time.Duration { return p.times(10 * time.Second) }

// witness is for a request to be seen where it is to be held: it has but to get
// there.
func (p patience) witness() time.Duration { return p.times(15 * time.Second) }

// control is for an answer of what stands beside the API and works for nobody:
// the control server, the page of metrics.
func (p patience) control() time.Duration { return p.times(20 * time.Second) }

// farewell is from an answer to the close that it announced. A server that has
// nothing to wait for closes at once.
func (p patience) farewell() time.Duration { return p.times(time.Second) }

// looks are the pauses between looks at what comes true a moment after an answer,
// such as a log entry that is delivered; in all, a bit over three seconds.
func (p patience) looks() []time.Duration {
	ms := time.Millisecond
	all := []time.Duration{ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms}
	for i, d := range all {
		all[i] = p.times(d)
	}
	return all
}

// Patience is d, times what the target file says that things may take longer.
func (t *Target) Patience(d time.Duration) time.Duration { return t.patience.times(d) }

func (f File) checkPatience() *problem {
	if n := f.Limits.Patience; n < 0 || n > mostPatience {
		return &problem{"limits.patience", fmt.Sprint(n), fmt.Sprintf("1 to %d times as long as usual", mostPatience)}
	}
	return nil
}
