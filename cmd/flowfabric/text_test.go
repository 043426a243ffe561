package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Text of others keeps its line breaks: lines stay readable, and none of them passes for a line of the command.
func TestLineBreaks(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	review := handler.Define[map[string]any, suspend.Answer]("review")
	poem := handler.Define[map[string]any, map[string]any]("poem")
	worker, err := runtime.New(runtime.Config{URL: w.url, Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(review, func(ctx context.Context, t *handler.Task, _ map[string]any) (suspend.Answer, error) {
			return t.Ask(ctx, "editor", suspend.Question{Title: "Publish it?",
				Text: "The tides rise.\r\n\n\tThe moon pulls.\nid  1\n"})
		}),
		handler.Bind(poem, func(context.Context, *handler.Task, map[string]any) (map[string]any, error) {
			return nil, handler.Permanent(errors.New("no rhyme:\nmoon\nspoon"))
		}))
	must.No(t, err)
	ctx, stop := context.WithCancel(w.ctx)
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })
	asked, err := client.Submit(w.ctx, w.client, review, map[string]any{})
	must.No(t, err)
	if _, err := asked.AwaitSuspension(w.ctx); err != nil {
		t.Fatal(err)
	}
	failed, err := client.Submit(w.ctx, w.client, poem, map[string]any{})
	must.No(t, err)
	if _, err := failed.Result(w.ctx); err == nil {
		t.Fatal("no failure")
	}
	w.names["asked"], w.names["poem"] = asked.ID().String(), failed.ID().String()
	for _, tc := range []struct{ line, want string }{
		{"waitpoints <asked>", "\nPublish it?\n  The tides rise.\n  \n      The moon pulls.\n  id  1\n"},
		{"show <poem>", "handler_error: no rhyme:\n          moon\n          spoon\n"},
		{"history <poem>", "(handler_error): no rhyme: moon spoon\n"},
		{"why <poem>", `"no rhyme: moon spoon"`},
		{"tail <poem>", "no rhyme:\n    moon\n    spoon\n"},
		{"cancel <asked> --reason 'too\nlate'", ""},
		{"show <asked>", "too\n           late\n"},
		{"submit review --key k --input 'a\nb'", "flowfabric: --input is not JSON"},
	} {
		if _, out, errOut := w.run(tc.line, ""); !strings.Contains(out+errOut, tc.want) {
			t.Errorf("%s: want %q in\n%s%s", tc.line, tc.want, out, errOut)
		}
	}
}

// A text of several lines as it stands behind the name of a fact, in a line, and in a table.
func TestTextOnAPage(t *testing.T) {
	const text = "one\r\ntwo\tthree\n\x07four\n"
	p := &page{}
	p.facts("name", "short", "text", text)
	p.say("said: %s", text)
	p.say("%v", errors.New(text))
	p.table([]string{"A", "B"}, [][]any{{text, "x"}, {"\n", text}})
	want := `name  short
text  one
      two    three
      "\afour"
said: one
    two    three
    "\afour"
one
    two    three
    "\afour"
A                       B
"one two three \afour"  x
-                       "one two three \afour"
`
	if p.String() != want {
		t.Errorf("got\n%swant\n%s", p, want)
	}
}

// Steps are shown with their limit once four fifths are there.
func TestOfMost(t *testing.T) {
	for n, want := range map[int]string{0: "0", 799: "799", 800: "800 of 1000", 1000: "1000 of 1000"} {
		var p page
		p.facts("steps", ofMost(n, 1000))
		if got := strings.TrimSpace(p.String()); strings.Join(strings.Fields(got), " ") != "steps "+want {
			t.Errorf("%d: %q", n, got)
		}
	}
}
