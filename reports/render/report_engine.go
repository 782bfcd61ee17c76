package render

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render/chart"
)

// sharesDrawing is users affected, a bar for each plan and input.
func sharesDrawing(r record.Report) drawing {
	c := chart.Rows{Named: chart.Named{ID: "affected", Title: "Users who meet a 429, by plan"}, XLabel: "share of the plan’s users, with its 95 % interval"}
	s := sheet{Name: "users-affected", Title: c.Title, Columns: []column{
		{"plan", "plan", asText}, {"source", "by", asText}, {"users", "users", asCount}, {"n", "affected", asCount}, {"share", "share", asShare}, {"low", "from", asShare}, {"high", "to", asShare},
	}}
	for _, p := range r.Plans {
		for _, score := range p.Scores {
			u, name := score.UsersAffected, capital(Visible(p.Plan))
			if len(p.Scores) > 1 {
				name += ", " + Visible(basisWord(score))
			}
			said := fmt.Sprintf("%s of %s", grouped(u.N), grouped(score.Users))
			c.Bars = append(c.Bars, chart.Row{Name: name, Share: u.Share, Value: figure.Short(u.Share), Interval: &u.Share95, Title: name + ": " + said})
			s.Rows = append(s.Rows, []any{p.Plan, score.Source, score.Users, u.N, u.Share, u.Share95[0], u.Share95[1]})
		}
	}
	c.Desc = fmt.Sprintf("A bar and an interval for each of %s.", figure.Count(int64(len(c.Bars)), "row"))
	return drawing{Figure: c.Figure(), sheet: s}
}

// capacityBlocks is S6.
func capacityBlocks(r record.Report) []block {
	c := r.Capacity
	if c == nil {
		return []block{{Missing: []string{`the engine's capacity: "brimline load --find-capacity" against the deployment measures it, and its folder is an input of the report`}}}
	}
	b := block{Missing: c.Missing}
	if c.Holds != nil {
		b.Said = append(b.Said, fmt.Sprintf("The goal of the search held up to %s a second%s.", amount(*c.Holds), saturated(c)))
	}
	if c.Oversubscription != nil && c.Worst != nil {
		b.Said = append(b.Said, fmt.Sprintf("With every user at full rate at once it would be %s a second, %s times that: the oversubscription ratio.", amount(*c.Worst), amount(*c.Oversubscription)))
	}
	if c.Share != nil {
		b.Said = append(b.Said, fmt.Sprintf("The busiest 10 s under the targets take %s of it; the gate allows %s.", figure.Short(*c.Share), figure.Short(c.MostShare)))
	}
	b.Said = append(b.Said, c.Runs...)
	if len(c.Steps) > 0 {
		b.Figures = append(b.Figures, goodputDrawing(c), latencyDrawing(c))
	}
	peaks := sheet{Name: "peaks", Title: "Most admitted a second, by replay", Columns: []column{{"", "", asText}, {"s1", "over 1 s", asNumber}, {"s10", "over 10 s", asNumber}, {"s60", "over 60 s", asNumber}}}
	for _, row := range []struct {
		name string
		at   *record.ReportPeaks
	}{{"today", c.Today}, {"under the targets", c.Candidate}} {
		if row.at != nil {
			peaks.Rows = append(peaks.Rows, []any{row.name, row.at.Second, row.at.Ten, row.at.Minute})
		}
	}
	latency := sheet{Name: "latency", Title: "Latency by plan, without the 429s", Columns: []column{
		{"plan", "plan", asText}, {"source", "by", asText}, {"p50_us", "p50", asMicros}, {"p99_us", "p99", asMicros}, {"peak_p99_us", "p99 at peak", asMicros}, {"off_peak_p99_us", "p99 off peak", asMicros},
	}}
	for _, l := range c.Latency {
		row := []any{l.Plan, l.Source, l.All.P50US, l.All.P99US, nil, nil}
		if l.Peak != nil {
			row[4] = l.Peak.P99US
		}
		if l.OffPeak != nil {
			row[5] = l.OffPeak.P99US
		}
		latency.Rows = append(latency.Rows, row)
	}
	observed := sheet{Name: "observed", Title: "What the engine’s meters showed", Columns: []column{
		{"name", "meter", asText}, {"unit", "unit", asText}, {"p50", "p50", asNumber}, {"p95", "p95", asNumber}, {"max", "max", asNumber}, {"points", "points", asCount}, {"source", "by", asText},
	}}
	for _, o := range c.Observed {
		observed.Rows = append(observed.Rows, []any{o.Name, o.Unit, o.P50, o.P95, o.Max, o.Points, o.Source})
	}
	for _, s := range []sheet{peaks, latency, observed} {
		if len(s.Rows) > 0 {
			b.Tables = append(b.Tables, s)
		}
	}
	return []block{b}
}

func saturated(c *record.ReportCapacity) string {
	if c.Saturation == nil {
		return ""
	}
	return fmt.Sprintf("; goodput stops to follow the load at %s", amount(c.Saturation.At))
}

func capacityMarks(c *record.ReportCapacity) (marks []chart.Mark) {
	if c.Candidate != nil {
		marks = append(marks, chart.Mark{X: c.Candidate.Ten, Label: "peak at targets"})
	}
	if c.Holds != nil {
		marks = append(marks, chart.Mark{X: *c.Holds, Label: "goal holds"})
	}
	if c.Saturation != nil {
		marks = append(marks, chart.Mark{X: c.Saturation.At, Label: "saturation"})
	}
	return marks
}

func goodputDrawing(c *record.ReportCapacity) drawing {
	d := chart.Curves{
		Named: chart.Named{ID: "goodput", Title: "Goodput over offered load", Desc: "Goodput follows the offered load up to saturation. The table below has every value."}, XLabel: "offered, a second",
		X: chart.Amount, Y: chart.Amount, Marks: capacityMarks(c),
	}
	s := sheet{Name: "capacity-goodput", Title: d.Title, Columns: []column{{"offered", "offered, a second", asNumber}, {"goodput", "goodput, a second", asNumber}, {"verdict", "the goal", asText}}}
	line := chart.Line{Label: "goodput", Short: "good"}
	for _, step := range c.Steps {
		line.Points = append(line.Points, chart.Point{X: step.Offered, Y: step.Goodput, Filled: step.Verdict == record.CapacityHolds, Title: fmt.Sprintf("%s offered: %s", amount(step.Offered), amount(step.Goodput))})
		s.Rows = append(s.Rows, []any{step.Offered, step.Goodput, string(step.Verdict)})
	}
	d.Lines = []chart.Line{line}
	return drawing{Figure: d.Figure(), Note: "A filled point held the goal of the search.", sheet: s}
}

func latencyDrawing(c *record.ReportCapacity) drawing {
	d := chart.Curves{
		Named: chart.Named{ID: "latency", Title: "Latency over offered load", Desc: "Two rising lines, the median and the 99th percentile. The table below has every value."}, XLabel: "offered, a second",
		X: chart.Amount, Y: chart.Microsecs, Marks: capacityMarks(c),
	}
	s := sheet{Name: "capacity-latency", Title: d.Title, Columns: []column{{"offered", "offered, a second", asNumber}, {"p50_us", "p50", asMicros}, {"p99_us", "p99", asMicros}}}
	p50, p99 := chart.Line{Label: "p50"}, chart.Line{Label: "p99"}
	for _, step := range c.Steps {
		at := func(us int64) chart.Point {
			return chart.Point{X: step.Offered, Y: float64(max(1, us)), Filled: step.Verdict == record.CapacityHolds, Title: fmt.Sprintf("%s offered: %s", amount(step.Offered), figure.Micros(us))}
		}
		p50.Points, p99.Points = append(p50.Points, at(step.P50US)), append(p99.Points, at(step.P99US))
		s.Rows = append(s.Rows, []any{step.Offered, step.P50US, step.P99US})
	}
	d.Lines = []chart.Line{p99, p50}
	return drawing{Figure: d.Figure(), sheet: s}
}

// bindingBlocks is S7.
func bindingBlocks(r record.Report) []block {
	b := block{}
	s := sheet{Name: "binding", Columns: []column{
		{"plan", "plan", asText}, {"users", "users", asCount}, {"operations", "operations", asCount}, {"rate", "rate", asCount}, {"burst", "burst", asCount}, {"concurrency", "concurrency", asCount},
		{"engine", "engine", asCount}, {"none", "none", asCount}, {"hours_to_exhaust", "hours to exhaust the operations", asNumber},
	}}
	for _, p := range r.Plans {
		x := p.Binding
		if x == nil {
			continue
		}
		s.Rows = append(s.Rows, []any{p.Plan, x.Users, x.Operations, x.Rate, x.Burst, x.Concurrency, x.Engine, x.None, optional(x.HoursToExhaust)})
		if x.NotTheRateLimit && x.ExhaustedFirst != nil {
			b.Said = append(b.Said, fmt.Sprintf("%s: %s of the users who pay are out of operations before any 429 for the rate: the rate limit is not the constraint.", capital(p.Plan), figure.Short(*x.ExhaustedFirst)))
		}
		for _, m := range x.Missing {
			b.Missing = append(b.Missing, ofPlan(p, m))
		}
	}
	if len(s.Rows) == 0 {
		b.Missing = append(b.Missing, "which limit users meet first: it takes recorded traffic and today's allowance")
		return []block{b}
	}
	b.Tables = []sheet{s}
	return []block{b}
}

func ofPlan(p record.ReportPlan, text string) string { return capital(p.Plan) + ", " + text }

// fairnessBlocks is S8.
func fairnessBlocks(r record.Report) []block {
	f := r.Fairness
	if f == nil || len(f.Plans) == 0 {
		return []block{{Missing: []string{"ratios between plans: it takes every plan's allowance and recorded traffic, and a price list (--prices FILE)"}}}
	}
	s := sheet{Name: "fairness", Columns: []column{
		{"plan", "plan", asText}, {"allowance_ratio", "allowance", asNumber}, {"price_ratio", "price", asNumber}, {"demand_ratio", "p99 demand", asNumber}, {"jain", "evenness (Jain)", asNumber},
		{"engine_share", "engine time", asShare}, {"revenue_share", "revenue", asShare},
	}}
	for _, p := range f.Plans {
		s.Rows = append(s.Rows, []any{p.Plan, p.Allowance, optional(p.Price), optional(p.Demand), optional(p.Jain), optional(p.EngineShare), optional(p.RevenueShare)})
	}
	b := block{Tables: []sheet{s}, Missing: f.Missing}
	if f.FailAtFree != nil && f.FailAtNext != nil && f.UpgradePressure != nil {
		b.Said = append(b.Said, fmt.Sprintf("%s of the smallest plan meet a 429; in the next plan %s of them still would: an upgrade would cure %s of its users.",
			figure.Count(int64(*f.FailAtFree), "user"), grouped(*f.FailAtNext), figure.Short(*f.UpgradePressure)))
	}
	return []block{b}
}

// costBlocks is S9.
func costBlocks(r record.Report) []block {
	b := block{}
	s := sheet{Name: "cost", Columns: []column{
		{"plan", "plan", asText}, {"admitted_per_hour", "more admitted an hour", asNumber}, {"service_s", "seconds each", asNumber}, {"engine_s_per_hour", "engine seconds an hour", asNumber}, {"workers", "workers kept busy", asNumber},
	}}
	for _, p := range r.Plans {
		c := p.Cost
		if c == nil {
			continue
		}
		if c.AdmittedPerHour != nil || c.Workers != nil {
			s.Rows = append(s.Rows, []any{p.Plan, optional(c.AdmittedPerHour), optional(c.ServiceS), optional(c.EngineSPerHour), optional(c.Workers)})
		}
		for _, m := range c.Missing {
			b.Missing = append(b.Missing, ofPlan(p, m))
		}
	}
	if len(s.Rows) > 0 {
		b.Tables = []sheet{s}
	} else if len(b.Missing) == 0 {
		b.Said = []string{"No change is asked for, so none costs anything."}
	}
	return []block{b}
}
