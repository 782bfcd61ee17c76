package steps

import (
	"context"
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
)

// schedules are the sentences about plans that take over later.
func (s *Scenario) schedules() []sentence {
	return []sentence{
		{when, `^the next (larger|smaller) plan is scheduled for the end of their billing period$`, "by burst", needs{contract.NeedSchedule, contract.NeedPolicy, contract.NeedPlans}, s.schedule},
		{when, `^their billing period is ended now$`, "what was scheduled takes over", needs{contract.NeedSchedule}, s.endPeriod},
	}
}

func (s *Scenario) schedule(ctx context.Context, direction string) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	u := s.user()
	a, ok := s.Allowance(u.Plan) // an override leaves the plan what it is
	if !ok {
		return fmt.Errorf("%w: plan %q has no allowance", ErrSetup, u.Plan)
	}
	p, err := all.neighbour(a.Burst, direction)
	if err != nil {
		return err
	}
	s.begin()
	_, err = s.SchedulePlan(ctx, u.User, p.name)
	return asSetup(err)
}

func (s *Scenario) endPeriod(ctx context.Context) error {
	s.begin()
	_, err := s.EndPeriod(ctx, s.user().User)
	return asSetup(err)
}

// capacities are the sentences about paid operations.
func (s *Scenario) capacities() []sentence {
	return []sentence{
		{when, `^their operations are (used up|bought|down to one|down to two)$`, "the operations left in the billing period", needs{contract.NeedOperations}, s.setOperations},
		{when, `^their operations are counted$`, "what later sentences compare with", needs{contract.NeedOperations}, s.countOperations},
		{when, `^they send as many requests at once as their cap$`, "valid ones, at one moment", nil, s.sendCapAtOnce},
		{when, `^they have a request in flight in the engine$`, "its operation is reserved", needs{contract.NeedGates}, s.inFlightInEngine},
		{when, `^a client goes away while its response is being written$`, "the work is done by then", needs{contract.NeedGates}, s.goneDuringResponse},
		{then, `^they have as many operations left and used as before$`, "as they were counted", needs{contract.NeedOperations}, s.sameOperations},
		{then, `^no more of them succeeded than operations were left$`, "and one at least did", needs{contract.NeedOperations}, s.noMoreThanLeft},
		{then, `^the answer says that no operation is left$`, "the latest answer is neither a success nor the server's failure", nil, s.saysExhausted},
		{then, `^the answer is a success$`, "the latest answer has the valid operation's status", nil, s.isSuccess},
		{then, `^what was in flight succeeds and is charged once$`, "when it is let go", needs{contract.NeedAudit, contract.NeedGates}, s.flightIsCharged},
		{then, `^exactly one operation was charged$`, "to the user in all", needs{contract.NeedAudit}, func(ctx context.Context) error { return s.userCharged(ctx, 1) }},
	}
}

func (s *Scenario) setOperations(ctx context.Context, to string) error {
	n := map[string]int64{"used up": 0, "bought": plentyOfOperations, "down to one": 1, "down to two": 2}[to]
	s.begin()
	s.operations = control.Usage{Left: n}
	return asSetup(s.SetOperations(ctx, s.user().User, n))
}

func (s *Scenario) countOperations(ctx context.Context) (err error) {
	s.operations, err = s.Usage(ctx, s.user().User)
	s.before = s.user().charged
	return asSetup(err)
}

// sameOperations compares with what was counted. A request that found a token
// which had come back meanwhile may have been charged.
func (s *Scenario) sameOperations(ctx context.Context) error {
	now, err := s.Usage(ctx, s.user().User)
	if err != nil {
		return setup(err)
	}
	used := now.Used - s.operations.Used
	if used < 0 || used > s.user().charged-s.before || now.Left != s.operations.Left-used {
		return s.broken(exchange{who: s.user()}, "operations", say(s.operations), say(now))
	}
	return s.verdict()
}

func say(u control.Usage) string { return fmt.Sprintf("%d left, %d used", u.Left, u.Used) }
