package browser

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// The graph of a flow fits the page or is panned, its nodes say how long they took and how much of a quorum is there,
// and a cancelled one is told from others.
func TestGraph(t *testing.T) {
	d := deploy(t, true)
	f := flow.New("vote")
	one := flow.Add(f, "one", scene.Never, "1.wav", flowfabric.Lane("audio"))
	two := flow.Add(f, "two", scene.Never, "2.wav", flowfabric.Lane("audio"))
	three := flow.Add(f, "three", scene.Never, "3.wav", flowfabric.Lane("audio"))
	flow.Add(f, "count", scene.Never, "all", flow.After(one, two, three), flow.Quorum(2), flowfabric.Lane("audio"))
	made, err := client.SubmitFlow(t.Context(), d.client, f)
	must.No(t, err)
	must.No(t, d.client.Execution(flowfabric.ExecutionID(made.ID().Member("two"))).Cancel(t.Context()))
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "viewer")
	b.visit("flows/" + made.ID().String())
	node := func(name string) string {
		return `[...document.querySelectorAll(".graph a")].find(a => a.querySelector("title").textContent.startsWith(` +
			literal(name+":") + `))`
	}
	b.wait(node("count") + `.querySelector(".mark").textContent === "0/2"`)
	b.want(node("count")+`.querySelector("title").textContent.includes("0 of 2, out of 3")`, "true")
	b.wait(node("two") + `.querySelector("g.n-cancelled")`)
	b.says("2 of 3")
	b.visit("flows/" + d.scene.BrokenFlow.String())
	b.wait(`/\d (ms|s)$/.test(` + node("sources") + `.querySelectorAll("text.dim")[1].textContent)`)
	b.want(`document.querySelector(".graph").scrollWidth <= document.querySelector(".graph").clientWidth`, "true")
	b.press("Larger")
	b.press("Larger")
	b.press("Larger")
	b.wait(`document.querySelector(".graph").scrollWidth > document.querySelector(".graph").clientWidth`)
	b.press("Fit")
	b.wait(`document.querySelector(".graph").scrollWidth <= document.querySelector(".graph").clientWidth`)

	b.window(380, 760, "dark")
	b.visit("flows/" + d.scene.BrokenFlow.String())
	b.want("document.documentElement.scrollWidth <= 380", "true")
	b.quiet(asked401)
}
