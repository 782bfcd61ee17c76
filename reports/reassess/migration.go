package reassess

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// S14, migration: whether limiter state in one process's memory still does. The
// contract lists the signals and says which of them decide: a second replica, for
// whatever reason, needs shared state; a slow limiter or a busy machine alone is a
// reason to look.

// Bounds of the signals.
const (
	negligible   = 0.01 // of the engine's latency, that a decision may take
	busyCPU      = 0.8  // of the processors
	growthMonths = 12   // for which the traffic is looked ahead
)

// signalsOf are what is known of the limiter and the engine; nil: missing. Times are
// in seconds.
type signalsOf struct {
	Decision   *float64 // p99 of one decision of the limiter
	Engine     *float64 // p99 of the engine
	Processors *float64 // in use
	Saturated  *float64 // share of the engine's places in use, at the busiest
}

// migration weighs the signals. share is the candidate's peak over the engine's
// capacity.
func migration(s signalsOf, share *float64, d *Deployment) record.ReportMigration {
	m := record.ReportMigration{Signals: []record.ReportMigrationSignal{}}
	stay, migrate := string(record.MigrationStay), string(record.MigrationMigrate)
	says := func(ok bool) string {
		if ok {
			return stay
		}
		return migrate
	}
	missing := func(name, how string) {
		m.Signals = append(m.Signals, record.ReportMigrationSignal{Name: name, Missing: how})
	}
	add := func(name, value, says string) {
		m.Signals = append(m.Signals, record.ReportMigrationSignal{Name: name, Value: value, Says: says})
	}
	if d == nil {
		d = &Deployment{}
	}
	if s.Decision == nil || s.Engine == nil {
		missing("limiter latency beside the engine's", "the decision-duration timer and the engine's latency, by --prometheus")
	} else {
		word := stay
		if *s.Decision > negligible**s.Engine {
			word = ""
		}
		add("limiter latency beside the engine's", fmt.Sprintf("p99 %s of %s", micros(*s.Decision), micros(*s.Engine)), word)
	}
	switch {
	case s.Processors == nil:
		missing("lock and CPU pressure", "the processors in use, by --prometheus, and processors in the gates file's deployment part")
	case d.Processors == nil:
		missing("lock and CPU pressure", fmt.Sprintf("processors in the gates file's deployment part: %.2g are in use, and of how many is not known", *s.Processors))
	default:
		word, used := stay, *s.Processors/float64(*d.Processors)
		if used > busyCPU {
			word = ""
		}
		add("lock and CPU pressure", fmt.Sprintf("%.2g of %d processors in use; no meter tells how long decisions wait for a lock", *s.Processors, *d.Processors), word)
	}
	saturated := share
	switch {
	case share != nil:
		add("engine saturation", "the busiest 10 s ask for "+figure.Short(*share)+" of one instance's capacity", says(*share <= 1))
	case s.Saturated != nil:
		saturated = s.Saturated
		add("engine saturation", figure.Short(*s.Saturated)+" of the engine's places in use at the busiest", says(*s.Saturated < 1))
	default:
		missing("engine saturation", getCapacity)
	}
	if d.GrowthPerMonth == nil || saturated == nil {
		missing("traffic growth", "growth-per-month in the gates file's deployment part, and the engine's capacity")
	} else {
		growth, ahead := float64(*d.GrowthPerMonth), *saturated
		for range growthMonths {
			ahead *= 1 + growth
		}
		add("traffic growth", fmt.Sprintf("%s a month: %s of one instance's capacity in a year", figure.Short(growth), figure.Short(ahead)), says(ahead <= 1))
	}
	if d.RestartsAllowed == nil {
		missing("availability", "restarts-allowed in the gates file's deployment part")
	} else {
		value := "the window in which the one instance restarts is acceptable"
		if !*d.RestartsAllowed {
			value = "the window in which the one instance restarts is not acceptable"
		}
		add("availability", value, says(*d.RestartsAllowed))
	}
	if d.PlannedReplicas == nil {
		missing("planned replicas", "planned-replicas in the gates file's deployment part")
	} else {
		add("planned replicas", figure.Grouped(*d.PlannedReplicas), says(*d.PlannedReplicas <= 1))
	}
	m.Verdict, m.Why = weighSignals(m.Signals, d)
	return m
}

// weighSignals: one signal for migration is enough; to stay takes every signal.
func weighSignals(list []record.ReportMigrationSignal, d *Deployment) (record.Migration, string) {
	var without []string
	reason := ""
	for _, s := range list {
		switch {
		case s.Says == string(record.MigrationMigrate) && reason == "":
			reason = s.Name + ": " + s.Value
		case s.Missing != "":
			without = append(without, s.Name)
		}
	}
	switch {
	case d.Storage == "distributed":
		return record.MigrationStay, "The limiter's state is distributed already."
	case reason != "":
		return record.MigrationMigrate, "It takes a second instance, and so shared limiter state: " + reason + "."
	case len(without) > 0:
		return record.MigrationUntold, fmt.Sprintf("Nothing that is known asks for it, but %d of %d signals are missing.", len(without), len(list))
	}
	return record.MigrationStay, "No signal asks for a second instance."
}

func micros(seconds float64) string { return figure.Micros(int64(seconds * 1e6)) }
