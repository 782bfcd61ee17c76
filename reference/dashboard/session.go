package dashboard

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/securecookie"

	"github.com/invoicespec/brimline/reference/account"
)

// MinSecretBytes is the shortest secret that sessions are signed and encrypted
// with.
const MinSecretBytes = 32

// SessionAge is how long a session lasts, by the machine's own clock: it bounds
// how long a browser keeps a cookie, which no test's clock moves.
const SessionAge = 8 * time.Hour

const (
	cookieName = "brimline-billing"
	cookiePath = "/dashboard"
)

// sessions keeps the digest of a key in a cookie that only this server can read
// or write.
type sessions struct{ codec *securecookie.SecureCookie }

func newSessions(secret []byte) (sessions, error) {
	if len(secret) < MinSecretBytes {
		return sessions{}, fmt.Errorf("the secret of the billing page's sessions has %d bytes: want %d or more", len(secret), MinSecretBytes)
	}
	var keys [2][]byte
	for i, use := range []string{"sign", "encrypt"} {
		k, err := hkdf.Key(sha256.New, secret, nil, "brimline billing session: "+use, 32)
		if err != nil {
			return sessions{}, fmt.Errorf("deriving the key to %s sessions with: %w", use, err)
		}
		keys[i] = k
	}
	codec := securecookie.New(keys[0], keys[1]).
		SetSerializer(securecookie.NopEncoder{}).
		MaxAge(int(SessionAge / time.Second)).
		MaxLength(512)
	return sessions{codec}, nil
}

// begin hands the browser a session of the key with digest d.
func (s sessions) begin(w http.ResponseWriter, r *http.Request, d account.Digest) error {
	value, err := s.codec.Encode(cookieName, d[:])
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie(r, value, int(SessionAge/time.Second)))
	return nil
}

// of is the digest in the session that r comes with, if there is one.
func (s sessions) of(r *http.Request) (account.Digest, bool) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return account.Digest{}, false
	}
	var value []byte
	if err := s.codec.Decode(cookieName, c.Value, &value); err != nil || len(value) != len(account.Digest{}) {
		return account.Digest{}, false
	}
	return account.Digest(value), true
}

// end takes the session from the browser. The cookie is written over and left to
// expire: a browser that keeps pages alive for the way back drops them for a
// cookie that changed, but (Chromium 156) not for one that was removed.
func (s sessions) end(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, cookie(r, "ended", int(time.Minute/time.Second)))
}

func cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: value, Path: cookiePath, MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
		// Behind a proxy that ends TLS the connection says nothing, but the
		// browser names the scheme it knows.
		Secure: r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://"),
	}
}
