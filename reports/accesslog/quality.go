package accesslog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// log settles what was read: order first, then the figures that need it.
func (r *reading) log() *Log {
	q := r.counted()
	for i := 1; i < len(r.entries); i++ {
		if r.entries[i].At < r.entries[i-1].At {
			q.BackwardSteps++
		}
	}
	if q.BackwardSteps > 0 {
		slices.SortStableFunc(r.entries, func(a, b Attempt) int { return cmp.Compare(a.At, b.At) })
	}
	r.times(&q)
	r.clients(&q)

	l := &Log{Scope: r.opt.Scope, Quality: q, Pools: len(r.pools), Names: make([]string, len(r.pools)), NotAttempts: []record.Count{}}
	for name, pool := range r.pools {
		l.Names[pool] = name
	}
	for i, n := range r.tally.not {
		l.NotAttempts = appendCount(l.NotAttempts, notAttempt(i).String(), n)
	}
	if r.format == record.FormatAPI {
		l.Attempts, l.Holds = r.timeline()
		l.Decided = r.decided
		return l
	}
	l.Attempts = slices.DeleteFunc(r.entries, func(a Attempt) bool { return a.outside })
	return l
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
func (r *reading) times(q *record.LogQuality) {
	first, last := r.entries[0].At, r.entries[len(r.entries)-1].At
	q.First, q.Last = time.UnixMicro(first).UTC(), time.UnixMicro(last).UTC()
	var tied, same, gap int64
	for i, e := range r.entries {
		if i > 0 {
			gap = max(gap, e.At-r.entries[i-1].At)
		}
		same++
		if i+1 < len(r.entries) && r.entries[i+1].At/1e6 == e.At/1e6 {
			continue
		}
		q.MostPerSecond = max(q.MostPerSecond, same)
		if same > 1 {
			tied += same
		}
		same = 0
	}
	q.TieShare = float64(tied) / float64(len(r.entries))
	q.LargestGap = float64(gap) / 1e6
}

// clients fills in how evenly the entries spread over clients.
func (r *reading) clients(q *record.LogQuality) {
	counts := make([]int64, len(r.pools))
	var sum, squares float64
	for _, e := range r.entries {
		if e.Pool != NoPool {
			counts[e.Pool]++
			sum++
		}
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
