package lease

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Config says where a session finds work and what it takes. URL and Kinds are required; the zero value of every other
// field is the stated default.
type Config struct {
	// URL of the server, as in runtime.Config; embedded:./data and embedded:// are a store in this process.
	URL string
	// Username and Password win over those in the URL.
	Username, Password string
	// TLS replaces the default TLS settings.
	TLS *tls.Config

	// Cipher decrypts inputs and encrypts what is stored, as in runtime.Config. Default the keys in the environment
	// variable FLOWFABRIC_CIPHER_KEYS, see flowfabric.CipherKeys; nothing is encrypted without them.
	Cipher flowfabric.Cipher

	// Kinds of executions to claim: at least one, 1..64 bytes each.
	Kinds []string
	// Namespaces to claim from: 1..64 bytes each, at most 256; "*" is all of them. Default only "default".
	Namespaces []string
	// Lanes to claim from: 1..64 bytes each. Default only "default".
	Lanes []string
	// Capabilities that this process has: executions that require others are not claimed. Default none.
	Capabilities []string
	// Instance names this process among all that run at this moment: 1..48 bytes without "~". Default unique.
	Instance string
	// TTL is how long after the death of this process its work is requeued: 1 s..1 h. Default 30 s. Leases are renewed
	// every third of it.
	TTL time.Duration
	// DisableMaintenance leaves due times (delays, timeouts, dead sessions) to other processes. Default false.
	DisableMaintenance bool
	// Logger gets lost leases and trouble with the server. Default slog.Default().
	Logger *slog.Logger
}

// check fills in defaults, and returns ErrConfig for the first field that is missing or out of bounds.
func (cfg Config) check() (Config, error) {
	if len(cfg.Namespaces) == 0 {
		cfg.Namespaces = []string{limits.DefaultNamespace}
	}
	if len(cfg.Lanes) == 0 {
		cfg.Lanes = []string{limits.DefaultLane}
	}
	cfg.Instance = cmp.Or(cfg.Instance, valid.NewInstance())
	cfg.TTL = cmp.Or(cfg.TTL, limits.DefaultLeaseTTL)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	bad := func(field string, err error) (Config, error) {
		return cfg, fmt.Errorf("%w: lease: Config.%s: %w", flowfabric.ErrConfig, field, err)
	}
	switch {
	case cfg.URL == "":
		return bad("URL", errEmpty)
	case len(cfg.Kinds) == 0:
		return bad("Kinds", errEmpty)
	case cfg.TTL < limits.MinLeaseTTL || cfg.TTL > limits.MaxLeaseTTL:
		return bad("TTL", fmt.Errorf("it is %v, want 1s..1h", cfg.TTL))
	}
	if err := valid.Instance("Instance", cfg.Instance); err != nil {
		return bad("Instance", err)
	}
	info := flowfabric.WorkerInfo{Kinds: cfg.Kinds, Namespaces: cfg.Namespaces, Lanes: cfg.Lanes,
		Capabilities: cfg.Capabilities, Concurrency: 1}
	if err := valid.Worker(&info); err != nil {
		return cfg, fmt.Errorf("%w: lease: Config.%w", flowfabric.ErrConfig, err)
	}
	cfg.Capabilities = info.Capabilities
	var err error
	if cfg.Cipher, err = sealed.Configured(cfg.Cipher); err != nil {
		return cfg, fmt.Errorf("%w: lease: %w", flowfabric.ErrConfig, err)
	}
	return cfg, nil
}

func (cfg Config) offer() offer.Offer {
	return offer.New(cfg.Namespaces, cfg.Lanes, cfg.Kinds, cfg.Capabilities)
}

// dial connects to the server; release ends the connection.
func (cfg Config) dial(ctx context.Context) (e *engine.Engine, release func(), err error) {
	url, free, err := embedded.Resolve(ctx, cfg.URL, cfg.Logger)
	if err != nil {
		return nil, nil, err
	}
	e, err = engine.Open(ctx, engine.Config{URL: url, Username: cfg.Username, Password: cfg.Password, TLS: cfg.TLS,
		ClientName: "flowfabric-lease", Logger: cfg.Logger, Box: sealed.New(cfg.Cipher)})
	if err != nil {
		free()
		return nil, nil, err
	}
	return e, func() { e.Close(); free() }, nil
}
