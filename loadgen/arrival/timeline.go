package arrival

import "time"

// Timeline merges the schedules of many users, until an end: a heap with one
// entry per user, so that a hundred thousand users cost one tree of theirs.
type Timeline struct {
	end  time.Duration
	heap []entry
}

type entry struct {
	due      time.Duration
	user     int
	schedule *Schedule
}

// before orders by due time, then by user, so that a timeline has one order.
func (e entry) before(o entry) bool {
	return e.due < o.due || e.due == o.due && e.user < o.user
}

// NewTimeline merges schedules; users are known by their place in the list. A
// request that is due at end or later is not on it.
func NewTimeline(schedules []*Schedule, end time.Duration) *Timeline {
	t := &Timeline{end: end}
	for user, s := range schedules {
		if due := s.Next(); due < end {
			t.heap = append(t.heap, entry{due: due, user: user, schedule: s})
		}
	}
	for i := len(t.heap)/2 - 1; i >= 0; i-- {
		t.sink(i)
	}
	return t
}

// Request is one request on a timeline.
type Request struct {
	Due    time.Duration
	User   int   // place in the list of users
	Number int64 // among those of the user, from 0
}

// Next takes the request that is due next off the timeline; false: none is left.
func (t *Timeline) Next() (r Request, ok bool) {
	if len(t.heap) == 0 {
		return Request{}, false
	}
	top := &t.heap[0]
	r = Request{Due: top.due, User: top.user, Number: int64(top.schedule.n - 1)}
	if top.due = top.schedule.Next(); top.due >= t.end {
		last := len(t.heap) - 1
		t.heap[0] = t.heap[last]
		t.heap = t.heap[:last]
	}
	t.sink(0)
	return r, true
}

// sink restores the order below i.
func (t *Timeline) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(t.heap); c++ {
			if t.heap[c].before(t.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		t.heap[i], t.heap[least] = t.heap[least], t.heap[i]
		i = least
	}
}
