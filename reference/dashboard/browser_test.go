package dashboard_test

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/dashboard"
)

var screenshots = flag.String("screenshots", "", "a folder to leave pictures of the pages in")

// patience is for a browser on a machine that is busy with other tests; nothing
// takes a part of it.
const patience = 2 * time.Minute

// plainName is a name of this machine that a browser takes for a plain web site.
const plainName = "billing.example"

// TestInBrowser shares one browser among its parts; each has a profile and a
// site of its own.
func TestInBrowser(t *testing.T) {
	program, err := exec.LookPath("chromium")
	require.NoError(t, err, "install it with: sudo apt-get update && sudo apt-get install -y chromium")
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.Env("TMPDIR="+t.TempDir()), // it leaves folders behind
		chromedp.NoSandbox,                  // it does not run as root otherwise, and sees nothing but our own pages
		chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("host-resolver-rules", "MAP "+plainName+" 127.0.0.1"),
	)...)
	t.Cleanup(stop)
	browser, quit := chromedp.NewContext(alloc)
	t.Cleanup(quit)
	require.NoError(t, chromedp.Do(browser), "chromium does not start")

	for name, part := range map[string]func(*testing.T, *tab){
		"signs in and out":         signsInAndOut,
		"shows what is negotiated": showsNegotiated,
		"refuses a wrong key":      refusesWrongKey,
		"keeps users apart":        keepsUsersApart,
		"ends with its key":        endsWithItsKey,
		"knows its own forms":      knowsItsOwnForms,
		"works over plain HTTP":    worksOverPlainHTTP,
		"works without scripts":    worksWithoutScripts,
		"never says who or why":    neverSaysWhoOrWhy,
		"is read easily":           isReadEasily,
		"is used by keyboard":      isUsedByKeyboard,
		"asks nobody else":         asksNobodyElse,
		"probes find what is bad":  probesFindWhatIsBad,
		"pictures":                 pictures,
	} {
		t.Run(name, func(t *testing.T) { part(t, newTab(t, browser)) })
	}
}

// tab is a tab of a fresh profile beside a site of its own.
type tab struct {
	*site
	ctx  context.Context
	home string // address of the server it looks at

	mu       sync.Mutex
	requests []string // method and address, in order
	blocked  []string // what the content policy kept from happening
}

func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	b := &tab{site: newSite(t)}
	b.home = serve(t, b.site)
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(ctx))
	ctx, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	b.ctx = ctx
	call(t, b, network.Enable, network.EnableParams{})
	call(t, b, log.Enable, cdp.Empty{})
	b.see(t, looks()[0])
	return b
}

// serve starts a server of h and returns its address.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.Method+" "+e.Request.URL)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity {
			b.blocked = append(b.blocked, e.Entry.Text)
		}
	}
}

// call sends a command of the browser's protocol.
func call[P, R any](t *testing.T, b *tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	require.NoError(t, err)
	return result
}

// run is what an action finds.
func run[T any](t *testing.T, b *tab, action chromedp.Action[T]) T {
	t.Helper()
	found, err := chromedp.Run(b.ctx, action)
	require.NoError(t, err)
	return found
}

// open goes to a path of the site.
func (b *tab) open(t *testing.T, path string) {
	t.Helper()
	run(t, b, chromedp.Navigate(b.home+path))
}

// signIn types a key into the form and posts it; it returns the status of the
// page that comes of it.
func (b *tab) signIn(t *testing.T, k account.Key) int64 {
	t.Helper()
	b.open(t, dashboard.SignInPath)
	run(t, b, chromedp.SendKeys(chromedp.CSS("#key"), k.Reveal()))
	return b.submit(t, chromedp.Click(chromedp.CSS(".key button")))
}

// submit does what sends a form, and returns the status of the page that comes
// of it.
func (b *tab) submit(t *testing.T, action chromedp.Action[chromedp.Void]) int64 {
	t.Helper()
	r, err := chromedp.RunResponse(b.ctx, action)
	require.NoError(t, err)
	return r.Status
}

// at is the path that the tab is at.
func (b *tab) at(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(run(t, b, chromedp.Location()))
	require.NoError(t, err)
	return u.RequestURI()
}

// text is what a reader sees, one space between words.
func (b *tab) text(t *testing.T) string {
	t.Helper()
	return strings.Join(strings.Fields(run(t, b, chromedp.Evaluate[string](`document.body.innerText`))), " ")
}

// spend leaves the tab's address without attempts.
func (b *tab) spend(t *testing.T) {
	t.Helper()
	for range anonymous.DefaultBurst {
		r := post(dashboard.SignInPath, keyForm(""))
		r.RemoteAddr = "127.0.0.1:1"
		b.ask(r)
	}
}

// look is one way to see a page.
type look struct {
	name          string
	dark          bool
	width, height int64
}

func looks() []look {
	return []look{{"light", false, 1280, 900}, {"dark", true, 1280, 900}, {"phone", false, 360, 740}, {"phone-dark", true, 390, 844}}
}

func (b *tab) see(t *testing.T, l look) {
	t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 500,
	})
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// everyPage brings the tab to each page that there is, and calls visit there.
func (b *tab) everyPage(t *testing.T, visit func(t *testing.T, page string)) {
	t.Helper()
	key := b.add(t, "user-17", "enterprise", negotiated)
	spent := b.add(t, "user-18", "free", used(117, 0))
	lost := b.add(t, "user-19", "pro", broken)
	long := b.add(t, strings.Repeat("somebody-", 12)+"long", "pro", scheduled("free"), used(1_999_999_999, 1), override("burst", "1000000", midMonth),
		func(b *account.Billing) {
			for id, p := range b.Plans {
				p.Name = strings.Repeat(p.Name, 10)
				b.Plans[id] = p
			}
		})

	pages := []struct {
		name string
		open func()
	}{
		{"sign-in", func() { b.open(t, dashboard.SignInPath) }},
		{"wrong-key", func() { b.signIn(t, wrongKey(t)) }},
		{"too-many", func() { b.spend(t); b.signIn(t, wrongKey(t)); b.clock.Advance(time.Minute) }},
		{"billing", func() { b.signIn(t, key) }},
		{"spent", func() { b.signIn(t, spent) }},
		{"long", func() { b.signIn(t, long) }},
		{"unresolved", func() { b.signIn(t, lost) }},
	}
	for _, p := range pages {
		p.open()
		visit(t, p.name)
	}
}

// pictures leaves pictures of every page, for people to look at.
func pictures(t *testing.T, b *tab) {
	if *screenshots == "" {
		t.Skip("with -screenshots FOLDER this leaves pictures")
	}
	require.NoError(t, os.MkdirAll(*screenshots, 0o755))
	b.everyPage(t, func(t *testing.T, page string) {
		for _, l := range looks() {
			b.see(t, l)
			png := run(t, b, chromedp.FullScreenshot(100))
			require.NoError(t, os.WriteFile(filepath.Join(*screenshots, page+"-"+l.name+".png"), png, 0o644))
		}
		b.see(t, looks()[0])
	})
}
