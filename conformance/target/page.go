package target

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
)

// maxRedirects is how often the billing page may send a browser elsewhere.
const maxRedirects = 5

// Page signs u in to the billing page with its first key and returns the page's
// source. Every call signs in anew.
func (t *Target) Page(ctx context.Context, u *User) (string, error) {
	p := t.file.Can.Page
	if p == nil {
		return "", fmt.Errorf("%w: a billing page", ErrUnsupported)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: t.trust.Clone(), Protocols: t.protocol.alone()}
	defer transport.CloseIdleConnections()
	browser := &http.Client{
		Jar: jar, Transport: transport, Timeout: t.patience.answer(),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || r.URL.Host != via[0].URL.Host {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	form := url.Values{p.Field: {u.keys[0].Reveal()}}
	if a, err := t.browse(ctx, browser, post, p.SignIn, form); err != nil || a.status >= http.StatusBadRequest {
		return "", pageError("sign-in", p.SignIn, a.status, err)
	}
	a, err := t.browse(ctx, browser, get, p.Path, nil)
	switch {
	case err != nil || a.status != http.StatusOK:
		return "", pageError("page", p.Path, a.status, err)
	case a.path == p.SignIn && p.SignIn != p.Path:
		return "", fmt.Errorf("%w: can.page: whoever has signed in at %s is asked to do so again", ErrUntrue, p.SignIn)
	}
	return a.text, nil
}

// Negotiated is what the billing page says beside a negotiated value.
func (t *Target) Negotiated() string {
	if t.file.Can.Page == nil {
		return ""
	}
	return t.file.Can.Page.Negotiated
}

func pageError(what, path string, status int, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %s %s: %w", ErrAway, what, path, err)
	}
	if status < http.StatusInternalServerError {
		return fmt.Errorf("%w: can.page: %s %s answers %d", ErrUntrue, what, path, status)
	}
	return fmt.Errorf("%s %s answers %d", what, path, status)
}

// sight is what a browser has got to see, and where it was in the end.
type sight struct {
	status     int
	path, text string
}

// browse asks as a browser does, for the first base URL.
func (t *Target) browse(ctx context.Context, browser *http.Client, method, path string, form url.Values) (sight, error) {
	u := *t.bases[0]
	u.Path = path
	r, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return sight{}, err
	}
	r.Header.Set("User-Agent", t.agent)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", u.Scheme+"://"+u.Host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := browser.Do(r)
	if err != nil {
		return sight{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return sight{resp.StatusCode, resp.Request.URL.Path, string(body)}, err
}

// InternalRoutes are the requests that no user's key may carry out, for u and a
// dimension.
func (t *Target) InternalRoutes(u *User, d Dimension) []Request {
	var all []Request
	names := strings.NewReplacer("{user}", url.PathEscape(u.ID), "{dimension}", string(d))
	for _, route := range t.file.InternalRoutes {
		all = append(all, Request{Method: route.Method, Path: names.Replace(route.Path), Body: []byte(names.Replace(route.Body))})
	}
	return all
}
