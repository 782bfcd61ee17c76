package replay

import (
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/record"
)

// grid is the allowances that one plan's attempts are decided under. What shares
// a rate and a burst shares a bucket: since a request that finds every place
// taken has spent its token, the cap does not matter to it.
type grid struct {
	settings []setting
	buckets  []bucketOf
	rates    []int64
	closed   []limit
	cells    []int // into settings, by what was asked
	each     []int // likewise
}

// setting is one allowance.
type setting struct {
	limit
	bucket int
	place  int // among the capped ones
}

// bucketOf is a rate and a burst.
type bucketOf struct {
	plain  policy.Allowance // without a cap that could bind
	capped []setting
}

func newGrid(ask Ask) (*grid, error) {
	g := &grid{rates: ask.Rates}
	for _, rate := range ask.Rates {
		if _, err := policy.NewAllowance(rate, 1, 1); err != nil {
			return nil, err
		}
	}
	var err error
	if g.cells, err = g.all(ask.Cells); err != nil {
		return nil, err
	}
	if g.each, err = g.all(ask.Each); err != nil {
		return nil, err
	}
	for _, a := range ask.ClosedLoop {
		l, err := newLimit(a)
		if err != nil {
			return nil, err
		}
		g.closed = append(g.closed, l)
	}
	place := 0
	for i := range g.settings {
		s := &g.settings[i]
		if s.capped {
			s.place = place
			place++
			g.buckets[s.bucket].capped = append(g.buckets[s.bucket].capped, *s)
		}
	}
	return g, nil
}

func (g *grid) all(list []record.ReportAllowance) (places []int, err error) {
	for _, a := range list {
		l, err := newLimit(a)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(g.settings, func(s setting) bool { return s.limit == l })
		if at < 0 {
			at = len(g.settings)
			g.settings = append(g.settings, setting{limit: l, bucket: g.bucket(l)})
		}
		places = append(places, at)
	}
	return places, nil
}

func (g *grid) bucket(l limit) int {
	at := slices.IndexFunc(g.buckets, func(b bucketOf) bool {
		return b.plain.RequestsPerMinute() == l.RequestsPerMinute() && b.plain.Burst() == l.Burst()
	})
	if at < 0 {
		at = len(g.buckets)
		plain, _ := policy.NewAllowance(l.RequestsPerMinute(), l.Burst(), policy.Concurrency.Max()) // in range as l is
		g.buckets = append(g.buckets, bucketOf{plain: plain})
	}
	return at
}

// caps is how many settings have a cap.
func (g *grid) caps() (n int) {
	for _, s := range g.settings {
		if s.capped {
			n++
		}
	}
	return n
}

// bytes is about how much is kept of one user.
func (g *grid) bytes() int {
	return 200 + 12*len(g.buckets) + 40*g.caps() + 16*len(g.rates) + 200*len(g.closed)
}

func (t Traffic) grids(asks []Ask) ([]*grid, error) {
	if len(asks) != len(t.Roster.Plans) {
		return nil, fmt.Errorf("%d questions for %d plans", len(asks), len(t.Roster.Plans))
	}
	grids := make([]*grid, len(asks))
	for i, ask := range asks {
		var err error
		if grids[i], err = newGrid(ask); err != nil {
			return nil, fmt.Errorf("plan %q: %w", t.Roster.Plans[i].Name, err)
		}
	}
	return grids, nil
}
