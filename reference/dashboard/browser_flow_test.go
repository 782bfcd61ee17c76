package dashboard_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
)

const signOutButton = chromedp.CSS(".out button")

func signsInAndOut(t *testing.T, b *tab) {
	k := b.add(t, "user-1", "pro")
	b.open(t, dashboard.BillingPath)
	require.Equal(t, dashboard.SignInPath, b.at(t), "nobody is signed in")

	require.EqualValues(t, http.StatusOK, b.signIn(t, k))
	require.Equal(t, dashboard.BillingPath, b.at(t))
	require.Equal(t, "Billing – brimline", run(t, b, chromedp.Title()))
	text := b.text(t)
	require.Contains(t, text, "user-1")
	require.Contains(t, text, "Plan Pro")
	require.Contains(t, text, "40 of 20,000 used")
	require.NotContains(t, run(t, b, chromedp.OuterHTML(chromedp.CSS("html"))), k.Reveal()[8:16])
	require.Empty(t, run(t, b, chromedp.Evaluate[string](`document.cookie`)), "no script could read the session")

	require.EqualValues(t, http.StatusOK, b.submit(t, chromedp.Click(signOutButton)))
	require.Equal(t, dashboard.SignInPath, b.at(t))
	run(t, b, chromedp.NavigateBack())
	require.Equal(t, dashboard.SignInPath, b.at(t), "the page is not kept alive for whoever goes back to it")
	b.open(t, dashboard.BillingPath)
	require.Equal(t, dashboard.SignInPath, b.at(t))
}

func showsNegotiated(t *testing.T, b *tab) {
	b.signIn(t, b.add(t, "user-17", "enterprise", negotiated))
	text := b.text(t)
	require.Contains(t, text, "Plan Enterprise Changes to Pro on 1 December 2026, 00:00 UTC")
	require.Contains(t, text, "1,200 negotiated until 14 December 2026, 12:00 UTC")
	require.Contains(t, text, "100 plan default")
	require.Contains(t, text, "64 negotiated no end date")

	b.clock.Advance(midMonth.Sub(today))
	run(t, b, chromedp.Reload())
	text = b.text(t)
	require.Contains(t, text, "Plan Pro Rate limits")
	require.Contains(t, text, "300 plan default", "it expired, and the plan's value is back")
	require.Contains(t, text, "64 negotiated no end date")
	require.Equal(t, 1, strings.Count(text, "negotiated"))
}

func refusesWrongKey(t *testing.T, b *tab) {
	wrong := wrongKey(t)
	require.EqualValues(t, http.StatusUnprocessableEntity, b.signIn(t, wrong))
	require.Equal(t, dashboard.SignInPath, b.at(t), "the key is not in the address")
	require.Contains(t, b.text(t), "That key did not work.")
	run(t, b, chromedp.Poll[bool](`document.activeElement.id === "key"`)) // ready for another
	require.Empty(t, run(t, b, chromedp.Value(chromedp.CSS("#key"))))
	require.NotContains(t, run(t, b, chromedp.OuterHTML(chromedp.CSS("html"))), wrong.Reveal()[8:16])
	require.Empty(t, b.cookies(t))

	b.spend(t)
	require.EqualValues(t, http.StatusTooManyRequests, b.signIn(t, wrong))
	require.Contains(t, b.text(t), "You can try again in 2 seconds.")
	b.clock.Advance(2 * time.Second)
	b.submit(t, chromedp.Click(chromedp.CSS("main a")))
	require.Equal(t, dashboard.SignInPath, b.at(t))
	require.EqualValues(t, http.StatusOK, b.signIn(t, b.add(t, "user-1", "pro")))
}

// cookies are those that the browser would send to the page.
func (b *tab) cookies(t *testing.T) []*network.Cookie {
	t.Helper()
	return call(t, b, network.GetCookies, network.GetCookiesParams{URLs: []string{b.home + dashboard.BillingPath}}).Cookies
}

func keepsUsersApart(t *testing.T, b *tab) {
	theirs := b.session(t, b.add(t, "user-2", "enterprise"))
	b.signIn(t, b.add(t, "user-1", "pro"))
	mine := b.cookies(t)
	require.Len(t, mine, 1)
	require.True(t, mine[0].HTTPOnly)
	require.Equal(t, network.CookieSameSiteLax, mine[0].SameSite)

	half := len(theirs.Value) / 2
	for name, value := range map[string]string{
		"halves":    mine[0].Value[:half] + theirs.Value[half:],
		"cut short": theirs.Value[:half],
		"a name":    "user-2",
	} {
		call(t, b, network.SetCookie, network.SetCookieParams{Name: mine[0].Name, Value: value, URL: b.home, Path: mine[0].Path})
		b.open(t, dashboard.BillingPath)
		require.Equal(t, dashboard.SignInPath, b.at(t), name)
		require.NotContains(t, b.text(t), "user-", name)
	}
	call(t, b, network.SetCookie, network.SetCookieParams{Name: mine[0].Name, Value: mine[0].Value, URL: b.home, Path: mine[0].Path})
	for _, path := range []string{"", "?user=user-2", "?user-2"} {
		b.open(t, dashboard.BillingPath+path)
		text := b.text(t)
		require.Contains(t, text, "user-1")
		require.NotContains(t, text, "user-2")
	}
}

func endsWithItsKey(t *testing.T, b *tab) {
	k := b.add(t, "user-1", "pro")
	b.signIn(t, k)
	require.Len(t, b.cookies(t), 1)
	b.revoke(k)
	run(t, b, chromedp.Reload())
	require.Equal(t, dashboard.SignInPath, b.at(t))
	require.NotContains(t, b.text(t), "user-1")
	run(t, b, chromedp.NavigateBack())
	require.Equal(t, dashboard.SignInPath, b.at(t))
}

// knowsItsOwnForms posts the page's forms from other origins: from another port,
// where the cookie comes along, and from another site.
func knowsItsOwnForms(t *testing.T, b *tab) {
	k := b.add(t, "user-1", "pro")
	other := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="%s"><input name="key" value="%s"><button>Win a prize</button></form>`, r.URL.Query().Get("to"), k.Reveal())
	}))
	for _, from := range []string{other, strings.Replace(other, "127.0.0.1", "localhost", 1)} {
		for _, path := range []string{dashboard.SignOutPath, dashboard.SignInPath} {
			b.signIn(t, k)
			before := b.asked()
			run(t, b, chromedp.Navigate(from+"?to="+b.home+path))
			require.EqualValues(t, http.StatusForbidden, b.submit(t, chromedp.Click(chromedp.CSS("button"))), from)
			require.Contains(t, b.text(t), "nothing was done")
			require.Equal(t, before, b.asked())
			b.open(t, dashboard.BillingPath)
			require.Contains(t, b.text(t), "user-1", "still signed in")
		}
	}
}

// worksOverPlainHTTP is by a name for which a browser does not say where a form
// comes from but by its origin.
func worksOverPlainHTTP(t *testing.T, b *tab) {
	b.home = strings.Replace(b.home, "127.0.0.1", plainName, 1)
	require.EqualValues(t, http.StatusOK, b.signIn(t, b.add(t, "user-1", "pro")))
	require.Contains(t, b.text(t), "user-1")
	require.False(t, run(t, b, chromedp.Evaluate[bool](`isSecureContext`)))
	b.submit(t, chromedp.Click(signOutButton))
	require.Equal(t, dashboard.SignInPath, b.at(t))
}

func worksWithoutScripts(t *testing.T, b *tab) {
	call(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	k := b.add(t, "user-1", "pro")
	run(t, b, chromedp.Navigate(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<title>off</title><script>document.title = "on"</script>`)
	}))))
	require.Equal(t, "off", run(t, b, chromedp.Title()))

	require.EqualValues(t, http.StatusUnprocessableEntity, b.signIn(t, wrongKey(t)))
	require.EqualValues(t, http.StatusOK, b.signIn(t, k))
	require.Contains(t, b.text(t), "user-1")
	b.submit(t, chromedp.Click(signOutButton))
	require.Equal(t, dashboard.SignInPath, b.at(t))
}

// neverSaysWhoOrWhy looks at the page over a store that knows both.
func neverSaysWhoOrWhy(t *testing.T, b *tab) {
	store := memory.New(plans(), b.clock)
	user, keys, err := store.CreateUser(t.Context(), "enterprise", 1)
	require.NoError(t, err)
	note := account.Note{Author: "ada-the-operator", Reason: "signed-in-blood"}
	for i, d := range policy.Dimensions() {
		o := policy.Override{Dimension: d, Value: fmt.Sprint(7 + i)}
		require.NoError(t, store.SetOverride(t.Context(), user, o, note))
		require.NoError(t, store.SetOverride(t.Context(), user, o, note), "one that was replaced has a note as well")
	}
	history, err := store.Overrides(t.Context(), user)
	require.NoError(t, err)
	written, err := json.Marshal(history)
	require.NoError(t, err)
	require.Contains(t, string(written), note.Reason, "the audit trail has it")

	b.home = serve(t, handler(t, dashboard.Ports{
		Clock: b.clock, Accounts: store, Digest: store.Digest, Secret: make([]byte, dashboard.MinSecretBytes),
	}, b.logged))
	b.signIn(t, keys[0])
	require.Equal(t, 3, strings.Count(b.text(t), "negotiated"))
	source := run(t, b, chromedp.OuterHTML(chromedp.CSS("html")))
	require.Contains(t, source, user)
	for _, secret := range []string{note.Author, note.Reason} {
		require.NotContains(t, source, secret)
	}
}
