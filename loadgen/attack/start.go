package attack

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrStartMissed says that this machine was not ready at the start that was
// agreed on.
var ErrStartMissed = errors.New("the start was missed")

// begin waits for an instant of the wall clock, and gives the beginning of the
// run as an instant that later ones can be compared with, and how late it is. All
// that is due counts from that instant, not from when this machine woke: so
// machines that wait for the same one have one timeline, as far as their clocks
// agree. The zero value is now.
func begin(ctx context.Context, at time.Time) (time.Time, time.Duration, error) {
	if at.IsZero() {
		return time.Now(), 0, nil
	}
	// Looked at again and again, since the wall clock may be set meanwhile.
	for {
		now := time.Now()
		late := now.Round(0).Sub(at)
		switch {
		case late > MostLate:
			return now, late, fmt.Errorf("%w: it was to be %s, now it is %s", ErrStartMissed, clock(at), clock(now))
		case late >= 0:
			return now.Add(-late), late, nil
		}
		t := time.NewTimer(min(-late, time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return now, 0, fmt.Errorf("interrupted before the start: %w", ctx.Err())
		}
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
