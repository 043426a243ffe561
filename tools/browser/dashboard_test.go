package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/suspend"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// window sets the size of the page and its colours.
func (b *tab) window(width, height int64, scheme string) {
	b.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
		Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// enter opens the dashboard as somebody.
func (b *tab) enter(d *deployment, name string) {
	b.Helper()
	b.do(chromedp.Navigate(d.base))
	b.wait(`document.querySelector("input[type=password]")`)
	b.fill("Token", d.secrets[name])
	b.press("Sign in")
	b.wait(`document.querySelector("header .who")`)
}

// visit goes to a place and waits until it is there and has loaded.
func (b *tab) visit(place string) {
	b.Helper()
	b.text(`location.hash = ` + literal("#/"+place))
	for range 2 { // the page may begin to load only when it has been drawn
		b.wait(`document.querySelector("main h1") && !document.querySelector("main .loading, main [aria-busy=true]")`)
		b.textOf(`new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r("drawn"))))`)
	}
}

// asked401 is what the browser notes when the page asks, without a token, whether the application that it is mounted
// in knows who is there.
const asked401 = "status of 401 (Unauthorized)"

// places are all pages, with something on them.
func (d *deployment) places() map[string]string {
	s := d.scene
	return map[string]string{"overview": "", "executions": "executions",
		"execution": "executions/" + s.Written.String(), "failed": "executions/" + s.Failed.String(),
		"suspended": "executions/" + s.Suspended.String(), "flows": "flows", "flow": "flows/" + s.BrokenFlow.String(),
		"approvals": "approvals", "queues": "queues",
		"workers": "workers", "schedules": "schedules", "gates": "gates", "trail": "trail", "health": "health"}
}

// full leaves a screenshot that is small enough to be kept.
func (b *tab) full(folder, name string) {
	b.Helper()
	quality := int64(60)
	image, err := chromedp.Run(b.ctx,
		chromedp.Action[[]byte](func(ctx context.Context, _ *chromedp.Target) ([]byte, error) {
			got, err := chromedp.Call(ctx, cdppage.CaptureScreenshot,
				cdppage.CaptureScreenshotParams{Format: "webp", Quality: &quality})
			return got.Data, err
		}))
	must.No(b, err)
	must.No(b, os.MkdirAll(folder, 0o755))
	must.No(b, os.WriteFile(filepath.Join(folder, name+".webp"), image, 0o644))
}

// keepsRules fails for what the rules of accessibility find. The page has loaded them.
func (b *tab) keepsRules(name string) {
	b.Helper()
	found, err := chromedp.Run(b.ctx,
		chromedp.Evaluate[string](
			`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary.replace(/\s+/g, " ").slice(0, 200)).join(" | "))))`,
			chromedp.EvalAwaitPromise))
	must.No(b, err)
	if found != "[]" {
		b.Errorf("%s: %s", name, found)
	}
}

// Every page loads for every role without a complaint of the browser, keeps the rules of accessibility, and fits a
// phone.
func TestEveryPage(t *testing.T) {
	d := deploy(t, true)
	rules := axe(t)
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.enter(d, "admin")
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](rules+"\n1")); err != nil {
		t.Fatal(err)
	}
	for _, look := range []struct {
		width, height int64
		scheme        string
	}{{1280, 800, "light"}, {1280, 800, "dark"}, {380, 760, "light"}, {380, 760, "dark"}} {
		b.window(look.width, look.height, look.scheme)
		for name, place := range d.places() {
			b.visit(place)
			b.keepsRules(name + " (" + look.scheme + ")")
			if look.width == 380 {
				if wide := b.text("document.documentElement.scrollWidth"); wide > "380" {
					t.Errorf("%s is %s wide on a phone: %s", name, wide,
						b.text(
							`[...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > 381 && !e.closest(".scroll, pre, .log, .clip")).slice(0, 4).map(e => e.tagName + "." + e.className + " " + e.innerText?.slice(0, 30)).join("; ")`))
				}
			}
			b.full(screenshots, fmt.Sprintf("%s-%d-%s", name, look.width, look.scheme))
		}
	}
	b.quiet(asked401)
	b.window(1280, 800, "light")
	for _, role := range []string{"viewer", "producer", "operator"} {
		b.text(`sessionStorage.clear()`)
		b.text(`location.hash = ""`)
		b.do(chromedp.Navigate("about:blank"))
		b.enter(d, role)
		for name, place := range d.places() {
			b.visit(place)
			if b.text(`!!document.querySelector("main .notice.bad")`) == "true" {
				t.Errorf("%s as %s: %s", name, role, b.text(`document.querySelector("main .notice.bad").innerText`))
			}
		}
	}
	b.quiet(asked401)
}

// actions are all that somebody may do on a page; who may is the API's table, which the page asks.
var actions = []struct {
	place func(*deployment) string
	open  string // a menu to open first
	item  string
	roles string // that see it
}{
	{func(d *deployment) string { return "executions" }, "", "Submit one", "producer operator admin"},
	{func(d *deployment) string { return "executions" }, "All that match", "Cancel…", "operator admin"},
	{func(d *deployment) string { return "executions" }, "All that match", "Purge…", "admin"},
	{func(d *deployment) string { return "executions/" + d.scene.Suspended.String() }, "Actions", "Cancel…",
		"producer operator admin"},
	{func(d *deployment) string { return "executions/" + d.scene.Suspended.String() }, "Actions",
		"Resume without an answer…", "operator admin"},
	{func(d *deployment) string { return "executions/" + d.scene.Failed.String() }, "Actions", "Replay…",
		"operator admin"},
	{func(d *deployment) string { return "executions/" + d.scene.Failed.String() }, "Actions", "Change tags…",
		"operator admin"},
	{func(d *deployment) string { return "executions/" + d.scene.Failed.String() }, "Actions", "Purge…", "admin"},
	{func(d *deployment) string { return "flows/" + d.scene.BrokenFlow.String() }, "Actions", "Replay…",
		"operator admin"},
	{func(d *deployment) string { return "approvals" }, "", "Approve", "operator admin"},
	{func(d *deployment) string { return "queues" }, "Change", "Pause…", "operator admin"},
	{func(d *deployment) string { return "workers" }, "", "Give up writer-1", ""}, // it lives
	{func(d *deployment) string { return "schedules" }, "Change", "Pause…", "operator admin"},
	{func(d *deployment) string { return "schedules" }, "Change", "Run now…", "operator admin"},
	{func(d *deployment) string { return "schedules" }, "Change", "Backfill…", "operator admin"},
	{func(d *deployment) string { return "schedules" }, "Change", "Edit…", "operator admin"},
	{func(d *deployment) string { return "schedules" }, "", "New schedule", "operator admin"},
	{func(d *deployment) string { return "gates" }, "Change", "Reset…", "operator admin"},
	{func(d *deployment) string { return "gates" }, "", "New gate", "operator admin"},
	{func(d *deployment) string { return "health" }, "", "Rotate…", "admin"},
}

// What somebody may not do is not shown. That the API refuses it anyway is a test of the API.
func TestWhoSeesWhat(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	for _, role := range []string{"viewer", "producer", "operator", "admin"} {
		b.do(chromedp.Navigate("about:blank"))
		b.do(chromedp.Navigate(d.base))
		b.text(`sessionStorage.clear()`)
		b.do(chromedp.Navigate("about:blank"))
		b.enter(d, role)
		for _, a := range actions {
			b.visit(a.place(d))
			has :=
				`[...document.querySelectorAll("main button")].some(e => e.innerText.trim().replace(/\s*▾$/, "") === ` +
					literal(a.item) + ` || e.getAttribute("aria-label") === ` + literal(a.item) + `)`
			if a.open != "" && b.text(
				`[...document.querySelectorAll("main button")].some(e => e.innerText.trim().replace(/\s*▾$/, "") === `+
					literal(a.open)+`)`) == "true" {
				b.press(a.open)
				b.wait(`document.querySelector("[role=menu]")`)
			}
			if got, want := b.text(has), strconv.FormatBool(strings.Contains(a.roles, role)); got != want {
				t.Errorf("%s sees %s: %s, want %s", role, a.item, got, want)
			}
			b.text(`document.body.dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}))`)
			b.wait(`!document.querySelector("[role=menu]")`)
		}
	}
	b.quiet(asked401)
}

// An operator does everything that there is to do, and each has its effect and its actor in the history.
func TestActions(t *testing.T) {
	d := deploy(t, true)
	ctx := t.Context()
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "admin")
	state := func(id string) string {
		_, x := d.ask("viewer", "GET", "executions/"+id, nil)
		return fmt.Sprint(x["state"])
	}
	menu := func(place, menu, item string) {
		t.Helper()
		b.visit(place)
		b.press(menu)
		b.press(item)
		b.wait(`document.querySelector("dialog[open]")`)
	}
	confirm := func(reason, button, told string) {
		t.Helper()
		if reason != "" {
			b.fill("Reason", reason)
		}
		b.press(button)
		b.says(told)
		b.wait(`!document.querySelector("dialog[open]")`)
	}

	b.visit("executions")
	b.window(1280, 600, "light") // what is wrong is told at the end of a form that does not fit
	b.press("Submit one")
	b.fill("Kind", "transcribe-audio")
	b.fill("Input", `{"file":`)
	b.press("Submit")
	b.says("The input is not JSON")
	b.wait(
		`((r, d) => r.top >= d.top && r.bottom <= d.bottom)(document.querySelector("dialog .notice").getBoundingClientRect(), document.querySelector("dialog").getBoundingClientRect())`)
	b.window(1280, 900, "light")
	b.fill("Input", `{"file":"one.wav"}`)
	b.fill("Lane", "audio")
	b.press("Submit")
	b.wait(`location.hash.startsWith("#/executions/")`)
	one := strings.TrimPrefix(b.text("location.hash"), "#/executions/")
	here := "executions/" + one
	b.says("one.wav")
	menu(here, "Actions", "Set the priority…")
	b.fill("Priority", "12000")
	b.press("Set it")
	b.wait(`document.querySelector("dialog :invalid") || document.querySelector("dialog .notice")`)
	b.fill("Priority", "700")
	confirm("", "Set it", "The priority is set.")
	menu(here, "Actions", "Hold…")
	confirm("the file is broken", "Hold", "Held.")
	b.wait(`document.querySelector(".history")?.innerText.includes("the file is broken")`)
	menu(here, "Actions", "Let it go on…")
	confirm("", "Let it go on", "It goes on.")
	later := d.submit(map[string]any{"kind": "transcribe-audio", "lane": "audio", "delay_ms": 3_600_000})
	menu("executions/"+later, "Actions", "Change the delay…")
	b.fill("Seconds", "7200")
	confirm("not today", "Change it", "The delay is changed.")
	if x, err := d.client.Execution(mustID(t, later)).Get(ctx); err != nil ||
		time.Until(x.DelayUntil) < 90*time.Minute {
		t.Errorf("%s, %v", x.DelayUntil, err)
	}
	menu("executions/"+later, "Actions", "Run now…")
	confirm("after all", "Run now", "It may run now.")
	d.until(later, "waiting")
	menu(here, "Actions", "Change tags…")
	b.fill("Key", "desk.name")
	b.fill("Value", "audio")
	confirm("", "Change", "Changed.")
	menu(here, "Actions", "Cancel…")
	confirm("nobody listens", "Cancel", "Cancelled.")
	d.until(one, "cancelled")
	b.wait(`document.querySelector(".history")?.innerText.includes("nobody listens")`)
	if x, err := d.client.Execution(mustID(t, one)).Get(ctx); err != nil || x.Priority != 700 ||
		x.Tags["desk.name"] != "audio" ||
		x.CancelledBy != "admin" || x.CancelReason != "nobody listens" {
		t.Errorf("%+v, %v", x, err)
	}
	menu(here, "Actions", "Replay…")
	confirm("once more", "Replay", "It runs again.")
	d.until(one, "waiting")

	b.visit("executions?kind=transcribe-audio&state=waiting")
	b.press("All that match")
	b.press("Cancel…")
	b.says("8 executions match and will be cancelled")
	b.fill("Reason", "too many")
	b.press("Cancel 8")
	b.says("8 executions done")
	b.press("Close")
	if n := counted(ctx, t, d,
		admin.Filter{Kind: "transcribe-audio", States: []flowfabric.PublicState{flowfabric.Cancelled}}); n != 8 {
		t.Errorf("%d are cancelled", n)
	}
	b.visit("executions?kind=transcribe-audio&state=cancelled")
	b.text(`document.querySelectorAll("tbody .pick input")[0].click()`)
	b.text(`document.querySelectorAll("tbody .pick input")[1].click()`)
	b.press("Replay…")
	confirm("two of them", "Replay", "2 executions done.")
	if n := counted(ctx, t, d,
		admin.Filter{Kind: "transcribe-audio", States: []flowfabric.PublicState{flowfabric.Waiting}}); n != 2 {
		t.Errorf("%d wait", n)
	}
	menu("executions/"+d.scene.Failed.String(), "Actions", "Purge…")
	confirm("not ours", "Purge it", "Purged.")
	if _, err := d.client.Execution(d.scene.Failed).Get(ctx); err == nil {
		t.Error("it was not purged")
	}

	b.visit("flows/" + d.scene.BrokenFlow.String())
	b.says("5 completed, 1 failed, 2 skipped") // it has ended: until then there is nothing to replay
	menu("flows/"+d.scene.BrokenFlow.String(), "Actions", "Replay…")
	// Nodes that run whatever came before them are replayed by a call of their own, so those may have failed again.
	confirm("again", "Replay", " may run, ")
	b.wait(`/^(1 node may run, 4|3 nodes may run, 2) wait for them/.test(heard.said)`)
	b.wait(`[...document.querySelectorAll("main tr")].some(r => /facts[^]*attempt 2/.test(r.innerText))`)
	b.visit("queues")
	b.press("Change") // the first lane is audio
	b.press("Pause…")
	b.says("2 executions wait in it")
	confirm("", "Pause", "Lane audio is paused.")
	lanes, err := d.admin.Lanes(ctx, "")
	if err != nil || lanes[0].Name != "audio" || lanes[0].State != flowfabric.LanePaused || lanes[0].By != "admin" {
		t.Errorf("%+v, %v", lanes, err)
	}
	b.wait(`document.querySelector("main table")?.innerText.includes("paused")`)
	menu("schedules", "Change", "Pause…") // nightly-report
	confirm("", "Pause", "Paused.")
	if s, err := d.admin.GetSchedule(ctx, "nightly-report"); err != nil || !s.Paused || s.PausedBy != "admin" {
		t.Errorf("%+v, %v", s, err)
	}
	menu("schedules", "Change", "Remove…")
	confirm("", "Remove", "Removed.")
	b.press("New schedule")
	b.fill("Name", "hourly")
	b.fill("Kind", "resize-image")
	b.fill("Cron", "0 * * * *")
	b.fill("Input", `"x.png"`)
	confirm("", "Save", "The schedule is saved.")
	if s, err := d.admin.GetSchedule(ctx, "hourly"); err != nil || s.Definition.Item.Kind != "resize-image" {
		t.Errorf("%+v, %v", s, err)
	}
	menu("gates", "Change", "Correct…")
	b.fill("Dimension", "tokens")
	b.fill("Amount", "-62140")
	confirm("counted twice", "Correct", "Corrected.")
	if x, err := d.admin.GetGate(ctx, "llm-tokens"); err != nil || x.Used["tokens"] != 800_000 {
		t.Errorf("%+v, %v", x.Used, err)
	}
	menu("gates", "Change", "Reset…")
	confirm("", "Reset", "A new period has begun.")
	b.visit("gates")
	b.press("New gate")
	b.fill("Name", "gpu")
	confirm("", "Save", "Saved.")
	if _, err := d.admin.GetGate(ctx, "gpu"); err != nil {
		t.Error(err)
	}
	b.visit("health")
	b.press("Show all")
	b.press("Freeze partition 9")
	confirm("moving it", "Freeze", "Frozen.")
	b.press("Thaw partition 9")
	b.says("moving it")
	confirm("moved", "Thaw", "Thawed.")
	b.visit("workers")
	b.says("2.7")
	lost := d.lose()
	b.visit("workers")
	b.press("Give up " + lost)
	confirm("test", "Give it up", "Given up")
	b.visit("trail?by=admin")
	b.says("moving it")
	if got := state(one); got == "" {
		t.Error(got)
	}
	// what was refused on purpose, and what was asked of the purged and the frozen
	b.quiet(asked401, "status of 4", "status of 503")
}

func counted(ctx context.Context, t *testing.T, d *deployment, f admin.Filter) (n int) {
	t.Helper()
	for _, err := range d.admin.List(ctx, f) {
		must.No(t, err)
		n++
	}
	return n
}

func mustID(t *testing.T, text string) flowfabric.ExecutionID {
	t.Helper()
	id, err := flowfabric.ParseExecutionID(text)
	must.No(t, err)
	return id
}

// Whatever programs have stored is text: nothing of it runs, loads or breaks the page.
func TestHostilePayloads(t *testing.T) {
	d := deploy(t, false)
	hostile := []string{`<script>window.broken = 1</script>`, `<img src=x onerror="window.broken = 2">`,
		`"><svg onload=window.broken=3>`, "javascript:window.broken=4", "\u202etxt.exe\u202c \u200f\u200e",
		"\u0000\u0001\u001b[31m\u007f", `{"broken": `, "' OR 1=1; --", "${window.broken=5}",
		strings.Repeat("𓀀 wide ", 2000), "a\r\nb\u2028c"}
	var ids []string
	for i, text := range hostile {
		tag := strings.Map(func(r rune) rune {
			if r < 0x20 || r == 0x7f {
				return -1
			}
			return r
		}, text)
		ids = append(ids, d.submit(map[string]any{"kind": "echo<b>", "lane": "la'ne\"&<i>", "input": map[string]any{
			"text": text, text: text}, "tags": map[string]string{"evil.tag": tag[:min(len(tag), 200)]}}))
		exec, err := client.Submit(t.Context(), d.client, scene.Send, scene.Invoice{Customer: text, Cents: -i - 1},
			flowfabric.Lane("mail"))
		must.No(t, err)
		d.until(exec.ID().String(), "failed")
		ids = append(ids, exec.ID().String())
		d.ask("operator", "POST", "executions/"+ids[len(ids)-2]+":hold",
			map[string]any{"reason": text[:min(len(text), 900)]})
	}
	// about a megabyte of JSON
	ids = append(ids, d.submit(map[string]any{"kind": "echo", "input": strings.Repeat("<b>x</b>", 35_000)}))
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "admin")
	for _, id := range ids {
		b.visit("executions/" + id)
		b.wait(`document.querySelector("#input")?.closest("section").querySelector("pre")`)
		if got := b.text(
			`String(window.broken) + document.querySelectorAll("main script, main img, main iframe, main b b").length`); got !=
			"undefined0" {
			t.Errorf("%s: %s", id, got)
		}
		if got := b.text("document.documentElement.scrollWidth"); got > "1280" {
			t.Errorf("%s is %s wide", id, got)
		}
	}
	for _, place := range []string{"", "executions", "executions?error=%3Cscript%3E", "queues", "health",
		"trail?by=%3Cb%3E", "executions/%3Cscript%3Ewindow.broken=6%3C%2Fscript%3E", "flows/..%2F..", "%3Cscript%3E"} {
		b.visit(place)
		if got := b.text(`String(window.broken)`); got != "undefined" {
			t.Errorf("%s: %s", place, got)
		}
	}
	b.quiet(asked401, "status of 400", "status of 404")
}

// The page is loaded again in the middle of a stream: what it shows then is what is stored, once.
func TestReloadInTheMiddle(t *testing.T) {
	d := deploy(t, false)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "viewer")
	exec, err := client.Submit(t.Context(), d.client, scene.Slow, 60)
	must.No(t, err)
	b.visit("executions/" + exec.ID().String())
	b.says("word-10 ")
	b.do(chromedp.Navigate(d.base)) // leave it, and come back
	b.wait(`document.querySelector("main h1")`)
	b.visit("executions/" + exec.ID().String())
	b.says("word-25 ")
	b.text(`setTimeout(() => location.reload())`)
	b.says("word-59 ")
	b.says("It has ended: completed")
	var want strings.Builder
	for i := range 60 {
		fmt.Fprintf(&want, "word-%d ", i)
	}
	if got := b.text(`[...document.querySelectorAll(".log .text")].map(e => e.textContent).join("")`); got !=
		want.String() {
		t.Errorf("the page says %q", got)
	}
	b.quiet(asked401)
}

// The API goes away and comes back: the page says so, keeps what it showed, and goes on by itself.
func TestAPIAwayAndBack(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	b.visit("executions?kind=transcribe-audio")
	b.says("7 executions shown")
	d.kill()
	b.says("The API does not answer. What you see may be old.")
	b.says("7 executions shown")
	d.serve()
	b.wait(`document.querySelector(".live").innerText === "Live"`)
	d.submit(map[string]any{"kind": "transcribe-audio", "lane": "audio"})
	b.says("8 executions shown")
	b.quiet(asked401, "net::ERR", "status of 503")
}

// A list changes by itself while somebody looks at it, and going back leads to the filter before.
func TestLiveListAndBack(t *testing.T) {
	d := deploy(t, false)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	b.visit("executions")
	b.says("Nothing was submitted yet")
	d.submit(map[string]any{"kind": "nobody", "tags": map[string]string{"team.name": "web", "team.room": "12"}})
	b.says("1 execution shown")
	b.says("team=web")
	b.says("room=12")
	b.press("waiting")
	b.wait(`location.hash.includes("state=waiting")`)
	b.says("1 execution shown")
	b.press("failed")
	b.press("waiting")
	b.says("No execution matches")
	b.text("history.back()")
	b.text("history.back()")
	b.says("1 execution shown")
	b.fill("Kind", "some")
	b.wait(`location.hash.includes("kind=some")`)
	b.says("No execution matches")
	b.quiet(asked401)
}

// Without a mouse: to a page, to a filter, through a menu into a dialog and out again, with the focus where it was.
func TestKeyboard(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	b.visit("") // keys count once the page is drawn
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("e"))
	b.wait(`location.hash === "#/executions"`)
	b.wait(`document.querySelector(".filters")`)
	// what drives the browser would type it, too
	b.text(`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true, cancelable: true}))`)
	b.want(`document.activeElement.labels?.[0].innerText`, "Kind")
	b.do(chromedp.KeyEvent("narrate"))
	b.wait(`location.hash.includes("kind=narrate")`)
	b.visit("executions/" + d.scene.Suspended.String())
	b.want(`document.activeElement.id`, "main")
	b.text(`[...document.querySelectorAll("main button")].find(e => e.innerText.startsWith("Actions")).focus()`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`document.activeElement.getAttribute("role") === "menuitem"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.want(`document.activeElement.innerText`, "Resume without an answer…")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelector("dialog[open]")?.contains(document.activeElement)`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`!document.querySelector("dialog[open]")`)
	b.wait(`document.activeElement.innerText.startsWith("Actions")`)
	b.do(chromedp.KeyEvent("?"))
	b.says("Go to the first filter of the page")
	b.quiet(asked401)
}

// Somebody answers a question in the inbox: the handler goes on with the answer and the name, and a second operator,
// who still sees the question, is told who was first.
func TestTwoOperators(t *testing.T) {
	d := deploy(t, true)
	first, second := openBrowser(t), openBrowser(t)
	for b, name := range map[*tab]string{first: "operator", second: "zoe"} {
		b.window(1280, 900, "light")
		b.enter(d, name)
		b.visit("approvals")
		b.says("Release v2.4.0 to everybody?")
		b.says("for release-team")
	}
	// its list does not change any more
	second.text(
		`window.fetch = (real => (url, init) => String(url).includes("/approvals") || String(url).includes("overview") ? new Promise(() => {}) : real(url, init))(window.fetch)`)
	first.fill("Comment", "ship it")
	first.press("Approve") // of the oldest
	first.says("Your answer was delivered.")
	id := d.scene.Suspended.String()
	d.until(id, "completed")
	result, err := client.Attach(d.client, scene.Release, d.scene.Suspended).Result(t.Context())
	if err != nil || !reflect.DeepEqual(result, suspend.Answer{Choice: "approve", Comment: "ship it", By: "operator"}) {
		t.Errorf("%+v, %v", result, err)
	}
	first.wait(`document.querySelectorAll(".inbox > li").length === 2`)
	second.press("Send it back")
	second.wait(`document.querySelector(".toast.bad")`)
	if text := second.text(`document.querySelector(".toast.bad").innerText`); !strings.Contains(text, "operator") {
		t.Errorf("the second is told %q", text)
	}
	first.visit("approvals?assignee=nobody")
	first.says("Nobody waits for an answer")
	first.visit("executions/" + id)
	first.wait(`document.querySelector(".history").innerText.includes("Resumed (signal approve) by operator")`)
	first.quiet(asked401)
	second.quiet(asked401, "status of 4")
}

// Ten thousand rows: only those in sight exist, and the last one is there when somebody scrolls to it.
func TestTenThousandRows(t *testing.T) {
	d := deploy(t, false)
	for range 10 {
		inputs := make([]string, 1000)
		if _, err := client.SubmitMany(t.Context(), d.client, scene.Never, inputs,
			flowfabric.Lane("audio")); err != nil {
			t.Fatal(err)
		}
	}
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "viewer")
	b.visit("executions")
	for shown := 100; shown < 10_000; {
		b.says(fmt.Sprintf("%s shown", grouped(shown)+" executions"))
		b.press("Show more")
		if shown < 1000 {
			shown += 100
		} else {
			shown += 1000
		}
	}
	b.says("10,000 executions shown")
	if rows, _ := strconv.Atoi(b.text(`document.querySelectorAll("tbody tr").length`)); rows > 150 {
		t.Errorf("%d rows exist", rows)
	}
	slow := b.textOf(`new Promise(done => {
		let last = performance.now(), worst = [], y = 0
		const step = now => { worst.push(now - last); last = now; y += 900; scrollTo(0,
			y); y < document.documentElement.scrollHeight ? requestAnimationFrame(step) : done(String(worst.sort((a,
				b) => a - b)[Math.floor(worst.length * 0.95)])) }
		requestAnimationFrame(step) })`)
	t.Logf("95 %% of the frames while scrolling by a screen each took at most %s ms", slow)
	b.wait(`document.querySelector("tbody tr:last-child")?.getAttribute("aria-rowindex") === "10001"`)
	b.quiet(asked401)
}

func grouped(n int) string {
	text := strconv.Itoa(n)
	if n >= 1000 {
		text = text[:len(text)-3] + "," + text[len(text)-3:]
	}
	return text
}

// textOf is what a promise says.
func (b *tab) textOf(expression string) string {
	b.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	must.No(b, err)
	return text
}

// The first page is there within a second on a machine that is four times as slow, from an empty cache.
func TestFirstPaint(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 800, "light")
	b.enter(d, "viewer")
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4})
		return err
	}))
	var paints []float64
	for range 5 {
		b.do(chromedp.Navigate("about:blank"))
		b.do(chromedp.Navigate(d.base))
		b.wait(`document.querySelector(".tiles")`)
		var seen struct{ First, Bytes float64 }
		must.No(t, json.Unmarshal(
			[]byte(b.text(
				`JSON.stringify({first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime, bytes: performance.getEntriesByType("resource").filter(r => r.name.includes("/assets/")).reduce((n, r) => n + r.encodedBodySize, 0)})`)),
			&seen))
		paints = append(paints, seen.First)
		if seen.Bytes >= 75_000 {
			t.Errorf("%v bytes were loaded", seen.Bytes)
		}
	}
	best := paints[0]
	for _, p := range paints {
		best = min(best, p)
	}
	t.Logf("first contentful paint: %v ms", paints)
	if best >= 1000 {
		t.Errorf("the first paint takes %v ms", paints)
	}
	b.quiet(asked401)
}

// A token of a namespace sees that one, and a worker's is sent away.
func TestWhoMayEnter(t *testing.T) {
	d := deploy(t, true)
	d.submit(map[string]any{"kind": "secret-work", "namespace": "blue"})
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.do(chromedp.Navigate(d.base))
	b.wait(`document.querySelector("input[type=password]")`)
	if b.text(
		`(r => Math.abs(r.left + r.right - innerWidth) < 40 && r.top > 20)(document.querySelector(".signin").getBoundingClientRect())`) !=
		"true" {
		t.Error("the form to sign in is not in the middle")
	}
	b.fill("Token", "fft_wrong")
	b.press("Sign in")
	b.says("No token has this secret.")
	b.fill("Token", d.secrets["blue"])
	b.press("Sign in")
	b.says("secret-work")
	b.visit("executions")
	b.says("1 execution shown")
	for name, place := range d.places() {
		if !strings.Contains(place, "/") {
			b.visit(place)
			if text := b.text(`document.querySelector("main").innerText`); strings.Contains(text, "transcribe-audio") ||
				strings.Contains(text, "This page has failed") {
				t.Errorf("%s: %.300s", name, text)
			}
		}
	}
	b.press("Sign out")
	b.wait(`document.querySelector("input[type=password]")`)
	b.fill("Token", d.secrets["worker"])
	b.press("Sign in")
	b.says("which may not look at the dashboard")
	b.quiet(asked401, "status of 401", "status of 403", "status of 404")
}

// A conversation: the page says whose message is waited for, sends one, and shows what it did and what nobody has
// received.
func TestMessages(t *testing.T) {
	d := deploy(t, false)
	x, err := client.Submit(t.Context(), d.client, scene.Chat, "Ann")
	must.No(t, err)
	id := x.ID().String()
	d.until(id, "suspended")
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	b.visit("approvals")
	b.says("chat waits for a message")
	b.visit("executions/" + id)
	b.says("It waits for a message to mailbox “user”.")
	b.press("Send a message")
	b.fill("Payload", "make it shorter")
	b.press("Send")
	b.says("The payload is not JSON")
	b.fill("Payload", `"make it shorter"`)
	b.press("Send")
	b.says("The message was sent.")
	b.says("Ann, you said make it shorter.")
	b.wait(`[...document.querySelectorAll(".steps li")].some(e => /user\s+messages\s+receipt 1/.test(e.innerText))`)
	b.wait(`[...document.querySelectorAll(".timeline th")].some(e => e.innerText === "✉ user")`)
	b.wait(`document.querySelector(".history").innerText.includes("Resumed (message) by operator")`)
	if b.text(`!!document.querySelector("#messages")`) != "false" {
		t.Error("it lists messages although all were received")
	}
	b.press("Actions")
	b.press("Send a message…")
	b.fill("Mailbox", "tool")
	b.fill("Payload", `{"total":9007199254740993,"text":"`+strings.Repeat("<b>long</b> ", 30)+`"}`)
	b.press("Send")
	b.wait(`document.querySelector("#messages")`)
	if got := b.text(`document.querySelector("#messages").closest("section").innerText`); !strings.Contains(got,
		"1 not received yet") || !strings.Contains(got, "tool number 2, by operator") ||
		!strings.Contains(got, `{"total":9007199254740993,"text":"<b>long</b>`) || strings.Contains(got, `"}`) {
		t.Errorf("the list says %s", got)
	}
	b.press("Show message 2")
	b.wait(
		`document.querySelector("#messages")?.closest("section").innerText.includes('"}') || document.querySelector("#messages")?.closest("section").querySelector("pre")`)

	reader := openBrowser(t)
	reader.window(380, 760, "dark")
	reader.enter(d, "viewer")
	reader.visit("executions/" + id)
	reader.says("tool number 2, by operator")
	if got := reader.text(`[...document.querySelectorAll("button")].map(e => e.innerText).join()`); strings.Contains(
		got, "Send") {
		t.Errorf("a viewer may %s", got)
	}
	if wide := reader.text("document.documentElement.scrollWidth"); wide > "380" {
		t.Errorf("it is %s wide on a phone", wide)
	}
	d.ask("producer", "POST", "executions/"+id+"/messages", map[string]any{"mailbox": "user", "payload": "bye"})
	d.until(id, "completed")
	if n, err := x.Result(t.Context()); err != nil || n != 1 {
		t.Errorf("%d answers, %v", n, err)
	}
	b.wait(`document.querySelector(".title .state").innerText.includes("completed")`)
	b.quiet(asked401)
	reader.quiet(asked401)
}

// The picture of an execution has everything that happened to it: an attempt that failed, one whose worker was
// killed, one that was taken away, a wait that was answered, and who did what.
func TestTimeline(t *testing.T) {
	d := deploy(t, false)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	kinds := func(id string) string {
		t.Helper()
		b.visit("executions/" + id)
		return b.text(
			`[...document.querySelectorAll(".timeline tr:not(.step)")].map(r => r.querySelector("th").innerText + ":" + [...r.querySelectorAll(".span")].map(s => s.className.replace("span t-", "")).join(",")).join(" ")`)
	}

	killed := startWorker(t, d.store)
	x, err := client.Submit(t.Context(), d.client, count, counting)
	must.No(t, err)
	b.visit("executions/" + x.ID().String())
	b.says("5 frames")
	must.No(t, killed.Process.Kill())
	startWorker(t, d.store)
	d.until(x.ID().String(), "completed")
	b.wait(`document.querySelector(".title .state").innerText.includes("completed")`)
	if got := kinds(x.ID().String()); got != "Waiting:waiting,waiting Attempt 1:lost Attempt 2:good" {
		t.Errorf("after a kill: %s", got)
	}

	slow, err := client.Submit(t.Context(), d.client, scene.Slow, 200)
	must.No(t, err)
	b.visit("executions/" + slow.ID().String())
	b.says("5 frames")
	d.ask("operator", "POST", "executions/"+slow.ID().String()+":revoke", map[string]any{"reason": "take it"})
	b.wait(`document.querySelectorAll(".timeline th").length >= 4`)
	if got := kinds(slow.ID().String()); got != "Waiting:waiting,waiting Attempt 1:lost Attempt 2:active People:" ||
		b.text(`document.querySelector(".person").title.startsWith("revoked by operator")`) != "true" {
		t.Errorf("taken away: %s, %s", got, b.text(`document.querySelector(".person")?.title`))
	}

	asked, err := client.Submit(t.Context(), d.client, scene.Release, "v9")
	must.No(t, err)
	d.until(asked.ID().String(), "suspended")
	d.ask("zoe", "POST", "executions/"+asked.ID().String()+"/waitpoints/approval:answer",
		map[string]any{"payload": map[string]any{"choice": "approve"}})
	d.until(asked.ID().String(), "completed")
	if got := kinds(asked.ID().String()); got != "Waiting:waiting,suspended,waiting Attempt 1:pause,good People:" {
		t.Errorf("an answer: %s", got)
	}

	failed, err := client.Submit(t.Context(), d.client, scene.Send, scene.Invoice{Customer: "Globex", Cents: 1},
		flowfabric.Lane("mail"))
	must.No(t, err)
	d.until(failed.ID().String(), "failed")
	if got := kinds(failed.ID().String()); got !=
		"Waiting:waiting,waiting,waiting Attempt 1:bad Attempt 2:bad Attempt 3:bad" {
		t.Errorf("retries: %s", got)
	}
	d.ask("operator", "POST", "executions/"+failed.ID().String()+":replay", map[string]any{"reason": "again"})
	d.until(failed.ID().String(), "failed")
	b.wait(`document.querySelectorAll(".timeline th").length >= 8`)

	tally, err := client.Submit(t.Context(), d.client, scene.Tally, 2)
	must.No(t, err)
	d.until(tally.ID().String(), "completed")
	if got := kinds(tally.ID().String()); got !=
		"Waiting:waiting,waiting,waiting Attempt 1:next Attempt 2:next Attempt 3:good" {
		t.Errorf("an execution that continued: %s", got)
	}
	b.says("2 times, with another input")
	b.says("Attempt 2 continued with another input")
	b.wait(
		`document.querySelector(".log").innerText.includes("Attempt 3 begins, with another input") && !document.querySelector(".log").innerText.includes("ended: continued")`)

	family, err := client.Submit(t.Context(), d.client, scene.Family, "otter")
	must.No(t, err)
	d.until(family.ID().String(), "completed")
	b.visit("executions/" + family.ID().String())
	b.says("the flow of its children")
	b.press("the flow of its children")
	b.wait(`document.querySelectorAll(".graph .node").length === 3`)
	b.quiet(asked401)
}
