package render_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/render"
)

var pictures = flag.String("pictures", "", "write pictures of the report into this folder")

// TestReportFitsTheScreen: nothing sticks out at any width, the scoreboard's last
// column is seen, its cells are named where they have no heads, and no label of
// a chart that is shown is smaller than 10 px or leaves its drawing.
func TestReportFitsTheScreen(t *testing.T) {
	ctx, page := browser(t, rendered(t, render.ReportHTML, reported()))
	for _, width := range []int64{360, 400, 700, 800, 801, 940, 941, 1000, 1101, 1400} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page)))
		seen, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
			Page, Scoreboard int
			Heads, Names     bool
			Small, Outside   []string
		}](`(() => {
			const over = e => e.scrollWidth - e.clientWidth
			document.querySelectorAll('details').forEach(d => d.open = true)
			const small = [], outside = []
			for (const svg of document.querySelectorAll('svg.chart')) {
				const box = svg.getBoundingClientRect()
				if (box.width === 0) continue
				const scale = box.width / svg.viewBox.baseVal.width
				if (12 * scale < 10) small.push(svg.querySelector('title').textContent)
				for (const text of svg.querySelectorAll('text')) {
					const b = text.getBoundingClientRect()
					if (b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1) outside.push(text.textContent)
				}
			}
			return {
				Page: over(document.documentElement), Scoreboard: over(document.querySelector('[aria-label=scoreboard]')),
				Heads: document.querySelector('.scores thead').offsetHeight > 0,
				Names: getComputedStyle(document.querySelector('.scores td:last-child'), '::before').content === '"p50 / p99"',
				Small: small, Outside: outside,
			}
		})()`))
		require.NoError(t, err)
		require.Zero(t, seen.Page, "the page at %d", width)
		require.Zero(t, seen.Scoreboard, "the scoreboard at %d", width)
		require.NotEqual(t, seen.Heads, seen.Names, "columns are named once at %d", width)
		require.Empty(t, seen.Small, "labels at %d", width)
		require.Empty(t, seen.Outside, "labels at %d", width)
	}
}

// TestReportSliders: a slider that is moved by a key tells what the JSON has for
// that cell and marks it, and nothing asks the network for anything.
func TestReportSliders(t *testing.T) {
	r := reported()
	ctx, page := browser(t, rendered(t, render.ReportHTML, r))
	require.NoError(t, chromedp.Do(ctx)) // a tab that can be listened to
	asked := requests(t, ctx)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(page), chromedp.Focus(chromedp.CSS("#rate-2")), chromedp.KeyEvent(kb.ArrowRight)))
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
		Said, Live, Picked, Value string
		Hidden                    bool
	}](`(() => {
		const box = document.querySelector('.sliders'), picked = document.querySelectorAll('.picked')
		return {
			Said: box.querySelector('.said').textContent, Live: box.querySelector('.said').getAttribute('aria-live'), Hidden: box.hidden,
			Picked: [...picked].map(td => td.querySelector('b').textContent).join(), Value: document.querySelector('#rate-2').getAttribute('aria-valuetext'),
		}
	})()`))
	require.NoError(t, err)
	cell := r.Plans[1].WhatIf.Grid[2]
	require.EqualValues(t, 20, cell.Rate)
	require.EqualValues(t, 10, cell.Burst)
	for _, figure := range []string{
		"At 20 a minute, burst 10:", figure.Grouped(int64(cell.UsersAffected)) + " of 917 clients", figure.Percent(cell.UsersAffectedShare), figure.Interval(cell.UsersAffected95),
		figure.Percent(cell.UsersOKShare), figure.Interval(cell.UsersOK95), figure.Percent(cell.RejectedShare) + " of the requests",
	} {
		require.Contains(t, seen.Said, figure)
	}
	require.False(t, seen.Hidden)
	require.Equal(t, "polite", seen.Live)
	require.Equal(t, "20", seen.Value)
	require.Equal(t, figure.Percent(cell.UsersAffectedShare), strings.TrimPrefix(seen.Picked, "✓ "), "one cell is marked")
	require.Equal(t, []string{page}, asked(), "nothing but the file itself")
}

// requests collects what a page asks for from now on.
func requests(t *testing.T, ctx context.Context) func() []string {
	t.Helper()
	var lock sync.Mutex
	var list []string
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			lock.Lock()
			defer lock.Unlock()
			list = append(list, e.Request.URL)
		}
	}))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	return func() []string {
		lock.Lock()
		defer lock.Unlock()
		return list
	}
}

// TestReportPictures draws the pictures of docs/report.md from the page that
// BRIMLINE_REPORT names, or from the fixture, each twice, since the
// first can have parts that are not painted yet.
func TestReportPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("only with -pictures FOLDER")
	}
	text := rendered(t, render.ReportHTML, reported())
	if path := os.Getenv("BRIMLINE_REPORT"); path != "" {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		text = string(page)
	}
	ctx, page := browser(t, text)
	for _, p := range []struct {
		name, scheme, media, part string
		width, height             int64
	}{
		{"report", "light", "", "", 1120, 1000}, {"report-dark", "dark", "", "", 1120, 1000}, {"report-narrow", "light", "", "", 400, 900},
		{"report-what-if", "light", "", "[id^='what-if-users-']", 1120, 900},
	} {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: p.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.scheme}}})
		require.NoError(t, err)
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(p.width, p.height), chromedp.Navigate(page)))
		var shot []byte
		for range 2 {
			if p.part == "" {
				shot, err = chromedp.Run(ctx, chromedp.CaptureScreenshot())
			} else {
				shot, err = chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS(p.part)))
			}
			require.NoError(t, err)
		}
		require.NoError(t, os.WriteFile(filepath.Join(*pictures, p.name+".png"), shot, 0o644))
	}
}
