// Package measure is what a load run counts: what became of every request that
// was planned, how every request that was sent ended and how long that took, and
// whether each 429 was due.
//
// Most callers make a [Meter], ask it for the [Judge] of a user at both ends of
// every request, read answers with a [Reader] and tell the meter how they ended;
// [Meter.Fill] writes the record. Nothing is kept per request, so memory does not
// grow with their number. No key comes here.
//
// The judge carries out RATE-1, RATE-2, RATE-8, RATE-10, CONC-1, CONC-3 and
// CONC-6 from outside, on a real clock.
package measure

import (
	"cmp"
	"net/http"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/reports/record"
)

// Subject is one user as the meter knows them.
type Subject struct {
	Name       string // of ours
	Plan       string
	Population int
	Allowance  oracle.Allowance
	Rested     bool  // its bucket is known to be full
	Planned    int64 // requests in the whole run
}

// Answer is how a request that was sent ended.
type Answer struct {
	User      int
	Operation string // its name
	Due       time.Duration
	Taken     time.Duration // when a worker took it on
	Waited    bool          // for a worker: all were waiting for answers
	Sent      time.Duration // just before its first byte
	First     time.Duration // the first byte of the answer; 0: none came
	Done      time.Duration
	Attempts  int // how often it was put on a connection
	Outcome   record.Outcome
	Verdict   string // see [Judge.Known]; only asked for where somebody keeps it
	Status    int    // of [record.OutcomeOtherStatus]
	Code      string // of [record.OutcomeOtherStatus]: see [Reader.Code]
	Error     string // the kind of a [record.OutcomeTransportError]
	Stranger  bool   // sent with a key that nobody has: it says nothing of the user
	Faults    Faults // of its headers
	NoWait    bool   // a 429 to a user who obeys, without a Retry-After that can be obeyed
}

// Meter counts one run. It is safe for concurrent use.
type Meter struct {
	subjects []Subject
	judges   []*Judge
	plans    []*plan
	planOf   []int // by user

	mu     sync.Mutex
	users  []user
	lag    latency
	late   latency
	totals totals
}

// user is what one user has met so far.
type user struct {
	record.RunUser
	affected bool
	refused  bool          // the last answer that says so was a 429
	since    time.Duration // when the first of these 429s was asked for
	longest  time.Duration // from such a request to an admission
}

// plan is what the users of one plan have met so far.
type plan struct {
	record.RunPlan
	statuses map[int]int64
	codes    map[string]int64
	errors   map[string]int64
	faults   faultCounts
	times    map[record.Outcome]*times
	seconds  seconds
}

type times struct{ fromDue, fromSend, firstByte latency }

type totals struct {
	results, attempts int64
	noWait            int64 // 429s without a Retry-After that can be obeyed
}

// NewMeter is the meter of a run by these users, who are known by their place in
// the list. Now is the time since the run's start.
func NewMeter(subjects []Subject, now func() time.Duration) *Meter {
	m := &Meter{subjects: subjects, users: make([]user, len(subjects))}
	places, slowest := map[string]int{}, new(Slowest)
	for i, s := range subjects {
		m.judges = append(m.judges, NewJudge(s.Allowance, s.Rested, slowest, now))
		at, ok := places[s.Plan]
		if !ok {
			at = len(m.plans)
			places[s.Plan] = at
			m.plans = append(m.plans, &plan{
				RunPlan:  record.RunPlan{Plan: s.Plan},
				statuses: map[int]int64{}, codes: map[string]int64{}, errors: map[string]int64{}, times: map[record.Outcome]*times{},
			})
		}
		m.planOf = append(m.planOf, at)
		m.plans[at].Users++
		m.plans[at].Planned += s.Planned
		m.users[i].RunUser = record.RunUser{User: s.Name, Plan: s.Plan, Population: s.Population}
	}
	return m
}

// Judge is the judge of a user.
func (m *Meter) Judge(user int) *Judge { return m.judges[user] }

// Dropped counts a request that was too late to be sent; busy says that it was
// because every worker waited for an answer.
func (m *Meter) Dropped(user int, due time.Duration, busy bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.offered(user, due)
	p.Dropped++
	if busy {
		p.DroppedBusy++
	}
	p.seconds.at(due).dropped++
}

// HeldOff counts a request that was not sent because of a 429 that its user met.
func (m *Meter) HeldOff(user int, due time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.offered(user, due)
	p.HeldOff++
	p.seconds.at(due).heldOff++
}

// Unsent counts a request that the run's end came before.
func (m *Meter) Unsent(user int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans[m.planOf[user]].Unsent++
}

// Answered counts a request that was sent.
func (m *Meter) Answered(a Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, u := m.offered(a.User, a.Due), &m.users[a.User]
	p.Sent++
	u.Sent++
	p.seconds.at(a.Sent).sent++
	answered := p.seconds.at(a.Done)
	answered.answered++
	p.time(a)
	m.lag.record(a.Sent - a.Due)
	if !a.Waited {
		m.late.record(a.Taken - a.Due)
	}
	m.totals.results++
	m.totals.attempts += int64(a.Attempts)
	p.faults.add(a.Faults)
	if a.NoWait {
		m.totals.noWait++
	}
	switch a.Outcome {
	case record.OutcomeAdmitted:
		p.Admitted++
		u.Admitted++
		answered.admitted++
		p.seconds.time(a)
		u.admit(a.Done)
	case record.OutcomeRejectedRate:
		p.RejectedRate++
		u.RejectedRate++
		answered.rejectedRate++
		p.refuse(u, a)
	case record.OutcomeRejectedConcurrency:
		p.RejectedConcurrency++
		u.RejectedConcurrency++
		answered.rejectedConcurrency++
		p.refuse(u, a)
	case record.OutcomeRejectedAnonymous:
		p.RejectedAnonymous++
		u.RejectedOtherwise++
		p.refuse(u, a)
	case record.OutcomeUnauthenticated:
		p.Unauthenticated++
	case record.OutcomeConfigUnavailable:
		p.ConfigUnavailable++
	case record.OutcomeOtherStatus:
		p.statuses[a.Status]++
		p.codes[cmp.Or(a.Code, noCode)]++
		if a.Status == http.StatusTooManyRequests {
			u.RejectedOtherwise++
			p.refuse(u, a)
		}
	default:
		p.errors[a.Error]++
	}
}

// offered counts a request that came due.
func (m *Meter) offered(user int, due time.Duration) *plan {
	p := m.plans[m.planOf[user]]
	p.Offered++
	p.seconds.at(due).due++
	return p
}

func (p *plan) time(a Answer) {
	t := p.times[a.Outcome]
	if t == nil {
		t = &times{}
		p.times[a.Outcome] = t
	}
	t.fromDue.record(a.Done - a.Due)
	t.fromSend.record(a.Done - a.Sent)
	if a.First > 0 {
		t.firstByte.record(a.First - a.Sent)
	}
}

// refuse notes a 429, unless it was a stranger's.
func (p *plan) refuse(u *user, a Answer) {
	if a.Stranger {
		return
	}
	if !u.affected {
		u.affected = true
		p.UsersAffected++
	}
	if !u.refused {
		u.refused, u.since = true, a.Sent
	}
}

// admit notes an admission, or the end of the run.
func (u *user) admit(done time.Duration) {
	if u.refused {
		u.longest = max(u.longest, done-u.since)
	}
	u.refused = false
}
