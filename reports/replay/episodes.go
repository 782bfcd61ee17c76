package replay

import "github.com/invoicespec/brimline/reports/record"

// episode is a run of one user's rejections, each less than twice its Retry-After
// before the next.
type episode struct {
	first, last int64
	wait        int64 // the Retry-After of the latest
	n           int64 // 0: none
	recovered   bool  // something was admitted since its first
}

// episodes are those that have ended.
type episodes struct {
	n, unfinished                int64
	rejections, seconds, recover spread
}

func newEpisodes() episodes {
	return episodes{rejections: spread{}, seconds: spread{}, recover: spread{}}
}

// rejected is a rejection with its Retry-After.
func (e *episode) rejected(at, wait int64, all *episodes) {
	if e.n > 0 && since(e.last, at) >= 2*e.wait {
		e.end(all)
	}
	if e.n == 0 {
		*e = episode{first: at}
	}
	e.n++
	e.last, e.wait = at, wait
}

// admitted is an admission; the first one after an episode began is its recovery.
func (e *episode) admitted(at int64, all *episodes) {
	if e.n > 0 && !e.recovered {
		e.recovered = true
		all.recover.add(thousandths(since(e.first, at)))
	}
}

// end closes the episode, if there is one. Whoever is never admitted after it in
// the log has not recovered.
func (e *episode) end(all *episodes) {
	if e.n == 0 {
		return
	}
	all.n++
	all.rejections.add(e.n)
	all.seconds.add(thousandths(since(e.first, e.last)))
	if !e.recovered {
		all.unfinished++
	}
	*e = episode{}
}

func (s *episodes) merge(o *episodes) {
	s.n += o.n
	s.unfinished += o.unfinished
	s.rejections.merge(o.rejections)
	s.seconds.merge(o.seconds)
	s.recover.merge(o.recover)
}

func (s *episodes) record() record.ReportEpisode {
	return record.ReportEpisode{
		N: s.n, Unfinished: s.unfinished,
		Rejections: s.rejections.quart(1), Seconds: s.seconds.quart(1_000), Recovery: s.recover.quart(1_000),
	}
}
