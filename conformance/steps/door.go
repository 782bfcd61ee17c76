package steps

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// door lets scenarios in side by side, or one of them alone: one that empties the
// pool of the address from which all are sent, where each key of the others that
// is new needs something of it for a moment.
type door struct{ room *semaphore.Weighted }

const wholeRoom = 1 << 20

func newDoor() door { return door{semaphore.NewWeighted(wholeRoom)} }

// enter lets a scenario in that is not in yet.
func (d door) enter(ctx context.Context, s *Scenario) error { return d.take(ctx, s, 1) }

// alone lets a scenario in once all others are out, and none until it is.
func (d door) alone(ctx context.Context, s *Scenario) error { return d.take(ctx, s, wholeRoom) }

func (d door) take(ctx context.Context, s *Scenario, room int64) error {
	if s.room > 0 {
		return nil
	}
	err := d.room.Acquire(ctx, room)
	if err == nil {
		s.room = room
	}
	return err
}

// leave lets a scenario out. What it took of the address that all share has come
// back by then, so far as the first uses of others' keys need it.
func (d door) leave(ctx context.Context, s *Scenario) error {
	var err error
	if t := s.suite.target; s.room == wholeRoom {
		err = t.ReadyFor(ctx, t.OwnAddress(), t.Anonymous().Concurrency)
	}
	d.room.Release(s.room)
	s.room = 0
	return err
}
