package runtime

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Slots says how many handlers may run. [Module] provides one that always says Config.Concurrency; an application that
// decorates it takes less work while it is short of something:
//
//	fx.Decorate(func(s runtime.Slots, m *Memory) runtime.Slots { return &shedding{s, m} })
type Slots interface {
	// Limit is how many handlers may run now, 0..Config.Concurrency; more counts as that. It is asked before each
	// claim, and about once a second while it is lower. It must be quick, and may be called concurrently. Handlers that
	// run already go on.
	Limit() int
}

// fixed are the slots of a worker whose application decorates none.
type fixed int

// Limit implements [Slots].
func (f fixed) Limit() int { return int(f) }

// ambient is what an application may provide for all its components, and Config leaves empty.
type ambient struct {
	fx.In

	Logger     *slog.Logger                  `optional:"true"`
	Registerer prometheus.Registerer         `optional:"true"`
	Tracer     trace.TracerProvider          `optional:"true"`
	Propagator propagation.TextMapPropagator `optional:"true"`
}

// settings are a configuration that was checked, with its defaults.
type settings struct{ Config }

func newSettings(cfg Config, a ambient) (settings, error) {
	if err := cfg.validate(); err != nil {
		return settings{}, err
	}
	if cfg.Logger == nil {
		cfg.Logger = a.Logger
	}
	if cfg.Registerer == nil {
		cfg.Registerer = a.Registerer
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = a.Tracer
	}
	if cfg.Propagator == nil {
		cfg.Propagator = a.Propagator
	}
	cfg = cfg.withDefaults()
	cfg.Capabilities = valid.Offered(cfg.Capabilities, cfg.AppVersion)
	return settings{cfg}, nil
}

// parts are what a worker is made of before it connects. All but the slots, the client and the worker are its own.
func parts(cfg Config) fx.Option {
	return fx.Module("flowfabric",
		fx.Provide(
			func(a ambient) (settings, error) { return newSettings(cfg, a) },
			fx.Annotate(servedHandlers, fx.ParamTags(``, bindings)),
			func(s settings) (*tokenkeys.Keyring, error) { return tokenkeys.Configured(s.URL, s.TokenKeys) },
			func(s settings) *tracing.Tracer { return tracing.New(s.TracerProvider, s.Propagator) },
			newRegistered,
			fx.Private,
		),
		fx.Provide(
			func(s settings) Slots { return fixed(s.Concurrency) },
			newClient,
			newWorker,
		),
	)
}

// servedHandlers collects the bindings of an application.
func servedHandlers(s settings, bound []handler.Binding) (handlers, error) {
	if len(bound) == 0 {
		return nil, fmt.Errorf(
			"%w: no handler is bound: use runtime.Handle or runtime.Provide, or pass handler.Bind(…) to runtime.New",
			flowfabric.ErrConfig)
	}
	all, err := newHandlers(bound)
	if err != nil {
		return nil, err
	}
	return all, all.fits(s.Concurrency)
}

// newRegistered makes the collectors of a worker and registers them.
func newRegistered(s settings) (*metrics, error) {
	m := newMetrics(s.MetricPrefix)
	return m, m.register(s.Registerer)
}

// newClient connects a client, once something of the application asks for one.
func newClient(life fx.Lifecycle, s settings) (*client.Client, error) {
	c, err := client.Connect(context.Background(), s.Client())
	if err != nil {
		return nil, err
	}
	life.Append(fx.StopHook(c.Close))
	return c, nil
}

func newWorker(s settings, h handlers, m *metrics, t *tracing.Tracer, k *tokenkeys.Keyring, slots Slots) *Worker {
	cfg := s.Config
	cfg.OnCall = both(m.called, cfg.OnCall)
	full := cfg
	cfg.URL, cfg.Username, cfg.Password, cfg.TokenKeys = "", "", "", "" // a worker that is printed shows no secret
	cfg.Cipher = nil
	return &Worker{
		cfg: cfg, registry: h, metrics: m, tracer: t, slots: slots,
		health: newHealth(cfg.ReadyWindow, cfg.Concurrency), log: cfg.Logger.With("worker", cfg.Worker),
		serving: make(chan struct{}), waiting: make(chan struct{}), keyring: k,
		target: func() Config { return full }, open: open, pace: pace{patience: patience},
	}
}
