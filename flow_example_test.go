package flowfabric_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

type Issue struct{ Title string }

// What producers and workers share: definitions, and the inputs that join them.
var (
	Bind = handler.Define[Issue, Article]("bind-issue")

	Lead    = flow.Input[Article]{Name: "lead"}
	Feature = flow.Input[Article]{Name: "feature"}
)

// bindIssue is given the articles. Need fails when one is missing; Get asks.
func bindIssue(_ context.Context, t *handler.Task, in Issue) (Article, error) {
	lead, err := handler.Need(t, Lead)
	if err != nil {
		return Article{}, err
	}
	feature, err := handler.Need(t, Feature)
	return Article{in.Title + ": " + lead.Text + "; " + feature.Text}, err
}

// Two articles are written at once, and bound when both are there.
func Example_flow() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(Bind, bindIssue),
		handler.Bind(Write,
			func(_ context.Context, _ *handler.Task, in Draft) (Article, error) {
				return Article{"on " + in.Topic}, nil
			}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	f := flow.New("issue")
	tides := flow.Add(f, "tides", Write, Draft{"tides"}, flowfabric.Priority(5))
	moons := flow.Add(f, "moons", Write, Draft{"moons"})
	issue := flow.Add(f, "issue", Bind, Issue{"May"}, Lead.From(tides), Feature.From(moons))

	fl, err := client.SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey("may")) // nothing runs before all of it is there
	if err != nil {
		fmt.Println(err)
		return
	}
	end, err := fl.Wait(ctx) // how the flow ended, and every node of it
	fmt.Println(end.State, end.Count[flowfabric.Completed], err)
	bound, err := client.NodeResult(ctx, fl, issue) // typed
	fmt.Println(bound.Text, err)
	// Output:
	// completed 3 <nil>
	// May: on tides; on moons <nil>
}

var WriteIssue = handler.Define[[]Draft, Article]("write-issue")

// writeIssue makes an execution for each article and waits for all of them. It holds nothing meanwhile.
func writeIssue(ctx context.Context, t *handler.Task, drafts []Draft) (Article, error) {
	set := flow.Children("articles")
	var children []*flow.ChildNode[Article]
	for _, d := range drafts {
		children = append(children, flow.Child(set, d.Topic, Write, d))
	}
	if err := t.WaitChildren(ctx, set); err != nil {
		return Article{}, err // returned, this is what parks the execution
	}
	var texts []string
	for _, child := range children {
		article, err := handler.ChildResult(ctx, t, child)
		if err != nil {
			return Article{}, err
		}
		texts = append(texts, article.Text)
	}
	return Article{strings.Join(texts, "; ")}, nil
}

// How many articles there are is known only once the work has begun: the handler makes them itself. Its flow has its
// own id.
func Example_children() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, handler.Bind(WriteIssue, writeIssue),
		handler.Bind(Write,
			func(_ context.Context, _ *handler.Task, in Draft) (Article, error) {
				return Article{"on " + in.Topic}, nil
			}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = worker.Run(ctx) })
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	exec, err := client.Submit(ctx, c, WriteIssue, []Draft{{"tides"}, {"moons"}, {"eels"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	issue, err := exec.Result(ctx)
	fmt.Println(issue.Text, err)
	end, err := c.Flow(flowfabric.FlowID(exec.ID())).Wait(ctx)
	fmt.Println(end.State, end.Members, err)
	// Output:
	// on tides; on moons; on eels <nil>
	// completed 4 <nil>
}
