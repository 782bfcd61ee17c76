package steps

import (
	"context"
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// unparsables are the sentences about requests that never get to a handler.
func (s *Scenario) unparsables() []sentence {
	return []sentence{
		{when, `^they send what an HTTP parser refuses$`, "malformed requests of HTTP/1.1, each on a connection of its own", needs{contract.NeedHTTP1}, s.sendUnparsable},
		{then, `^none of the refusals has a request id$`, "they never got to a handler", nil, s.refusalsHaveNoID},
		{then, `^nothing but the valid request left a log entry$`, "of this user, and what a proxy in front let through", needs{contract.NeedAudit}, s.onlyOneEntry},
	}
}

// sendUnparsable sends each kind, and keeps the answers to those that the parser
// really refused: what it lets through, as it came or put right by a proxy, is
// an ordinary request.
func (s *Scenario) sendUnparsable(ctx context.Context) error {
	s.begin()
	s.tried, s.got = nil, nil
	for _, x := range target.AllUnparsable() {
		e := exchange{Exchange: s.SendUnparsable(ctx, s.user().User, x), who: s.user()}
		s.note(e, e.Findings)
		if e.Err == nil && e.RefusedByParser() {
			s.tried = append(s.tried, e)
		} else {
			s.got = append(s.got, e)
		}
	}
	if len(s.tried) == 0 {
		return fmt.Errorf("%w: this server's parser refuses nothing of what was sent", ErrInconclusive)
	}
	return nil
}

func (s *Scenario) refusalsHaveNoID() error {
	for _, e := range s.tried {
		if id := e.Answer.RequestID; id.State != contract.Absent {
			return s.broken(e, contract.HeaderRequestID, "absent", id.State.String())
		}
	}
	return s.verdict()
}

func (s *Scenario) onlyOneEntry(ctx context.Context) error {
	through, unsure := 1, 0 // the valid request
	for _, e := range s.got {
		if e.Err != nil {
			unsure++
		} else {
			through++
		}
	}
	a, err := s.UserAudit(ctx, s.user().User, func(a control.Audit) bool { return len(a.Entries) > through+unsure })
	if err != nil {
		return setup(err)
	}
	n := len(a.Entries)
	for _, e := range s.tried {
		if id := e.Answer.RequestID.Value; id != "" {
			one, err := s.Audit(ctx, id, func(control.Audit) bool { return true })
			if err != nil {
				return setup(err)
			}
			if len(one.Entries) > 0 {
				return s.broken(e, "log entries of the refusal", "none", fmt.Sprint(len(one.Entries)))
			}
		}
	}
	if n < through || n > through+unsure {
		return s.broken(s.tried[0], "log entries", fmt.Sprint(through), fmt.Sprint(n))
	}
	return s.verdict()
}

// restarts are the sentences about a server that starts anew.
func (s *Scenario) restarts() []sentence {
	return []sentence{
		{when, `^the server starts anew$`, "on what it has stored", needs{contract.NeedRestart}, s.restart},
	}
}

func (s *Scenario) restart(ctx context.Context) error {
	s.begin()
	return asSetup(s.Restart(ctx, s.user().User))
}
