package steps

import (
	"context"
	"fmt"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// endings are the sentences about what is left of a server that has ended.
func (s *Scenario) endings() []sentence {
	return []sentence{
		{when, `^that server is killed and another is started in its place$`, "with no time to do anything about it; the other has what the first one stored", needs{contract.NeedProcess}, s.killAndStartAnew},
		{when, `^that server is killed while they send requests, and another is started in its place$`, "several at a time; those that were answered count", needs{contract.NeedProcess}, s.killUnderLoad},
		{then, `^each request that was answered is in the log, and once$`, "of those that they sent last", needs{contract.NeedKeptLog}, s.loggedOnce},
	}
}

func (s *Scenario) killAndStartAnew(ctx context.Context) error {
	if err := s.KillServer(); err != nil {
		return setup(err)
	}
	return s.startAnew(ctx)
}

// Enough requests are answered for some of their entries to be on their way, and
// several are sent at a time, so that the kill meets some half done.
const (
	enoughAnswers = 40
	sendersAtOnce = 4
)

func (s *Scenario) killUnderLoad(ctx context.Context) error {
	if err := s.sends(func() ([]exchange, error) { return s.untilKilled(ctx, s.user()) }); err != nil {
		return err
	}
	return s.startAnew(ctx)
}

// untilKilled sends requests of u until the server is killed, and collects those
// that were answered by then. What became of the others nobody can know.
func (s *Scenario) untilKilled(ctx context.Context, u *subject) (got []exchange, err error) {
	ctx, over := context.WithCancel(ctx)
	defer over()
	answers := make(chan target.Exchange)
	var senders sync.WaitGroup
	for range sendersAtOnce {
		senders.Go(func() {
			for {
				e := s.SendApart(ctx, u.User, s.valid(0))
				if e.Err != nil {
					return
				}
				answers <- e
			}
		})
	}
	go func() {
		senders.Wait()
		close(answers)
	}()
	var killed error
	for x := range answers {
		e, _ := s.take(exchange{Exchange: x}) // it has an answer
		if got = append(got, e); len(got) == enoughAnswers {
			if killed = s.KillServer(); killed != nil {
				over()
			}
		}
	}
	switch {
	case killed != nil:
		return got, setup(killed)
	case len(got) < enoughAnswers:
		return got, fmt.Errorf("%w: no more than %d requests were answered", ErrInconclusive, len(got))
	}
	return got, nil
}

// loggedOnce looks for the entry of each request that was answered.
func (s *Scenario) loggedOnce(ctx context.Context) error {
	for _, e := range s.got {
		a, err := s.audit(ctx, e, func(a control.Audit) bool { return len(a.Entries) == 1 })
		if err != nil {
			return err
		}
		clause := ""
		switch n := len(a.Entries); {
		case n == 0:
			clause = "LOG-5"
		case n > 1:
			clause = "LOG-6"
		}
		if clause != "" {
			return s.brokenFor(clause, e, "log entries", "1", fmt.Sprint(len(a.Entries)))
		}
	}
	return s.verdict()
}
