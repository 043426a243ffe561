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
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/must"
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
		{"annotated, no method", fx.Annotate(func(string) int { return 0 }, fx.ParamTags(`name:"x"`)),
			"returns int, which has no such method"},
		{"annotated value", fx.Annotate(&greeter{}), "is not a function"},
		{"other method", func() wrong { return wrong{} }, "whose method Handle is func("},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := runtime.Run(t.Context(), runtime.Config{URL: "embedded://", Logger: quiet},
				runtime.Provide(greet, c.constructor))
			if !errors.Is(err, flowfabric.ErrConfig) {
				t.Fatalf("error %v", err)
			}
			if strings.Contains(err.Error(), "annotated{") || strings.Contains(err.Error(), "FuncPtr") {
				t.Errorf("error %q shows the inside of fx", err)
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
		{"missing dependency", runtime.Provide(greet, func(p prefix) *greeter { return &greeter{string(p)} }), nil,
			"runtime_test.prefix"},
		{"constructor error", runtime.Provide(greet, func() (*greeter, error) { return nil, broken }), broken,
			"no key"},
		{"constructor nil", runtime.Provide(greet, func() *greeter { return nil }), flowfabric.ErrConfig,
			"returned nil"},
		{"function nil", runtime.Handle[string, string](greet, nil), flowfabric.ErrConfig, "nil"},
		{"function of an invalid definition", runtime.Handle(handler.Define[string, string]("{}"), hello),
			flowfabric.ErrConfig, "{}"},
		{"function of no definition", runtime.Handle(nil, hello), flowfabric.ErrConfig, "nil"},
		{"no handler", fx.Options(), flowfabric.ErrConfig, "runtime.Provide"},
		{"invalid definition", runtime.Provide(handler.Define[string, string]("{}"), func() *greeter { return nil }),
			flowfabric.ErrConfig, "{}"},
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
	if err := runtime.Run(t.Context(), runtime.Config{URL: "redis://127.0.0.1:1", Logger: quiet},
		runtime.Provide(greet, func() *greeter { return &greeter{} })); !errors.Is(err, flowfabric.ErrTransport) {
		t.Errorf("no server: %v", err)
	}
}

// Run with fx: two kinds share a handler type but not the value, and dependencies come from outside.
func TestRunWithFx(t *testing.T) {
	w := newEnv(t)
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
			runtime.Handle(handler.Define[string, string]("plain"), hello),
			fx.Provide(func(l fx.Lifecycle) prefix {
				l.Append(fx.StopHook(func() { closed.Store(true) }))
				return "hey"
			}))
	})
	first, second, third := w.submit("ada"), w.submitKind("part", "ada"), w.submitKind("plain", "ada")
	w.reach(first, codes.Completed)
	w.reach(second, codes.Completed)
	w.reach(third, codes.Completed)
	for id, want := range map[flowfabric.ExecutionID]string{first: `"hey ada"`, second: `"bye ada"`,
		third: `"hello ada"`} {
		if got, _, err := w.engine.ReadResult(w.ctx, id, 1); err != nil || string(got) != want {
			t.Errorf("result %q, want %q, %v", got, want, err)
		}
	}
	cancel()
	running.Wait()
	if result != nil || !closed.Load() {
		t.Errorf("run: %v, dependencies stopped: %v", result, closed.Load())
	}
}

// An annotated constructor gets its named dependencies and its hooks; what says how others would get the value has no
// effect.
func TestProvideAnnotated(t *testing.T) {
	w := newEnv(t)
	part, plain := handler.Define[string, string]("part"), handler.Define[string, string]("plain")
	var started, stopped atomic.Int32
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var running conc.WaitGroup
	var result error
	running.Go(func() {
		result = runtime.Run(ctx, runtime.Config{URL: w.url, Logger: quiet},
			runtime.Provide(greet,
				fx.Annotate(func(p prefix) *greeter { return &greeter{string(p)} }, fx.ParamTags(`name:"polite"`),
					fx.OnStart(func(context.Context) error { started.Add(1); return nil }),
					fx.OnStop(func(g *greeter) { stopped.Add(int32(len(g.prefix))) }))),
			runtime.Provide(part,
				fx.Annotate(func(p prefix) (*greeter, error) { return &greeter{"rude " + string(p)}, nil },
					fx.ParamTags(`name:"short"`), fx.ResultTags(`name:"handler"`), fx.As(new(handles)))),
			runtime.Provide(plain,
				fx.Annotated{Name: "ignored", Target: func() *greeter { return &greeter{"plain "} }}),
			fx.Provide(fx.Annotate(func() prefix { return "dear " }, fx.ResultTags(`name:"polite"`)),
				fx.Annotate(func() prefix { return "oi " }, fx.ResultTags(`name:"short"`))))
	})
	for kind, want := range map[string]string{"greet": `"dear ada"`, "part": `"rude oi ada"`, "plain": `"plain ada"`} {
		id := w.submitKind(kind, "ada")
		w.reach(id, codes.Completed)
		if got, _, err := w.engine.ReadResult(w.ctx, id, 1); err != nil || string(got) != want {
			t.Errorf("%s: result %q, want %q, %v", kind, got, want, err)
		}
	}
	cancel()
	running.Wait()
	if result != nil || started.Load() != 1 || stopped.Load() != int32(len("dear ")) {
		t.Errorf("run: %v, started %d, stopped %d", result, started.Load(), stopped.Load())
	}
}

type handles interface {
	Handle(context.Context, *handler.Task, string) (string, error)
}

// A component that shuts the application down with an exit code is the reason why Run ends, after the worker has
// drained. Without a code it is an ordinary end; and a worker that cannot go on says why itself.
func TestRunReturnsTheExitCodeOfAComponent(t *testing.T) {
	for name, x := range map[string]struct {
		options []fx.ShutdownOption
		stop    error // of another component
		code    int
	}{
		"with a code":         {[]fx.ShutdownOption{fx.ExitCode(3)}, nil, 3},
		"and a failing stop":  {[]fx.ShutdownOption{fx.ExitCode(4)}, errors.New("no disk"), 4},
		"without a code":      {nil, nil, 0},
		"only a failing stop": {nil, errors.New("no disk"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			var shutdown fx.Shutdowner
			ready := make(chan struct{})
			var running conc.WaitGroup
			var result error
			running.Go(func() {
				result = runtime.Run(w.ctx, runtime.Config{URL: w.url, Logger: quiet},
					runtime.Provide(greet, func() *greeter { return &greeter{"hi "} }), fx.Populate(&shutdown),
					fx.Invoke(func(l fx.Lifecycle) {
						l.Append(fx.Hook{OnStart: func(context.Context) error { close(ready); return nil },
							OnStop: func(context.Context) error { return x.stop }})
					}))
			})
			<-ready
			w.reach(w.submit("x"), codes.Completed)
			must.No(t, shutdown.Shutdown(x.options...))
			running.Wait()
			exit, ok := errors.AsType[*runtime.ExitError](result)
			if ok != (x.code != 0) || ok && exit.Code != x.code || x.stop != nil && !errors.Is(result, x.stop) ||
				x.stop == nil && x.code == 0 && result != nil {
				t.Errorf("run: %v, want exit code %d and %v", result, x.code, x.stop)
			}
		})
	}
}

// Module runs in somebody else's application.
func TestModule(t *testing.T) {
	w := newEnv(t)
	var worker *runtime.Worker
	app := fx.New(fx.NopLogger, fx.StopTimeout(25*time.Second),
		runtime.Module(runtime.Config{URL: w.url, Logger: quiet}),
		runtime.Provide(greet, func() *greeter { return &greeter{"hi "} }), fx.Populate(&worker))
	must.No(t, app.Start(w.ctx))
	if err := worker.Ready(); err != nil {
		t.Errorf("not ready after the start: %v", err)
	}
	w.reach(w.submit("x"), codes.Completed)
	must.No(t, app.Stop(w.ctx))
}
