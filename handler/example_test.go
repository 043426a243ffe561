package handler_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// A definition is a package variable that producers and workers share.
func ExampleDefine() {
	type Draft struct{ Topic string }
	type Article struct{ Text string }

	write := handler.Define[Draft, Article]("write-article",
		handler.Retry(5, time.Second, time.Minute), flowfabric.Timeout(10*time.Minute), flowfabric.Lane("writing"))

	payload, _, err := write.Encode(Draft{Topic: "tides"})
	fmt.Println(write.Kind(), write.Info().Lane, string(payload), err)

	wrong := handler.Define[Draft, Article]("write-article", flowfabric.Priority(10_000))
	fmt.Println(wrong.Err())
	// Output:
	// write-article writing {"Topic":"tides"} <nil>
	// definition of kind "write-article": invalid_input: a value is not valid: Priority is 10000, want 0..9000
}

// A run that fails after a step does not repeat the step: the next one gets the recorded value.
func ExampleStep() {
	order := handler.Define[string, string]("order")
	shopOpen := false
	b := handler.Bind(order, func(ctx context.Context, t *handler.Task, item string) (string, error) {
		receipt, err := handler.Step(ctx, t, "charge", func(context.Context) (string, error) {
			fmt.Println("charging the card for", item)
			return "receipt-1", nil
		})
		if err != nil {
			return "", err
		}
		if !shopOpen {
			return "", errors.New("the shop is closed")
		}
		return "sent with " + receipt, nil
	})

	input, _, _ := order.Encode("tea")
	task := newTask(tasks.Config{Claim: &engine.Claim{Input: input}}) // a worker does this
	fmt.Println(b.Run(context.Background(), task).Err)
	shopOpen = true
	fmt.Println(string(b.Run(context.Background(), task).Result))
	// Output:
	// charging the card for tea
	// the shop is closed
	// "sent with receipt-1"
}

// What follows a return is said by the error.
func ExamplePermanent() {
	limited := errors.New("429 too many requests")
	for _, err := range []error{
		limited,
		handler.Permanent(errors.New("no such customer")),
		handler.Category("rate_limited", handler.RetryAfter(30*time.Second, limited)),
		handler.Delay(time.Hour),
		handler.Cancel("customer left"),
	} {
		b := handler.Bind(handler.Define[struct{}, int]("k"),
			handler.Plain(func(context.Context, struct{}) (int, error) { return 0, err }))
		out := b.Run(context.Background(), newTask(tasks.Config{}))
		fmt.Printf("%s %q permanent=%t in %v %q\n", out.Kind, out.Failure.Category, out.Failure.Permanent, out.Delay,
			out.Reason)
	}
	// Output:
	// fail "handler_error" permanent=false in 0s ""
	// fail "handler_error" permanent=true in 0s ""
	// fail "rate_limited" permanent=false in 0s ""
	// delay "" permanent=false in 1h0m0s ""
	// cancel "" permanent=false in 0s "customer left"
}

// Middleware wraps every run. A worker has it in runtime.Config.Middleware.
func ExampleMiddleware() {
	timed := func(next handler.Handler) handler.Handler {
		return func(ctx context.Context, t *handler.Task) handler.Outcome {
			out := next(ctx, t)
			fmt.Println("outcome:", out.Kind)
			return out
		}
	}
	greet := handler.Bind(handler.Define[struct{}, string]("greet"),
		handler.Plain(func(context.Context, struct{}) (string, error) { return "hello", nil }))
	handler.Recover()(timed(greet.Run))(context.Background(), newTask(tasks.Config{}))
	// Output: outcome: complete
}
