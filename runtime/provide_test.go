package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

type prefix string

type greeter struct{ prefix string }

func (g *greeter) Handle(_ context.Context, _ *handler.Task, name string) (string, error) {
	return g.prefix + name, nil
}

type wrong struct{}

func (wrong) Handle(context.Context, string) (string, error) { return "", nil }

// A wrong constructor is a start error that names kind, constructor and the expected shape.
func TestProvideRefusesConstructors(t *testing.T) {
	const shape = "want func(dependencies…) T or (T, error), where T has the method Handle(context.Context, *handler.Task, string) (string, error)"
	cases := []struct {
		name        string
		constructor any
		want        string
	}{
		{"nil", nil, "is not a function"},
		{"value", &greeter{}, "is not a function"},
		{"nothing", func() {}, "returns 0 values"},
		{"second is no error", func() (*greeter, int) { return nil, 0 }, "returns 2 values"},
		{"no method", func() int { return 0 }, "returns int, which has no such method"},
		{"other method", func() wrong { return wrong{} }, "whose method Handle is func("},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := runtime.Run(t.Context(), runtime.Config{URL: "embedded://", Logger: quiet}, runtime.Provide(greet, c.constructor))
			if !errors.Is(err, flowfabric.ErrConfig) {
				t.Fatalf("error %v", err)
			}
			for _, part := range []string{`kind "greet"`, "constructor ", c.want, shape} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

// What fails while the application is built is reported in one line with its root cause.
func TestStartErrorsAreOneLine(t *testing.T) {
	broken := errors.New("no key")
	cases := []struct {
		name string
		opt  fx.Option
		is   error
		want string
	}{
		{"missing dependency", runtime.Provide(greet, func(p prefix) *greeter { return &greeter{string(p)} }), nil, "runtime_test.prefix"},
		{"constructor error", runtime.Provide(greet, func() (*greeter, error) { return nil, broken }), broken, "no key"},
		{"constructor nil", runtime.Provide(greet, func() *greeter { return nil }), flowfabric.ErrConfig, "returned nil"},
		{"no handler", fx.Options(), flowfabric.ErrConfig, "runtime.Provide"},
		{"invalid definition", runtime.Provide(handler.Define[string, string]("{}"), func() *greeter { return nil }), flowfabric.ErrConfig, "{}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := runtime.Run(t.Context(), runtime.Config{URL: "embedded://", Logger: quiet}, c.opt)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v does not wrap %v", err, c.is)
			}
		})
	}
	if err := runtime.Run(t.Context(), runtime.Config{URL: "redis://127.0.0.1:1", Logger: quiet}, runtime.Provide(greet, func() *greeter { return &greeter{} })); !errors.Is(err, flowfabric.ErrTransport) {
		t.Errorf("no server: %v", err)
	}
}

// Run with fx: two kinds share a handler type but not the value, and dependencies come from outside.
func TestRunWithFx(t *testing.T) {
	w := newWorld(t)
	part := handler.Define[string, string]("part")
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var closed atomic.Bool
	var running conc.WaitGroup
	var result error
	running.Go(func() {
		result = runtime.Run(ctx, runtime.Config{URL: w.url, Logger: quiet},
			runtime.Provide(greet, func(p prefix) *greeter { return &greeter{string(p) + " "} }),
			runtime.Provide(part, func() (*greeter, error) { return &greeter{"bye "}, nil }),
			fx.Provide(func(l fx.Lifecycle) prefix {
				l.Append(fx.StopHook(func() { closed.Store(true) }))
				return "hey"
			}))
	})
	first, second := w.submit("ada"), w.submitKind("part", "ada")
	w.reach(first, flowfabric.CodeCompleted)
	w.reach(second, flowfabric.CodeCompleted)
	for id, want := range map[flowfabric.ExecutionID]string{first: `"hey ada"`, second: `"bye ada"`} {
		if got, _, err := w.engine.ReadResult(w.ctx, id, 0); err != nil || string(got) != want {
			t.Errorf("result %q, want %q, %v", got, want, err)
		}
	}
	cancel()
	running.Wait()
	if result != nil || !closed.Load() {
		t.Errorf("run: %v, dependencies stopped: %v", result, closed.Load())
	}
}

// Module runs in somebody else's application.
func TestModule(t *testing.T) {
	w := newWorld(t)
	var worker *runtime.Worker
	app := fx.New(fx.NopLogger, fx.StopTimeout(25*time.Second), runtime.Module(runtime.Config{URL: w.url, Logger: quiet}),
		runtime.Provide(greet, func() *greeter { return &greeter{"hi "} }), fx.Populate(&worker))
	if err := app.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := worker.Ready(); err != nil {
		t.Errorf("not ready after the start: %v", err)
	}
	w.reach(w.submit("x"), flowfabric.CodeCompleted)
	if err := app.Stop(w.ctx); err != nil {
		t.Fatal(err)
	}
}
