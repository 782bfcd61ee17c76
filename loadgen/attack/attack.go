// Package attack sends the load: one vegeta attack for all users, whatever their
// number. A pacer of ours hands out slots when they are due, a targeter takes
// them off a queue, and a round tripper of ours sends them with the user's key
// and notes when the first byte left and when the answer was there.
//
// Most callers make a [New] attack, watch its [Attack.Meter], and [Attack.Run] it
// once.
//
// Every slot keeps its due time. One that is late by more than [MostLate] is
// dropped and counted, never sent in a bunch with others: first when its turn
// comes, and again when it had to wait for a worker. So
//
//	planned = sent + dropped + held off + unsent
//
// to the unit, however the run ends. Workers are capped by Little's law: as many
// requests are in flight as arrive while one is answered, so for answers that
// take up to [Foreseen] the cap is the rate times that, and on top of it whatever
// is due at one instant. A target that is slower than that meets the cap; what is
// dropped then is counted as the target's doing.
//
// Connections are kept. HTTP/1.1 in the clear goes over [lean.Transport], TLS and
// HTTP/2 over net/http's. Nothing is sent twice by intent, no redirect is followed, no proxy of the environment is used. A user is known
// to vegeta by a number in a URL fragment that never leaves the process; keys
// come in only where a request is written, so no error or result can hold one.
package attack

import (
	"context"
	"math"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/machine"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// The times of an attack.
const (
	MostLate = 100 * time.Millisecond // a slot that is later is dropped
	Foreseen = time.Second            // answers up to this slow do not meet the cap on workers
	Timeout  = 30 * time.Second       // of one request
	Drain    = time.Second            // after an interruption answers are waited for so long
)

// Bounds of the workers.
const (
	fewestWorkers = 16
	mostWorkers   = 2000
)

// Config is what to send.
type Config struct {
	Members   []traffic.Member // recruited
	Duration  time.Duration
	Seed      int64
	MaxRate   int64        // requests in any second, at most; 0: no more is known than the members' plan
	Start     time.Time    // of the wall clock, that the run begins at; zero: at once
	Over      *Connections // nil: the attack's own
	Site      Site
	Each      func(measure.Answer) // told of every answer, by one goroutine, and not to wait; may be nil
	Transport http.RoundTripper    // must report to net/http/httptrace; nil: over the network, as suits the target
}

// Attack is one run. It can be run once.
type Attack struct {
	Meter *measure.Meter

	config  Config
	workers int
	wanted  int // workers, if there were no most
	started time.Time
	slots   *slots
	reader  *measure.Reader
	users   []manners.User // what those remember who do not ignore 429s
}

// New prepares an attack.
func New(c Config) (*Attack, error) {
	if err := c.Site.prepare(c.Members); err != nil {
		return nil, err
	}
	a := &Attack{config: c, reader: measure.NewReader(c.Site.Wording), users: make([]manners.User, len(c.Members))}
	a.workers, a.wanted = workers(c.Members, c.Site)
	if err := machine.EnoughDescriptors(int64(a.workers)); err != nil {
		return nil, err
	}
	a.slots = newSlots(a.workers)
	subjects := make([]measure.Subject, len(c.Members))
	for i, m := range c.Members {
		subjects[i] = measure.Subject{
			Name: m.Name, Plan: m.Plan, Population: m.Population, Allowance: m.Allowance, Rested: m.Rested, Planned: m.Planned,
		}
	}
	a.Meter = measure.NewMeter(subjects, a.now)
	return a, nil
}

// workers is the cap on requests in flight, and what it would be if there were
// none on workers.
func workers(members []traffic.Member, site Site) (n, wanted int) {
	flight, together := 0.0, int64(0)
	for _, m := range members {
		perSecond := m.Process.Peak() / 60
		slow := m.Mix.Share(traffic.Slow)
		flight += perSecond * ((1-slow)*Foreseen.Seconds() + slow*(Foreseen+site.Requests[traffic.Slow].Takes).Seconds())
		if n := m.Process.Together(); n > 1 {
			together += n
		}
	}
	wanted = int(min(max(math.Ceil(flight)+float64(together), fewestWorkers), math.MaxInt32))
	return min(wanted, mostWorkers), wanted
}

// Started is when the run began; once an answer came it is known.
func (a *Attack) Started() time.Time { return a.started }

// now is the time since the run began.
func (a *Attack) now() time.Duration { return time.Since(a.started) }

// Run sends until the scenario is over or ctx is done; then it waits for the
// answers that are still to come, after an interruption no longer than [Drain].
// The record has everything but what is known without running: schema, version,
// scenario and target.
func (a *Attack) Run(ctx context.Context) (record.Run, error) {
	c := a.config
	schedules := make([]*arrival.Schedule, len(c.Members))
	for i, m := range c.Members {
		schedules[i] = m.Process.Schedule(c.Seed, m.Name)
	}
	timeline := arrival.NewTimeline(schedules, c.Duration)

	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if c.Over == nil { // what outlives the run must not be cut by its end
			cut()
		}
	}()
	network := a.over()
	defer network.close()
	t := &transport{attack: a, base: network, stop: ctx.Done(), requests: requests}
	own := machine.Start()
	began, lateness, err := begin(ctx, c.Start)
	if err != nil {
		own.Fill(&record.Generator{})
		return record.Run{}, err
	}
	a.started = began
	defer cutLater(ctx, requests, cut)()
	p := &pacer{attack: a, bound: newBound(c.MaxRate), timeline: timeline, stop: ctx.Done()}
	attacker := vegeta.NewAttacker(
		vegeta.Client(&http.Client{Transport: t}),
		vegeta.Redirects(vegeta.NoFollow),
		vegeta.Workers(fewestWorkers), // more are started when they are needed
		vegeta.MaxWorkers(uint64(a.workers)),
		vegeta.MaxBody(0),
	)
	for result := range attacker.Attack(a.slots.target, p, 0, "") {
		s := a.slots.of(result.URL)
		a.count(s)
		a.slots.free(s)
	}
	end, interrupted := a.now(), ctx.Err() != nil
	for {
		r, ok := timeline.Next()
		if !ok {
			break
		}
		a.Meter.Unsent(r.User)
	}

	r := record.Run{
		Started: a.started.UTC(), Interrupted: interrupted,
		PlannedMS: c.Duration.Milliseconds(), ActualMS: end.Milliseconds(),
	}
	own.Fill(&r.Generator)
	r.Generator.Workers, r.Generator.WorkersReached = int64(a.workers), p.reached
	r.Generator.WorkersWanted = int64(a.wanted)
	r.Generator.Transport, r.Generator.Connections = network.name, network.opened()
	r.Generator.StartLateUS = lateness.Microseconds()
	if err := a.Meter.Fill(&r, end); err != nil {
		return record.Run{}, err
	}
	r.Limits, r.Untold = a.Meter.Limits(r), r.Doubts()
	return r, nil
}

// count tells the meter what became of a slot.
func (a *Attack) count(s *slot) {
	switch s.fate {
	case sent:
		a.Meter.Answered(s.answer)
		if a.config.Each != nil {
			a.config.Each(s.answer)
		}
	case late:
		a.Meter.Dropped(s.user, s.due, s.busy)
	case heldOff:
		a.Meter.HeldOff(s.user, s.due)
	case unsent:
		a.Meter.Unsent(s.user)
	}
}

// held reports whether a user who met a 429 does not ask what is due then.
func (a *Attack) held(user int, due time.Duration) bool { return a.users[user].Holds(due) }

// cutLater gives answers a little time after ctx is done. The caller ends it.
func cutLater(ctx, requests context.Context, cut context.CancelFunc) (end func()) {
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(Drain)
		defer t.Stop()
		select {
		case <-t.C:
			cut()
		case <-requests.Done():
		}
	})
	return func() { stop() }
}
