package howto_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Producers and workers share the definitions, and the names and types of the inputs that join them.
var (
	WriteUp    = handler.Define[Draft, Article]("write-up")
	Bundle     = handler.Define[string, Article]("bundle")
	TellEditor = handler.Define[string, string]("tell-editor")

	Lead    = flow.Input[Article]{Name: "lead"}
	Feature = flow.Input[Article]{Name: "feature"}
)

func writeUp(_ context.Context, _ *handler.Task, in Draft) (Article, error) {
	return Article{"on " + in.Topic}, nil
}

func bundle(ctx context.Context, t *handler.Task, title string) (Article, error) {
	lead, err := handler.Need(t, Lead) // handler.Given asks whether there is one
	if err != nil {
		return Article{}, err
	}
	feature, err := handler.Need(t, Feature)
	return Article{title + ": " + lead.Text + "; " + feature.Text}, err
}

func submitIssue(ctx context.Context, c *client.Client) (Article, error) {
	f := flow.New("issue")
	tides := flow.Add(f, "tides", WriteUp, Draft{"tides"}, flowfabric.Priority(5))
	moons := flow.Add(f, "moons", WriteUp, Draft{"moons"})
	issue := flow.Add(f, "issue", Bundle, "May", Lead.From(tides), Feature.From(moons)) // runs when both have succeeded

	submitted, err := client.SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey("may"))
	if err != nil {
		return Article{}, err
	}
	end, err := submitted.Wait(ctx) // completed, failed or cancelled, with every node
	if err != nil {
		return Article{}, err
	}
	var picture strings.Builder
	if err := end.Mermaid(&picture); err != nil { // or Text, Graphviz
		return Article{}, err
	}
	return client.NodeResult(ctx, submitted, issue)
}

var WriteMany = handler.Define[[]Draft, string]("write-many")

// writeMany does not know beforehand how many articles there are. It holds nothing while it waits.
func writeMany(ctx context.Context, t *handler.Task, drafts []Draft) (string, error) {
	set := flow.Children("articles")
	var children []*flow.ChildNode[Article]
	for _, d := range drafts {
		children = append(children, flow.Child(set, d.Topic, WriteUp, d))
	}
	if err := t.WaitChildren(ctx, set); err != nil {
		return "", err // return it: it suspends the execution
	}
	var texts []string
	for _, child := range children {
		article, err := handler.ChildResult(ctx, t, child)
		if err != nil {
			return "", err
		}
		texts = append(texts, article.Text)
	}
	return strings.Join(texts, "; "), nil
}

func submitEdition(ctx context.Context, c *client.Client) (client.FlowSnapshot, error) {
	f := flow.New("edition")
	tides := flow.Add(f, "tides", WriteUp, Draft{"tides"})
	moons := flow.Add(f, "moons", WriteUp, Draft{"moons"})
	issue := flow.Add(f, "issue", Bundle, "May", Lead.From(tides), Feature.From(moons),
		flow.CancelRemaining()) // when one fails, the other is cancelled at once

	flow.Add(f, "clean up", TellEditor, "May", flow.After(tides, moons, issue), flow.AllEnded())
	flow.Add(f, "apologise", TellEditor, "sorry", flow.After(issue), flow.AnyFailed())

	submitted, err := client.SubmitFlow(ctx, c, f)
	if err != nil {
		return client.FlowSnapshot{}, err
	}
	return submitted.Wait(ctx)
}

func tellEditor(ctx context.Context, t *handler.Task, text string) (string, error) {
	outcomes, err := t.Upstreams(ctx)
	for _, up := range outcomes {
		text += fmt.Sprintf(", %s %s", up.Node, up.State)
	}
	return text, err
}

func addSupplement(ctx context.Context, submitted *client.Flow) (Article, error) {
	more := flow.New("edition") // the flow's kind
	tides := flow.Existing[Article](more, "tides")
	eels := flow.Add(more, "eels", WriteUp, Draft{"eels"})
	supplement := flow.Add(more, "supplement", Bundle, "June", Lead.From(tides), Feature.From(eels))
	if err := submitted.Add(ctx, more); err != nil { // may be repeated: nodes join once
		return Article{}, err
	}
	if err := submitted.Seal(ctx); err != nil { // nothing more comes
		return Article{}, err
	}
	return client.NodeResult(ctx, submitted, supplement)
}

var WriteUntil = handler.Define[[]Draft, int]("write-until")

var PrintReport = handler.Define[flowfabric.ExecutionID, string]("print-report")

var _ = publish

// publish submits a flow and waits for its last node. If publish is cancelled meanwhile, so is the flow.
func publish(ctx context.Context, t *handler.Task, c *client.Client) (Article, error) {
	id, err := handler.Step(ctx, t, "submit", func(ctx context.Context) (flowfabric.FlowID, error) {
		f := flow.New("issue")
		tides := flow.Add(f, "tides", WriteUp, Draft{"tides"})
		flow.Add(f, "issue", Bundle, "May", Lead.From(tides))
		submitted, err := client.SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey(t.ID().String()))
		if err != nil {
			return flowfabric.FlowID{}, err
		}
		return submitted.ID(), nil
	})
	if err != nil {
		return Article{}, err
	}
	set := flow.Children("issue")
	issue := flow.Other(set, "issue", Bundle, id.Member("issue"), flow.CancelRemaining())
	if err := t.WaitChildren(ctx, set); err != nil {
		return Article{}, err // return it: it suspends the execution
	}
	return handler.ChildResult(ctx, t, issue)
}

// printWhenWritten waits until the report that was submitted elsewhere is written.
func printWhenWritten(ctx context.Context, t *handler.Task, report flowfabric.ExecutionID) (string, error) {
	set := flow.Children("report")
	written := flow.Other(set, "report", WriteUp, report)
	if err := t.WaitChildren(ctx, set, suspend.Within(24*time.Hour)); err != nil {
		return "", err // return it: it suspends the execution
	}
	article, err := handler.ChildResult(ctx, t, written)
	return article.Text, err
}

// writeUntil writes what can be written in a day, or until somebody says stop.
func writeUntil(ctx context.Context, t *handler.Task, drafts []Draft) (int, error) {
	set := flow.Children("articles", flow.FailFast(), flow.CancelRemaining())
	var children []*flow.ChildNode[Article]
	for _, d := range drafts {
		children = append(children, flow.Child(set, d.Topic, WriteUp, d))
	}
	// or t.WaitChildren(ctx, set, options), for the children alone
	_, err := t.WaitChildrenOr(ctx, set, suspend.AnyOf(suspend.Signal("stop"), suspend.Mailbox("editor")),
		suspend.Within(24*time.Hour), suspend.OnTimeout(suspend.Resume))
	if err != nil && !errors.Is(err, flowfabric.ErrWaitTimeout) {
		return 0, err // return it: it suspends the execution
	}
	written := 0
	for _, child := range children {
		// as it was when the wait was over, now and in every later run
		if handler.ChildOutcome(t, child) == flowfabric.Completed {
			written++
		}
	}
	return written, nil
}

func TestFlows(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(WriteUp, writeUp), handler.Bind(Bundle, bundle),
		handler.Bind(WriteMany, writeMany), handler.Bind(TellEditor, tellEditor), handler.Bind(WriteUntil, writeUntil),
		handler.Bind(PrintReport, printWhenWritten))
	issue, err := submitIssue(ctx, c)
	must(t, err)
	if issue.Text != "May: on tides; on moons" {
		t.Errorf("%q", issue.Text)
	}
	exec, err := client.Submit(ctx, c, WriteMany, []Draft{{"eels"}, {"tides"}})
	must(t, err)
	text, err := exec.Result(ctx)
	must(t, err)
	if text != "on eels; on tides" {
		t.Errorf("%q", text)
	}
	edition, err := submitEdition(ctx, c)
	must(t, err)
	said, err := client.NodeResult(ctx, c.Flow(edition.ID), flow.Add(flow.New("edition"), "clean up", TellEditor, ""))
	must(t, err)
	sorry, _ := edition.Node("apologise")
	if edition.State != flowfabric.FlowCompleted || said != "May, issue completed, moons completed, tides completed" ||
		sorry.State.Public != flowfabric.Skipped {
		t.Errorf("%s: %q, %s", edition.State, said, sorry.State.Public)
	}
	f := flow.New("edition", flow.Unsealed())
	flow.Add(f, "tides", WriteUp, Draft{"tides"})
	open, err := client.SubmitFlow(ctx, c, f)
	must(t, err)
	supplement, err := addSupplement(ctx, open)
	must(t, err)
	if supplement.Text != "June: on tides; on eels" {
		t.Errorf("%q", supplement.Text)
	}
	until, err := client.Submit(ctx, c, WriteUntil, []Draft{{"eels"}, {"tides"}})
	must(t, err)
	if n, err := until.Result(ctx); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for i := range 6 { // in various partitions, before and after the wait begins
		report, err := client.Submit(ctx, c, WriteUp, Draft{fmt.Sprint("wind ", i)},
			flowfabric.Delay(time.Duration(i%2)*50*time.Millisecond))
		must(t, err)
		printed, err := client.Submit(ctx, c, PrintReport, report.ID())
		must(t, err)
		if text, err := printed.Result(ctx); text != fmt.Sprint("on wind ", i) || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	nobody, err := client.Submit(ctx, c, PrintReport, mint.ID(0))
	must(t, err)
	if _, err := nobody.Result(ctx); !errors.Is(err, flowfabric.ErrFailed) || !strings.Contains(err.Error(),
		"execution_not_found") {
		t.Errorf("%v", err)
	}
}
