package render_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/render"
)

// TestReportFitsTheScreen: the scoreboard's last column is seen at every width,
// and its cells are named where they have no heads.
func TestReportFitsTheScreen(t *testing.T) {
	ctx, page := browser(t, rendered(t, render.ReportHTML, reported()))
	for _, width := range []int64{360, 400, 700, 940, 941, 1000, 1100, 1101, 1400} {
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(page)))
		seen, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
			Page, Scoreboard int
			Heads, Names     bool
		}](`(() => {
			const over = e => e.scrollWidth - e.clientWidth
			return {
				Page: over(document.documentElement), Scoreboard: over(document.querySelector('[aria-label=scoreboard]')),
				Heads: document.querySelector('.scores thead').offsetHeight > 0,
				Names: getComputedStyle(document.querySelector('.scores td:last-child'), '::before').content === '"p50 / p99"',
			}
		})()`))
		require.NoError(t, err)
		require.Zero(t, seen.Page, "the page at %d", width)
		require.Zero(t, seen.Scoreboard, "the scoreboard at %d", width)
		require.NotEqual(t, seen.Heads, seen.Names, "columns are named once at %d", width)
	}
}
