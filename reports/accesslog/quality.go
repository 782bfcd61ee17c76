package accesslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// log settles what was read: order first, then the figures that need it.
func (r *reading) log(ctx context.Context) (*Log, error) {
	if r.format == record.FormatAPI {
		if err := r.timeline(); err != nil {
			return nil, errors.Join(err, r.attempts.Close())
		}
	}
	q := r.counted()
	q.BackwardSteps = r.backward
	attempts, err := r.attempts.Timeline()
	if err != nil {
		return nil, err
	}
	if err := times(ctx, attempts, &q); err != nil {
		return nil, errors.Join(err, attempts.Close())
	}
	r.clients(&q)
	l := &Log{
		Scope: r.opt.Scope, Quality: q, Pools: len(r.names), Names: r.names, Attempts: attempts, NotAttempts: []record.Count{},
		Durations: q.Durations >= nearlyAll && q.ResolutionMicros <= 1e3, Decided: r.api.decided,
	}
	for i, n := range r.tally.not {
		l.NotAttempts = appendCount(l.NotAttempts, notAttempt(i).String(), n)
	}
	if r.format == record.FormatAPI && l.Decided == nil {
		l.Decided = []Decided{}
	}
	return l, nil
}

// nearlyAll is the share of entries whose durations are known from which on it is
// known what was in flight.
const nearlyAll = 0.99

// counted is what was counted line by line.
func (r *reading) counted() record.LogQuality {
	t := &r.tally
	q := record.LogQuality{
		Format: r.format, Files: r.files, Lines: t.lines, Entries: t.entries, Malformed: t.malformed, Extra: t.shapes[extra],
		Lists: t.lists, Named: t.named, ResolutionMicros: t.finest, Stamp: r.stamp, Examples: append([]record.LogExample{}, r.examples...),
		Dropped: []record.Count{}, Statuses: []record.Count{}, Methods: []record.Count{}, Zones: []record.Count{},
		Durations: float64(t.held) / float64(t.entries),
	}
	if q.ResolutionMicros == 0 {
		q.ResolutionMicros = 1e6
	}
	if r.stamp == record.StampFinished && t.held > 0 {
		q.Stamp = record.StampArrival
	}
	if r.format == record.FormatAPI {
		q.Stamp = record.StampReceived
	}
	if r.format == record.FormatCommon && t.shapes[combined]+t.shapes[extra] > t.shapes[common] {
		q.Format = record.FormatCombined
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
	for i, name := range methodNames() {
		q.Methods = appendCount(q.Methods, name, t.methods[i])
	}
	for zone, n := range r.zones {
		q.Zones = appendCount(q.Zones, zoneName(zone), n)
	}
	for _, list := range [][]record.Count{q.Statuses, q.Methods, q.Zones} {
		slices.SortFunc(list, func(a, b record.Count) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name))
		})
	}
	q.ConstantMinute = float64(slices.Max(t.minutes[:])) / float64(t.entries)
	q.ConstantSecond = float64(slices.Max(t.seconds[:])) / float64(t.entries)
	return q
}

// times fills in what needs the attempts in order of time.
func times(ctx context.Context, attempts *timeline.Timeline, q *record.LogQuality) error {
	if attempts.Len() == 0 {
		return nil
	}
	q.First, q.Last = time.UnixMicro(attempts.First()).UTC(), time.UnixMicro(attempts.Last()).UTC()
	var tied, same, gap int64
	last, second := attempts.First(), int64(math.MinInt64)
	end := func() {
		q.MostPerSecond = max(q.MostPerSecond, same)
		if same > 1 {
			tied += same
		}
	}
	for batch, err := range attempts.Batches(ctx) {
		if err != nil {
			return err
		}
		for _, a := range batch {
			gap, last = max(gap, a.At-last), a.At
			if s := floor(a.At); s != second {
				end()
				same, second = 0, s
			}
			same++
		}
	}
	end()
	q.TieShare = float64(tied) / float64(attempts.Len())
	q.LargestGap = float64(gap) / 1e6
	return nil
}

// floor is the whole second of an instant.
func floor(at int64) int64 {
	s := at / 1e6
	if at%1e6 < 0 {
		s--
	}
	return s
}

// clients fills in how evenly the entries spread over clients.
func (r *reading) clients(q *record.LogQuality) {
	counts := r.counts
	var sum, squares float64
	for _, n := range counts {
		sum += float64(n)
	}
	q.Clients = len(counts)
	if len(counts) == 0 {
		return
	}
	for _, n := range counts {
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
