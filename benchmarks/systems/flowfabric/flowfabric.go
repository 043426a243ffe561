// Package flowfabric drives FlowFabric through what its users have: client to submit and to follow, runtime to work.
// Only frames are appended through package engine, because the scenario fixes how many go into one call.
//
// Submitters share one client; every worker has connections of its own. Completed executions are retained as the
// default policy says.
package flowfabric

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// kind is the name of the benchmark's jobs.
const kind = "bench"

// tokenKeys sign the tokens of the suspend scenario; workers of the others have them too, as in production.
const tokenKeys = "bench:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// Jobs of bytes and typed ones are two kinds, and workers have handlers for both.
var (
	definition = handler.Define[[]byte, []byte](kind)
	typed      = handler.Define[driver.Document, driver.Answer](kind + "-typed")
)

// System is FlowFabric with its default settings. It is a [driver.System].
type System struct {
	// Title is its name; empty: flowfabric.
	Title string
	// Program is the server to start: redis-server, valkey-server or a path.
	Program string
	// Cluster starts three of them.
	Cluster bool
}

// Name is the title, or "flowfabric".
func (s System) Name() string { return cmp.Or(s.Title, "flowfabric") }

// Version names the module's version, which is (devel) in its own repository, and the function library exactly.
func (System) Version() string {
	version := driver.ModuleVersion("github.com/flowfabric/flowfabric-go")
	return fmt.Sprintf("%s, library %d %s", version, library.Revision, library.Hash())
}

// Serve starts a server, or a cluster of them.
func (s System) Serve(ctx context.Context) (driver.Server, error) {
	if s.Cluster {
		return server.StartCluster(ctx, s.Program, 3)
	}
	return server.Start(ctx, s.Program)
}

// Open connects a client.
func (System) Open(ctx context.Context, s driver.Server, cfg driver.Settings) (driver.Store, error) {
	// Records are formatted and thrown away: what an application pays for its log's destination is its own affair.
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo}))
	c, err := client.Connect(ctx, client.Config{URL: s.URL(), Partitions: uint16(cfg.Partitions), Logger: log})
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Config{URL: s.URL(), Logger: log})
	if err != nil {
		c.Close()
		return nil, err
	}
	return &store{server: s, client: c, engine: e, log: log, typed: cfg.Typed}, nil
}

// store is one round's connection.
type store struct {
	server driver.Server
	client *client.Client
	engine *engine.Engine // for frames and for counting
	log    *slog.Logger
	typed  bool
	polled atomic.Uint32
}

func (s *store) Close() {
	s.client.Close()
	s.engine.Close()
}

func (s *store) Submit(ctx context.Context, payload []byte) error {
	if s.typed {
		_, err := client.Submit(ctx, s.client, typed, driver.Typed(payload))
		return err
	}
	_, err := client.Submit(ctx, s.client, definition, payload)
	return err
}

func (s *store) SubmitMany(ctx context.Context, payloads [][]byte) error {
	if s.typed {
		documents := make([]driver.Document, len(payloads))
		for i, p := range payloads {
			documents[i] = driver.Typed(p)
		}
		_, err := client.SubmitMany(ctx, s.client, typed, documents)
		return err
	}
	_, err := client.SubmitMany(ctx, s.client, definition, payloads)
	return err
}

func (s *store) Work(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	return s.workOn(ctx, w, nil, handler.Bind(definition, handling(w)),
		handler.Bind(typed, func(ctx context.Context, _ *handler.Task, in driver.Document) (driver.Answer, error) {
			w.Handle(ctx, []byte(in.Text))
			return in.Answered(), nil
		}))
}

// function is a handler's.
type function = func(context.Context, *handler.Task, []byte) ([]byte, error)

// handling is the handler that a worker was given.
func handling(w driver.Worker) function {
	return func(ctx context.Context, _ *handler.Task, in []byte) ([]byte, error) {
		w.Handle(ctx, in)
		return nil, nil
	}
}

// work starts a worker, of further namespaces too, and waits until it is ready.
func (s *store) work(ctx context.Context, w driver.Worker, fn function, namespaces ...string) (func() error, error) {
	return s.workOn(ctx, w, namespaces, handler.Bind(definition, fn))
}

func (s *store) workOn(ctx context.Context, w driver.Worker, namespaces []string,
	bindings ...handler.Binding) (func() error, error) {
	worker, err := runtime.New(runtime.Config{URL: s.server.URL(), Concurrency: w.Concurrency, Logger: s.log,
		TokenKeys: tokenKeys, Namespaces: namespaces}, bindings...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var running conc.WaitGroup
	running.Go(func() { ended <- worker.Run(ctx) })
	stop := func() error {
		cancel()
		running.Wait()
		return <-ended
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for worker.Ready() != nil {
		select {
		case err := <-ended:
			cancel()
			return nil, fmt.Errorf("the worker ended at its start: %w", err)
		case <-look.C:
		}
	}
	return stop, nil
}

// Partitions implements [driver.Partitioned].
func (s *store) Partitions() int { return int(s.engine.Partitions()) }

// Lightest implements [driver.Lightest]: asks the next partition whether anything waits, as an idle worker does.
func (s *store) Lightest(ctx context.Context) error {
	_, _, err := s.engine.Poll(ctx, []uint16{uint16(s.polled.Add(1) % uint32(s.engine.Partitions()))})
	return err
}

// counting is a server that says how large a sorted set is, on whichever node it lies.
type counting interface {
	Cardinality(ctx context.Context, key string) (int64, error)
}

// Done implements [driver.Counter].
func (s *store) Done(ctx context.Context) (n int, err error) {
	all, ok := s.server.(counting)
	if !ok {
		return 0, fmt.Errorf("flowfabric: %T is not a server of package server", s.server)
	}
	for p := range s.engine.Partitions() {
		done, err := all.Cardinality(ctx, keys.Of(p).Done())
		if err != nil {
			return 0, fmt.Errorf("count partition %d: %w", p, err)
		}
		n += int(done)
	}
	return n, nil
}
