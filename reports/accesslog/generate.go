package accesslog

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Generate writes an access log in Combined format as a billing API might leave
// it: 412 clients over a week, a few of which make most of the requests, people
// at office hours, jobs that fire on the hour, and one import that runs all
// night. No request was refused, so that it shows what limits would do. The same
// seed gives the same log.
func Generate(w io.Writer, seed uint64) error {
	g := &generator{rand: rand.New(rand.NewPCG(seed, 0)), start: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)}
	for i := range people {
		g.person(i)
	}
	for i := range jobs {
		g.job(people + i)
	}
	for i := range pollers {
		g.poller(people + jobs + i)
	}
	g.importer(people + jobs + pollers)
	slices.SortStableFunc(g.requests, func(a, b request) int { return a.second - b.second })
	out := bufio.NewWriter(w)
	for _, r := range g.requests {
		g.write(out, r)
	}
	return out.Flush()
}

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
	days   = 7

	people  = 384
	jobs    = 18
	pollers = 9
)

type generator struct {
	rand     *rand.Rand
	start    time.Time
	requests []request
}

type request struct {
	second, client int
	agent          string
}

func (g *generator) add(second, client int, agent string) {
	if second < days*day {
		g.requests = append(g.requests, request{second, client, agent})
	}
}

// heavy is a number of at least least whose tail falls off as slowly as 1/x, up
// to most.
func (g *generator) heavy(least, most int) int { return min(most, least*1000/(1+g.rand.IntN(1000))) }

// person works in sessions at office hours, a request every few seconds.
func (g *generator) person(client int) {
	sessions := g.heavy(1, 40)
	for range sessions {
		at := g.rand.IntN(5)*day + 8*hour + g.rand.IntN(10*hour)
		for range 1 + g.heavy(2, 30) {
			g.add(at, client, "invoice-ui/4.2")
			at += 2 + g.rand.IntN(20)
		}
	}
}

// job fires on the hour, or every few hours, and sends its batch at once. One in
// six has a large batch.
func (g *generator) job(client int) {
	every, batch := (1+g.rand.IntN(6))*hour, g.heavy(4, 20)
	if client%6 == 0 {
		batch = 25 + g.rand.IntN(40)
	}
	for at := 0; at < days*day; at += every {
		second := at + g.rand.IntN(3)
		for i := range batch {
			g.add(second+i/5, client, "cron-billing/1.0")
		}
	}
}

// poller asks at a steady pace day and night.
func (g *generator) poller(client int) {
	pace := 60 + g.rand.IntN(540)
	for at := g.rand.IntN(pace); at < days*day; at += pace {
		g.add(at, client, "python-requests/2.32")
	}
}

// importer sends some forty requests a minute for hours, every night.
func (g *generator) importer(client int) {
	for night := range days {
		at := night*day + 1*hour + g.rand.IntN(hour)
		for range 1500 {
			g.add(at, client, "ledger-import/0.9")
			at += 1 + g.rand.IntN(3)/2 + g.rand.IntN(2)
		}
	}
}

func (g *generator) write(w io.Writer, r request) {
	status, size := 200, 400+g.rand.IntN(900)
	switch n := g.rand.IntN(100); {
	case n < 4:
		status, size = 422, 180
	case n < 5:
		status, size = 404, 120
	}
	// Addresses of 198.18.0.0/15 are set apart for tests.
	fmt.Fprintf(w, "198.18.%d.%d - - [%s] \"POST /v1/invoice/calculate HTTP/1.1\" %d %d \"-\" %q\n",
		r.client/200, 1+r.client%200, g.start.Add(time.Duration(r.second)*time.Second).Format("02/Jan/2006:15:04:05 +0000"),
		status, size, r.agent)
}
