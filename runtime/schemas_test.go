package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
)

type mail struct {
	To      []string `json:"to"`
	Subject string   `json:"subject,omitempty"`
}

// loose are inputs of the kind mail by a producer that does not know its type.
var loose = handler.Define[map[string]any, any]("mail")

// A worker publishes the types of its kinds when it starts, and inputs that do not fit are refused wherever they come
// from. One that opts out takes back what was said.
func TestWorkersPublishTheTypesOfTheirKinds(t *testing.T) {
	w := newEnv(t)
	send := func(context.Context, *handler.Task, mail) (int, error) { return 0, nil }
	first := w.start(runtime.Config{Namespaces: []string{"blue"}},
		handler.Bind(handler.Define[mail, int]("mail"), send), greetBinding())
	for _, namespace := range []string{"default", "blue"} {
		all, err := w.engine.Schemas(w.ctx, namespace)
		must.No(t, err)
		if in := string(all["mail"].Input); len(all) != 2 || !strings.Contains(in, `"required":["to"]`) ||
			string(all["greet"].Result) != `{"type":"string"}` {
			t.Errorf("%s: %v", namespace, all)
		}
	}
	c, err := client.Connect(w.ctx, client.Config{URL: w.url, Logger: quiet})
	must.No(t, err)
	defer c.Close()
	bad, good := map[string]any{"to": []any{"a", 7}}, map[string]any{"to": []any{"a"}, "more": 1}
	f := flow.New("mails")
	flow.Add(f, "one", loose, good)
	flow.Add(f, "two", loose, bad)
	_, submitted := client.Submit(w.ctx, c, loose, bad)
	_, many := client.SubmitMany(w.ctx, c, loose, []map[string]any{good, bad})
	_, ofFlow := client.SubmitFlow(w.ctx, c, f)
	_, scheduled := client.Schedule(w.ctx, c, "mails", schedule.Cron("0 7 * * *", "UTC"), loose, bad)
	_, flowScheduled := client.ScheduleFlow(w.ctx, c, "flows", schedule.Cron("0 7 * * *", "UTC"), f)
	for door, err := range map[string]error{"submit": submitted, "many": many, "flow": ofFlow, "schedule": scheduled,
		"schedule of a flow": flowScheduled} {
		if !errors.Is(err, denied.InputMisfit) || flowfabric.Retryable(err) ||
			!strings.Contains(err.Error(), "kind mail: /to/1: it is a JSON number, want a string") {
			t.Errorf("%s: %v", door, err)
		}
	}
	item := &client.ItemError{}
	if !errors.As(many, &item) || item.Index != 1 {
		t.Errorf("many: %v", many)
	}
	x, err := client.Submit(w.ctx, c, loose, good)
	must.No(t, err)
	_, err = x.Result(w.ctx)
	must.No(t, err)

	must.No(t, first.stop())
	w.start(runtime.Config{}, handler.Bind(handler.Define[mail, int]("mail", handler.NoSchema()), send))
	all, err := w.engine.Schemas(w.ctx, "default")
	must.No(t, err)
	if _, known := all["mail"]; known || len(all) != 1 {
		t.Errorf("%v", all)
	}
}

// A child whose input does not fit is never made, and the attempt of its parent fails for good, with the reason.
func TestChildrenMustFit(t *testing.T) {
	w := newEnv(t)
	parent := handler.Define[string, string]("parent")
	w.start(runtime.Config{}, greetBinding(),
		handler.Bind(handler.Define[mail, int]("mail"),
			func(context.Context, *handler.Task, mail) (int, error) { return 0, nil }),
		handler.Bind(parent, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			set := flow.Children("w")
			flow.Child(set, "c", loose, map[string]any{"to": 7})
			return "", task.WaitChildren(ctx, set)
		}))
	x := w.reach(w.submitKind("parent", "in"), codes.Failed)
	if !strings.Contains(x.Failure.Message, `node "c": kind mail`) ||
		!strings.Contains(x.Failure.Message, "/to: it is a JSON number") || x.Attempts != 1 {
		t.Errorf("%+v", x.Failure)
	}
}
