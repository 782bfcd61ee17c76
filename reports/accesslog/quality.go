package accesslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// log settles what was read: order first, then the figures that need it.
func (r *reading) log(ctx context.Context) (*Log, error) {
	q := r.counted()
	q.BackwardSteps = r.backward
	l := &Log{Scope: r.opt.Scope, Pools: len(r.pools), Names: make([]string, len(r.pools)), NotAttempts: []record.Count{}}
	for name, pool := range r.pools {
		l.Names[pool] = name
	}
	for i, n := range r.tally.not {
		l.NotAttempts = appendCount(l.NotAttempts, notAttempt(i).String(), n)
	}
	if r.format == record.FormatAPI {
		if err := r.timeline(); err != nil {
			return nil, err
		}
		l.Decided, l.Durations = r.decided, true
	}
	var err error
	if l.Attempts, err = built(&r.attempts); err != nil {
		return nil, err
	}
	every := l.Attempts
	if r.apart() {
		if every, err = built(&r.every); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		defer every.Close()
	}
	if err := times(ctx, every, &q); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	r.clients(&q)
	l.Quality = q
	return l, nil
}

// built is what a builder took, which then holds nothing any more.
func built(b *timeline.Builder) (*timeline.Timeline, error) {
	t, err := b.Timeline()
	*b = timeline.Builder{}
	return t, err
}

// counted is what was counted line by line.
func (r *reading) counted() record.LogQuality {
	t := &r.tally
	q := record.LogQuality{
		Format: r.format, Files: r.files, Lines: t.lines, Entries: t.entries, Malformed: t.malformed, Extra: t.shapes[extra],
		Lists: t.lists, Named: t.named, ResolutionMicros: 1,
		Dropped: []record.Count{}, Statuses: []record.Count{}, Methods: []record.Count{},
	}
	if r.format != record.FormatAPI {
		q.ResolutionMicros = 1e6
		if t.shapes[combined]+t.shapes[extra] > t.shapes[common] {
			q.Format = record.FormatCombined
		}
	}
	for i, n := range t.dropped {
		q.Dropped = appendCount(q.Dropped, reason(i).String(), n)
	}
	for i, n := range t.statuses {
		name := fmt.Sprintf("%03d", i)
		if i == 0 {
			name = "none"
		}
		q.Statuses = appendCount(q.Statuses, name, n)
	}
	for name, n := range t.methods {
		q.Methods = appendCount(q.Methods, name, n)
	}
	for _, list := range [][]record.Count{q.Statuses, q.Methods} {
		slices.SortFunc(list, func(a, b record.Count) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
		})
	}
	q.ConstantMinute = float64(slices.Max(t.minutes[:])) / float64(t.entries)
	return q
}

// times fills in what needs the entries in order of time.
func times(ctx context.Context, entries *timeline.Timeline, q *record.LogQuality) error {
	q.First, q.Last = time.UnixMicro(entries.First()).UTC(), time.UnixMicro(entries.Last()).UTC()
	var tied, same, gap int64
	last := entries.First()
	second := func() {
		q.MostPerSecond = max(q.MostPerSecond, same)
		if same > 1 {
			tied += same
		}
		same = 0
	}
	for batch, err := range entries.Batches(ctx) {
		if err != nil {
			return err
		}
		for _, e := range batch {
			if e.At != last {
				gap = max(gap, e.At-last)
				if e.At/1e6 != last/1e6 {
					second()
				}
				last = e.At
			}
			same++
		}
	}
	second()
	q.TieShare = float64(tied) / float64(entries.Len())
	q.LargestGap = float64(gap) / 1e6
	return nil
}

// clients fills in how evenly the entries spread over clients.
func (r *reading) clients(q *record.LogQuality) {
	counts := r.made
	q.Clients = len(counts)
	if len(counts) == 0 {
		return
	}
	var sum, squares float64
	for _, n := range counts {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	q.EntriesPerClient = sum / float64(len(counts))
	q.EffectiveClients = sum * sum / squares
	q.BusiestEntries = slices.Max(counts)
}

func appendCount(list []record.Count, name string, n int64) []record.Count {
	if n == 0 {
		return list
	}
	return append(list, record.Count{Name: name, N: n})
}
