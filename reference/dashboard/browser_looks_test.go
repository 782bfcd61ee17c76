package dashboard_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// probe is what is known of colours on a page: over(el) is the colour behind the
// content of el, ratio(a, b) the contrast of two opaque colours by WCAG 2.
const probe = `
const rgba = text => { const n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const blend = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
const over = el => { const c = el ? rgba(getComputedStyle(el).backgroundColor) : [255, 255, 255, 1]; return !el || c[3] === 1 ? c : blend(c, over(el.parentElement)); };
const light = c => { const [r, g, b] = c.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
const seen = el => { const r = el.getBoundingClientRect(); return el.checkVisibility({opacityProperty: true, visibilityProperty: true}) && r.width > 1 && r.height > 1; };
const controls = () => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')];
`

// faint lists texts of a contrast under 4.5, and controls whose outline and
// ground are both under 3.
const faint = `(() => {` + probe + `
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n = walk.nextNode(); n; n = walk.nextNode()) {
  const el = n.parentElement;
  if (!n.data.trim() || !seen(el)) continue;
  const ground = over(el), r = ratio(blend(rgba(getComputedStyle(el).color), ground), ground);
  if (r < 4.5) found.push(r.toFixed(2) + ' ' + n.data.trim());
}
for (const el of controls().filter(el => el.tagName !== 'A')) {
  const around = over(el.parentElement), edge = rgba(getComputedStyle(el).borderTopColor);
  if (Math.max(ratio(blend(edge, around), around), ratio(over(el), around)) < 3) found.push('edge of ' + el.outerHTML);
}
return found;
})()`

// wide lists what sticks out of the window to the right.
const wide = `(() => {
const room = document.documentElement.clientWidth;
const out = [...document.querySelectorAll('body *')].filter(el => el.getBoundingClientRect().right > room + 0.5).map(el => el.outerHTML.slice(0, 120));
return document.documentElement.scrollWidth > room ? out.concat('scrolls: ' + document.documentElement.scrollWidth + ' of ' + room) : out;
})()`

// unstructured lists what a reader who does not see the page would miss.
const unstructured = `(() => {
const found = [], count = (what, n) => { if (document.querySelectorAll(what).length !== n) found.push(n + ' ' + what); };
count('h1', 1); count('main', 1); count('body > header', 1);
if (document.documentElement.lang !== 'en') found.push('lang');
for (const el of document.querySelectorAll('input')) if (el.labels.length !== 1) found.push('label of ' + el.name);
for (const el of document.querySelectorAll('[aria-labelledby], [aria-describedby]'))
  for (const id of ((el.getAttribute('aria-labelledby') || '') + ' ' + (el.getAttribute('aria-describedby') || '')).trim().split(/\s+/))
    if (!document.getElementById(id)) found.push('nothing is ' + id);
for (const el of document.querySelectorAll('button, a')) if (!el.textContent.trim()) found.push('name of ' + el.outerHTML);
const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map(h => +h.tagName[1]);
levels.forEach((l, i) => { if (l > (levels[i - 1] || 0) + 1) found.push('a heading is left out before ' + l); });
return found;
})()`

// focused says which control has the focus and how well that is seen: nothing
// has it at -1.
const focused = `(() => {` + probe + `
const el = document.activeElement, s = getComputedStyle(el);
return {at: controls().indexOf(el), seen: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 &&
  ratio(rgba(s.outlineColor), over(el.parentElement)) >= 3 && el.getBoundingClientRect().width > 1};
})()`

func isReadEasily(t *testing.T, b *tab) {
	b.everyPage(t, func(t *testing.T, page string) {
		for _, l := range looks() {
			b.see(t, l)
			for what, script := range map[string]string{"faint": faint, "wide": wide, "unstructured": unstructured} {
				require.Empty(t, run(t, b, chromedp.Evaluate[[]string](script)), "%s, %s: %s", page, l.name, what)
			}
		}
		b.see(t, looks()[0])
	})
}

// isUsedByKeyboard goes round each page by the tab key.
func isUsedByKeyboard(t *testing.T, b *tab) {
	b.everyPage(t, func(t *testing.T, page string) {
		for _, l := range looks()[:2] {
			b.see(t, l)
			n := run(t, b, chromedp.Evaluate[int](`(() => {`+probe+` return controls().length; })()`))
			require.Positive(t, n, page)
			var order []int
			for range 2*n + 2 { // some browsers have a stop outside the page
				run(t, b, chromedp.KeyEvent(kb.Tab))
				f := run(t, b, chromedp.Evaluate[struct {
					At   int  `json:"at"`
					Seen bool `json:"seen"`
				}](focused))
				if f.At < 0 {
					continue
				}
				require.True(t, f.Seen, "%s, %s: focus of control %d", page, l.name, f.At)
				order = append(order, f.At)
			}
			for i, at := range order[1:] {
				require.Equal(t, (order[i]+1)%n, at, "%s: in the order of the page", page)
			}
			require.GreaterOrEqual(t, len(order), n, page)
		}
		b.see(t, looks()[0])
	})

	b.open(t, "/dashboard/sign-in")
	run(t, b, chromedp.Poll[bool](`document.activeElement.id === "key"`)) // it has the focus by itself, soon
	run(t, b, chromedp.KeyEvent(b.add(t, "user-1", "pro").Reveal()))
	b.submit(t, chromedp.KeyEvent(kb.Enter))
	require.Contains(t, b.text(t), "user-1", "typed and entered, without a pointer")
	run(t, b, chromedp.KeyEvent(kb.Tab))
	b.submit(t, chromedp.KeyEvent(kb.Enter))
	require.Equal(t, "/dashboard/sign-in", b.at(t))
}

func asksNobodyElse(t *testing.T, b *tab) {
	b.everyPage(t, func(*testing.T, string) {})
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(t, b.requests)
	for _, r := range b.requests {
		require.Regexp(t, `^(GET|POST) `+b.home+`/dashboard/(billing|sign-in)$`, r)
	}
	require.Empty(t, b.blocked, "the page does not try what its policy forbids")
}

// probesFindWhatIsBad holds the measures above to a page that is wrong in every
// way they know.
func probesFindWhatIsBad(t *testing.T, b *tab) {
	run(t, b, chromedp.Navigate(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<style>*:focus { outline: none } p { color: #777 } i { color: rgb(0 0 0 / 0.4) } input { border: 1px solid #ddd }</style>
<h2>first</h2><p>grey on white</p><i>see-through</i><b style="background: #333; color: #666">dark</b><input name="x"><div style="width: 3000px">wide</div><img src="/elsewhere.png">`)
	}))))
	found := run(t, b, chromedp.Evaluate[[]string](faint))
	require.Len(t, found, 4)
	for i, want := range []string{"4.48 grey on white", "2.85 see-through", "2.2", "edge of <input"} {
		require.Contains(t, found[i], want)
	}
	require.NotEmpty(t, run(t, b, chromedp.Evaluate[[]string](wide)))
	require.Equal(t, []string{"1 h1", "1 main", "1 body > header", "lang", "label of x", "a heading is left out before 2"},
		run(t, b, chromedp.Evaluate[[]string](unstructured)))
	run(t, b, chromedp.KeyEvent(kb.Tab))
	require.Equal(t, map[string]any{"at": 0.0, "seen": false}, run(t, b, chromedp.Evaluate[map[string]any](focused)))
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Contains(t, strings.Join(b.requests, "\n"), "/elsewhere.png")
}
