package runtime

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx/fxevent"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/joblog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Config says where a worker finds work, what it takes, and how it stops. Only URL is required; the zero value
// of every other field is the stated default. It is checked before anything is dialled or started.
type Config struct {
	// URL of the server: redis://, rediss://, valkey://, valkeys://, unix://;
	// redis+sentinel://host:26379,host:26379/primary-name for a primary that Sentinels name (see
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/deploy.md); or embedded:./data for a store in
	// this process that keeps its data in that folder, and embedded:// for one in memory. All users in the process
	// share it (see embedded.URL).
	URL string
	// Username and Password win over those in the URL.
	Username, Password string
	// TLS replaces the default TLS settings.
	TLS *tls.Config
	// DialTimeout bounds one connection attempt, default 10 s. CallTimeout bounds one call without its repeats,
	// default 5 s.
	DialTimeout, CallTimeout time.Duration
	// Partitions is used only by the process that boots a store first. Default 64, on the embedded server 8.
	Partitions uint16
	// CreateConfig false refuses to start on a store that was never booted. Default (nil) true.
	CreateConfig *bool

	// TokenKeys signs the tokens of waitpoints: "kid:hex,kid:hex…": ids of 1..32 bytes of A-Z a-z 0-9 . _ -, secrets
	// of 32..64 bytes; the first one signs, the others are still good. Default the environment variable
	// FLOWFABRIC_TOKEN_KEYS; with an embedded URL the keys that the folder keeps, in memory a random one. Without any,
	// a handler cannot wait for signals or approvals: the attempt fails at the wait, and the retry policy decides.
	TokenKeys string

	// Cipher encrypts what is stored of inputs, results, steps, frames, messages, signals, summaries, questions and
	// reasons, and decrypts what is read; SECURITY.md tells what stays readable. All processes of a store should have
	// the same. What is stored in plain is still read. Default the keys in the environment variable
	// FLOWFABRIC_CIPHER_KEYS, see flowfabric.CipherKeys; nothing is encrypted without them.
	Cipher flowfabric.Cipher

	// Namespace that this worker serves: 1..64 bytes. Default "default".
	Namespace string
	// Namespaces that this worker serves in addition to Namespace, which keeps its default: a worker for acme and
	// globex serves "default", too, unless Namespace is one of the two. 1..64 bytes each, at most 256; "*" is every
	// namespace there is or will be. A handler learns which one from Task.Namespace. What waits in several shares
	// this worker by the weights of the namespaces in a lane (admin.SetLane). Default none.
	Namespaces []string
	// Lanes that this worker serves: 1..64 bytes each. Default only "default".
	Lanes []string
	// LaneWeights say how the lanes of this worker share it while several have work: 1..1,000 for a lane of Lanes, 1
	// for one that is not named. A lane of weight 3 gets three executions for each of a lane of weight 1, whatever
	// their priority and age. Default 1 for each lane, so a busy lane never starves another.
	LaneWeights map[string]int
	// Capabilities that this worker has; it is given executions that require a subset of them. At most 256
	// tokens and 4,096 bytes joined. Default none.
	Capabilities []string
	// Worker is the name of the pool, shown in logs: 1..64 bytes. Default "worker".
	Worker string
	// Instance names this process among all that run at this moment: 1..48 bytes without "~". Default
	// "<host>-<pid>-<random>". A name that stays the same, such as a pod's of a StatefulSet, makes the successor of a
	// process that was killed wait for up to LeaseTTL; after a drain it does not wait. See [Worker.Run].
	Instance string

	// AppVersion is the version of the application, and Labels are whatever else should be seen of this worker in
	// admin.Workers: up to 64 bytes, and up to 64 labels with values of up to 256 bytes. Default none. The worker also
	// has the capability "version:" and AppVersion, which executions may require.
	AppVersion string
	Labels     map[string]string

	// Concurrency is how many handlers run at once, exactly: 1..10,000. Default 64. A worker with short handlers may
	// hold up to as many executions again that are claimed and wait up to 10 ms for a handler to return, and up to
	// twice as many (16 at least) whose handlers have returned and that are not settled yet. After a crash all of
	// these are requeued.
	Concurrency int
	// LeaseTTL is how long after the death of this process its work is requeued: 1 s..1 h. Default 30 s. It
	// is renewed every third of it.
	LeaseTTL time.Duration
	// DrainTimeout is how long running handlers may go on after the worker was asked to stop, before their
	// contexts end with flowfabric.ErrDraining: up to 1 h; negative means not at all. Default 20 s. They then have
	// three more seconds to return. The fx application's StopTimeout is DrainTimeout + 5 s.
	DrainTimeout time.Duration
	// ReadyWindow is how long [Worker.Ready] goes on to say yes after the last round trip that succeeded: 1 s or
	// more. Default 15 s.
	ReadyWindow time.Duration

	// OnCall is told every call of a server function, for metrics or tracing, with its repeats, once it has ended. It
	// must be fast, and may be called concurrently. Default nobody.
	OnCall func(function string, took time.Duration, err error)
	// TracerProvider makes a span around each run of a handler, which the handler's context carries. Default the
	// global one of package otel, as soon as one is set; without any, nothing is traced. See
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/trace.md.
	TracerProvider trace.TracerProvider
	// Propagator reads the context that came with the execution. Default the global one of package otel, and W3C
	// trace context while none is set. It should be the producers'.
	Propagator propagation.TextMapPropagator
	// Middleware wraps every handler, the first one outermost.
	Middleware []handler.Middleware
	// Logger gets everything the worker has to say, with attributes execution, attempt, kind, lane and worker.
	// Default slog.Default().
	Logger *slog.Logger
	// KeepLogs is the level from which on lines of handler.Task.Logger are also kept with the execution: debug, info,
	// warn or error, or off. handler.KeepLogs says it for a kind. Of an attempt the last 1,000 lines and 256 KiB are
	// kept; a handler never waits for them. The worker sends what is left before it settles, which costs an execution
	// that has logged one call. Default info.
	KeepLogs string
	// Registerer takes the worker's collectors, see
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/reference/metrics.md. Workers that are given the
	// same one share them. Default a registry of its own.
	Registerer prometheus.Registerer
	// MetricPrefix begins the name of every collector: letters, digits and _, ending with _. Default "flowfabric_".
	MetricPrefix string
	// FxLogger shows the events of the fx application that [Run] builds. Default none of them.
	FxLogger fxevent.Logger
	// DisableMaintenance leaves due times (delays, timeouts, dead sessions) to other processes. Default false.
	DisableMaintenance bool
}

const (
	maxDrainTimeout = time.Hour
	stopGrace       = 5 * time.Second // StopTimeout − DrainTimeout

	defaultReadyWindow = 15 * time.Second
	defaultWorker      = "worker"
	defaultPrefix      = "flowfabric_"
)

var metricPrefix = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,62}_$`)

// withDefaults returns cfg with every zero value replaced by its default. A worker fills in its own copy.
func (cfg Config) withDefaults() Config {
	cfg.Namespace = cmp.Or(cfg.Namespace, limits.DefaultNamespace)
	if len(cfg.Lanes) == 0 {
		cfg.Lanes = []string{limits.DefaultLane}
	}
	cfg.Worker = cmp.Or(cfg.Worker, defaultWorker)
	cfg.TokenKeys = cmp.Or(cfg.TokenKeys, os.Getenv(suspend.EnvTokenKeys))
	cfg.Cipher, _ = sealed.Configured(cfg.Cipher) // validate tells what is wrong with keys
	cfg.Instance = cmp.Or(cfg.Instance, valid.NewInstance())
	cfg.Concurrency = cmp.Or(cfg.Concurrency, limits.DefaultConcurrency)
	cfg.LeaseTTL = cmp.Or(cfg.LeaseTTL, limits.DefaultLeaseTTL)
	cfg.DrainTimeout = cmp.Or(cfg.DrainTimeout, limits.DefaultDrainTimeout)
	cfg.ReadyWindow = cmp.Or(cfg.ReadyWindow, defaultReadyWindow)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	cfg.KeepLogs = cmp.Or(cfg.KeepLogs, joblog.Info)
	cfg.MetricPrefix = cmp.Or(cfg.MetricPrefix, defaultPrefix)
	if cfg.Registerer == nil {
		cfg.Registerer = prometheus.NewRegistry()
	}
	return cfg
}

// info is what the worker declares of itself.
func (cfg Config) info() flowfabric.WorkerInfo {
	return flowfabric.WorkerInfo{Pool: cfg.Worker, Namespaces: cfg.Namespaces, Lanes: cfg.Lanes,
		LaneWeights: cfg.LaneWeights, Capabilities: cfg.Capabilities, Concurrency: cfg.Concurrency,
		Version: cfg.AppVersion, Labels: cfg.Labels}
}

// validate reports the first field that is missing or out of bounds, by name and with its limit. The error
// wraps [flowfabric.ErrConfig]. Zero values that have a default are valid.
func (cfg Config) validate() error {
	if cfg.URL == "" {
		return fmt.Errorf(
			"%w: Config.URL is empty: set it (usually from FLOWFABRIC_URL), or use embedded:./data for a store in this process",
			flowfabric.ErrConfig)
	}
	cfg = cfg.withDefaults()
	outside := func(field string, got any, limit string) error {
		return fmt.Errorf("%w: Config.%s is %v, want %s", flowfabric.ErrConfig, field, got, limit)
	}
	switch {
	case cfg.LeaseTTL < limits.MinLeaseTTL || cfg.LeaseTTL > limits.MaxLeaseTTL:
		return outside("LeaseTTL", cfg.LeaseTTL, "1s..1h")
	case cfg.DrainTimeout > maxDrainTimeout:
		return outside("DrainTimeout", cfg.DrainTimeout, "at most 1h, or negative for none")
	case cfg.DialTimeout < 0:
		return outside("DialTimeout", cfg.DialTimeout, "0 for the default, or more")
	case cfg.CallTimeout < 0:
		return outside("CallTimeout", cfg.CallTimeout, "0 for the default, or more")
	case cfg.ReadyWindow < time.Second:
		return outside("ReadyWindow", cfg.ReadyWindow, "1s or more")
	case !joblog.Valid(cfg.KeepLogs):
		return outside("KeepLogs", strconv.Quote(cfg.KeepLogs), "debug, info, warn, error or off")
	case !metricPrefix.MatchString(cfg.MetricPrefix):
		return outside("MetricPrefix", strconv.Quote(cfg.MetricPrefix),
			"letters, digits and _ with _ at the end, at most 64")
	}
	if err := cmp.Or(valid.Name("Config.Namespace", cfg.Namespace), valid.Name("Config.Worker", cfg.Worker),
		valid.Instance("Config.Instance", cfg.Instance)); err != nil {
		return fmt.Errorf("%w: %w", flowfabric.ErrConfig, err)
	}
	info := cfg.info()
	if err := valid.Worker(&info); err != nil {
		if wrong, ok := errors.AsType[*valid.WorkerError](err); ok && wrong.Field == "Version" {
			wrong.Field = "AppVersion"
		}
		return fmt.Errorf("%w: Config.%w", flowfabric.ErrConfig, err)
	}
	if _, err := tokenkeys.Parse(cfg.TokenKeys); err != nil {
		return fmt.Errorf("%w: Config.TokenKeys (%s): %w", flowfabric.ErrConfig, suspend.EnvTokenKeys, err)
	}
	if _, err := sealed.Configured(cfg.Cipher); err != nil {
		return fmt.Errorf("%w: %w", flowfabric.ErrConfig, err)
	}
	if i := slices.IndexFunc(cfg.Middleware, func(m handler.Middleware) bool { return m == nil }); i >= 0 {
		return fmt.Errorf("%w: Config.Middleware[%d] is nil", flowfabric.ErrConfig, i)
	}
	return nil
}

// Client is the configuration of a client that connects as the worker does, with its namespace, token keys, logger and
// tracing.
func (cfg Config) Client() client.Config {
	return client.Config{URL: cfg.URL, Username: cfg.Username, Password: cfg.Password, TLS: cfg.TLS,
		DialTimeout: cfg.DialTimeout, CallTimeout: cfg.CallTimeout, Partitions: cfg.Partitions,
		CreateConfig: cfg.CreateConfig, Namespace: cfg.Namespace, TokenKeys: cfg.TokenKeys,
		Cipher: cfg.Cipher, TracerProvider: cfg.TracerProvider, Propagator: cfg.Propagator,
		Logger: cfg.Logger, OnCall: cfg.OnCall}
}

// drainTimeout is how long running work may go on; never negative.
func (cfg Config) drainTimeout() time.Duration {
	return max(cmp.Or(cfg.DrainTimeout, limits.DefaultDrainTimeout), 0)
}
