package browser

import (
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// cutOrLong lists what is wider than its place, and lines of text that are too long to read. What ends with an
// ellipsis has the whole text in its title; a graph and the bars of a timeline are made to be wider.
const cutOrLong = `(() => {
	const say = e => e.tagName + "." + e.className + " " + (e.textContent ?? "").slice(0, 40)
	const wide = e => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1
	const all = [...document.querySelectorAll("main *")], page = document.documentElement
	const apart = ".hidden, .graph, .lane, .plot, svg, input, select, textarea, .tags, .clip"
	return [
		...(page.scrollWidth > page.clientWidth ? ["the page is " + page.scrollWidth + " wide"] : []),
		...all.filter(e => wide(e) && !e.closest(apart)).map(say),
		...all.filter(e => e.matches(".clip") && wide(e) && !e.title && !e.querySelector("[title]"))
			.map(e => "no title: " + say(e)),
		...all.filter(e => e.matches("p, li") && !e.querySelector("button, article, p") && !e.matches(".legend, .axis, .foot, .none") &&
			e.clientWidth > 100 * parseFloat(getComputedStyle(e).fontSize))
			.map(e => "a line of " + e.clientWidth + ": " + say(e)),
	].slice(0, 6).join("; ")
})()`

// Names of full length are cut nowhere, from a phone to a large screen, and lines of text stay short enough to read.
func TestNothingIsCutOfWork(t *testing.T) {
	d := deploy(t, true)
	long := strings.Repeat("synchronise-", 5) + "all"
	kind := handler.Define[string, string](long)
	x, err := client.Submit(t.Context(), d.client, kind, "x", flowfabric.Lane(long), flowfabric.Tags(map[string]string{
		"customer.name": strings.Repeat("Acme Industrial Holdings ", 6), "order.region": long}))
	must.No(t, err)
	f := flow.New(long)
	first := flow.Add(f, long, kind, "x", flowfabric.Lane("audio"))
	flow.Add(f, "count", scene.Never, "x", flow.After(first), flow.Quorum(1), flowfabric.Lane("audio"))
	made, err := client.SubmitFlow(t.Context(), d.client, f)
	must.No(t, err)
	b := openBrowser(t)
	b.early(groups)
	b.enter(d, "operator")
	s := d.scene
	for _, size := range [][2]int64{{380, 800}, {1280, 800}, {1440, 900}, {3840, 2160}} {
		b.window(size[0], size[1], "light")
		for _, place := range []string{"", "executions", "executions/" + x.ID().String(),
			"executions/" + s.Written.String(), "executions/" + s.Failed.String(),
			"executions/" + s.Suspended.String(), "flows", "flows/" + made.ID().String(),
			"flows/" + s.BrokenFlow.String()} {
			b.visit(place)
			if got := b.text(cutOrLong); got != "" {
				t.Errorf("%s, %d wide: %s", place, size[0], got)
			}
		}
	}
	b.quiet(asked401)
}
