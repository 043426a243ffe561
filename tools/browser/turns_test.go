package browser

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

var talk = handler.Define[string, string]("small-talk", flowfabric.Retries(0))

// talker runs a worker with an agent that hangs in the middle of its answer to "slow".
func talker(t *testing.T, d *deployment) {
	t.Helper()
	model := agent.ModelFunc(func(ctx context.Context, q agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		said := q.Messages[len(q.Messages)-1].Text()
		if err := delta(agent.Delta{Text: "You say, "}); err != nil {
			return agent.Response{}, err
		}
		if said == "slow" {
			<-ctx.Done()
			return agent.Response{}, context.Cause(ctx)
		}
		return agent.Response{Stop: agent.StopEnd, Usage: agent.Usage{Input: 2, Output: 3},
			Message: agent.Message{Parts: agent.Text("You say, " + said)}}, delta(agent.Delta{Text: said})
	})
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "talkers",
		Logger: slog.New(slog.DiscardHandler)}, handler.Bind(talk,
		func(ctx context.Context, t *handler.Task, in string) (string, error) {
			r, err := agent.Run(ctx, t, agent.Config{Model: model, Prompt: in, Mailbox: "user", Conversation: true})
			return r.Text, err
		}))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// Somebody stops an answer, says something else in its place, has it made again, and forks the run.
func TestTurnsOnThePage(t *testing.T) {
	d := deploy(t, false)
	talker(t, d)
	x, err := client.Submit(t.Context(), d.client, talk, "slow")
	must.No(t, err)
	id := x.ID().String()
	b := openBrowser(t)
	b.window(1280, 1400, "light")
	b.enter(d, "operator")
	b.visit("executions/" + id)
	shows := func(text string) {
		t.Helper()
		b.wait(`document.querySelector(".log").innerText.includes(` + literal(text) + `)`)
	}
	act := func(item, button, told string) {
		t.Helper()
		b.press("Actions")
		b.press(item)
		b.wait(`document.querySelector("dialog[open]")`)
		if button == "" {
			return
		}
		b.press(button)
		b.says(told)
		b.wait(`!document.querySelector("dialog[open]")`)
	}
	shows("You say,")
	act("Stop the answer…", "", "")
	b.fill("Reason", "too slow")
	b.shoot("turn-stop")
	b.press("Stop it")
	b.says("Stopped.")
	shows("The answer was stopped by operator: too slow.")
	talks := func(want string) {
		t.Helper()
		b.wait(`[...document.querySelectorAll(".pane .words, .pane .aside")].map(e => e.innerText.trim())` +
			`.join("|") === ` + literal(want))
	}
	talks("slow|You say,|The answer was stopped by operator: too slow. 52 tokens paid, by estimate.")
	d.until(id, "suspended")
	b.wait(`document.querySelector(".history")?.innerText.includes("The answer was stopped by operator")`)
	b.press("Actions")
	b.press("Stop the answer…")
	b.press("Stop it")
	b.says("says nothing now that could be stopped")
	b.press("Leave it")

	b.wait(`document.querySelector("#steps")`)
	act("Go on from a step…", "", "")
	b.fill("What the user says instead", "hello")
	b.shoot("turn-edit")
	b.press("Go on from there")
	b.says("It goes on from there, in attempt 2.")
	shows("You say, hello")
	d.until(id, "suspended")
	b.wait(`document.querySelector(".history")?.innerText.includes("Goes on from model 1")`)
	shows("It goes on from an earlier step, says operator")
	talks("hello|You say, hello") // what was dropped is gone
	b.shoot("turn-edited")
	b.visit("executions/" + id)
	b.wait(`document.querySelector("#steps")`)
	act("Fork…", "", "")
	b.shoot("turn-fork")
	b.press("Fork")
	b.says("Forked. This is the new one.")
	b.wait(`location.hash.includes("executions/") && !location.hash.includes(` + literal(id) + `)`)
	b.wait(`document.body.innerText.includes("Fork of")`)
	b.says("Forked from")
	shows("You say, hello")
	b.shoot("turn-forked")
	b.window(400, 900, "dark")
	b.want("document.documentElement.scrollWidth <= 400", "true")
	b.shoot("turn-forked-phone")
	b.window(1280, 1400, "light")
	b.visit("executions/" + id)
	b.wait(`document.querySelector(".history")?.innerText.includes("Fork made:")`)
	b.quiet(asked401, "status of 409")
}
