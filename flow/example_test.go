package flow_test

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
)

// What producers and workers share: definitions, and the inputs that join them.
type (
	Question struct{ Text string }
	Answer   struct{ Text string }
)

var (
	Provider = handler.Define[Question, Answer]("provider")
	Reduce   = handler.Define[Question, Answer]("reduce")

	Fast = flow.Input[Answer]{Name: "fast"}
	Deep = flow.Input[Answer]{Name: "deep"}
)

// Two providers race; the first answer wins, and the other is cancelled.
func Example() {
	q := Question{"tides"}
	f := flow.New("race")
	fast := flow.Add(f, "fast", Provider, q, flowfabric.Lane("small-model"))
	deep := flow.Add(f, "deep", Provider, q, flowfabric.Lane("large-model"))
	flow.Add(f, "answer", Reduce, q, Fast.From(fast), Deep.From(deep), flow.AnyOf(), flow.CancelRemaining())

	fmt.Println(f.Nodes(), f.Err()) // client.SubmitFlow stores and releases it
	// Output:
	// [fast deep answer] <nil>
}

// The handler of a node asks for the results of its upstreams by their inputs.
func ExampleInput() {
	reduce := func(_ context.Context, t *handler.Task, _ Question) (Answer, error) {
		for _, in := range []flow.Input[Answer]{Fast, Deep} {
			if a, ok, err := handler.Given(t, in); err != nil || ok {
				return a, err
			}
		}
		return Answer{}, handler.Permanent(fmt.Errorf("nobody answered"))
	}
	_ = handler.Bind(Reduce, reduce)
	// Output:
}

// A mistake is named by flow, node and edge.
func ExampleFlow_Err() {
	f := flow.New("report")
	a := flow.Add(f, "a", Provider, Question{})
	b := flow.Add(f, "b", Provider, Question{}, flow.After(a))
	a.With(flow.After(b))
	flow.Add(f, "c", Provider, Question{}, flow.After(a, b), flow.Quorum(3))
	fmt.Println(f.Err())
	// Output:
	// flow report: node c: invalid_input: a value is not valid: Quorum(3) of 2 edges, want 1..2
	// flow report: cycle_detected: the members depend on each other in a circle: a -> b -> a
}

// A handler asks several providers, and goes on when the first has answered.
func ExampleChildren() {
	ask := func(ctx context.Context, t *handler.Task, q Question) (Answer, error) {
		set := flow.Children("ask", flow.FirstSuccess())
		var asked []*flow.ChildNode[Answer]
		for _, model := range []string{"small", "large"} {
			asked = append(asked, flow.Child(set, model, Provider, q, flowfabric.Lane(model+"-model")))
		}
		if err := t.WaitChildren(ctx, set); err != nil {
			return Answer{}, err // in the first run this parks the execution
		}
		for _, a := range asked {
			if handler.ChildOutcome(t, a) == flowfabric.Completed {
				return handler.ChildResult(ctx, t, a)
			}
		}
		return Answer{}, handler.Permanent(fmt.Errorf("nobody answered"))
	}
	_ = handler.Bind(Reduce, ask)
	// Output:
}
