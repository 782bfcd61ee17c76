package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/invoicespec/brimline/reference/account"
)

// Mistakes of the ledger's caller.
var (
	errUnreserved = errors.New("no operation is reserved for this request")
	errReserved   = errors.New("an operation is reserved for this request already")
)

// reservation is one operation of a request in flight.
type reservation struct {
	user    *user
	charged bool
}

// Reserve sets one operation of a user aside for request id, so that requests
// side by side never charge more than there is (LOG-7).
func (s *Store) Reserve(_ context.Context, user, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.user(user)
	if err != nil {
		return err
	}
	if _, ok := s.reserved[id]; ok {
		return fmt.Errorf("%w: %q", errReserved, id)
	}
	if u.remaining <= u.pending {
		return account.ErrExhausted
	}
	u.pending++
	s.reserved[id] = &reservation{user: u}
	return nil
}

// Charge charges the operation that request id reserved; a second time changes
// nothing.
func (s *Store) Charge(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.reserved[id]
	if !ok {
		return fmt.Errorf("%w: %q", errUnreserved, id)
	}
	if r.charged {
		return nil
	}
	r.charged = true
	r.user.pending--
	// The operations left may have been set to less meanwhile.
	r.user.remaining = max(0, r.user.remaining-1)
	return nil
}

// GiveBack ends the reservation of request id: what was not charged is there
// again for others. It is called once a request has ended, however it did.
func (s *Store) GiveBack(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.reserved[id]; ok && !r.charged {
		r.user.pending--
	}
	delete(s.reserved, id)
	return nil
}
