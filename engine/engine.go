package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"crypto/tls"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/lua"
)

// Engine is an open store. Create it with [Open], end it with [Engine.Close].
type Engine struct {
	cfg        Config
	log        *slog.Logger
	client     rueidis.Client // claims, settles, submits, reads
	renewals   func() (rueidis.Client, error)
	subs       func() (rueidis.Client, error)
	reads      func() (rueidis.Client, error) // frames
	server     serverInfo
	variant    lua.Variant
	scripts    map[string]script // only where the server knows no functions
	partitions uint16
	roots      []string
	budgets    []string // roots of the partitions of budgets, which are made with the first budget there
	quotas     []string
	loading    sync.Mutex
	doubts     doubts
	channels   channels
	closers    struct {
		sync.Mutex
		clients []rueidis.Client
		closed  bool
	}
}

type script struct{ sha, text string }

// Open dials the server, checks its version, loads the library if it is missing or older, reads the deployment's
// partition counts (fixing them on a fresh store unless CreateConfig is false), and makes the partition roots.
//
// Errors: ErrConfig before any I/O, and for a server that carries the library's other variant (see Config.TestClock);
// ErrTransport (no server), ErrAuth, ErrServerVersion, ErrNewerLibrary, ErrProtocol. Nothing stays open after an error.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	option, err := cfg.options()
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, log: cfg.Logger}
	if err := e.open(ctx, option); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Engine) open(ctx context.Context, option rueidis.ClientOption) error {
	client, err := firstSeed(option)
	if err != nil {
		return err
	}
	if e.server, err = identify(ctx, client); err != nil {
		client.Close()
		return err
	}
	if err := e.server.supported(); err != nil {
		client.Close()
		return err
	}
	if e.server.cluster {
		client.Close()
		option.ForceSingleClient = false
		if client, err = rueidis.NewClient(option); err != nil {
			return dialError(option.InitAddress[0], err)
		}
	} else {
		option.ForceSingleClient = true
		option.InitAddress = option.InitAddress[:1]
	}
	e.client = client
	e.keep(client)
	more := func() (rueidis.Client, error) {
		c, err := rueidis.NewClient(option)
		if err != nil {
			return nil, dialError(option.InitAddress[0], err)
		}
		if !e.keep(c) {
			c.Close()
			return nil, fmt.Errorf("%w: the engine is closed", flowfabric.ErrTransport)
		}
		return c, nil
	}
	e.renewals, e.subs, e.reads = lazily(more), lazily(more), lazily(more)
	e.variant = lua.Variant{Sharded: !e.server.embedded, TestClock: e.cfg.TestClock}
	if err := e.load(ctx); err != nil {
		return err
	}
	if err := e.configure(ctx); err != nil {
		return err
	}
	return e.boot(ctx)
}

// firstSeed connects to the first of the addresses that answers: a dead node must not keep a process from starting.
func firstSeed(option rueidis.ClientOption) (client rueidis.Client, err error) {
	seeds := option.InitAddress
	option.ForceSingleClient = true
	for i := range seeds {
		option.InitAddress = seeds[i : i+1]
		client, dialErr := rueidis.NewClient(option)
		if dialErr == nil {
			return client, nil
		}
		err = cmp.Or(err, dialError(seeds[i], dialErr))
	}
	return nil, err
}

// lazily opens a client at first use; a failed attempt is made again by the next use.
func lazily(open func() (rueidis.Client, error)) func() (rueidis.Client, error) {
	var mu sync.Mutex
	var client rueidis.Client
	return func() (rueidis.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if client == nil {
			c, err := open()
			if err != nil {
				return nil, err
			}
			client = c
		}
		return client, nil
	}
}

// Close ends all connections; calls in flight fail with ErrTransport. It is idempotent.
func (e *Engine) Close() {
	e.closers.Lock()
	clients := e.closers.clients
	e.closers.clients, e.closers.closed = nil, true
	e.closers.Unlock()
	// All at once: the driver gives a server that is silent a second to answer the end of each connection.
	var closing sync.WaitGroup
	for _, c := range clients {
		closing.Go(c.Close)
	}
	closing.Wait()
}

func (e *Engine) keep(c rueidis.Client) bool {
	e.closers.Lock()
	defer e.closers.Unlock()
	if e.closers.closed {
		return false
	}
	e.closers.clients = append(e.closers.clients, c)
	return true
}

// Partitions is the number of execution partitions of this deployment.
func (e *Engine) Partitions() uint16 { return e.partitions }

// BudgetPartitions is the number of partitions of budgets; see [flowfabric.GatePartition].
func (e *Engine) BudgetPartitions() uint16 { return uint16(len(e.budgets)) }

// QuotaPartitions is the number of partitions of quotas.
func (e *Engine) QuotaPartitions() uint16 { return uint16(len(e.quotas)) }

// Embedded reports whether the server is the in-process development server.
func (e *Engine) Embedded() bool { return e.server.embedded }

// Cluster reports whether the server is a Valkey or Redis Cluster.
func (e *Engine) Cluster() bool { return e.server.cluster }

// Server is the server's name and version, "valkey 8.0.1", for log lines and doctor.
func (e *Engine) Server() string { return e.server.name + " " + e.server.version }

// Ping makes one round trip.
func (e *Engine) Ping(ctx context.Context) error {
	if err := e.client.Do(ctx, e.client.B().Ping().Build()).Error(); err != nil {
		return callError("ping", err)
	}
	return nil
}

// configure reads or fixes the partition counts (lua/system/ff_configure.lua). Spec 40 §3.
func (e *Engine) configure(ctx context.Context) error {
	create := "1"
	if e.cfg.CreateConfig != nil && !*e.cfg.CreateConfig {
		create = "0"
	}
	r, err := e.callKeys(ctx, fnConfigure, []string{keys.Config}, protocol, strconv.Itoa(int(e.cfg.Partitions)),
		strconv.Itoa(flowfabric.DefaultBudgetPartitions), strconv.Itoa(flowfabric.DefaultQuotaPartitions), create)
	if err != nil {
		if coded, ok := errors.AsType[*flowfabric.Error](err); ok && coded.Code == "config_missing" {
			return fmt.Errorf("%w: the store was never booted (no %s) and CreateConfig is false", flowfabric.ErrConfig, keys.Config)
		}
		return err
	}
	n, err := strconv.ParseUint(r.text(), 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("%s: %w: partition count", fnConfigure.name, flowfabric.ErrReply)
	}
	e.partitions = uint16(n)
	e.roots = rootsOf(uint16(n), keys.Root)
	e.budgets, e.quotas = rootsOf(uint16(r.number()), keys.BudgetRoot), rootsOf(uint16(r.number()), keys.QuotaRoot)
	return r.fail()
}

func rootsOf(n uint16, root func(uint16) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = root(uint16(i))
	}
	return out
}

// boot makes every partition's root (lua/system/ff_boot.lua). An existing one is left alone.
func (e *Engine) boot(ctx context.Context) error {
	commands := make(rueidis.Commands, len(e.roots))
	for i, root := range e.roots {
		commands[i] = e.command(e.client, fnBoot, []string{root}, []string{protocol})
	}
	for i, resp := range e.client.DoMulti(ctx, commands...) {
		if _, err := decode(fnBoot.name, resp); err != nil {
			if _, err = e.callKeys(ctx, fnBoot, []string{e.roots[i]}, protocol); err != nil {
				return fmt.Errorf("boot partition %d: %w", i, err)
			}
		}
	}
	return nil
}

func dialUnix(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return d.DialContext(ctx, "unix", path)
}

func dialInProcess(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return inproc.Dial(ctx, address)
}
