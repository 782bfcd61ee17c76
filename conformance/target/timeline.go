package target

import (
	"context"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// timeline is the target's own time as we know it, in microseconds from when it
// was opened. On a real clock it is our monotonic clock; on a shifted one also
// what we moved it by; on a frozen one that alone. A date that is set back does
// not move it.
type timeline struct {
	mode  control.ClockMode
	start time.Time

	mu    sync.Mutex
	moved int64
	lost  bool // a move may have happened or not
}

func newTimeline(mode control.ClockMode) *timeline { return &timeline{mode: mode, start: time.Now()} }

// atLeast is an instant not after now.
func (t *timeline) atLeast() int64 { return t.now(0) }

// atMost is an instant not before now.
func (t *timeline) atMost() int64 { return t.now(time.Microsecond - 1) }

func (t *timeline) now(round time.Duration) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mode == control.ClockFrozen {
		return t.moved
	}
	return int64((time.Since(t.start)+round)/time.Microsecond) + t.moved
}

// check fails once it is no longer known where the target's clock is.
func (t *timeline) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return ErrTimeline
	}
	return nil
}

// Movable reports whether waiting moves the target's clock instead of taking
// time. The clock is everybody's: run one scenario at a time then.
func (t *Target) Movable() bool { return t.time.mode != control.ClockReal }

// Elapsed is how far the target's timeline has moved since it was opened.
func (t *Target) Elapsed() time.Duration { return time.Duration(t.time.atLeast()) * time.Microsecond }

// Clock says how the target's clock runs; real where there is no control server.
func (t *Target) Clock() control.ClockMode { return t.time.mode }

// Wait returns once the target's timeline has surely moved by d: it sleeps on a
// real clock and advances a movable one.
func (t *Target) Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	if t.Movable() {
		return t.Advance(ctx, d)
	}
	until := t.time.atMost() + micros(d)
	for {
		left := until - t.time.atLeast()
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(time.Duration(left) * time.Microsecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// micros is d in microseconds, rounded up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// Advance moves a movable clock; a negative d moves the date back, which the
// timeline of limits must not follow.
func (t *Target) Advance(ctx context.Context, d time.Duration) error {
	if !t.Movable() {
		return unsupported(control.FeatureClock)
	}
	if err := t.time.check(); err != nil {
		return err
	}
	n := micros(d)
	if d < 0 {
		n = int64(d / time.Microsecond)
	}
	var answer control.Clock
	err := t.behind.do(ctx, call{action: advanceClock}.saying(control.Advance{Microseconds: n}), &answer)
	t.time.mu.Lock()
	defer t.time.mu.Unlock()
	switch {
	case err == nil:
		t.time.moved += max(n, 0)
	case !refused(err):
		t.time.lost = true
	}
	return err
}

// Now is the date by the target's movable clock.
func (t *Target) Now(ctx context.Context) (time.Time, error) {
	var answer control.Clock
	if err := t.ask(ctx, call{action: readClock}, &answer); err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, answer.Now)
}
