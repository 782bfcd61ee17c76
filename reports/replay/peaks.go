package replay

import (
	"context"
	"math"
	"sync"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reports/record"
)

// Peaks is the most that is admitted of all plans together under an allowance for
// each, in the order of the roster, over stretches of w whole seconds:
//
//	max over s of (admitted in the seconds s to s+w-1) / w,  w = 1, 10, 60
//
// Attempts of users whose plan has none, nil, are all admitted. Overrides hold.
func (t Traffic) Peaks(ctx context.Context, allowances []*record.ReportAllowance) (record.ReportPeaks, error) {
	limits, err := t.limits(allowances)
	if err != nil {
		return record.ReportPeaks{}, err
	}
	n := workers()
	p := &peaks{open: map[int64]*[pageLen]int64{}, reached: make([]int64, n)}
	take, counters := make([]taker, n), make([]*admissions, n)
	for w := range take {
		p.reached[w] = math.MinInt64
		counters[w] = &admissions{peaks: p, worker: w}
		take[w] = newDesk(t, limits, counters[w]).take
	}
	if _, err := t.pass(ctx, everybody, take); err != nil {
		return record.ReportPeaks{}, err
	}
	for _, c := range counters {
		c.turn(math.MaxInt64)
	}
	return record.ReportPeaks{
		Second: float64(p.most[0]) / 1, Ten: float64(p.most[1]) / 10, Minute: float64(p.most[2]) / 60,
	}, nil
}

// pageLen is the seconds of a page.
const pageLen = 3600

// peaks joins what the workers admitted, page by page, as soon as all of them are
// beyond it.
type peaks struct {
	mu      sync.Mutex
	open    map[int64]*[pageLen]int64 // by hour since 1970
	reached []int64                   // by worker: the hour it is in
	ring    [60]int64                 // of the latest minute, by second
	last    int64                     // the latest second in it
	begun   bool
	sums    [3]int64
	most    [3]int64
}

// admissions counts what one worker's users were admitted, second by second.
type admissions struct {
	peaks  *peaks
	worker int
	hour   int64
	begun  bool
	page   [pageLen]int64
}

func (c *admissions) take(v *visit) {
	if v.decision.Outcome != admission.Admitted && !v.limit.IsZero() {
		return
	}
	s := floorDiv(v.At, second)
	hour := floorDiv(s, pageLen)
	if !c.begun || hour != c.hour {
		c.turn(hour)
	}
	c.page[s-hour*pageLen]++
}

// turn hands in the page and begins that of another hour.
func (c *admissions) turn(hour int64) {
	c.peaks.hand(c.worker, c.hour, hour, c.begun, &c.page)
	c.hour, c.begun, c.page = hour, true, [pageLen]int64{}
}

func (p *peaks) hand(worker int, hour, next int64, begun bool, page *[pageLen]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begun {
		open := p.open[hour]
		if open == nil {
			open = new([pageLen]int64)
			p.open[hour] = open
		}
		for i, n := range page {
			open[i] += n
		}
	}
	p.reached[worker] = next
	least := int64(math.MaxInt64)
	for _, r := range p.reached {
		least = min(least, r)
	}
	for _, h := range sortedKeys(p.open) {
		if h >= least {
			return
		}
		for i, n := range p.open[h] {
			if n > 0 {
				p.add(h*pageLen+int64(i), n)
			}
		}
		delete(p.open, h)
	}
}

// add is the admissions of one second, later than those before.
func (p *peaks) add(s, n int64) {
	widths := [3]int64{1, 10, 60}
	if !p.begun || s-p.last >= 60 {
		p.ring, p.sums, p.begun = [60]int64{}, [3]int64{}, true
	} else {
		for p.last < s {
			p.last++
			for i, w := range widths {
				p.sums[i] -= p.ring[place(p.last-w)]
			}
			p.ring[place(p.last)] = 0
		}
	}
	p.last = s
	p.ring[place(s)] = n
	for i := range widths {
		p.sums[i] += n
		p.most[i] = max(p.most[i], p.sums[i])
	}
}

// place is where a second lies in the ring.
func place(s int64) int64 { return s - floorDiv(s, 60)*60 }
