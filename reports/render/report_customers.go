package render

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// noticeBlocks is S10.
func noticeBlocks(r record.Report) (blocks []block) {
	for _, p := range r.Plans {
		n := p.Notice
		if n == nil || !n.Needed && len(n.Missing) == 0 {
			continue
		}
		b := block{Plan: p.Plan, Missing: n.Missing}
		if n.Needed {
			text := fmt.Sprintf("%s of notice", figure.Count(int64(n.Days), "day"))
			if n.Earliest != "" {
				text += "; the earliest day is " + n.Earliest
			}
			b.Said = append(b.Said, text+".")
			if n.First != "" {
				b.Said = append(b.Said, capital(n.First))
			}
			for _, e := range n.Exempt {
				b.Said = append(b.Said, "Exempt: "+e)
			}
			s := sheet{Name: "hit", Title: "Whom it would newly reject", Columns: []column{{"user", "user", asText}, {"rejected", "rejected", asCount}, {"share", "of their attempts", asShare}, {"boundary", "billing boundary", asText}}}
			for _, h := range n.Hit {
				boundary := any(h.Boundary)
				if h.Boundary == "" {
					boundary = nil
				}
				s.Rows = append(s.Rows, []any{h.User, h.Rejected, h.Share, boundary})
			}
			if len(s.Rows) > 0 {
				b.Tables = []sheet{s}
			} else {
				b.Said = append(b.Said, "Nobody would be newly rejected.")
			}
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		blocks = []block{{Said: []string{"No reduction of a paid plan is looked at: nobody has to be told anything."}}}
	}
	return blocks
}

// supportBlocks is S11.
func supportBlocks(r record.Report) []block {
	x := r.Support
	if x == nil {
		return []block{{Missing: []string{"reports of customers: --tickets FILE gives them, and an empty one says that there are none"}}}
	}
	b := block{Missing: x.Missing}
	if x.Given && len(x.Tickets) == 0 {
		b.Said = []string{"None: somebody looked, and there is no ticket."}
	}
	s := sheet{Name: "tickets", Columns: []column{
		{"id", "ticket", asText}, {"user", "user", asText}, {"plan", "plan", asText}, {"date", "date", asText}, {"symptom", "what they said", asText},
		{"attempts", "attempts", asCount}, {"rejected", "rejected", asCount}, {"shows", "what the replay shows", asText},
	}}
	for _, t := range x.Tickets {
		user := any(t.User)
		if t.User == "" {
			user = nil
		}
		s.Rows = append(s.Rows, []any{t.ID, user, t.Plan, t.Date, t.Symptom, t.Attempts, t.Rejected, t.Shows})
	}
	if len(s.Rows) > 0 {
		b.Tables = []sheet{s}
	}
	return []block{b}
}

// againstBlocks is S12, in the layout of benchstat.
func againstBlocks(r record.Report) []block {
	a := r.Against
	if a == nil {
		return []block{{Missing: []string{"an earlier report to compare with: --against report.json names one"}}}
	}
	s := sheet{Name: "against", Columns: []column{
		{"plan", "plan", asText}, {"figure", "figure", asText}, {"old", "old", asText}, {"new", "new", asText}, {"delta", "delta", asText}, {"p", "p and n", asText},
	}}
	for _, row := range a.Rows {
		delta, p := "~", "p=n/a"
		if row.Delta != nil {
			delta = fmt.Sprintf("%+.2f %%", 100**row.Delta)
		}
		if row.P != nil {
			p = fmt.Sprintf("p=%.3f", *row.P)
		}
		s.Rows = append(s.Rows, []any{row.Plan, row.Figure, inUnit(row.Old, row.Unit), inUnit(row.New, row.Unit), delta, fmt.Sprintf("%s n=%d+%d", p, row.NOld, row.NNew)})
	}
	b := block{Said: a.Said}
	if len(s.Rows) > 0 {
		b.Tables = []sheet{s}
	} else {
		b.Missing = []string{"a figure that both reports have"}
	}
	return []block{b}
}

func inUnit(v *float64, unit string) string {
	switch {
	case v == nil:
		return "–"
	case unit == "share" || unit == "%":
		return figure.Percent(*v)
	}
	return strings.TrimSpace(amount(*v) + " " + unit)
}

// migrationBlocks is S14.
func migrationBlocks(r record.Report) []block {
	m := r.Migration
	if m == nil {
		return []block{{Missing: []string{"limiter latency beside engine latency, lock and CPU pressure, saturation, growth, availability and planned replicas: a Prometheus server that scrapes the engine has the first of them"}}}
	}
	word := map[record.Migration]string{record.MigrationStay: "Stay on local storage.", record.MigrationMigrate: "Migrate to distributed storage.", record.MigrationUntold: "Not enough evidence."}[m.Verdict]
	s := sheet{Name: "migration", Columns: []column{{"name", "signal", asText}, {"value", "measured", asText}, {"says", "says", asText}, {"missing", "missing", asText}}}
	for _, x := range m.Signals {
		row := []any{x.Name, nil, nil, nil}
		for i, text := range []string{x.Value, x.Says, x.Missing} {
			if text != "" {
				row[i+1] = text
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return []block{{Said: []string{strings.TrimSpace(word + " " + m.Why)}, Tables: []sheet{s}}}
}

// basisWord is how a score was come by, and under what.
func basisWord(s record.ReportScore) string {
	basis := map[record.Basis]string{record.BasisRecorded: "as recorded", record.BasisReplayed: "replayed", record.BasisMeasured: "load run"}[s.Basis]
	if a := s.Allowance; a != nil {
		basis += " at " + slashed(a.RequestsPerMinute, a.Burst)
	}
	if s.Override {
		basis += ", own allowances"
	}
	return basis
}

// needsSheet is the burst that users need at each rate.
func needsSheet(w *record.ReportWhatIf) sheet {
	s := sheet{Name: "burst-needed", Title: "The burst that " + poolNoun(w.Pool) + "s need to meet no 429 for the rate", Columns: []column{
		{"rate", "a minute", asCount}, {"p50", "half", asNumber}, {"p90", "90 %", asNumber}, {"p95", "95 %", asNumber}, {"p99", "99 %", asNumber}, {"max", "all", asNumber},
	}}
	for _, n := range w.BurstNeeded {
		s.Rows = append(s.Rows, []any{n.Rate, n.P50, n.P90, n.P95, n.P99, n.Max})
	}
	return s
}

// closedSheet is clients that obey Retry-After.
func closedSheet(w *record.ReportWhatIf) sheet {
	s := sheet{Name: "closed", Title: "If every client waited for Retry-After and sent again", Columns: []column{
		{"allowance", "allowance", asText}, {"users_affected", poolNoun(w.Pool) + "s affected", asCount}, {"rejected", "rejected", asCount}, {"sendings", "of sendings", asCount},
		{"delay_p50", "delay p50, s", asNumber}, {"delay_p95", "p95, s", asNumber}, {"delay_p99", "p99, s", asNumber}, {"delay_max", "max, s", asNumber}, {"unserved", "unserved at the end", asCount},
	}}
	for _, c := range w.Closed {
		name := slashed(c.Rate, c.Burst)
		if c.Concurrency > 0 {
			name += "/" + strconv.FormatInt(c.Concurrency, 10)
		}
		s.Rows = append(s.Rows, []any{name, c.UsersAffected, c.Rejected, c.Sendings, c.Delay.P50, c.Delay.P95, c.Delay.P99, c.Delay.Max, c.Unserved})
	}
	return s
}
