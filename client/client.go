package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Config says where the store is and what submissions have in common. Only URL is required.
type Config struct {
	// URL: redis://, rediss:// (TLS), valkey://, valkeys://, unix://, with user, password and database number as usual;
	// redis+sentinel://host:26379,host:26379/primary-name for a primary that Sentinels name (see
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/deploy.md); or embedded:./data for a store in
	// this process that keeps its data in that folder, and embedded:// for one in memory. All users in the process
	// share it, and a program that does not import package runtime must import package embedded (see embedded.URL).
	// Empty is an error: take it from the environment variable FLOWFABRIC_URL.
	URL string
	// Username and Password win over those in the URL.
	Username, Password string
	// TLS replaces the default TLS settings; nil decides by the URL's scheme.
	TLS *tls.Config
	// ClientName is shown in CLIENT LIST. Default "flowfabric".
	ClientName string
	// DialTimeout bounds one connection attempt, default 10 s. CallTimeout bounds one call without its repeats,
	// default 5 s.
	DialTimeout, CallTimeout time.Duration
	// Partitions is used only when this client is the first to boot the store: 1..1024, default 64, on the embedded
	// server 8.
	Partitions uint16
	// CreateConfig false refuses a store that was never booted. Default (nil) true.
	CreateConfig *bool

	// Namespace of submissions that name none, 1..64 printable ASCII bytes without braces. Default "default".
	Namespace string
	// Creator is stored with every submission, at most 64 bytes, and asks for changes (flowfabric.By wins) and is the
	// source of signals ([SignalSource] wins). Default none.
	Creator string
	// TokenKeys makes and rotates tokens of waitpoints: "kid:hex,kid:hex…". Only
	// admin.ReissueToken and admin.RotateTokenKeys need it; signals need none. Default the environment variable
	// FLOWFABRIC_TOKEN_KEYS; with an embedded URL the keys that the folder keeps, in memory a random one.
	TokenKeys string
	// Cipher encrypts what is stored of inputs, results, steps, frames, messages, signals, summaries, questions and
	// reasons, and decrypts what is read; SECURITY.md tells what stays readable. All processes of a store should have
	// the same. What is stored in plain is still read. Default the keys in the environment variable
	// FLOWFABRIC_CIPHER_KEYS, see flowfabric.CipherKeys; nothing is encrypted without them.
	Cipher flowfabric.Cipher
	// SubmitTimeout is how long a create call is repeated while it is not answered, unless the caller's context ends
	// before; then the outcome is unknown ([UnknownOutcomeError]), or nothing was sent, if no connection could be
	// made (flowfabric.ErrTransport). It also bounds [Client.Close]. Default 15 s, at least 1 ms.
	SubmitTimeout time.Duration
	// OnCall is told every call of a server function once it has ended, with its repeats, for metrics or tracing. It
	// must be fast, and may be called concurrently. Default nobody.
	OnCall func(function string, took time.Duration, err error)
	// TracerProvider makes the spans of submits and signals. Default the global one of package otel, as soon as one
	// is set; without any, nothing is traced. See
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/trace.md.
	TracerProvider trace.TracerProvider
	// Propagator says how the context travels to the handler. Default the global one of package otel, and W3C trace
	// context while none is set.
	Propagator propagation.TextMapPropagator
	// Logger for the few things worth a line. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, limits.DefaultNamespace)
	c.TokenKeys = cmp.Or(c.TokenKeys, os.Getenv(suspend.EnvTokenKeys))
	c.SubmitTimeout = cmp.Or(c.SubmitTimeout, 15*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c Config) validate() error {
	bad := func(err error) error { return fmt.Errorf("%w: client: %w", flowfabric.ErrConfig, err) }
	if c.URL == "" {
		return bad(errors.New("URL is empty; set it, usually from the environment variable FLOWFABRIC_URL " +
			"(redis://host:6379), or use embedded:./data for a store in this process"))
	}
	if err := valid.Name("Namespace", c.Namespace); err != nil {
		return bad(err)
	}
	if len(c.Creator) > limits.MaxName {
		return bad(fmt.Errorf("Config.Creator has %d bytes, want at most %d", len(c.Creator), limits.MaxName))
	}
	if c.SubmitTimeout < time.Millisecond {
		return bad(fmt.Errorf("SubmitTimeout is %s, want at least 1 ms", c.SubmitTimeout))
	}
	return nil
}

// store is what the client needs of the engine.
type store interface {
	coalesce.Creator
	subscriber
	signaller
	flows
	summaries
	stepReader
	logReader
	mailer
	forker
	pageReader
	scheduler
	publisher
	link.GateFinder
	Partitions() uint16
	Ping(ctx context.Context) error
	ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error)
	VersionOf(ctx context.Context, session string) string
	KeyHolder(ctx context.Context, partition uint16, key uuid.UUID) (flowfabric.ExecutionID, error)
	ReadInput(ctx context.Context, id flowfabric.ExecutionID) ([]byte, bool, error)
	ReadResult(ctx context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, bool, error)
	CancelExecution(ctx context.Context, id flowfabric.ExecutionID, c engine.Cancellation) (bool, error)
	StopTurn(ctx context.Context, id flowfabric.ExecutionID, request flowfabric.UUID) (engine.Stop, error)
	RewindExecution(ctx context.Context, id flowfabric.ExecutionID, q engine.Rewind) (engine.Rewound, error)
}

// tailer is what the client needs of the tail hub.
type tailer interface {
	Tail(ctx context.Context, id flowfabric.ExecutionID, o framelog.TailOptions) iter.Seq2[stream.TailEvent, error]
	Close()
}

// Client is a connection to one store, for producers. Create it with [Connect], share it in the whole process,
// end it with [Client.Close]. All methods may be called concurrently. An idle one costs about 0.5 MiB of heap, mostly
// buffers of its connection, and 1 MiB and 2 goroutines once it has tailed or waited, so do not make one for each
// request; see https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/deploy.md.
type Client struct {
	cfg     Config
	store   store
	tails   tailer
	keyring *tokenkeys.Keyring // nil: no token keys
	tracer  *tracing.Tracer
	submits *coalesce.Coalescer
	waits   *hub
	box     *sealed.Box // nil: nothing is encrypted
	link    *link.Connection
	end     context.CancelCauseFunc // ends waits and late batches
	release []func()                // in the order they must run
	once    sync.Once
	closed  atomic.Bool // since Close was called
}

// Connect dials the store and makes it ready (it fixes the partition count of a fresh one). ctx bounds connecting
// only. Errors: flowfabric.ErrConfig before any I/O; ErrTransport, ErrAuth, ErrProtocol
// from the store. Nothing stays open after an error.
func Connect(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	keyring, err := tokenkeys.Configured(cfg.URL, cfg.TokenKeys)
	if err != nil {
		return nil, fmt.Errorf("%w: client: TokenKeys (%s): %w", flowfabric.ErrConfig, suspend.EnvTokenKeys, err)
	}
	if cfg.Cipher, err = sealed.Configured(cfg.Cipher); err != nil {
		return nil, fmt.Errorf("%w: client: %w", flowfabric.ErrConfig, err)
	}
	url, release, err := inproc.Resolve(ctx, cfg.URL, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	eng, err := engine.Open(ctx, engine.Config{
		URL: url, Username: cfg.Username, Password: cfg.Password, TLS: cfg.TLS, ClientName: cfg.ClientName,
		DialTimeout: cfg.DialTimeout, CallTimeout: cfg.CallTimeout, Partitions: cfg.Partitions,
		CreateConfig: cfg.CreateConfig, Logger: cfg.Logger, OnCall: cfg.OnCall,
		Box: sealed.New(cfg.Cipher),
	})
	if err != nil {
		release()
		return nil, fmt.Errorf("client: %w", err)
	}
	cfg.URL, cfg.Username, cfg.Password, cfg.TokenKeys = "", "", "", "" // a client that is printed shows no secret
	tails := framelog.NewHub(eng)
	c := newClient(cfg, eng, tails, keyring, eng.Close, release)
	c.link.Engine, c.link.Tails = eng, tails
	return c, nil
}

// newClient expects a config with its defaults filled in.
func newClient(cfg Config, s store, tails tailer, keyring *tokenkeys.Keyring, release ...func()) *Client {
	life, end := context.WithCancelCause(context.Background())
	box := sealed.New(cfg.Cipher)
	cfg.Cipher = nil
	c := &Client{
		cfg: cfg, store: s, tails: tails, keyring: keyring, end: end, release: release,
		tracer: tracing.New(cfg.TracerProvider, cfg.Propagator),
		submits: coalesce.New(life, coalesce.Config{Store: s, Partitions: s.Partitions(), Timeout: cfg.SubmitTimeout,
			Closed: ErrClosed,
			Unknown: func(id flowfabric.ExecutionID, cause error) error {
				return &UnknownOutcomeError{ID: id, Cause: cause}
			}}),
		waits: newHub(life, s),
		box:   box,
	}
	c.link = &link.Connection{Keyring: keyring, Namespace: cfg.Namespace, Creator: cfg.Creator,
		SubmitTimeout: cfg.SubmitTimeout, Logger: cfg.Logger, Life: life, Closed: c.ended,
		Gates: link.NewGates(s, cfg.SubmitTimeout)}
	return c
}

// Link is the client's connection, for the packages of this module that share it, as package admin does.
func (c *Client) Link() *link.Connection { return c.link }

// ended is [ErrClosed] once Close was called.
func (c *Client) ended() error {
	if c.closed.Load() {
		return ErrClosed
	}
	return nil
}

// act is who asks for a change, and why: by default Config.Creator asks, and nobody is named without it.
func (c *Client) act(opts []flowfabric.ActOption) (link.Act, error) {
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, c.cfg.Creator)
	return act, link.CheckBy(act.By)
}

// admit refuses a call that cannot be made: on a closed client, or about no execution.
func (c *Client) admit(verb string, id flowfabric.ExecutionID) error {
	return link.Admit(verb, id, c.ended())
}

// Ping makes one round trip to the store. Errors: flowfabric.ErrTransport, ErrAuth; [ErrClosed].
func (c *Client) Ping(ctx context.Context) error {
	if c.closed.Load() {
		return fmt.Errorf("ping: %w", ErrClosed)
	}
	return c.store.Ping(ctx)
}

// Close refuses further calls with [ErrClosed], waits until the submits that were accepted are answered (at most about
// SubmitTimeout), ends waits and tails with [ErrClosed], and disconnects. Other calls that are under way may end with
// flowfabric.ErrTransport. It is idempotent, and every call returns only when all that is done.
func (c *Client) Close() {
	c.once.Do(func() {
		c.closed.Store(true)
		c.submits.Close()
		c.end(ErrClosed)
		c.waits.close()
		c.tails.Close()
		for _, f := range c.release {
			f()
		}
	})
}
