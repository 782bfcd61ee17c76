package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/loadgen/threshold"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// breach is the threshold that ended a run, as the cause of its context's end.
type breach struct{ record.RunThreshold }

func (b breach) Error() string {
	return fmt.Sprintf("the threshold %s was broken: %s", b.Threshold, b.Seen)
}

// endAtBreach is a context that ends once a run breaks one of its thresholds for
// good. The caller ends the watch.
func endAtBreach(ctx context.Context, list []threshold.Threshold, planned time.Duration, m *measure.Meter) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch, tick := threshold.NewWatch(list), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := look(watch, planned, m); err != nil {
					cancel(err)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

func look(w *threshold.Watch, planned time.Duration, m *measure.Meter) error {
	b, ok, err := w.Look(record.Run{PlannedMS: planned.Milliseconds(), Plans: m.Live(w.Outcomes()...)})
	if ok {
		return breach{b}
	}
	return err
}

// judge holds the run against its thresholds. One that ended it is broken by the
// figure of that moment, whatever the last answers made of it.
func judge(ctx context.Context, list []threshold.Threshold, r *record.Run) error {
	var err error
	if r.Thresholds, err = threshold.Evaluate(list, *r); err != nil {
		return err
	}
	cause := context.Cause(ctx)
	if !r.Interrupted || errors.Is(cause, context.Canceled) {
		return nil
	}
	r.Ended = cause.Error()
	if b := (breach{}); errors.As(cause, &b) {
		for i, t := range r.Thresholds {
			if t.Threshold == b.Threshold && t.Verdict != record.ThresholdBroken {
				r.Thresholds[i] = b.RunThreshold
			}
		}
	}
	return nil
}

// worth is the exit code of a run, with what to say. A run that says nothing of
// its target breaks no threshold either.
func worth(r record.Run) error {
	var whole, plans []string
	for _, d := range r.Untold {
		if d.Plan == "" {
			whole = append(whole, render.LoadDoubt(d))
		} else {
			plans = append(plans, render.LoadDoubt(d))
		}
	}
	broken, noData := render.LoadBroken(r), render.LoadNoData(r)
	switch {
	case len(whole) > 0:
		return exitWith(exitCannotTell, errors.New(strings.Join(append(whole, plans...), "; ")))
	case broken != "":
		return exitWith(exitFails, errors.New(broken))
	}
	if noData != "" {
		plans = append(plans, noData)
	}
	if len(plans) > 0 {
		return exitWith(exitCannotTell, errors.New(strings.Join(plans, "; ")))
	}
	return nil
}
