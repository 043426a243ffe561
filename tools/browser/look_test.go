package browser

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// early runs a script in every page before its own.
func (b *tab) early(script string) {
	b.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// The values of a chart are in the line above it, for the mouse and for the keyboard, in both charts of the hour.
func TestChartsSayValues(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "viewer")
	b.visit("")
	plots := `document.querySelectorAll(".plot[role=slider] canvas")`
	b.wait(plots + `.length === 2`) // the second point comes after ten seconds
	b.want(`[...document.querySelectorAll(".chart .when")].map(e => e.innerText).join()`, "now,now")
	b.text(`document.querySelector(".plot").focus()`)
	b.do(chromedp.KeyEvent(kb.Home))
	b.wait(`document.querySelector(".plot").getAttribute("aria-valuenow") === "0"`)
	said := b.text(`document.querySelector(".plot").getAttribute("aria-valuetext")`)
	when, values, _ := strings.Cut(said, ": ")
	if values != "Completed 0/s, Failed 0/s" {
		t.Errorf("it says %q", said)
	}
	b.wait(`[...document.querySelectorAll(".chart .when")].every(e => e.innerText === ` + literal(when) + `)`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.wait(`document.querySelector(".plot").getAttribute("aria-valuenow") === "1"`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.querySelector(".chart .when").innerText === "now"`)
	b.quiet(asked401)
}

// groups is what an API that groups failures answers: one has a message that would act if it could.
const groups = `(() => {
	const real = window.fetch, headers = { "Content-Type": "application/json" }
	const json = (v, url) =>
		Object.defineProperty(new Response(JSON.stringify(v), { headers }), "url", { value: String(url) })
	const ago = ms => new Date(Date.now() - ms).toISOString(), at = ago(60000)
	window.fetch = async (url, init) => {
		const path = new URL(url, location.href).pathname
		if (path === "/v1/me") {
			const answer = await real(url, init)
			if (!answer.ok) return answer
			const me = await answer.json()
			return json({ ...me, operations: [...me.operations, "listFailures", "readTimes"] }, url)
		}
		if (path === "/v1/failures") return json({ more: true, items: [
			{ kind: "send-invoice", category: "handler_error", key: "g1", count: 512, first_at: ago(7200000),
				last_at: at, shape: "<img src=x onerror=window.broken=1> mail server: <n> try again later",
				examples: ["5-01a22c2d-e509-7618-8b94-02f93fc666b3"] },
			{ kind: "check-facts", category: "attempt_timeout", key: "g2", shape: "", count: 1, first_at: at,
				last_at: at, examples: [] }] }, url)
		const times = (p50_ms, p99_ms) => ({ count: 10, p50_ms, p90_ms: p50_ms, p99_ms })
		const sum = n => ({ completed: 10, failed: n, waited: times(5, 1500), ran: times(120, 61000) })
		if (path === "/v1/times") return json({ steps: [0, 1, 2].map(n => ({ at: ago(60000 * (3 - n)), ...sum(n) })),
			kinds: [{ kind: "send-invoice", ...sum(3) }, { kind: "synchronise-".repeat(5), ...sum(0) }] }, url)
		return real(url, init)
	} })()`

// Failures that are alike are one line with Replay, and times of kinds are a table and a chart.
func TestFailuresAlike(t *testing.T) {
	d := deploy(t, true)
	d.submit(map[string]any{"kind": "transcribe-audio", "lane": "audio", "capabilities": []string{"version:99", "gpu"}})
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.early(groups)
	b.enter(d, "operator")
	b.visit("")
	b.says("512×")
	b.says("<img src=x onerror=window.broken=1> mail server: <n> try again later")
	b.says("Older failures are in no count.")
	b.says("over 513 in 24 h")
	b.says("needs gpu, version:99") // a queue of the same kind and lane has none
	b.says("1 min 1 s")
	b.want(`document.querySelectorAll("#times").length + document.querySelectorAll("main img").length`, "1")
	b.want(`window.broken`, "undefined")
	b.fill("Kind", "send-invoice")
	b.wait(`document.querySelector(".plot[aria-label*='of kind send-invoice']")?.getAttribute("aria-valuetext")
		.endsWith("Ran, half 120 ms, Ran, 99 % 1 min 1 s, Waited, 99 % 1.5 s")`)
	b.window(380, 2600, "dark")
	b.want(`document.documentElement.scrollWidth <= 380`, "true")
	b.want(`document.querySelector("#failures").getBoundingClientRect().bottom <
		document.querySelector("#throughput").getBoundingClientRect().top`, "true")
	b.shoot("overview-alike-380-dark")
	b.window(1280, 1700, "light")
	b.shoot("overview-alike-long-light")
	link := b.text(`document.querySelector("ul.groups a").hash`)
	query, err := url.ParseQuery(strings.TrimPrefix(link, "#/executions?"))
	if err != nil || query.Get("kind") != "send-invoice" || query.Get("category") != "handler_error" ||
		!strings.HasSuffix(query.Get("shape"), "<n> try again later") {
		t.Errorf("the group leads to %s (%v)", link, err)
	}
	b.press("Replay 512 of send-invoice")
	b.wait(`document.querySelector("dialog[open]")`)
	b.says("that failed like this: <img src=x")
	b.quiet(asked401, "status of 400") // this API need not know shapes
}

// A worker whose place another one took within a minute is not missed; of two that are lost it replaces one.
func TestReplacedWorkers(t *testing.T) {
	d := deploy(t, false)
	b := openBrowser(t)
	b.enter(d, "viewer")
	lost := func(workers string) string {
		t.Helper()
		return b.textOf(`import("/assets/live.js").then(m => m.unreplaced(` + workers +
			`).map(w => w.instance).join() || "none")`)
	}
	const (
		old   = `{instance: "a1", pool: "a", host: "h1", seen_at: "2026-05-01T10:00:00Z"}`
		same  = `{instance: "a2", pool: "a", host: "h2", alive: true, registered_at: "2026-05-01T10:00:40Z"}`
		late  = `{instance: "a3", pool: "a", host: "h1", alive: true, registered_at: "2026-05-01T10:02:00Z"}`
		other = `{instance: "b1", pool: "b", host: "h1", alive: true, registered_at: "2026-05-01T10:00:10Z"}`
		again = `{instance: "a4", pool: "a", host: "h1", seen_at: "2026-05-01T10:00:01Z"}`
		bare  = `{instance: "c1", host: "h1", seen_at: "2026-05-01T10:00:00Z"}`
		there = `{instance: "c2", host: "h1", alive: true, registered_at: "2026-05-01T10:00:30Z"}`
		given = `{instance: "d1", pool: "a", dead: true, seen_at: "2026-05-01T10:00:00Z"}`
	)
	for workers, want := range map[string]string{
		old + "," + same: "none", old + "," + late: "a1", old + "," + other: "a1", old + "," + again + "," + same: "a4",
		bare + "," + there: "none", bare + "," + other: "c1", given: "none", old: "a1"} {
		if got := lost("[" + workers + "]"); got != want {
			t.Errorf("of %s, %s are missed, want %s", workers, got, want)
		}
	}
	b.quiet(asked401)
}

// The list has counts by state, suggestions, and views with names; its first row is in sight without scrolling, and
// on a phone it has cards in which nothing is cut.
func TestListOfExecutions(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1440, 900, "light")
	b.enter(d, "operator")
	b.visit("executions")
	count := func(state string) string {
		return `[...document.querySelectorAll(".facet")].find(e => e.innerText === "` + state + `").dataset.count`
	}
	b.want(count("waiting")+"+"+`" "+`+count("held")+`+" "+`+count("suspended")+`+" "+`+count("failed"), "6 1 3 3")
	b.want(`document.querySelector("tbody tr").getBoundingClientRect().bottom < innerHeight`, "true")
	b.wait(`document.querySelector("#kinds option[value=transcribe-audio]")`)
	b.wait(`document.querySelector("#lanes option[value=mail]")`)
	b.press("failed")
	b.wait(`location.hash === "#/executions?state=failed"`)
	b.says("3 executions shown")
	b.wait(count("waiting") + ` === "6"`) // also of what is not shown
	b.says("mail server: 451 try again later")
	b.says("writer-1")
	b.fill("Kind", "send-invoice")
	b.says("2 executions shown")
	b.wait(count("waiting") + ` === "0"`)
	b.press("Views")
	b.press("Save this view…")
	b.fill("Name", "Broken <b>invoices</b>")
	b.press("Save")
	b.says("View: Broken <b>invoices</b>")
	b.visit("executions")
	b.press("Views")
	b.press("Broken <b>invoices</b>")
	b.wait(`location.hash.includes("kind=send-invoice") && location.hash.includes("state=failed")`)
	b.press("View: Broken <b>invoices</b>")
	b.press("Remove “Broken <b>invoices</b>”")
	b.wait(`![...document.querySelectorAll("main button")].some(e => e.innerText.startsWith("View: "))`)

	b.window(380, 700, "dark")
	b.visit("executions")
	b.want(`document.querySelector("tbody tr").getBoundingClientRect().bottom < innerHeight`, "true")
	b.want(`[...document.querySelectorAll("tbody td")].filter(e => e.checkVisibility() &&
		(e.getBoundingClientRect().right > 380 || e.scrollWidth > e.clientWidth + 1))
		.map(e => e.innerText).join("; ")`, "")
	b.want(`document.querySelector(".fields").checkVisibility()`, "false")
	b.press("Filters")
	b.fill("Lane", "audio")
	b.says("7 executions shown")
	b.quiet(asked401)
}

// An execution that failed begins with its error, the step, the attempt and Replay, also from a step; what is chosen in
// the timeline is shown beside it.
func TestFailedExecution(t *testing.T) {
	d := deploy(t, false)
	var first atomic.Int32
	brittle := handler.Define[string, string]("brittle", flowfabric.Retries(0))
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "brittle",
		AppVersion: "7.1 <b>x</b>", Logger: slog.New(slog.DiscardHandler)}, handler.Bind(brittle,
		func(ctx context.Context, t *handler.Task, _ string) (string, error) {
			if _, err := handler.Step(ctx, t, "collect all that is needed", func(context.Context) (int32, error) {
				return 40 + first.Add(1), nil
			}); err != nil {
				return "", err
			}
			return handler.Step(ctx, t, "charge", func(context.Context) (string, error) {
				return "", errors.New("card <b>declined</b>")
			})
		}))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	x, err := client.Submit(t.Context(), d.client, brittle, "x",
		flowfabric.Tags(map[string]string{"otel.traceparent": "00-" + trace + "-00f067aa0ba902b7-01"}))
	must.No(t, err)
	id := x.ID().String()
	d.until(id, "failed")
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	b.visit("executions/" + id)
	b.want(`[...document.querySelectorAll(".facts a")].find(e => e.innerText === "7.1 <b>x</b>")?.hash`,
		"#/executions?version=7.1+%3Cb%3Ex%3C%2Fb%3E")
	b.want(`document.querySelector("#why-failed").innerText`, "It failed in step charge of attempt 1")
	b.wait(`document.querySelector(".broken").innerText.includes("card <b>declined</b>")`)
	b.want(`document.querySelector(".broken").getBoundingClientRect().bottom <
		document.querySelector("#timeline").getBoundingClientRect().top`, "true")
	b.want(`document.querySelector("#chosen").innerText`, "charge")
	b.want(`document.querySelector("a[href^='https://traces']").href`, "https://traces.example/trace/"+trace)
	b.wait(`document.activeElement.id === "main"`) // it gets the focus once the page is drawn
	b.text(`document.querySelector(".timeline tr.step .span").focus()`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelector("#chosen").innerText === "collect all that is needed"`)
	b.wait(`document.querySelector("#chosen").closest("section").querySelector("pre")?.innerText === "41"`)
	b.want(`[...document.querySelectorAll(".timeline th")].every(e => e.scrollWidth <= e.clientWidth)`, "true")
	b.press("Replay from a step")
	b.wait(`document.querySelector("dialog[open] select").value === "step collect all that is needed"`)
	b.press("Replay")
	b.says("It runs again.")
	b.wait(`document.querySelector("#why-failed")?.innerText === "It failed in step charge of attempt 2"`)
	if n := first.Load(); n != 2 {
		t.Errorf("the first step ran %d times", n)
	}

	family, err := client.Submit(t.Context(), d.client, scene.Family, "otter")
	must.No(t, err)
	d.until(family.ID().String(), "completed")
	_, members := d.ask("viewer", "GET", "executions?kind=resize-image", nil)
	child, _ := members["items"].([]any)[0].(map[string]any)
	b.visit("executions/" + child["id"].(string))
	b.wait(`[...document.querySelectorAll(".facts a")].some(e => e.hash === "#/executions/` +
		family.ID().String() + `")`)
	b.quiet(asked401)
}

// With the index the list is in the order of creation over all states, and counts are whole; without it the page
// says that the order is of each state, and counts end at 50.
func TestListWithAndWithoutIndex(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1440, 900, "light")
	b.enter(d, "viewer")
	_, err := client.SubmitMany(t.Context(), d.client, scene.Never, make([]string, 80), flowfabric.Lane("audio"))
	must.No(t, err) // more than one page shows
	order := `[...document.querySelectorAll("select")].find(e => e.labels[0]?.innerText === "Order")?.options[0].text`
	completed := `[...document.querySelectorAll(".facet")].find(e => e.innerText === "completed")?.dataset.count`
	b.visit("executions")
	b.wait(order + ` === "newest per state"`)
	b.wait(completed + ` === "50+"`)
	b.visit("executions?state=failed")
	b.wait(order + ` === "newest first"`)
	all := true
	_, err = d.admin.SetIndex(t.Context(), admin.IndexChange{All: &all})
	must.No(t, err)
	id := d.submit(map[string]any{"kind": "transcribe-audio", "lane": "audio"})
	done := counted(t.Context(), t, d, admin.Filter{States: []flowfabric.PublicState{flowfabric.Completed}})
	b.visit("flows")
	b.visit("executions")
	b.wait(order + ` === "newest first"`)
	b.wait(completed + ` === ` + literal(strconv.Itoa(done)))
	b.wait(`document.querySelector("tbody tr a.mono").title === ` + literal(id))
	b.quiet(asked401)
}
