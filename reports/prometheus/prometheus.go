// Package prometheus asks a Prometheus server, over its HTTP API, what the meters
// of a deployment said while the traffic of a report was made: those of
// docs/metrics.md, and by queries of the owner's the engine's latency and
// saturation, for which every engine has other names.
//
// Most callers want [Config.Ask]. A figure that the server does not have is said
// to be missing, with its query. The number of points, the size of an answer and
// every question's time are bounded; credentials come from a file and are in no
// error.
package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/invoicespec/brimline/reports/record"
)

// Bounds.
const (
	mostPoints  = 1000 // of a series
	mostSeries  = 1000
	mostAnswer  = 32 << 20 // bytes
	patience    = 30 * time.Second
	allPatience = 3 * time.Minute
	longestRate = 5 * time.Minute // that a rate is taken over, unless points are farther apart
)

// ErrAway says that the server does not answer.
var ErrAway = errors.New("the Prometheus server does not answer")

// Ask asks for all figures between two times.
func (c Config) Ask(ctx context.Context, from, until time.Time) (record.ReportMetrics, error) {
	if !until.After(from) {
		return record.ReportMetrics{}, errors.New("meters over no time: until is not after from")
	}
	client, err := api.NewClient(api.Config{Address: c.URL, RoundTripper: transport{token: c.token}})
	if err != nil {
		return record.ReportMetrics{}, fmt.Errorf("url: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, allPatience)
	defer cancel()
	step := max(time.Second, (until.Sub(from)/mostPoints + time.Second - 1).Truncate(time.Second))
	q := question{api: v1.NewAPI(client), from: from, until: until, step: step}
	m := record.ReportMetrics{Job: c.Job, From: from.UTC(), Until: until.UTC(), StepS: int64(step / time.Second), Figures: []record.ReportMetric{}, Starts: []time.Time{}}
	over := max(4*step, min(longestRate, until.Sub(from))).Round(time.Second)
	for _, f := range c.figures(over, until.Sub(from)) {
		figures, err := q.figure(ctx, f)
		if err != nil {
			return m, err
		}
		m.Figures = append(m.Figures, figures...)
	}
	m.Starts, err = q.starts(ctx, c.selector("process_start_time_seconds"))
	return m, err
}

// question is one window at one server.
type question struct {
	api         v1.API
	from, until time.Time
	step        time.Duration
}

// figure asks for one; a counter has a row for each of its label values.
func (q question) figure(ctx context.Context, f figure) ([]record.ReportMetric, error) {
	row := record.ReportMetric{Name: f.name, Unit: f.unit, Query: f.query}
	if f.query == "" {
		row.Missing = f.missing
		return []record.ReportMetric{row}, nil
	}
	series, err := q.series(ctx, f.query, f.total)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	var rows []record.ReportMetric
	for _, s := range series {
		row := row
		row.Of, row.Points = s.of, len(s.points)
		switch {
		case len(s.points) == 0:
			continue
		case f.total:
			row.Total = &s.points[0]
		default:
			slices.Sort(s.points)
			row.P50, row.P95, row.Max = quantile(s.points, 0.5), quantile(s.points, 0.95), quantile(s.points, 1)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		row.Missing = f.missing
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b record.ReportMetric) int { return strings.Compare(a.Of, b.Of) })
	return rows, nil
}

// quantile of sorted points, by nearest rank.
func quantile(sorted []float64, share float64) *float64 {
	x := sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
	return &x
}

type series struct {
	of     string
	points []float64 // finite ones
}

// series asks for the value at the end of the window, or for points within it.
func (q question) series(ctx context.Context, query string, atEnd bool) ([]series, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var value model.Value
	var err error
	if atEnd {
		value, _, _, err = q.api.Query(ctx, query, q.until, v1.WithTimeout(patience), v1.WithLimit(mostSeries))
	} else {
		value, _, _, err = q.api.QueryRange(ctx, query, v1.Range{Start: q.from, End: q.until, Step: q.step}, v1.WithTimeout(patience), v1.WithLimit(mostSeries))
	}
	if err != nil {
		return nil, said(err)
	}
	var list []series
	add := func(m model.Metric, points ...model.SampleValue) {
		s := series{of: labels(m)}
		for _, p := range points {
			if x := float64(p); !math.IsNaN(x) && !math.IsInf(x, 0) {
				s.points = append(s.points, x)
			}
		}
		list = append(list, s)
	}
	switch value := value.(type) {
	case model.Vector:
		for _, s := range value {
			add(s.Metric, s.Value)
		}
	case model.Matrix:
		for _, s := range value {
			points := make([]model.SampleValue, len(s.Values))
			for i, p := range s.Values {
				points[i] = p.Value
			}
			add(s.Metric, points...)
		}
	case *model.Scalar:
		add(nil, value.Value)
	default:
		return nil, fmt.Errorf("the answer is a %s; accepted: a query for numbers", value.Type())
	}
	return list, nil
}

// starts are the start times of the engine's processes within the window.
func (q question) starts(ctx context.Context, query string) ([]time.Time, error) {
	list, err := q.series(ctx, query, false)
	if err != nil {
		return nil, fmt.Errorf("starts: %w", err)
	}
	starts := []time.Time{}
	for _, s := range list {
		for _, x := range s.points {
			at := time.UnixMicro(int64(x * 1e6)).UTC()
			if at.After(q.from) && !at.After(q.until) {
				starts = append(starts, at)
			}
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	return slices.CompactFunc(starts, time.Time.Equal), nil
}

// labels are the values of the labels that tell series apart, in words.
func labels(m model.Metric) string {
	var parts []string
	for name, value := range m {
		switch name {
		case "__name__", "instance", "job":
		case "requests_per_minute":
			parts = append(parts, string(value)+" a minute")
		default:
			parts = append(parts, string(value))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// said is an error of the server or of the way to it, on one line and without
// what else the answer held.
func said(err error) error {
	var answered *v1.Error
	if errors.As(err, &answered) {
		text := strings.Join(strings.Fields(answered.Msg), " ")
		return fmt.Errorf("%w: %s: %s", ErrAway, answered.Type, text[:min(len(text), 200)])
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// transport adds the token to a question and bounds the answer.
type transport struct{ token string }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		answer.Body = bounded{io.LimitReader(answer.Body, mostAnswer), answer.Body}
	}
	return answer, err
}

type bounded struct {
	io.Reader
	io.Closer
}
