package browser

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// What is on a page stays where it is while the page loads, and while it loads again by itself.
func TestNothingJumps(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.enter(d, "viewer")
	places := d.places()
	for _, width := range []int64{1280, 390} {
		b.window(width, 844, "light")
		for _, name := range slices.Sorted(maps.Keys(places)) {
			b.do(chromedp.Navigate("about:blank"))
			b.do(chromedp.Navigate(d.base + "#/" + places[name]))
			b.wait(
				`document.querySelector("main h1") && !document.querySelector("main .loading, main [aria-busy=true]")`)
			loads, again := b.shifted(name, "0", 500*time.Millisecond), 0.0
			if width > 400 { // what is live loads again every two seconds
				again = b.shifted(name, b.text(`performance.now()`), 2500*time.Millisecond)
			}
			t.Logf("%s, %d wide: %.4f while it loads, %.4f afterwards", name, width, loads, again)
			if loads >= 0.03 || again >= 0.01 { // 0.1 is what the web's vitals call good
				t.Errorf("%s, %d wide: it jumps, by %.4f while it loads and %.4f afterwards", name, width, loads, again)
			}
		}
	}
	b.quiet(asked401)
}

// shifted sums up the layout shifts (a part of the window times a part of its height) since an instant of the page
// until a while from now.
func (b *tab) shifted(name, since string, until time.Duration) float64 {
	b.Helper()
	text := b.textOf(`new Promise(done => {
		let sum = 0
		const o = new PerformanceObserver(list => list.getEntries().forEach(e => { if (!e.hadRecentInput && e.startTime >= ` + since +
		`) sum += e.value }))
		o.observe({ type: "layout-shift", buffered: true })
		setTimeout(() => done(String(sum)), ` + strconv.FormatInt(until.Milliseconds(), 10) + `)
	})`)
	sum, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.Fatalf("%s: %q", name, text)
	}
	return sum
}
