package howto_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var (
	Translate = handler.Define[string, string]("translate")
	Proofread = handler.Define[string, string]("proofread")
)

// Translator handles Translate. Its client comes from the module.
type Translator struct{ client *client.Client }

func NewTranslator(c *client.Client) *Translator { return &Translator{client: c} }

func (x *Translator) Handle(ctx context.Context, _ *handler.Task, text string) (string, error) {
	_, err := client.Submit(ctx, x.client, Proofread, text, flowfabric.IdempotencyKey(text))
	return text, err
}

// Memory says whether the machine is short of memory.
type Memory struct{ asked, short atomic.Bool }

func NewMemory() *Memory { return &Memory{} }

func (m *Memory) Short() bool {
	m.asked.Store(true)
	return m.short.Load()
}

// thrifty runs one handler at a time while memory is short.
type thrifty struct {
	runtime.Slots
	memory *Memory
}

func (c thrifty) Limit() int {
	if c.memory.Short() {
		return 1
	}
	return c.Slots.Limit()
}

func application(more ...fx.Option) *fx.App {
	cfg := runtime.Config{URL: "embedded://", Concurrency: 64}
	return fx.New(
		runtime.Module(cfg),
		runtime.Provide(Translate, NewTranslator),
		fx.Provide(NewMemory),
		fx.Decorate(func(s runtime.Slots, m *Memory) runtime.Slots { return thrifty{s, m} }),
		fx.StopTimeout(25*time.Second), // DrainTimeout + 5 s
		fx.Options(more...),
	)
}

// The page's application runs, its handler submits with the injected client, and the worker asks the decorated slots.
func TestApplicationOfThePage(t *testing.T) {
	var c *client.Client
	var memory *Memory
	app := application(fx.NopLogger, fx.Populate(&c, &memory))
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	x, err := client.Submit(ctx, c, Translate, "tides")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := x.Result(ctx); err != nil || text != "tides" {
		t.Errorf("result %q, %v", text, err)
	}
	if again, err := client.Submit(ctx, c, Proofread, "tides", flowfabric.IdempotencyKey("tides")); err != nil ||
		!again.Duplicate() {
		t.Errorf("the handler submitted nothing: %v", err)
	}
	if !memory.asked.Load() {
		t.Error("nobody asked for the limit")
	}
	memory.short.Store(true)
	if n := (thrifty{fixedSlots(64), memory}).Limit(); n != 1 {
		t.Errorf("%d handlers while memory is short", n)
	}
	if err := app.Stop(ctx); err != nil {
		t.Error(err)
	}
}

type fixedSlots int

func (f fixedSlots) Limit() int { return int(f) }
