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
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: t.trust.Clone()}
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
	if status, _, err := t.browse(ctx, browser, post, p.SignIn, form); err != nil || status >= http.StatusBadRequest {
		return "", pageError("sign-in", p.SignIn, status, err)
	}
	status, text, err := t.browse(ctx, browser, get, p.Path, nil)
	if err != nil || status != http.StatusOK {
		return "", pageError("page", p.Path, status, err)
	}
	return text, nil
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
	return fmt.Errorf("%s %s answers %d", what, path, status)
}

// browse asks as a browser does, for the first base URL.
func (t *Target) browse(ctx context.Context, browser *http.Client, method, path string, form url.Values) (int, string, error) {
	u := *t.bases[0]
	u.Path = path
	r, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("User-Agent", t.agent)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", u.Scheme+"://"+u.Host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := browser.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, string(body), err
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
