package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reference/account"
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
	done, retryAfter, ok := h.Gate.Enter(r)
	if !ok {
		seconds := max(1, int64((retryAfter+time.Second-1)/time.Second))
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		h.notice(w, tooMany(seconds))
		return
	}
	authenticated := false
	defer func() { done(authenticated) }()

	d, err := h.authenticate(r.Context(), r.PostForm[KeyField])
	switch {
	case errors.Is(err, account.ErrUnknownKey):
		h.write(w, http.StatusUnprocessableEntity, view{Title: "Not signed in", SignIn: &signInView{Refused: true}})
		return
	case err != nil:
		h.Logger.Error("no answer for a sign-in", "error", err)
		h.notice(w, away())
		return
	}
	authenticated = true
	if err := h.sessions.begin(w, r, d); err != nil {
		h.Logger.Error("no session for a sign-in", "error", err)
		h.notice(w, away())
		return
	}
	http.Redirect(w, r, BillingPath, http.StatusSeeOther)
}

// authenticate is the digest of the one key in a form, if a user has it.
func (h *page) authenticate(ctx context.Context, fields []string) (account.Digest, error) {
	if len(fields) != 1 {
		return account.Digest{}, account.ErrUnknownKey
	}
	key, err := account.ParseKey(strings.TrimSpace(fields[0]))
	if err != nil {
		return account.Digest{}, account.ErrUnknownKey
	}
	d := h.Digest(key)
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_, err = h.Accounts.Lookup(ctx, d)
	return d, err
}

func (h *page) signOut(w http.ResponseWriter, r *http.Request) {
	h.sessions.end(w, r)
	http.Redirect(w, r, SignInPath, http.StatusSeeOther)
}
