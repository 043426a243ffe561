package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// night is a deployment with trouble in it.
type night struct {
	*deployment
	*scene.Night
}

// atNight starts all of it but the pages.
func atNight(t *testing.T) night {
	t.Helper()
	d := stand(t)
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	n, err := scene.StartNight(ctx, d.store)
	must.No(t, err)
	t.Cleanup(n.Stop)
	d.client, d.admin = n.Client, n.Admin
	d.serve()
	t.Cleanup(d.kill)
	return night{d, n}
}

// read asks the API as a viewer for a list, and returns one field of each item, in order of text.
func (n night) read(path, field string) (out []string) {
	n.t.Helper()
	status, answer := n.ask("viewer", "GET", path, nil)
	if status != 200 {
		n.t.Fatalf("%s: %d %v", path, status, answer)
	}
	items, _ := answer["items"].([]any)
	for _, x := range items {
		item, _ := x.(map[string]any)
		out = append(out, fmt.Sprint(item[field]))
	}
	slices.Sort(out)
	return out
}

// lists waits until the API lists so many.
func (n night) lists(path string, want int) {
	n.t.Helper()
	testwait.Progress(n.t, fmt.Sprintf("%s lists %d", path, want), func() (bool, any) {
		got := len(n.read(path, "id"))
		return got == want, got
	})
}

// laneOfOneTenantIsPaused fails unless the lane render is paused for acme alone.
func (n night) laneOfOneTenantIsPaused() {
	n.t.Helper()
	for namespace, want := range map[string]string{"acme": "paused", "default": "active"} {
		_, answer := n.ask("viewer", "GET", "lanes?namespace="+namespace, nil)
		items, _ := answer["items"].([]any)
		found := false
		for _, x := range items {
			if lane, _ := x.(map[string]any); lane["name"] == "render" {
				found = true
				if lane["state"] != want {
					n.t.Errorf("lane render of %s is %s", namespace, lane["state"])
				}
			}
		}
		if !found {
			n.t.Errorf("%s has no lane render", namespace)
		}
	}
}

// slowSince is the first minute in which half of a kind ran for more than a second.
func (n night) slowSince(kind string) (at time.Time) {
	n.t.Helper()
	_, answer := n.ask("viewer", "GET", "times?kind="+kind, nil)
	steps, _ := answer["steps"].([]any)
	for _, x := range steps {
		step, _ := x.(map[string]any)
		ran, _ := step["ran"].(map[string]any)
		if half, _ := ran["p50_ms"].(float64); half > 1000 {
			at, err := time.Parse(time.RFC3339, fmt.Sprint(step["at"]))
			must.No(n.t, err)
			return at
		}
	}
	n.t.Fatalf("%s was never slow: %v", kind, answer)
	return at
}

// person does a task in a tab: clicks and fields are counted.
type person struct {
	*tab
	night
	clicks, fields int
}

func (p *person) press(text string) {
	p.tab.Helper()
	p.clicks++
	p.tab.press(text)
}

func (p *person) fill(label, value string) {
	p.tab.Helper()
	p.fields++
	p.tab.fill(label, value)
}

// click clicks what an expression finds.
func (p *person) click(find string) {
	p.tab.Helper()
	p.clicks++
	p.wait(find)
	p.tab.text(find + `.click()`)
}

// link clicks a link in a part of the page.
func (p *person) link(part, place string) {
	p.tab.Helper()
	p.click(`document.querySelector(` + literal(part+` a[href^="#/`+place+`"]`) + `)`)
}

// shown are the ids of the executions of a list, in order of text.
func (p *person) shown() []string {
	p.tab.Helper()
	text := p.text(`JSON.stringify([...document.querySelectorAll("main tbody a.mono[title]")].map(a => a.title)
		.sort())`)
	var ids []string
	must.No(p.tab, json.Unmarshal([]byte(text), &ids))
	return ids
}

// agrees waits until the page lists what the API does.
func (p *person) agrees(path string, least int) {
	p.tab.Helper()
	want := p.read(path, "id")
	if len(want) < least {
		p.tab.Errorf("%s: %d executions", path, len(want))
	}
	testwait.Progress(p.tab, "the page lists "+path, func() (bool, any) {
		got := p.shown()
		return slices.Equal(got, want), strings.Join(got, " ")
	})
}

// tasks are what an engineer on call does at night, from the overview on. None may need more than four clicks.
var tasks = []struct {
	name string
	do   func(p *person)
}{
	{"what failed since the deploy, and why", func(p *person) {
		p.says("500×")
		text := p.text(`JSON.stringify([...document.querySelectorAll("ul.groups li")].map(e =>
			[e.querySelector("b").innerText + " " + e.querySelector("a").innerText + " " + e.querySelector(".bad-text").innerText,
			[...e.querySelectorAll("time")].at(-1).dateTime]))`)
		var groups [][2]string
		must.No(p.tab, json.Unmarshal([]byte(text), &groups))
		var since []string
		for _, g := range groups {
			first, err := time.Parse(time.RFC3339, g[1])
			must.No(p.tab, err)
			if first.After(p.Deployed) {
				since = append(since, g[0])
			}
		}
		_, answer := p.ask("viewer", "GET", "failures?version=13", nil)
		items, _ := answer["items"].([]any)
		var want []string
		for _, x := range items {
			g, _ := x.(map[string]any)
			want = append(want, fmt.Sprintf("%v× %v %v", g["count"], g["kind"], g["shape"]))
		}
		if len(want) != 2 || !slices.Equal(since, want) {
			p.tab.Errorf("the page has %q, the API %q", since, want)
		}
		p.click(`document.querySelector("ul.groups li p.small a")`)
		p.says("It failed in step charge of attempt 1")
		p.says("the card network answered 503")
	}},
	{"replay the 500 that failed with one message", func(p *person) {
		p.Repaired.Store(true)
		p.press("Replay 500 of charge-card")
		p.press("Replay 500")
		p.says("500 executions done")
		p.lists("executions?kind=charge-card&state=completed&limit=1000", scene.Charges+2)
		p.tab.press("Close")
	}},
	{"who waits for which budget", func(p *person) {
		p.says("The budget model-tokens is used up: 12 executions wait for it.")
		p.link("[role=status]", "gates")
		p.link("#main", "executions?kind=summarize")
		p.agrees("executions?kind=summarize&state=waiting&state=waiting_gate", scene.Summaries)
	}},
	{"stop one tenant", func(p *person) {
		p.fields++
		choose := func(name string) {
			p.text(`(s => { s.value = ` + literal(name) + `; s.dispatchEvent(new Event("change", {bubbles: true})) })(
				document.querySelector(".namespace select"))`)
		}
		choose("acme")
		p.press("Queues")
		p.press("Change")
		p.press("Pause…")
		p.press("Pause")
		p.says("Lane render is paused.")
		p.laneOfOneTenantIsPaused()
		choose("*")
	}},
	{"what version 12 still holds", func(p *person) {
		p.press("Workers")
		row := `[...document.querySelectorAll("[aria-label^=Versions] tbody tr")]` +
			`.find(r => r.cells[0].innerText.trim() === "12")`
		p.wait(row)
		p.want(row+`.innerText.replace(/\s+/g, " ").startsWith("12 no worker 0 0 3 2 0 ")`, "true")
		p.link("#main", "executions?version=12")
		p.agrees("executions?version=12", 5)
	}},
	{"answer the question that ends first", func(p *person) {
		p.link("nav", "approvals")
		p.wait(`document.querySelector(".inbox h2")?.innerText.includes("Pay back order 701?")`)
		p.press("Approve")
		p.until(p.Urgent.String(), "completed")
		p.lists("executions?kind=refund&state=suspended", 2)
	}},
	{"run what a schedule missed last night", func(p *person) {
		p.press("Schedules")
		p.press("Change")
		p.press("Backfill…")
		p.press("Backfill")
		p.says("1 run submitted")
		p.lists("executions?tag=schedule.name=nightly-report&state=completed", 1)
		p.tab.press("Close")
	}},
	{"follow what a running execution logs", func(p *person) {
		p.link(".tiles", "executions?state=active")
		p.link("#main tbody", "executions/"+p.Import.String())
		p.wait(`document.querySelector("ol.lines")?.innerText.includes("1 of 40 pages read")`)
		must.No(p.tab, p.Say(p.tab.ctx, "2 of 40 pages read"))
		p.wait(`document.querySelector("ol.lines").innerText.includes("2 of 40 pages read")`)
		p.wait(`document.querySelector(".log").innerText.includes("2 of 40 pages read")`)
		if got := p.read("executions/"+p.Import.String()+"/logs", "message"); len(got) != 2 {
			p.tab.Errorf("the API has %q", got)
		}
	}},
	{"why an execution does not run", func(p *person) {
		p.press("Open by id")
		p.fill("Id", p.Stuck.String())
		p.press("Open")
		_, why := p.ask("viewer", "GET", "executions/"+p.Stuck.String()+"/why", nil)
		if why["reason"] != "waiting_no_worker" {
			p.tab.Errorf("the API says %v", why)
		}
		p.says(fmt.Sprint(why["sentence"]))
	}},
	{"since when a kind is slow", func(p *person) {
		p.fill("Kind", scene.Charge.Kind())
		plot := `document.querySelector(".plot[aria-label*='of kind charge-card']")`
		p.wait(plot + `?.querySelector(".uplot")`) // drawn, so that it hears the keys
		p.text(plot + `.focus()`)                  // the arrow keys are as the mouse over it
		since := ""
		at := p.slowSince(scene.Charge.Kind())
		want := p.text(`new Date(` + literal(at.Format(time.RFC3339)) + `).toLocaleTimeString("en-GB")`)
		p.do(chromedp.KeyEvent(kb.Home))
		for range 60 {
			p.do(chromedp.KeyEvent(kb.ArrowRight))
			value := p.text(plot + `.getAttribute("aria-valuetext")`)
			if _, half, _ := strings.Cut(value, "Ran, half "); strings.HasPrefix(half, "4") ||
				strings.HasPrefix(half, "3.9") {
				since, _, _ = strings.Cut(value, ": ")
				break
			}
		}
		if since == "" || since != want {
			p.tab.Errorf("the page says since %q, the API since %q", since, want)
		}
	}},
}

// Ten tasks at night, each done as a person would who has the overview in front: none needs more than four clicks.
// That it is done is read through the API.
func TestTasksAtNight(t *testing.T) {
	n := atNight(t)
	b := openBrowser(t)
	b.window(1440, 900, "light")
	b.enter(n.deployment, "operator")
	var table strings.Builder
	for _, task := range tasks {
		b.visit("")
		b.wait(`document.querySelector(".tiles")`)
		p := &person{tab: b, night: n}
		t.Log(task.name)
		began := time.Now()
		task.do(p)
		fmt.Fprintf(&table, "\n%-48s %d clicks, %d fields, %4.1f s", task.name, p.clicks, p.fields,
			time.Since(began).Seconds())
		if p.clicks > 4 {
			t.Errorf("%s: %d clicks", task.name, p.clicks)
		}
	}
	t.Log(table.String())
	b.quiet(asked401)
}
