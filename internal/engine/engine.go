package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Engine is an open store. Create it with [Open], end it with [Engine.Close].
type Engine struct {
	cfg        Config
	log        *slog.Logger
	client     rueidis.Client // claims, settles, submits, reads
	renewals   func(context.Context) (rueidis.Client, error)
	subs       func(context.Context) (rueidis.Client, error)
	reads      func(context.Context) (rueidis.Client, error) // frames
	another    func() (rueidis.Client, error)                // the caller closes it
	server     serverInfo
	variant    library.Variant
	partitions uint16
	roots      []string
	gateFacts  gateFacts
	gates      []string // roots of the partitions of gates, which are made with the first gate there
	loading    sync.Mutex
	reboots    reboots
	dials      dials
	lone       lone
	channels   channels
	schemas    schemas
	versions   versions
	closers    struct {
		sync.Mutex
		clients []rueidis.Client
		closed  bool
	}
}

// Open dials the server, checks its version, loads the library if it is missing or older, reads the deployment's
// partition counts (fixing them on a fresh store unless CreateConfig is false), and makes the partition roots.
//
// Errors: ErrConfig before any I/O, and for a server that carries the library's other variant (see Config.TestClock);
// ErrTransport (no server), ErrAuth, denied.ServerVersion, ErrProtocol (the store or the library is of another
// protocol number). Nothing stays open after an error.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	option, err := cfg.options()
	if err != nil {
		return nil, err
	}
	cfg.URL, cfg.Username, cfg.Password = "", "", "" // an engine that is printed shows no secret; option has them
	e := &Engine{cfg: cfg, log: cfg.Logger, reboots: reboots{turn: make(chan struct{}, 1)}}
	e.dials.life, e.dials.end = context.WithCancel(context.Background())
	option.DialCtxFn = e.dials.counted(option.DialCtxFn)
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
	if e.server, err = identify(ctx, client); err == nil {
		err = e.server.supported()
	}
	if err == nil && watched(option) {
		err = e.server.watchable()
	}
	if err != nil {
		client.Close()
		return err
	}
	switch {
	case watched(option):
	case e.server.cluster:
		client.Close()
		option.ForceSingleClient = false
		if client, err = rueidis.NewClient(option); err != nil {
			return connectError(option, err)
		}
	default:
		option.ForceSingleClient = true
		option.InitAddress = option.InitAddress[:1]
		e.lone.prepare(option)
	}
	e.client = client
	e.keep(client)
	e.another = func() (rueidis.Client, error) {
		c, err := rueidis.NewClient(option)
		if err != nil {
			return nil, connectError(option, err)
		}
		return c, nil
	}
	more := func() (rueidis.Client, error) {
		c, err := e.another()
		if err != nil {
			return nil, err
		}
		if !e.keep(c) {
			c.Close()
			return nil, fmt.Errorf("%w: the engine is closed", flowfabric.ErrTransport)
		}
		return c, nil
	}
	e.renewals, e.subs, e.reads = e.dials.lazily(more), e.dials.lazily(more), e.dials.lazily(more)
	e.variant = library.Variant{Sharded: !e.server.embedded, TestClock: e.cfg.TestClock}
	if err := e.known(ctx); err != nil {
		return err
	}
	if err := e.load(ctx); err != nil {
		return err
	}
	if err := e.count(ctx); err != nil {
		return err
	}
	return e.boot(ctx)
}

// firstSeed connects to the first of the addresses that answers: a dead node must not keep a process from starting.
// The driver asks Sentinels in turn itself.
func firstSeed(option rueidis.ClientOption) (client rueidis.Client, err error) {
	if watched(option) {
		if client, err = rueidis.NewClient(option); err != nil {
			return nil, connectError(option, err)
		}
		return client, nil
	}
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

// lazily opens a client at first use; a failed attempt is made again by the next use. Callers wait for an attempt as
// long as their contexts allow.
func (d *dials) lazily(open func() (rueidis.Client, error)) func(context.Context) (rueidis.Client, error) {
	turn, client := make(chan struct{}, 1), rueidis.Client(nil)
	attempt := func() (rueidis.Client, error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		if client == nil {
			c, err := open()
			if err != nil {
				return nil, err
			}
			client = c
		}
		return client, nil
	}
	var ready atomic.Pointer[rueidis.Client]
	return func(ctx context.Context) (rueidis.Client, error) {
		if c := ready.Load(); c != nil {
			return *c, nil
		}
		c, err := within(ctx, d, "connect", attempt)
		if err == nil {
			ready.Store(&c)
		}
		return c, err
	}
}

// Close ends all connections; calls in flight fail with ErrTransport. It is idempotent.
func (e *Engine) Close() {
	e.closers.Lock()
	clients := e.closers.clients
	e.closers.clients, e.closers.closed = nil, true
	e.closers.Unlock()
	e.dials.stop()
	e.lone.drop(e.lone.client.Load())
	// All at once: the driver gives a server that is silent a second to answer the end of each connection.
	var closing sync.WaitGroup
	for _, c := range clients {
		closing.Go(c.Close)
	}
	closing.Wait()
	e.dials.waiting.Wait()
	e.lone.drop(e.lone.client.Load())
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

// GatePartitions is the number of partitions of gates; see [ids.GatePartition].
func (e *Engine) GatePartitions() uint16 { return uint16(len(e.gates)) }

// Embedded reports whether the server is the store of FlowFabric itself, in memory or with a folder.
func (e *Engine) Embedded() bool { return e.server.embedded }

// Cluster reports whether the server is a Valkey or Redis Cluster.
func (e *Engine) Cluster() bool { return e.server.cluster }

// Server is the server's name and version, "valkey 8.0.1", for log lines and doctor.
func (e *Engine) Server() string { return e.server.name + " " + e.server.version }

// Ping makes one round trip.
func (e *Engine) Ping(ctx context.Context) error {
	if err := e.client.Do(ctx, e.client.B().Ping().Build()).Error(); err != nil {
		return CallError("ping", err)
	}
	return nil
}

// count learns the partition counts, or fixes them.
func (e *Engine) count(ctx context.Context) error {
	executions := uint16(limits.DefaultExecutionPartitions)
	if e.server.embedded {
		executions = limits.EmbeddedPartitions
	}
	wish := Counts{cmp.Or(e.cfg.Partitions, executions), limits.DefaultGatePartitions}
	c, err := e.configured(ctx, wish, false)
	if noConfig(err) {
		gone := rootsWithoutConfig(ctx, e.client)
		if c, err = e.configure(ctx, wish, gone == nil); gone != nil && err != nil { // nobody has booted it meanwhile
			err = gone
		}
	}
	if err != nil {
		return err
	}
	e.partitions = c.Executions
	e.roots = rootsOf(c.Executions, keys.Root)
	e.gates = rootsOf(c.Gates, keys.GateRoot)
	return nil
}

func noConfig(err error) bool {
	coded, ok := errors.AsType[*flowfabric.Error](err)
	return ok && coded.Code == "config_missing"
}

// rootsWithoutConfig is the error of a store whose partition counts are lost, nil for a new one: with other counts
// nobody would find its work.
func rootsWithoutConfig(ctx context.Context, client rueidis.Client) error {
	if client.Mode() != rueidis.ClientModeCluster { // a new store is asked once
		all := client.B().Exists().Key(rootsOf(maxPartitions, keys.Root)...).Build()
		switch n, err := client.Do(ctx, all).AsInt64(); {
		case err != nil:
			return CallError("look for roots", err)
		case n == 0:
			return nil
		}
	}
	commands := make(rueidis.Commands, maxPartitions)
	for i := range commands {
		commands[i] = client.B().Exists().Key(keys.Root(uint16(i))).Build()
	}
	roots, last := int64(0), 0
	for i, resp := range client.DoMulti(ctx, commands...) {
		there, err := resp.AsInt64()
		if err != nil {
			return CallError("look for roots", err)
		}
		if roots += there; there > 0 {
			last = i
		}
	}
	if roots == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is gone or incomplete, and the roots of %d partitions are there: "+
		"write it again (HSET %s num_flow_partitions %d num_gate_partitions %d, "+
		"if the store had as many)",
		flowfabric.ErrCorrupt, keys.Config, roots, keys.Config, last+1, limits.DefaultGatePartitions)
}

// configure is configured, with words for a store that was never booted and may not be.
func (e *Engine) configure(ctx context.Context, wish Counts, create bool) (Counts, error) {
	c, err := e.configured(ctx, wish, create && (e.cfg.CreateConfig == nil || *e.cfg.CreateConfig))
	if noConfig(err) {
		err = fmt.Errorf(
			"%w: the store was never booted, or was flushed (no %s), and CreateConfig is false; let a process boot it that may",
			flowfabric.ErrConfig, keys.Config)
	}
	return c, err
}

// configured reads the deployment's partition counts, and with create fixes them as wished where there are none
// (lua/system/ff_configure.lua).
func (e *Engine) configured(ctx context.Context, wish Counts, create bool) (Counts, error) {
	r, err := e.callKeys(ctx, functionOf["ff_configure"], []string{keys.Config}, protocol,
		strconv.Itoa(int(wish.Executions)),
		strconv.Itoa(int(wish.Gates)), bit(create))
	if err != nil {
		return Counts{}, Damaged(err)
	}
	n, err := strconv.ParseUint(r.Text(), 10, 16)
	if err != nil || n == 0 {
		return Counts{}, fmt.Errorf("ff_configure: %w: partition count", denied.Reply)
	}
	c := Counts{Executions: uint16(n), Gates: uint16(r.number())}
	return c, r.fail()
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
		commands[i] = command(e.client, fnBoot, []string{root}, []string{protocol})
	}
	for i, resp := range e.client.DoMulti(ctx, commands...) {
		if _, err := decode("ff_boot", resp); err != nil {
			_, err = e.callKeys(ctx, fnBoot, []string{e.roots[i]}, protocol)
			if wrongType(err) { // one partition that is damaged keeps nobody from the others
				e.log.ErrorContext(ctx,
					"flowfabric: the root of a partition is of another type; nothing in it works until the key is restored",
					"key", e.roots[i], "error", err)
				continue
			}
			if err != nil {
				return fmt.Errorf("boot partition %d: %w", i, err)
			}
		}
	}
	return nil
}
