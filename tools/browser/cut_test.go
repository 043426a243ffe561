package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// cut lists what is wider than its place on the page.
const cut = `[document.documentElement, ...document.querySelectorAll("main *, header *, dialog *")].filter(e =>
	e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && e.checkVisibility() &&
	getComputedStyle(e).display !== "inline" && !e.closest("svg, .hidden, textarea, input, select"))
	.map(e => e.tagName + "." + e.className + " " + e.scrollWidth + ">" + e.clientWidth + ": " +
		(e.innerText ?? "").slice(0, 60)).join("; ")`

// Long names, reasons and definitions are shown whole, on a phone as on a large screen, and nothing has to be pushed
// sideways to be read.
func TestNothingIsCut(t *testing.T) {
	d := deploy(t, true)
	const long = "all-customers-of-the-northern-region-that-are-on-the-free-plan"
	reason := strings.Repeat("the provider of the feeds had an outage that nobody saw before the morning ", 3)
	for path, body := range map[string]map[string]any{
		"schedules/" + long: {"kind": "nightly-report", "cron": "0,15,30,45 8-18 * * 1-5",
			"zone": "America/Argentina/Buenos_Aires", "until": "2100-12-31T17:00:00Z", "max_runs": 100000,
			"jitter_ms": 1500, "overlap": "skip", "catch_up": "all",
			"input": "x", "reason": reason},
		"gates/one-at-a-time": {"concurrency": 1},
		"gates/" + long: {"scope": reason[:100], "on_hard": "block", "reset_ms": 3600000, "limits": map[string]any{
			"input_tokens_of_the_large_model": map[string]any{"hard": 123456789, "soft": 100000000}}}} {
		if code, got := d.ask("operator", "PUT", path, body); code >= 300 {
			t.Fatal(path, code, got)
		}
	}
	_, err := d.admin.ReportUsage(t.Context(), admission.Usage{Gate: long, Key: "cut",
		Amounts: map[string]int64{"input_tokens_of_the_large_model": 123456789}})
	must.No(t, err)
	_, err = client.Submit(t.Context(), d.client, scene.Resize, "x", flowfabric.Gates(long))
	must.No(t, err)
	for range 2 {
		_, err = client.Submit(t.Context(), d.client, scene.Slow, 100000, flowfabric.Gates("one-at-a-time"))
		must.No(t, err)
	}
	inbox(t, d, asking{strings.Repeat("Deploy it in all regions? ", 7), marked, long, 30},
		asking{"https://host.example/" + strings.Repeat("a-path-without-spaces/", 7), "Is it good?", "", 90000})
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.enter(d, "admin")
	for _, size := range [][2]int64{{380, 800}, {1280, 800}, {3840, 2160}} {
		b.window(size[0], size[1], "light")
		for _, page := range []string{"approvals", "schedules", "workers", "queues", "gates", "trail", "health",
			"no-such-page"} {
			b.visit(page)
			if page == "gates" {
				b.wait(`document.querySelector("#closed")`)
				b.text(`document.querySelectorAll("main details").forEach(e => e.open = true)`)
			}
			if found := b.text(cut); found != "" {
				t.Errorf("%s, %d wide: %s", page, size[0], found)
			}
		}
	}
	b.visit("gates")
	b.wait(`(rows => rows.some(r => r.includes(` + literal(long) + `) && r.includes("used of 123456789")))(` +
		`[...document.querySelectorAll("[aria-labelledby=closed] tbody tr")].map(r => r.innerText))`)
	b.press("Who waits for one-at-a-time")
	b.says("Who has its slots")
	b.want(`document.querySelectorAll("dialog[open] li a").length`, "1")
	b.press("Close")
	b.visit("workers")
	b.wait(`document.querySelector("#versions")`)
	b.wait(`[...document.querySelectorAll("[aria-labelledby=versions] a")].some(a =>
		a.hash === "#/executions?version=2.7&state=suspended" && a.innerText === "3")`) // the releases
	b.visit("health")
	b.wait(`document.querySelector(".k-ok")`)
	b.want(`["ok", "warn", "skip"].map(s => document.querySelector(".k-" + s)).filter(e => e)
		.map(e => getComputedStyle(e).backgroundColor).every((c, i, all) => all.indexOf(c) === i)`, "true")
	b.press("Keys")
	b.wait(`document.querySelector("dialog .keys")`)
	b.want(`[...document.querySelectorAll(".keys tr")].every(r =>
		new Set([...r.querySelectorAll("kbd")].map(k => k.offsetTop)).size === 1)`, "true")
	b.quiet(asked401)
}

// The form to sign in keeps a distance from the edges of a phone.
func TestSignInOnAPhone(t *testing.T) {
	d := deploy(t, false)
	b := openBrowser(t)
	b.window(380, 700, "dark")
	b.do(chromedp.Navigate(d.base))
	b.wait(`document.querySelector("main.signin")`)
	b.want(`(r => r.left >= 8 && r.right <= document.documentElement.clientWidth - 8)(`+
		`document.querySelector("main.signin").getBoundingClientRect())`, "true")
	b.want(cut, "")
	b.quiet(asked401)
}
