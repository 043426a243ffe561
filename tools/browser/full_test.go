package browser

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// The page of an execution says which of its limits are near, and that an agent's conversation was summarised.
func TestNearlyFull(t *testing.T) {
	d := deploy(t, false)
	long := handler.Define[string, string]("long-talk", flowfabric.Retries(0))
	w, err := runtime.New(runtime.Config{URL: d.store, TokenKeys: scene.Keys, Worker: "long",
		Logger: slog.New(slog.DiscardHandler)}, handler.Bind(long,
		func(ctx context.Context, t *handler.Task, _ string) (string, error) {
			for i := range 812 {
				if _, err := handler.Step(ctx, t, fmt.Sprint("step ", i), func(context.Context) (int, error) {
					return i, nil
				}); err != nil {
					return "", err
				}
			}
			summary := `{"messages":12,"before":161000,"after":20500,"text":"Ann <b>wants</b> tides."}`
			if err := t.FrameBytes(ctx, stream.Frame{Type: agent.FrameSummary, Encoding: "json",
				Payload: []byte(summary)}); err != nil {
				return "", err
			}
			return handler.Await[string](ctx, t, "go on")
		}))
	must.No(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	x, err := client.Submit(t.Context(), d.client, long, "Ann")
	must.No(t, err)
	d.until(x.ID().String(), "suspended")
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "viewer")
	b.visit("executions/" + x.ID().String())
	b.says("steps 812 of 1,000")
	b.says("For its model a summary takes the place of the first 12 messages (about 161,000 tokens, now 20,500): " +
		"Ann <b>wants</b> tides.")
	if b.text(`document.querySelector("#facts").closest("section").innerText.includes("history")`) != "false" {
		t.Error("it warns of the history, too")
	}
}
