package render

import (
	"fmt"
	"strconv"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render/chart"
)

// named is what a plan's chart is called, and its sheet.
func named(kind, title string, p record.ReportPlan, place int) (chart.Named, sheet) {
	title = capital(Visible(p.Plan)) + ": " + title
	return chart.Named{ID: fmt.Sprintf("%s-%d", kind, place+1), Title: title},
		sheet{Name: kind + "-" + fileWord(place, p.Plan), Title: title}
}

// utilizationBlock is S3.
func utilizationBlock(_ record.Report, p record.ReportPlan, place int) (b block) {
	u := p.Utilization
	if u == nil {
		return block{Missing: []string{"how much of the allowance is used: it takes recorded traffic and today's allowance"}}
	}
	b.Missing = u.Missing
	c := chart.Curves{XLabel: "times what is allowed", X: chart.Multiple, Y: chart.Share, Zone: &chart.Zone{From: 0.8, To: 1}}
	var s sheet
	c.Named, s = named("utilization", "share of users at or below each use of the allowance", p, place)
	s.Columns = []column{{"figure", "of", asText}, {"x", "times what is allowed", asNumber}, {"y", "users at or below", asShare}}
	quantiles := sheet{Name: "quantiles", Columns: []column{
		{"figure", "most used, of", asText}, {"p50", "p50", asNumber}, {"p90", "p90", asNumber}, {"p95", "p95", asNumber}, {"p99", "p99", asNumber}, {"max", "max", asNumber},
		{"near", "users at 0.8 and more", asShare}, {"generous", "users at 0.25 and less", asShare},
	}}
	for _, f := range []struct {
		name, short string
		e           *record.ReportECDF
	}{{"burst", "burst", u.Burst}, {"rate, over 60 s", "60 s", u.Rate}, {"rate, over an hour", "hour", u.Sustained}, {"concurrency", "conc.", u.Concurrency}} {
		if f.e == nil {
			continue
		}
		line := chart.Line{Label: f.name, Short: f.short, Steps: true}
		for _, point := range f.e.Points {
			line.Points = append(line.Points, chart.Point{X: point.X, Y: point.Y, Filled: true,
				Title: fmt.Sprintf("%s of users at %s of the %s or less", figure.Percent(point.Y), amount(point.X), f.name)})
			s.Rows = append(s.Rows, []any{f.name, point.X, point.Y})
		}
		c.Lines = append(c.Lines, line)
		quantiles.Rows = append(quantiles.Rows, []any{f.name, f.e.P50, f.e.P90, f.e.P95, f.e.P99, f.e.Max, f.e.Near, f.e.Generous})
		b.Said = append(b.Said, fmt.Sprintf("%s: %s of users take 80 %% of it and more at some time, %s never more than a quarter.", capital(f.name), figure.Short(f.e.Near), figure.Short(f.e.Generous)))
	}
	if len(s.Rows) == 0 {
		return b
	}
	c.Marks = []chart.Mark{{X: 1, Label: "the limit"}}
	c.Desc = fmt.Sprintf("One rising line for each part of the allowance, over %s. The table below has every value.", figure.Count(int64(u.Users), "user"))
	b.Figures = []drawing{{Figure: c.Figure(), sheet: s}}
	b.Tables = []sheet{quantiles}
	return b
}

// anatomyBlock is S4.
func anatomyBlock(_ record.Report, p record.ReportPlan, place int) (b block) {
	a := p.Anatomy
	switch {
	case a == nil:
		return block{Missing: []string{"what the 429s are made of: it takes recorded traffic and today's allowance"}}
	case a.Rejected == 0:
		return block{Said: []string{"Nothing is rejected."}, Missing: a.Undefined}
	}
	b.Missing = a.Undefined
	b.Said = []string{
		fmt.Sprintf("%s of %s users make all %s rejections; one makes %s of them, the first percent %s (Gini %.2f).", grouped(a.Affected), grouped(a.Users),
			grouped(a.Rejected), figure.Short(a.Top1), figure.Short(a.Top1Pct), a.Gini),
		fmt.Sprintf("They come in %s; half hold %s and less and recover within %s.", figure.Count(a.Episodes.N, "episode"), figure.Count(int64(a.Episodes.Rejections.P50), "rejection"), figure.Seconds(a.Episodes.Recovery.P50)),
	}
	if a.Followed > 0 {
		b.Said = append(b.Said, fmt.Sprintf("%s of %s were followed by another attempt before Retry-After ran out (%s).", grouped(a.TooEarly), figure.Count(a.Followed, "rejection"), percent(share(a.TooEarly, a.Followed))))
	}
	b.Figures = []drawing{causesDrawing(p, place), lorenzDrawing(p, place), hoursDrawing(p, place), minutesDrawing(p, place)}
	e := a.Episodes
	episodes := sheet{Name: "episodes", Title: "Episodes of one user’s 429s", Columns: []column{{"", "", asText}, {"p50", "p50", asNumber}, {"p95", "p95", asNumber}, {"p99", "p99", asNumber}, {"max", "max", asNumber}}}
	for _, row := range []struct {
		name string
		q    record.ReportQuart
	}{{"rejections in one", e.Rejections}, {"seconds from first to last", e.Seconds}, {"seconds to the next success", e.Recovery}} {
		episodes.Rows = append(episodes.Rows, []any{row.name, row.q.P50, row.q.P95, row.q.P99, row.q.Max})
	}
	b.Tables = []sheet{episodes}
	return b
}

func causesDrawing(p record.ReportPlan, place int) drawing {
	a := p.Anatomy
	c := chart.Rows{XLabel: "share of the rejections"}
	var s sheet
	c.Named, s = named("causes", "what would have made the 429s vanish", p, place)
	s.Columns = []column{{"cause", "cause", asText}, {"rejections", "rejections", asCount}, {"share", "share", asShare}}
	for _, cause := range []struct {
		name string
		n    int64
	}{
		{"burst: gone with an hour’s worth of it", a.Causes.Burst}, {"sustained rate: there with any burst", a.Causes.Sustained},
		{"concurrency: gone without a cap", a.Causes.Concurrency}, {"both: gone with neither alone", a.Causes.Both},
	} {
		part := share(cause.n, a.Rejected)
		c.Bars = append(c.Bars, chart.Row{Name: cause.name, Share: part, Value: figure.Short(part), Title: cause.name + ": " + grouped(cause.n)})
		s.Rows = append(s.Rows, []any{cause.name, cause.n, part})
	}
	c.Desc = fmt.Sprintf("Four bars that add up to %s rejections.", grouped(a.Rejected))
	return drawing{Figure: c.Figure(), sheet: s}
}

func lorenzDrawing(p record.ReportPlan, place int) drawing {
	c := chart.Curves{XLabel: "share of users, fewest rejections first", X: chart.Share, Y: chart.Share}
	var s sheet
	c.Named, s = named("concentration", "how the 429s are spread over users", p, place)
	s.Columns = []column{{"x", "users", asShare}, {"y", "rejections", asShare}}
	line := chart.Line{Label: "rejections", Short: "429s"}
	for _, point := range p.Anatomy.Lorenz {
		line.Points = append(line.Points, chart.Point{X: point.X, Y: point.Y, Filled: true, Title: fmt.Sprintf("%s of users make %s of the rejections", figure.Percent(point.X), figure.Percent(point.Y))})
		s.Rows = append(s.Rows, []any{point.X, point.Y})
	}
	even := chart.Line{Label: "if all were alike", Short: "alike", Points: []chart.Point{{X: 0, Y: 0}, {X: 1, Y: 1}}}
	c.Lines = []chart.Line{line, even}
	c.Desc = fmt.Sprintf("The further the curve hangs below the straight line, the fewer users make the rejections. Gini %.2f.", p.Anatomy.Gini)
	return drawing{Figure: c.Figure(), sheet: s}
}

func hoursDrawing(p record.ReportPlan, place int) drawing {
	days := []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	h := chart.Heat{Rows: days, XLabel: "hour of the day, UTC"}
	var s sheet
	h.Named, s = named("hours", "429s by weekday and hour", p, place)
	s.Columns = []column{{"weekday", "weekday", asText}}
	for hour := range 24 {
		h.Columns = append(h.Columns, strconv.Itoa(hour))
		s.Columns = append(s.Columns, column{fmt.Sprintf("h%02d", hour), strconv.Itoa(hour), asCount})
	}
	most, at := int64(-1), ""
	for i, row := range p.Anatomy.Hours {
		cells := []any{days[i]}
		for hour, n := range row {
			cells = append(cells, n)
			if n > most {
				most, at = n, fmt.Sprintf("%s %02d:00", days[i], hour)
			}
		}
		h.Values = append(h.Values, row[:])
		s.Rows = append(s.Rows, cells)
	}
	h.Titles = func(i, j int) string {
		return fmt.Sprintf("%s %02d:00: %s", days[i], j, figure.Count(h.Values[i][j], "rejection"))
	}
	h.Desc = fmt.Sprintf("A cell for each hour of the week; most are on %s, %s.", at, grouped(most))
	return drawing{Figure: h.Figure(), Note: "Most: " + at + ", " + grouped(most) + ".", sheet: s}
}

func minutesDrawing(p record.ReportPlan, place int) drawing {
	bars := chart.Bars{XLabel: "minute of the hour", Values: p.Anatomy.Minutes[:]}
	var s sheet
	bars.Named, s = named("minutes", "429s by minute of the hour", p, place)
	s.Columns = []column{{"minute", "minute", asCount}, {"rejections", "rejections", asCount}}
	for i, n := range p.Anatomy.Minutes {
		s.Rows = append(s.Rows, []any{i, n})
	}
	bars.Names = func(i int) string {
		if i%15 == 0 || i == 59 {
			return strconv.Itoa(i)
		}
		return ""
	}
	bars.Titles = func(i int) string {
		return fmt.Sprintf("minute %d: %s", i, figure.Count(p.Anatomy.Minutes[i], "rejection"))
	}
	bars.Desc = "A bar for each minute. Tall ones at 0, 15, 30 or 45 are jobs that start by the clock."
	return drawing{Figure: bars.Figure(), Note: "Tall bars at 0, 15, 30 or 45 are jobs that start by the clock.", sheet: s}
}
