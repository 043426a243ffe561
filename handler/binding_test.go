package handler_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// Panic, decode failure and the like end the task, each with its category.
func TestRunFailures(t *testing.T) {
	logger, logs := quiet()
	for _, tc := range []struct {
		name      string
		fn        func(context.Context, *handler.Task, string) (any, error)
		input     string
		category  string
		reason    string
		permanent bool
	}{
		{"error", func(context.Context, *handler.Task, string) (any, error) { return nil, io.EOF }, `"x"`,
			"handler_error", "EOF", false},
		{"panic", func(context.Context, *handler.Task, string) (any, error) { panic("oops") }, `"x"`, "handler_panic",
			"panic: oops", false},
		{"panic with an error", func(context.Context, *handler.Task, string) (any, error) {
			panic(handler.Permanent(io.EOF))
		}, `"x"`, "handler_panic", "panic: EOF", false},
		{"panic with a broken error", func(context.Context, *handler.Task, string) (any, error) { panic(&broken{}) },
			`"x"`, "handler_panic", "no text", false},
		{"broken error", func(context.Context, *handler.Task, string) (any, error) { return nil, &broken{} }, `"x"`,
			"handler_error", "no text", false},
		{"input", func(context.Context, *handler.Task, string) (any, error) { panic("not called") }, `{`,
			"extractor_payload_decode", "decode input of kind k", true},
		{"input of another type", func(context.Context, *handler.Task, string) (any, error) { panic("not called") },
			`7`, "extractor_payload_decode", "decode input of kind k", true},
		{"result not encodable", func(context.Context, *handler.Task, string) (any, error) { return math.NaN(), nil },
			`"x"`, "handler_error", "encode result of kind k", true},
		{"result too large", func(context.Context, *handler.Task, string) (any, error) {
			return make([]byte, limits.MaxPayload+1), nil
		}, `"x"`, "handler_error", "1048577 bytes, want at most 1048576", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			logs.Reset()
			task := newTask(tasks.Config{Claim: &engine.Claim{Input: []byte(tc.input)}, Logger: logger})
			out := handler.Bind(handler.Define[string, any]("k"), tc.fn).Run(context.Background(), task)
			f := out.Failure
			if out.Kind != codes.OutcomeFail || string(f.Category) != tc.category || f.Permanent != tc.permanent ||
				!strings.Contains(f.Reason, tc.reason) || out.Err == nil {
				t.Errorf("got %s, %v", show(out), out.Err)
			}
			if stack := strings.Contains(logs.String(), "binding_test.go"); stack != (tc.category == "handler_panic") {
				t.Errorf("stack in the log: %t\n%s", stack, logs)
			}
		})
	}
}

func TestResultAtTheLimit(t *testing.T) {
	d := handler.Define[struct{}, []byte]("k")
	out := handler.Bind(d, func(context.Context, *handler.Task, struct{}) ([]byte, error) {
		return make([]byte, limits.MaxPayload), nil
	}).Run(context.Background(), nil)
	if out.Kind != codes.OutcomeComplete || len(out.Result) != limits.MaxPayload || out.Err != nil {
		t.Fatalf("got %s with %d bytes, %v", out.Kind, len(out.Result), out.Err)
	}
}

func TestPanicAfterLossIsAbandoned(t *testing.T) {
	logger, _ := quiet()
	out := handler.Bind(handler.Define[struct{}, int]("k"),
		func(context.Context, *handler.Task, struct{}) (int, error) { panic("oops") }).
		Run(context.Background(), newTask(tasks.Config{Logger: logger, Lease: fixedLease{flowfabric.ErrLeaseLost}}))
	if out.Kind != codes.OutcomeAbandon || !errors.Is(out.Err, flowfabric.ErrLeaseLost) {
		t.Fatalf("got %s", show(out))
	}
}

func TestAnEmptyBinding(t *testing.T) {
	if out := (handler.Binding{}).Run(context.Background(), nil); out.Failure.Category != causes.NoHandler {
		t.Errorf("an empty binding: %s", show(out))
	}
}

func TestMiddleware(t *testing.T) {
	logger, logs := quiet()
	var order []string
	note := func(name string) handler.Middleware {
		return func(next handler.Handler) handler.Handler {
			return func(ctx context.Context, t *handler.Task) handler.Outcome {
				order = append(order, name)
				return next(ctx, t)
			}
		}
	}
	broken := func(handler.Handler) handler.Handler {
		return func(context.Context, *handler.Task) handler.Outcome { panic("middleware") }
	}
	task := newTask(tasks.Config{Route: engine.Route{Kind: "k"}, Logger: slog.New(slog.DiscardHandler)})
	b := handler.Bind(handler.Define[struct{}, int]("k"), func(context.Context, *handler.Task, struct{}) (int, error) {
		return 7, nil
	})
	out := note("a")(note("b")(handler.Logging(logger)(b.Run)))(context.Background(), task)
	if out.Kind != codes.OutcomeComplete || string(out.Result) != "7" || !slices.Equal(order, []string{"a", "b"}) {
		t.Fatalf("got %s, order %v", show(out), order)
	}
	if !strings.Contains(logs.String(), "kind=k") || !strings.Contains(logs.String(), "outcome=complete") {
		t.Errorf("log: %s", logs)
	}
	logs.Reset()
	out = handler.Logging(logger)(handler.Recover()(broken(b.Run)))(context.Background(), task)
	if out.Kind != codes.OutcomeFail || out.Failure.Category != causes.Panic ||
		!strings.Contains(logs.String(), "category=handler_panic") {
		t.Fatalf("got %s, log %s", show(out), logs)
	}
	if out := handler.Recover()(broken(b.Run))(context.Background(), task); out.Failure.Category !=
		causes.Panic {
		t.Fatalf("got %s", show(out))
	}
}
