package dashboard_test

import (
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	styles = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
)

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update once, and read what it wrote")
	require.Equal(t, string(want), got)
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

// visible is the text of a page, one space between words.
func visible(page string) string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(styles.ReplaceAllString(page, ""), " ")), " ")
}

// page is what a user sees.
func (s *site) page(t *testing.T, k account.Key) string {
	t.Helper()
	resp := s.ask(get(dashboard.BillingPath), s.session(t, k))
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return body(t, resp)
}

var (
	midMonth   = time.Date(2026, 12, 14, 12, 0, 0, 0, time.UTC)
	negotiated = func(b *account.Billing) {
		scheduled("pro")(b)
		used(41_250, 58_750)(b)
		override(policy.RequestsPerMinute, "1200", midMonth)(b)
		override(policy.Concurrency, "64", time.Time{})(b)
	}
)

// everyAnswer is one of each kind that the site gives.
func everyAnswer(t *testing.T) map[string]*http.Response {
	t.Helper()
	s := newSite(t)
	cookies := map[string]*http.Cookie{
		"negotiated": s.session(t, s.add(t, "user-17", "enterprise", negotiated)),
		"defaults":   s.session(t, s.add(t, "user-18", "free")),
		"spent":      s.session(t, s.add(t, "user-19", "free", used(117, 0))),
		"unresolved": s.session(t, s.add(t, "user-20", "pro", broken)),
	}
	all := map[string]*http.Response{
		"sign-in":      s.ask(get(dashboard.SignInPath)),
		"refused":      s.ask(post(dashboard.SignInPath, keyForm("x"))),
		"too-large":    s.ask(post(dashboard.SignInPath, keyForm(strings.Repeat("x", 5000)))),
		"cross-origin": s.ask(crossOrigin()),
		"signed-out":   s.ask(get(dashboard.BillingPath)),
		"sign-out":     s.ask(post(dashboard.SignOutPath, nil)),
		"not-found":    s.ask(get("/dashboard/else")),
		"wrong-method": s.ask(post(dashboard.BillingPath, nil)),
	}
	for name, c := range cookies {
		all[name] = s.ask(get(dashboard.BillingPath), c)
	}
	s.fail(errStore)
	all["away"] = s.ask(get(dashboard.BillingPath), cookies["defaults"])
	for range anonymous.DefaultBurst {
		s.ask(post(dashboard.SignInPath, nil))
	}
	all["too-many"] = s.ask(post(dashboard.SignInPath, nil))
	return all
}

func crossOrigin() *http.Request {
	r := post(dashboard.SignOutPath, nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	return r
}

func TestPages(t *testing.T) {
	status := map[string]int{}
	for name, resp := range everyAnswer(t) {
		status[name] = resp.StatusCode
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && resp.StatusCode != http.StatusSeeOther {
			golden(t, name+".html.txt", styles.ReplaceAllString(body(t, resp), "<style>…</style>"))
		}
	}
	require.Equal(t, map[string]int{
		"sign-in": 200, "negotiated": 200, "defaults": 200, "spent": 200, "sign-out": 303, "signed-out": 303,
		"cross-origin": 403, "not-found": 404, "wrong-method": 405, "too-large": 413, "refused": 422, "too-many": 429,
		"unresolved": 503, "away": 503,
	}, status)
}

func TestEveryAnswerIsProtected(t *testing.T) {
	for name, resp := range everyAnswer(t) {
		t.Run(name, func(t *testing.T) {
			text := body(t, resp)
			h := maps.Clone(resp.Header)
			require.Equal(t, []string{"no-store"}, h["Cache-Control"])
			require.Equal(t, []string{"nosniff"}, h["X-Content-Type-Options"])
			require.Equal(t, []string{"same-origin"}, h["Referrer-Policy"])
			policy := h.Get("Content-Security-Policy")
			require.Regexp(t, `^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$`, policy)

			require.NotRegexp(t, `(?i)<(script|link|img|iframe|object|embed|base)\b|\son\w+\s*=|\sstyle\s*=|url\(|@import|https?:|javascript:`, text)
			for _, style := range styles.FindAllStringSubmatch(text, -1) {
				digest := sha256.Sum256([]byte(style[1]))
				require.Contains(t, policy, "'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'")
			}
		})
	}
}

func TestEveryPathIsAnswered(t *testing.T) {
	s := newSite(t)
	for _, path := range dashboard.Paths() {
		require.NotEqual(t, http.StatusNotFound, s.ask(get(path)).StatusCode, path)
	}
	head := get(dashboard.SignInPath)
	head.Method = http.MethodHead
	require.Equal(t, http.StatusOK, s.ask(head).StatusCode)
}

func TestValuesAndWhoseTheyAre(t *testing.T) {
	const week = 7 * 24 * time.Hour
	rate, burst := policy.RequestsPerMinute, policy.Burst
	for name, c := range map[string]struct {
		changes []func(*account.Billing)
		after   time.Duration
		want    []string // rate, burst, concurrency
	}{
		"a plan's own":             {nil, 0, []string{"300 plan default", "100 plan default", "20 plan default"}},
		"raised, no end":           {[]func(*account.Billing){override(burst, "1000000", time.Time{})}, 0, []string{"300 plan default", "1,000,000 negotiated no end date", "20 plan default"}},
		"lowered, with an end":     {[]func(*account.Billing){override(rate, "7", midMonth)}, 0, []string{"7 negotiated until 14 December 2026 , 12:00 UTC", "100 plan default", "20 plan default"}},
		"the plan's value itself":  {[]func(*account.Billing){override(rate, "300", midMonth)}, 0, []string{"300 negotiated until 14 December 2026 , 12:00 UTC", "100 plan default", "20 plan default"}},
		"an instant before expiry": {[]func(*account.Billing){override(rate, "7", today.Add(week))}, week - 1, []string{"7 negotiated until 7 December 2026 , 09:30 UTC", "100 plan default", "20 plan default"}},
		"at its expiry":            {[]func(*account.Billing){override(rate, "7", today.Add(week))}, week, []string{"300 plan default", "100 plan default", "20 plan default"}},
		"one expired, one not":     {[]func(*account.Billing){override(rate, "9", time.Time{}), override(rate, "7", today.Add(-week))}, 0, []string{"9 negotiated no end date", "100 plan default", "20 plan default"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			k := s.add(t, "user-1", "pro", c.changes...)
			s.clock.Advance(c.after)
			text := visible(s.page(t, k))
			var got []string
			for _, m := range regexp.MustCompile(`(?:keep up|after a rest|together) ([0-9,]+ (?:plan default|negotiated (?:no end date|until .*? UTC)))`).FindAllStringSubmatch(text, -1) {
				got = append(got, m[1])
			}
			require.Equal(t, c.want, got)
			require.Equal(t, strings.Count(strings.Join(c.want, " "), "negotiated"), strings.Count(text, "negotiated"), "nowhere else")
		})
	}
}

func TestScheduledPlan(t *testing.T) {
	s := newSite(t)
	k := s.add(t, "user-1", "free", scheduled("pro"))
	s.clock.Advance(period.End.Sub(today) - 1)
	text := visible(s.page(t, k))
	require.Contains(t, text, "Plan free Changes to pro on 1 December 2026 , 00:00 UTC")
	require.Contains(t, text, "keep up 10 plan default")
	s.clock.Advance(1)
	text = visible(s.page(t, k))
	require.Contains(t, text, "Plan pro Rate limits")
	require.Contains(t, text, "keep up 300 plan default")
}

func TestOperations(t *testing.T) {
	for name, c := range map[string]struct {
		used, left  int64
		want, meter string
	}{
		"none used":               {0, 100, "0 of 100 used 0 % 100 left in", `meter" .* width="0"`},
		"one of many":             {1, 999_999, "1 of 1,000,000 used under 0.01 % 999,999 left in", `meter" .* width="8"`},
		"half":                    {50, 50, "50 of 100 used 50 % 50 left in", `meter" .* width="500"`},
		"one left":                {999, 1, "999 of 1,000 used 99.9 % 1 left in", `meter" .* width="992"`},
		"all":                     {100, 0, "100 of 100 used 100 % None left in", `meter full" .* width="1000"`},
		"more than the plan's":    {117, 0, "117 of 117 used 100 % None left in", `meter full" .* width="1000"`},
		"nothing at all":          {0, 0, "0 of 0 used None left in", `meter full" .* width="0"`},
		"more than the plan left": {90, 510, "90 of 600 used 15 % 510 left in", `meter" .* width="150"`},
		"less than the plan left": {30, 20, "30 of 50 used 60 % 20 left in", `meter" .* width="600"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			k := s.add(t, "user-1", "pro", used(c.used, c.left))
			page := s.page(t, k)
			require.Contains(t, visible(page), c.want)
			require.Regexp(t, c.meter, page)
			require.Contains(t, visible(page), "Billing period: 1 November 2026 , 00:00 UTC – 1 December 2026 , 00:00 UTC")
		})
	}
}

// The page of an account whose policy does not resolve has no limit on it at
// all: not its plan's, not another's.
func TestUnresolvablePolicyShowsNoLimits(t *testing.T) {
	for name, change := range map[string]func(*account.Billing){
		"missing":        broken,
		"malformed":      func(b *account.Billing) { b.Plans["pro"].Entitlements[policy.Burst] = "unlimited" },
		"override":       override(policy.RequestsPerMinute, "0", time.Time{}),
		"no such plan":   func(b *account.Billing) { delete(b.Plans, "pro") },
		"odd dimension":  override("requests", "5", time.Time{}),
		"another's only": func(b *account.Billing) { b.Plans = map[string]policy.Plan{"free": plans()["free"]} },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			c := s.session(t, s.add(t, "user-1", "pro", change))
			resp := s.ask(get(dashboard.BillingPath), c)
			require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
			text := visible(body(t, resp))
			require.Contains(t, text, "Your limits cannot be determined")
			require.Equal(t, []string{"1", "503"}, regexp.MustCompile(`[0-9]+`).FindAllString(text, -1), "the user's name and the status")
			require.Contains(t, s.logged.String(), "user=user-1")
		})
	}
}

// Text of the store is text: no markup, whatever it says.
func TestTextIsEscaped(t *testing.T) {
	const attack = `</style></p><script>alert(1)</script><img src=x onerror=alert(1)>"'` + "`{{.}}"
	s := newSite(t)
	hostile := s.page(t, s.add(t, attack, "pro", scheduled("free"), func(b *account.Billing) {
		for id, p := range b.Plans {
			p.Name = attack
			b.Plans[id] = p
		}
	}))
	tame := s.page(t, s.add(t, "user-1", "pro", scheduled("free")))
	require.NotContains(t, hostile, "<script")
	require.NotContains(t, hostile, "<img")
	require.Equal(t, 3, strings.Count(hostile, "&lt;script&gt;"), "the user, the plan and the next one")
	require.Len(t, tags.FindAllString(hostile, -1), len(tags.FindAllString(tame, -1)))
}

// The key goes from the form to its digest and nowhere else.
func TestKeyIsNowhere(t *testing.T) {
	s := newSite(t)
	k, lost := s.add(t, "user-1", "pro"), s.add(t, "user-2", "pro", broken)
	revoked := s.add(t, "user-3", "pro")
	s.revoke(revoked)
	var all strings.Builder
	for _, key := range []account.Key{k, lost, revoked} {
		in := s.ask(post(dashboard.SignInPath, keyForm(key.Reveal())))
		fmt.Fprint(&all, in.Header, body(t, in))
		out := s.ask(get(dashboard.BillingPath), in.Cookies()...)
		fmt.Fprint(&all, out.Header, body(t, out))
	}
	s.fail(errStore)
	fmt.Fprint(&all, body(t, s.ask(post(dashboard.SignInPath, keyForm(k.Reveal())))))
	all.WriteString(s.logged.String())
	require.NotEmpty(t, s.logged.String())
	for _, key := range []account.Key{k, lost, revoked} {
		require.NotContains(t, all.String(), key.Reveal()[8:16])
	}
}
