package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var (
	Half    = handler.Define[int, int]("half", flowfabric.Retries(0))
	Sum     = handler.Define[struct{}, int]("sum", flowfabric.Retries(0))
	SumOfA  = flow.Input[int]{Name: "a"}
	SumOfB  = flow.Input[int]{Name: "b"}
	halving = handler.Bind(Half, func(_ context.Context, _ *handler.Task, n int) (int, error) { return n / 2, nil })
	summing = handler.Bind(Sum, func(_ context.Context, t *handler.Task, _ struct{}) (int, error) {
		a, err := handler.Need(t, SumOfA)
		if err != nil {
			return 0, err
		}
		b, err := handler.Need(t, SumOfB)
		return a + b, err
	})
)

// Two halves and their sum: the sum runs when both have succeeded, and gets their results as inputs.
func ExampleSubmitFlow() {
	const url = "embedded://"
	quiet := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: url, Logger: quiet}, halving, summing)
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

	f := flow.New("halves")
	a, b := flow.Add(f, "a", Half, 10), flow.Add(f, "b", Half, 4)
	sum := flow.Add(f, "sum", Sum, struct{}{}, SumOfA.From(a), SumOfB.From(b))
	fl, err := client.SubmitFlow(ctx, c, f, flowfabric.IdempotencyKey("halves of 10 and 4"))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := client.NodeResult(ctx, fl, sum)
	fmt.Println(out, err)
	done, err := fl.Wait(ctx)
	fmt.Println(done.State, err)
	_ = done.Mermaid(os.Stdout)
	// Output:
	// 7 <nil>
	// completed <nil>
	// flowchart TD
	//   n0["a<br/>half<br/>completed"]:::completed
	//   n1["b<br/>half<br/>completed"]:::completed
	//   n2["sum<br/>sum<br/>completed"]:::completed
	//   n0 -->|"a"| n2
	//   n1 -->|"b"| n2
	//   classDef completed stroke:#2e7d32,fill:#c8e6c9,color:#000
}
