package browser

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// asking is a question for the inbox, and how long it may wait.
type asking struct {
	Title, Text, Assignee string
	Minutes               int
}

var asks = handler.Define[asking, suspend.Answer]("asks-people", flowfabric.Retries(0))

// inbox submits questions and waits until they are asked.
func inbox(t *testing.T, d *deployment, all ...asking) (made []*client.Execution[suspend.Answer]) {
	t.Helper()
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "asks",
		Logger: slog.New(slog.DiscardHandler)}, handler.Bind(asks,
		func(ctx context.Context, t *handler.Task, in asking) (suspend.Answer, error) {
			if err := t.Frame(ctx, "token", "I looked at "+in.Title); err != nil {
				return suspend.Answer{}, err
			}
			return t.Ask(ctx, "approval", suspend.Question{Title: in.Title, Text: in.Text, Assignee: in.Assignee,
				Choices: []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Reject"}}},
				suspend.Within(time.Duration(in.Minutes)*time.Minute))
		}))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	for _, in := range all {
		x, err := client.Submit(ctx, d.client, asks, in)
		must.No(t, err)
		d.until(x.ID().String(), "suspended")
		made = append(made, x)
	}
	return made
}

const marked = "# Plan\n\nIt is **ready**, see [the log](https://log.example/7?a=b) and `make it`.\n\n- one\n" +
	"- two\n\n" +
	"[click](javascript:window.broken=1) <img src=x onerror=window.broken=2> ![i](https://x.example/i.png)\n" +
	"[bank](https://evil.example/\"onmouseover=\"window.broken=3) <script>window.broken=4</script>\n> quoted"

// The inbox shows six questions a screen, the most urgent first and a person's own alone, with the run beside its
// question; several are answered alike. Markdown is nodes, and nothing of a hostile text acts.
func TestInbox(t *testing.T) {
	d := deploy(t, false)
	all := []asking{{"Last", marked, "", 600}}
	for i := range 5 {
		all = append(all, asking{fmt.Sprint("Number ", i), "Is it good?", "zoe", 300 - i})
	}
	made := inbox(t, d, all...)
	b := openBrowser(t)
	b.window(1440, 900, "light")
	b.enter(d, "zoe")
	b.visit("approvals")
	b.wait(`document.querySelectorAll(".inbox > li").length === 6`)
	b.want(`[...document.querySelectorAll(".inbox > li")]`+
		`.filter(e => e.getBoundingClientRect().bottom <= innerHeight).length`, "6")
	titles := `[...document.querySelectorAll(".inbox h2")].map(e => e.innerText.trim()).join()`
	b.want(titles, "Number 4,Number 3,Number 2,Number 1,Number 0,Last")
	b.shoot("inbox")

	last := `[...document.querySelectorAll(".inbox > li")].at(-1)`
	b.want(last+`.querySelectorAll(".prose img, .prose script, .prose [onmouseover]").length + String(window.broken)`,
		"0undefined")
	b.want(`[...`+last+`.querySelectorAll(".prose a")].map(a => a.href + a.rel + a.target).join()`,
		"https://log.example/7?a=bnoopener noreferrer nofollow_blank,"+
			"https://x.example/i.pngnoopener noreferrer nofollow_blank,"+
			"https://evil.example/noopener noreferrer nofollow_blank")
	b.want(`["strong", "code", "li", "blockquote"].map(n => `+last+`.querySelectorAll(".prose " + n).length).join()`,
		"1,1,2,1")
	b.says("the log (log.example)")
	b.says("<script>window.broken=4</script>")

	b.press("Show the run of Last")
	b.wait(last + `.querySelector(".run pre[aria-label=output]")?.innerText === "I looked at Last"`)
	b.wait(last + `.querySelector(".run pre[aria-label=input]")?.innerText.includes("javascript:window.broken=1")`)
	b.press("Hide the run of Last")

	b.press("Mine")
	b.wait(`document.querySelectorAll(".inbox > li").length === 5 && location.hash.includes("assignee=zoe")`)
	b.text(`[0, 1].forEach(i => document.querySelectorAll(".inbox h2 input")[i].click())`)
	b.says("2 questions chosen")
	b.press("Reject…")
	b.fill("Comment", "not <b>now</b>")
	b.press("Reject")
	b.says("2 answers delivered.")
	b.wait(`document.querySelectorAll(".inbox > li").length === 3`)
	for _, x := range made[4:] {
		got, err := x.Result(t.Context())
		if err != nil || got.Choice != "reject" || got.Comment != "not <b>now</b>" || got.By != "zoe" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	b.press("Mine")
	b.wait(`!location.hash.includes("assignee")`)
	b.visit("approvals?order=since")
	b.wait(titles + ` === "Last,Number 0,Number 1,Number 2"`)
	b.window(380, 760, "dark")
	b.want("document.documentElement.scrollWidth <= 380", "true")
	if complaints := strings.Join(b.complaints, "\n"); strings.Contains(complaints, "Content Security") {
		t.Error(complaints)
	}
	b.quiet(asked401)
}
