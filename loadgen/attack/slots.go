package attack

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/measure"
)

// fate is what became of a slot that was handed to vegeta.
type fate uint8

const (
	unsent  fate = iota // the run's end came before
	late                // came to a worker too late
	heldOff             // its user met a 429 meanwhile
	sent
)

// slot is one request on its way through vegeta.
type slot struct {
	place  int
	url    string // carries the place, in a fragment
	user   int
	number int64 // of the request, among the user's
	due    time.Duration
	busy   bool // every worker was waiting for an answer when it was handed over
	fate   fate
	answer measure.Answer // if it was sent

	watch *watch // of the request; kept for the next
	body  []byte // of the answer; the memory is kept for the next
}

// mostKept bounds the memory for a body that a slot keeps.
const mostKept = 64 << 10

// slots are those on their way: at most one for each worker, one whose result is
// being read, and one in the queue. They are used again and again.
type slots struct {
	queue   chan *slot // first in, first out; never full
	workers int64
	inUse   atomic.Int64

	mu    sync.Mutex
	all   []*slot
	spare []*slot
}

func newSlots(workers int) *slots {
	return &slots{queue: make(chan *slot, workers+2), workers: int64(workers)}
}

// push puts a slot into the queue and says whether every worker is busy.
func (s *slots) push(r arrival.Request) (busy bool) {
	s.mu.Lock()
	if len(s.spare) == 0 {
		place := len(s.all)
		s.all = append(s.all, &slot{place: place, url: "http://slot/#" + strconv.Itoa(place)})
		s.spare = append(s.spare, s.all[place])
	}
	last := len(s.spare) - 1
	next := s.spare[last]
	s.spare = s.spare[:last]
	s.mu.Unlock()

	busy = s.inUse.Add(1) > s.workers
	*next = slot{place: next.place, url: next.url, watch: next.watch, body: next.body, user: r.User, number: r.Number, due: r.Due, busy: busy}
	s.queue <- next
	return busy
}

// target is vegeta's targeter. The pacer has pushed before a worker asks, so it
// never waits.
func (s *slots) target(t *vegeta.Target) error {
	next := <-s.queue
	t.Method, t.URL = "GET", next.url
	return nil
}

// of is the slot that a URL of [slots.target] stands for.
func (s *slots) of(url string) *slot {
	_, fragment, _ := strings.Cut(url, "#")
	return s.at(fragment)
}

// at is the slot at a place.
func (s *slots) at(fragment string) *slot {
	place, _ := strconv.Atoi(fragment) // ours
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[place]
}

// free takes a slot back once its result is counted.
func (s *slots) free(done *slot) {
	s.inUse.Add(-1)
	if cap(done.body) > mostKept {
		done.body = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, done)
}
