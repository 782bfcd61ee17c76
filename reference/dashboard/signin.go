package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
)

// Bounds of a posted form.
const (
	maxForm  = 4 << 10
	formTime = 10 * time.Second
)

// signInView is the sign-in form.
type signInView struct {
	Refused bool // a key was posted and was not good
}

func (h *page) signInForm(w http.ResponseWriter, _ *http.Request) {
	h.write(w, http.StatusOK, view{Title: "Sign in", SignIn: &signInView{}})
}

// signIn begins a session for whoever posts a good key. The form is read before
// the gate is asked, so that slow senders take no place in it; whatever is wrong
// with a key, the answer is the same (AUTH-1).
func (h *page) signIn(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(formTime))
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			h.notice(w, tooLarge())
			return
		}
		h.notice(w, unreadable())
		return
	}
	digest, err := h.authenticate(r)
	var rejected anonymous.Rejection
	switch {
	case errors.As(err, &rejected):
		w.Header().Set("Retry-After", strconv.FormatInt(rejected.RetryAfter, 10))
		h.notice(w, tooMany(rejected.RetryAfter))
		return
	case errors.Is(err, account.ErrUnknownKey):
		h.write(w, http.StatusUnprocessableEntity, view{Title: "Not signed in", SignIn: &signInView{Refused: true}})
		return
	case err == nil:
		err = h.sessions.begin(w, r, digest)
	}
	if err != nil {
		h.Logger.Error("no answer for a sign-in", "error", err)
		h.notice(w, away())
		return
	}
	http.Redirect(w, r, BillingPath, http.StatusSeeOther)
}

// authenticate is the digest of the one key in a form, if a user has it and the
// gate lets it be looked up.
func (h *page) authenticate(r *http.Request) (account.Digest, error) {
	pool := h.Pool(r)
	key, ok := posted(r.PostForm[KeyField])
	if !ok {
		if err := h.Gate.NoKey(pool); err != nil {
			return account.Digest{}, err
		}
		return account.Digest{}, account.ErrUnknownKey
	}
	digest := h.Digest(key)
	_, err := h.Gate.Authenticate(r.Context(), pool, digest, func(ctx context.Context) (account.Record, error) {
		ctx, cancel := context.WithTimeout(ctx, storeTime)
		defer cancel()
		return h.Accounts.Lookup(ctx, digest)
	})
	return digest, err
}

// posted is the key in a form that has exactly one, with the blanks that come of
// copying it.
func posted(fields []string) (account.Key, bool) {
	if len(fields) != 1 {
		return account.Key{}, false
	}
	key, err := account.ParseKey(strings.TrimSpace(fields[0]))
	return key, err == nil
}

func (h *page) signOut(w http.ResponseWriter, r *http.Request) {
	h.sessions.end(w, r)
	http.Redirect(w, r, SignInPath, http.StatusSeeOther)
}
