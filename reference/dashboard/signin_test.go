package dashboard_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/dashboard"
)

// ask sends a request to the site as a browser would that holds cookies.
func (s *site) ask(r *http.Request, cookies ...*http.Cookie) *http.Response {
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

func post(path string, form url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func keyForm(text string) url.Values { return url.Values{dashboard.KeyField: {text}} }

// wrongKey is a key that nobody has.
func wrongKey(t *testing.T) account.Key {
	t.Helper()
	k, err := account.NewKey("pro")
	require.NoError(t, err)
	return k
}

// session signs in and returns the cookie.
func (s *site) session(t *testing.T, k account.Key) *http.Cookie {
	t.Helper()
	resp := s.ask(post(dashboard.SignInPath, keyForm(k.Reveal())))
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
	require.Equal(t, dashboard.BillingPath, resp.Header.Get("Location"))
	require.Len(t, resp.Cookies(), 1)
	return resp.Cookies()[0]
}

// requireSignedOut asks for the page with a cookie that is no session.
func (s *site) requireSignedOut(t *testing.T, cookies ...*http.Cookie) *http.Response {
	t.Helper()
	resp := s.ask(get(dashboard.BillingPath), cookies...)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
	require.Equal(t, dashboard.SignInPath, resp.Header.Get("Location"))
	require.NotContains(t, body(t, resp), "user-")
	return resp
}

func TestSessionCookie(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	c := s.session(t, k)
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, c.SameSite)
	require.Equal(t, "/dashboard", c.Path)
	require.Equal(t, int(dashboard.SessionAge/time.Second), c.MaxAge)
	require.Empty(t, c.Domain)
	require.False(t, c.Secure, "plain HTTP would not send it back")

	digest := s.digester.Of(k)
	inside, err := base64.URLEncoding.DecodeString(c.Value)
	require.NoError(t, err)
	for _, secret := range []string{
		k.Reveal(), k.Reveal()[8:20], string(digest[:]), hex.EncodeToString(digest[:]), base64.URLEncoding.EncodeToString(digest[:])[:40],
	} {
		require.NotContains(t, c.Value+string(inside), secret)
	}

	require.Contains(t, body(t, s.ask(get(dashboard.BillingPath), c)), "user-1")
	require.NotEqual(t, c.Value, s.session(t, k).Value, "two sessions are told apart")
}

func TestSessionCookieIsSecureWhereTheBrowserUsesTLS(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   bool
	}{
		"plain":                    {func(r *http.Request) { r.Header.Set("Origin", "http://example.com") }, false},
		"TLS":                      {func(r *http.Request) { r.TLS = &tls.ConnectionState{} }, true},
		"proxy that ends TLS":      {func(r *http.Request) { r.Header.Set("Origin", "https://example.com") }, true},
		"what anybody could write": {func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(dashboard.SignInPath, keyForm(k.Reveal()))
			c.change(r)
			require.Equal(t, c.want, s.ask(r).Cookies()[0].Secure)
		})
	}
}

// Whatever is wrong with a key, the answer is the same to the byte, and costs the
// address an attempt.
func TestWrongKeys(t *testing.T) {
	known := newSite(t).add(t, "user-1", "pro")
	answer := ""
	for name, r := range map[string]func(good string) *http.Request{
		"never issued": func(string) *http.Request { return post(dashboard.SignInPath, keyForm(wrongKey(t).Reveal())) },
		"of another server": func(string) *http.Request {
			return post(dashboard.SignInPath, keyForm(known.Reveal()))
		},
		"malformed":      func(string) *http.Request { return post(dashboard.SignInPath, keyForm("<b>isk_")) },
		"empty":          func(string) *http.Request { return post(dashboard.SignInPath, keyForm("")) },
		"long":           func(string) *http.Request { return post(dashboard.SignInPath, keyForm(strings.Repeat("x", 4000))) },
		"no field":       func(string) *http.Request { return post(dashboard.SignInPath, nil) },
		"two fields":     func(good string) *http.Request { return post(dashboard.SignInPath, url.Values{"key": {good, good}}) },
		"in the address": func(good string) *http.Request { return post(dashboard.SignInPath+"?key="+good, nil) },
		"as a header": func(good string) *http.Request {
			r := post(dashboard.SignInPath, nil)
			r.Header.Set("Authorization", "Bearer "+good)
			return r
		},
		"no form": func(good string) *http.Request {
			r := post(dashboard.SignInPath, keyForm(good))
			r.Header.Set("Content-Type", "text/plain")
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			good := s.add(t, "user-1", "pro")
			for range anonymous.DefaultBurst {
				resp := s.ask(r(good.Reveal()))
				require.Equal(t, http.StatusUnprocessableEntity, resp.StatusCode)
				require.Empty(t, resp.Cookies())
				text := body(t, resp)
				if answer == "" {
					answer = text
				}
				require.Equal(t, answer, text)
			}
			require.Equal(t, http.StatusTooManyRequests, s.ask(r(good.Reveal())).StatusCode)
			require.Empty(t, s.logged.String(), "a wrong key is no news")
		})
	}
}

func TestKeyIsPastedWithBlanks(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	resp := s.ask(post(dashboard.SignInPath, keyForm("\t "+k.Reveal()+"\r\n")))
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
}

func TestGate(t *testing.T) {
	s := newSite(t)
	good, other := s.add(t, "user-1", "pro"), s.add(t, "user-2", "free")
	for range 3 * anonymous.DefaultBurst {
		s.session(t, good) // costs nothing
	}
	for range anonymous.DefaultBurst {
		require.Equal(t, http.StatusUnprocessableEntity, s.ask(post(dashboard.SignInPath, keyForm(wrongKey(t).Reveal()))).StatusCode)
	}
	before := s.asked()
	for _, k := range []account.Key{wrongKey(t), other} {
		resp := s.ask(post(dashboard.SignInPath, keyForm(k.Reveal())))
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		require.Equal(t, "2", resp.Header.Get("Retry-After"), "30 a minute")
		require.Empty(t, resp.Cookies())
		text := body(t, resp)
		require.Contains(t, text, "try again in 2 seconds")
		for _, word := range []string{"user", "plan", "pro", "free", "quota"} {
			require.NotRegexp(t, `(?i)\b`+word+`\b`, visible(text))
		}
	}
	require.Equal(t, before, s.asked(), "rejected before the store is asked")

	s.session(t, good) // lately seen good
	c := s.session(t, good)
	require.Equal(t, http.StatusOK, s.ask(get(dashboard.BillingPath), c).StatusCode, "a view is no attempt")

	elsewhere := post(dashboard.SignInPath, keyForm(other.Reveal()))
	elsewhere.RemoteAddr = "198.51.100.7:1234"
	require.Equal(t, http.StatusSeeOther, s.ask(elsewhere).StatusCode)

	s.clock.Advance(2 * time.Second)
	s.session(t, other)
}

func TestStoreOutOfReach(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	c := s.session(t, k)
	s.fail(errStore)
	for name, r := range map[string]*http.Request{
		"sign-in": post(dashboard.SignInPath, keyForm(k.Reveal())),
		"billing": get(dashboard.BillingPath),
	} {
		t.Run(name, func(t *testing.T) {
			resp := s.ask(r, c)
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
			require.Empty(t, resp.Cookies(), "the session goes on")
			require.NotContains(t, body(t, resp), errStore.Error())
			require.Contains(t, s.logged.String(), errStore.Error())
		})
	}
	s.fail(nil)
	require.Equal(t, http.StatusOK, s.ask(get(dashboard.BillingPath), c).StatusCode)
}

func TestFormIsBounded(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"too large":   {"key=" + k.Reveal() + "&x=" + strings.Repeat("y", 4<<10), http.StatusRequestEntityTooLarge},
		"huge":        {strings.Repeat("z", 1<<20), http.StatusRequestEntityTooLarge},
		"no encoding": {"key=%zz", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, dashboard.SignInPath, strings.NewReader(c.text))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			resp := s.ask(r)
			require.Equal(t, c.want, resp.StatusCode)
			require.Empty(t, resp.Cookies())
			require.Zero(t, s.asked())
		})
	}
}

// In a bubble the clock that sessions are dated by is the test's.
func TestSessionEndsByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		c := s.session(t, s.add(t, "user-1", "pro"))
		time.Sleep(dashboard.SessionAge)
		require.Equal(t, http.StatusOK, s.ask(get(dashboard.BillingPath), c).StatusCode)
		time.Sleep(time.Second)
		s.requireSignedOut(t, c)
	})
}

func TestSessionOfAnotherIsOutOfReach(t *testing.T) {
	s := newSite(t)
	mine, theirs := s.session(t, s.add(t, "user-1", "pro")), s.session(t, s.add(t, "user-2", "enterprise"))
	page := body(t, s.ask(get(dashboard.BillingPath), mine))
	require.Contains(t, page, "user-1")
	require.NotContains(t, page, "user-2")

	s.requireSignedOut(t)
	inside, err := base64.URLEncoding.DecodeString(mine.Value)
	require.NoError(t, err)
	for i := range inside {
		inside[i] ^= 1
		s.requireSignedOut(t, &http.Cookie{Name: mine.Name, Value: base64.URLEncoding.EncodeToString(inside)})
		inside[i] ^= 1
	}
	for name, value := range map[string]string{
		"empty": "", "no cookie of ours": "user-2", "halves of two": mine.Value[:len(mine.Value)/2] + theirs.Value[len(mine.Value)/2:],
		"twice": mine.Value + mine.Value, "long": strings.Repeat("A", 8000),
	} {
		t.Run(name, func(t *testing.T) { s.requireSignedOut(t, &http.Cookie{Name: mine.Name, Value: value}) })
	}
	t.Run("under another name", func(t *testing.T) { s.requireSignedOut(t, &http.Cookie{Name: "brimline", Value: mine.Value}) })
	t.Run("another secret", func(t *testing.T) {
		other := newSite(t, []byte("another secret, no shorter than the first")...)
		k := other.add(t, "user-3", "free")
		s.requireSignedOut(t, other.session(t, k))
	})
}

func TestRevokedKeyEndsItsSessions(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	first, second := s.session(t, k), s.session(t, k)
	other := s.session(t, s.add(t, "user-2", "pro"))
	s.revoke(k)
	for _, c := range []*http.Cookie{first, second} {
		resp := s.requireSignedOut(t, c)
		requireEnded(t, resp)
	}
	require.Equal(t, http.StatusOK, s.ask(get(dashboard.BillingPath), other).StatusCode)
	require.Equal(t, http.StatusUnprocessableEntity, s.ask(post(dashboard.SignInPath, keyForm(k.Reveal()))).StatusCode)
}

// requireEnded sees to it that an answer takes the session from the browser.
func requireEnded(t *testing.T, resp *http.Response) {
	t.Helper()
	require.Len(t, resp.Cookies(), 1)
	c := resp.Cookies()[0]
	require.Equal(t, []any{"brimline-billing", "ended", "/dashboard", 60}, []any{c.Name, c.Value, c.Path, c.MaxAge})
}

func TestSignOut(t *testing.T) {
	s := newSite(t)
	c := s.session(t, s.add(t, "user-1", "pro"))
	resp := s.ask(post(dashboard.SignOutPath, nil), c)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode)
	require.Equal(t, dashboard.SignInPath, resp.Header.Get("Location"))
	requireEnded(t, resp)
	s.requireSignedOut(t, resp.Cookies()...)

	resp = s.ask(get(dashboard.SignOutPath), c)
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode, "a link signs nobody out")
	require.Empty(t, resp.Cookies())
}

// A form of another origin does nothing, whether the cookie comes along or not.
func TestCrossOriginForms(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "pro")
	c := s.session(t, k)
	for name, header := range map[string]http.Header{
		"another site":                 {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}},
		"a sibling":                    {"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://other.example.com"}},
		"an old browser":               {"Origin": {"https://evil.example"}},
		"an old browser, another port": {"Origin": {"http://example.com:8080"}},
		"a sandboxed frame":            {"Origin": {"null"}},
	} {
		for _, path := range []string{dashboard.SignInPath, dashboard.SignOutPath} {
			t.Run(fmt.Sprint(name, " ", path), func(t *testing.T) {
				r := post(path, keyForm(k.Reveal()))
				for n, v := range header {
					r.Header[n] = v
				}
				before := s.asked()
				resp := s.ask(r, c)
				require.Equal(t, http.StatusForbidden, resp.StatusCode)
				require.Empty(t, resp.Cookies())
				require.Equal(t, before, s.asked())
			})
		}
	}
	same := post(dashboard.SignOutPath, nil)
	same.Header.Set("Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusSeeOther, s.ask(same, c).StatusCode)
}

func TestShortSecretIsRefused(t *testing.T) {
	_, err := dashboard.New(dashboard.Ports{Secret: make([]byte, dashboard.MinSecretBytes-1)})
	require.EqualError(t, err, "the secret of the billing page's sessions has 31 bytes: want 32 or more")
}
