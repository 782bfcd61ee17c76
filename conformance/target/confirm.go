package target

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// confirmed carries out an action by a command and looks a second time at what
// that says it has done, where something can be read: a command that does nothing
// must not be taken for a deployment that is wrong.
func (b *behind) confirmed(ctx context.Context, m means, c call, answer any) error {
	var before control.Clock
	if c.action == advanceClock && b.of(readClock) != nil {
		if err := b.do(ctx, call{action: readClock}, &before); err != nil {
			return err
		}
	}
	if err := m.do(ctx, c, answer); err != nil {
		return err
	}
	what, err := b.differs(ctx, c, before, answer)
	if refused(err) { // which must not look as if the action had been
		what, err = err.Error(), nil
	}
	if err == nil && what != "" {
		err = fmt.Errorf("%w: %s: it says that it is done, and %s", ErrUntrue, m.name(c.action), what)
	}
	return err
}

// differs says what is otherwise than an action has to leave it; empty: nothing
// that can be read.
func (b *behind) differs(ctx context.Context, c call, before control.Clock, answer any) (string, error) {
	user := func(a action) call { return ofUser(a, c.in["user"]) }
	switch {
	case c.action == setPlan && b.of(readPeriod) != nil:
		var p control.Period
		err := b.do(ctx, user(readPeriod), &p)
		if want := c.body.(control.Plan).Plan; p.Plan != want {
			return fmt.Sprintf("plan %q is in force, not %q", p.Plan, want), err
		}
		return "", err
	case c.action == setOperations && b.of(readOperations) != nil:
		var u control.Usage
		err := b.do(ctx, user(readOperations), &u)
		if want := c.body.(control.Operations).Remaining; u.Left != want {
			return fmt.Sprintf("%d operations are left, not %d", u.Left, want), err
		}
		return "", err
	case (c.action == setOverride || c.action == endOverride) && b.of(readOverrides) != nil:
		var h control.History
		err := b.do(ctx, user(readOverrides), &h)
		return overrideDiffers(c, h), err
	case (c.action == closeGate || c.action == openGate) && b.of(readGate) != nil:
		var g control.Gate
		err := b.do(ctx, user(readGate).with("place", c.in["place"]), &g)
		if g.Closed != (c.action == closeGate) {
			return fmt.Sprintf("closed is %t", g.Closed), err
		}
		return "", err
	case c.action == advanceClock && before.Now != "":
		return clockDiffers(c, before, *answer.(*control.Clock))
	}
	return "", nil
}

// overrideDiffers looks for the override that was set, or for one that was to be
// ended and may still be in force. What was no number is for others to refuse.
func overrideDiffers(c call, h control.History) string {
	value := ""
	if c.action == setOverride {
		n, ok := c.body.(control.Override).Value.(int64)
		if !ok {
			return ""
		}
		value = fmt.Sprint(n)
	}
	there := slices.ContainsFunc(h.Entries, func(e control.PastOverride) bool {
		return e.Dimension == c.in["dimension"] && e.Ended == "" && (value == "" && e.Expires == "" || e.Value == value)
	})
	switch {
	case c.action == setOverride && !there:
		return fmt.Sprintf("no override of %s to %s is in force", c.in["dimension"], value)
	case c.action == endOverride && there:
		return fmt.Sprintf("an override of %s is in force", c.in["dimension"])
	}
	return ""
}

// clockDiffers compares two readings of a clock that was moved between them.
func clockDiffers(c call, before, after control.Clock) (string, error) {
	from, err := time.Parse(time.RFC3339Nano, before.Now)
	if err != nil {
		return "", err
	}
	to, err := time.Parse(time.RFC3339Nano, after.Now)
	if err != nil {
		return "", err
	}
	want := time.Duration(c.body.(control.Advance).Microseconds) * time.Microsecond
	if got := to.Sub(from); got < want.Truncate(time.Millisecond) { // a date may have no more digits
		return fmt.Sprintf("the clock moved by %s, not by %s", got, want), nil
	}
	return "", nil
}
