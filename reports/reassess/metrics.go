package reassess

import (
	"fmt"

	"github.com/invoicespec/brimline/reports/record"
)

// What the meters of the running engine say for S6, S14 and the kinds of evidence.

// signals are the meters' part of S14.
func signals(m *record.ReportMetrics) (s signalsOf) {
	if m == nil {
		return s
	}
	at := func(name record.MetricName, of func(*record.ReportMetric) *float64) *float64 {
		if f := m.Find(name); f != nil {
			return of(f)
		}
		return nil
	}
	busy := func(f *record.ReportMetric) *float64 { return f.P95 }
	most := func(f *record.ReportMetric) *float64 { return f.Max }
	s.Decision, s.Engine = at(record.MetricDecisionP99, busy), at(record.MetricEngineLatency, busy)
	s.Processors, s.Saturated = at(record.MetricCPU, busy), at(record.MetricSaturation, most)
	return s
}

// observed are the figures with a spread.
func observed(m *record.ReportMetrics) (list []record.ReportObserved) {
	if m == nil {
		return nil
	}
	for _, f := range m.Figures {
		if f.Missing != "" || f.P50 == nil || f.P95 == nil || f.Max == nil {
			continue
		}
		name := string(f.Name)
		if f.Of != "" {
			name += ", " + f.Of
		}
		list = append(list, record.ReportObserved{Name: name, Unit: f.Unit, P50: *f.P50, P95: *f.P95, Max: *f.Max, Points: f.Points, Source: "Prometheus, job " + m.Job})
	}
	return list
}

// metered is what one figure says, in a sentence.
func metered(m *record.ReportMetrics, name record.MetricName) (found []string) {
	if m == nil {
		return nil
	}
	for _, o := range observed(&record.ReportMetrics{Job: m.Job, Figures: onlyNamed(m.Figures, name)}) {
		found = append(found, fmt.Sprintf("%s: %s %.3g %s half of the time, %.3g for 95 %% of it, %.3g at most.", o.Source, o.Name, o.P50, o.Unit, o.P95, o.Max))
	}
	return found
}

func onlyNamed(list []record.ReportMetric, name record.MetricName) (only []record.ReportMetric) {
	for _, f := range list {
		if f.Name == name {
			only = append(only, f)
		}
	}
	return only
}
