package threshold

import "github.com/invoicespec/brimline/reports/record"

// subject is something that is counted.
type subject struct {
	word     string
	of       string           // what its rate is a share of; empty: it has none
	flows    bool             // it is also told per second
	outcomes []record.Outcome // whose latencies are its own; none: it has none
	tally    func(record.RunPlan) tally
}

// tally is a count and what it rests on.
type tally struct {
	n, of   int64
	samples int64 // observations that could have counted
	blind   bool  // there were observations, and none of them could be told
}

func (t tally) plus(o tally) tally {
	return tally{t.n + o.n, t.of + o.of, t.samples + o.samples, t.blind || o.blind}
}

// Subjects are the words for what is counted.
func Subjects() []string {
	var words []string
	for _, s := range subjects() {
		words = append(words, s.word)
	}
	return words
}

func subjectOf(word string) subject {
	for _, s := range subjects() {
		if s.word == word {
			return s
		}
	}
	return subject{}
}

func subjects() []subject {
	planned := func(n int64, p record.RunPlan) tally { return tally{n: n, of: p.Planned, samples: p.Planned} }
	offered := func(n int64, p record.RunPlan) tally { return tally{n: n, of: p.Offered, samples: p.Offered} }
	sent := func(n int64, p record.RunPlan) tally { return tally{n: n, of: p.Sent, samples: p.Sent} }
	slot := func(word string, n func(record.RunPlan) int64) subject {
		return subject{word: word, of: "offered", flows: true, tally: func(p record.RunPlan) tally { return offered(n(p), p) }}
	}
	answer := func(word string, n func(record.RunPlan) int64, outcomes ...record.Outcome) subject {
		return subject{word: word, of: "sent", flows: true, outcomes: outcomes, tally: func(p record.RunPlan) tally { return sent(n(p), p) }}
	}
	return []subject{
		answer("admitted", func(p record.RunPlan) int64 { return p.Admitted }, record.OutcomeAdmitted),
		answer("rejected", rejected, record.OutcomeRejectedRate, record.OutcomeRejectedConcurrency, record.OutcomeRejectedAnonymous),
		answer("rejected-rate", func(p record.RunPlan) int64 { return p.RejectedRate }, record.OutcomeRejectedRate),
		answer("rejected-concurrency", func(p record.RunPlan) int64 { return p.RejectedConcurrency }, record.OutcomeRejectedConcurrency),
		answer("anonymous", func(p record.RunPlan) int64 { return p.RejectedAnonymous }, record.OutcomeRejectedAnonymous),
		answer("unauthenticated", func(p record.RunPlan) int64 { return p.Unauthenticated }, record.OutcomeUnauthenticated),
		answer("config-unavailable", func(p record.RunPlan) int64 { return p.ConfigUnavailable }, record.OutcomeConfigUnavailable),
		answer("other-status", func(p record.RunPlan) int64 { return total(p.OtherStatuses) }, record.OutcomeOtherStatus),
		answer("unanswered", func(p record.RunPlan) int64 { return total(p.TransportErrors) }, record.OutcomeTransportError),
		answer("errors", func(p record.RunPlan) int64 { return p.Sent - p.Admitted - rejected(p) },
			record.OutcomeUnauthenticated, record.OutcomeConfigUnavailable, record.OutcomeOtherStatus, record.OutcomeTransportError),

		{word: "offered", flows: true, tally: func(p record.RunPlan) tally { return planned(p.Offered, p) }},
		slot("sent", func(p record.RunPlan) int64 { return p.Sent }),
		slot("dropped", func(p record.RunPlan) int64 { return p.Dropped }),
		slot("dropped-busy", func(p record.RunPlan) int64 { return p.DroppedBusy }),
		slot("held-off", func(p record.RunPlan) int64 { return p.HeldOff }),
		{word: "unsent", of: "planned", tally: func(p record.RunPlan) tally { return planned(p.Unsent, p) }},

		{word: "undue-429", of: "429s", tally: func(p record.RunPlan) tally {
			return judged(p, p.RateJudged.Undue+p.ConcurrencyJudged.Undue)
		}},
		{word: "undecided-429", of: "429s", tally: func(p record.RunPlan) tally {
			t := judged(p, p.RateJudged.Undecided+p.ConcurrencyJudged.Undecided)
			t.blind = false
			return t
		}},
		{word: "missing-429", of: "passed", tally: func(p record.RunPlan) tally {
			passed := p.Admitted + p.RejectedConcurrency
			return tally{n: p.Missing, of: passed, samples: passed}
		}},
		{word: "users-affected", of: "users", tally: func(p record.RunPlan) tally {
			t := tally{n: p.UsersAffected, of: p.Users}
			if p.Sent > 0 {
				t.samples = p.Users
			}
			return t
		}},
	}
}

// rejected is every 429.
func rejected(p record.RunPlan) int64 {
	unnamed, anonymous := p.Unjudged()
	return p.RejectedRate + p.RejectedConcurrency + unnamed + anonymous
}

// judged is a count of 429s by what they were. Where none came, every request
// was a chance for one; where none that came could be judged, nothing is told.
func judged(p record.RunPlan, n int64) tally {
	sure := p.RateJudged.Plus(p.ConcurrencyJudged)
	all := rejected(p)
	return tally{n: n, of: all, samples: p.Sent, blind: all > 0 && sure.Due+sure.Undue == 0}
}

func total(list []record.Count) (n int64) {
	for _, c := range list {
		n += c.N
	}
	return n
}
