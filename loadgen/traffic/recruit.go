package traffic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// Fits says why a target cannot take the scenario, whatever its users and plans;
// nil: it can.
func (s Scenario) Fits(f target.File) error {
	for i, p := range s.Populations {
		switch {
		case p.Mix.Share(Invalid) > 0 && f.Operations.Invalid == nil:
			return s.refuse(i, "mix.invalid", "the target has no such operation", "a target file with operations.invalid, or no weight")
		case p.Mix.Share(Slow) > 0 && f.Operations.Slow == nil:
			return s.refuse(i, "mix.slow", "the target has no such operation", "a target file with operations.slow, or no weight")
		case p.Addresses > 0 && len(f.Can.Addresses) == 0 && f.Can.Proxy == nil:
			return s.refuse(i, "addresses", "the target says of no addresses that they can be sent from", "a target file with can.addresses or can.proxy, or no such key")
		}
	}
	return nil
}

// Lender lends out users of a target, and addresses to send from; a
// [target.Target] does.
type Lender interface {
	Lease(ctx context.Context, plan string, keys int) (*target.User, error)
	Senders(n int64) ([]target.Sender, error)
}

// Shortage is a target that lends too few users.
type Shortage struct {
	Plans []PlanShortage
	Err   error // why the first one was not lent
}

// PlanShortage is what one plan lacks.
type PlanShortage struct {
	Plan          string
	Keys          int64 // of each user, at least
	Needed, There int64
}

func (s *Shortage) Error() string {
	var parts []string
	for _, p := range s.Plans {
		keys := ""
		if p.Keys > 1 {
			keys = fmt.Sprintf(" with %d keys", p.Keys)
		}
		parts = append(parts, fmt.Sprintf("%d users on plan %s%s are needed, the target lends %d", p.Needed, p.Plan, keys, p.There))
	}
	return strings.Join(parts, "; ") + ": list more in its keys file, or let it offer control, which makes them"
}

func (s *Shortage) Unwrap() error { return s.Err }

// kind is what makes users of a target exchangeable.
type kind struct {
	plan string
	keys int64
}

// Recruit gives every member a user of the target, and an address to send from
// where they want one. Where the target has too few users, the error is a
// [*Shortage] that counts them for every plan.
func Recruit(ctx context.Context, from Lender, members []Member) error {
	if err := lease(ctx, from, members); err != nil {
		return err
	}
	return settle(from, members)
}

// lease gives every member a user.
func lease(ctx context.Context, from Lender, members []Member) error {
	short := &Shortage{}
	place := map[kind]int{} // of those that are short, from 1
	there := map[kind]int64{}
	for i := range members {
		m := &members[i]
		k := kind{m.Plan, m.Wants.Keys}
		if at := place[k]; at > 0 {
			short.Plans[at-1].Needed++
			continue
		}
		u, err := from.Lease(ctx, m.Plan, int(m.Wants.Keys))
		switch {
		case errors.Is(err, target.ErrNoUser):
			short.Plans = append(short.Plans, PlanShortage{Plan: m.Plan, Keys: k.keys, Needed: there[k] + 1, There: there[k]})
			place[k] = len(short.Plans)
			if short.Err == nil {
				short.Err = err
			}
			continue
		case err != nil:
			return fmt.Errorf("a user on plan %s: %w", m.Plan, err)
		}
		there[k]++
		m.Keys = make([]target.Secret, m.Wants.Keys)
		for n := range m.Keys {
			m.Keys[n] = u.Secret(n)
		}
		full, _ := u.Bucket.Level()
		m.Rested = full >= m.Allowance.Burst*oracle.Token
	}
	if len(short.Plans) > 0 {
		return short
	}
	return nil
}

// settle gives members their addresses: those of a population are its own.
func settle(from Lender, members []Member) error {
	wanted := map[int]int64{} // by population
	for _, m := range members {
		wanted[m.Population] = max(wanted[m.Population], m.Wants.Address)
	}
	senders := map[int][]target.Sender{}
	for i := range members {
		m := &members[i]
		if m.Wants.Address == 0 {
			continue
		}
		if senders[m.Population] == nil {
			list, err := from.Senders(wanted[m.Population])
			if err != nil {
				return fmt.Errorf("population %d wants %d client addresses: %w", m.Population+1, wanted[m.Population], err)
			}
			senders[m.Population] = list
		}
		m.From = &senders[m.Population][m.Wants.Address-1]
	}
	return nil
}
