package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
)

// TryOut sends the valid operation once on each plan, before anything is judged:
// a run by a file that is wrong tells nothing of the deployment. Its error names
// file, line and key of what is not as declared, unless some plan's request was
// answered as a right file explains, or as only a deployment can be to blame for:
// that is for a run to judge. It wraps [ErrAway] where nothing is answered.
func (t *Target) TryOut(ctx context.Context) error {
	var users []*User
	for _, plan := range t.Plans() {
		u, err := t.Lease(ctx, plan, 1)
		if err != nil && !errors.Is(err, ErrNoUser) {
			return err
		}
		if u != nil {
			users = append(users, u)
		}
	}
	tried := make([]Exchange, len(users))
	each(len(users), func(i int) { tried[i] = t.Send(ctx, users[i], t.Valid()) })
	for _, u := range users {
		if err := t.Return(ctx, u); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var wrong, silent error
	for i, e := range tried {
		switch why := t.misdeclared(users[i], e); {
		case e.Err != nil:
			silent = e.Err
		case why == nil:
			return nil
		case wrong == nil:
			wrong = why
		}
	}
	if wrong == nil && silent != nil {
		return fmt.Errorf("%w: no valid request got an answer: %w", ErrAway, silent)
	}
	return wrong
}

// misdeclared is what an answer to the valid operation says is wrong in the file;
// nil: the file may be right.
func (t *Target) misdeclared(u *User, e Exchange) error {
	said := clipped(t.Mask(e.Answer.Said.String()))
	switch {
	case e.Err != nil || e.Refused() && u.fresh: // a key that the deployment made itself
		return nil
	case e.Refused():
		return t.file.naming(t.keyOf(u), fmt.Errorf("%s is refused: %s; accepted: a good key, in the header that credential.header says (%s)", u.whose(0), said, t.file.Credential.Header))
	case e.Status == t.ExpectValid(), e.Status == http.StatusTooManyRequests, e.Status >= http.StatusInternalServerError, e.Answer.Status == http.StatusPaymentRequired:
		return nil
	}
	return t.file.naming("operations.valid", fmt.Errorf("%s %s is answered with %s, expect says %d; accepted: an operation that succeeds", e.Method, e.Path, said, t.ExpectValid()))
}

// keyOf is the key of the file that tells of a user's first key.
func (t *Target) keyOf(u *User) string {
	for i, of := range t.file.Users {
		if of.ID == u.ID {
			return fmt.Sprintf("users[%d].keys[0]", i)
		}
	}
	return "keys-file"
}

// Refused reports whether an answer says that the key is none.
func (e Exchange) Refused() bool {
	return e.Answer.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.Answer.Limit.State == contract.Absent
}
