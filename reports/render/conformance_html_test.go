package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func pageOf(t *testing.T, c record.Conformance) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, render.ConformanceHTML(&b, c))
	return b.String()
}

func TestConformanceHTML(t *testing.T) {
	for name, c := range map[string]record.Conformance{"conformance-expected.html.txt": expected(), "conformance-pass.html.txt": kept()} {
		t.Run(name, func(t *testing.T) { golden(t, name, []byte(pageOf(t, c))) })
	}
}

// The page asks nobody for anything, and its policy would not let it.
func TestConformanceHTMLStandsAlone(t *testing.T) {
	page := pageOf(t, expected())
	require.NotRegexp(t, `(?i)<script|<link|<img|<iframe|@import|url\(|\son[a-z]+=|style="`, page)
	for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.Regexp(t, `^#[A-Z]+-[0-9]+$`, m[1])
		require.Contains(t, page, fmt.Sprintf(`id="%s"`, m[1][1:]), "a link leads somewhere")
	}
	style := page[strings.Index(page, "<style>")+len("<style>") : strings.Index(page, "</style>")]
	digest := sha256.Sum256([]byte(style))
	require.Contains(t, html.UnescapeString(page), "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'")
}

// Whatever a target sends stays text.
func TestConformanceHTMLOfHostileAnswers(t *testing.T) {
	const evil = "</code><script>alert(1)</script>\x1b[31m\u202e"
	c := expected()
	c.Target.Description, c.Target.Server, c.Reproduce.Command = evil, evil, evil
	c.Clauses[2].Reason = evil
	f := &c.Clauses[4].Scenarios[1].Findings[0]
	f.Got, f.Exchange, f.Answer, f.Field = evil, evil, evil+"\r\n"+evil, evil
	page := pageOf(t, c)
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "\x1b")
	require.NotContains(t, page, "\u202e")
	require.Contains(t, page, `&lt;/code&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u001b[31m\u202e`)
}

func TestConformanceHTMLShowsThreeFindingsOfAScenario(t *testing.T) {
	c := judged()
	s := &c.Clauses[4].Scenarios[1]
	for range 4 {
		s.Findings = append(s.Findings, s.Findings[0])
	}
	require.Contains(t, pageOf(t, c), "2 more of this scenario in conformance.json.")
}

// TestConformancePageInABrowser: nothing hangs over at any width, the sieve
// shows what it says, by keyboard too, and a link leads to a clause that the
// sieve hides.
func TestConformancePageInABrowser(t *testing.T) {
	ctx, page := browser(t, pageOf(t, expected()))
	for _, width := range []int64{360, 400, 560, 561, 860, 861, 1200} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page)))
		over, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
		require.NoError(t, err)
		require.Zero(t, over, "the page at %d", width)
	}
	seen := func() []string {
		t.Helper()
		list, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`[...document.querySelectorAll('.clause, .group')].filter(e => e.offsetHeight > 0).map(e => e.id || e.querySelector('h3').textContent)`))
		require.NoError(t, err)
		return list
	}
	require.Len(t, seen(), 9+6, "clauses and groups")
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#show-differs"))))
	require.Equal(t, []string{"Errors", "ERR-4"}, seen())
	require.NoError(t, chromedp.Do(ctx, chromedp.KeyEvent(kb.ArrowDown)))
	require.Equal(t, []string{"Request rate", "RATE-10"}, seen())
	require.NoError(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`.map a[href="#HDR-5"]`))))
	require.Equal(t, []string{"Request rate", "RATE-10", "Headers", "HDR-5"}, seen())
}
