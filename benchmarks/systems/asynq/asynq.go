// Package asynq drives hibiken/asynq, a task queue for Go on Redis, through its public interface: Client to submit,
// Server to work, Inspector to count. It runs on the same server program as FlowFabric, through the same unix socket.
//
// # What is compared
//
// A task gets what asynq gives it when nothing is asked for: queue "default", 25 retries, a timeout of 30 minutes, an
// identifier made by asynq. There are three configurations:
//
//   - asynq: default settings and a retention of an hour, so that the outcome of a task can be asked for like that of
//     an execution.
//   - asynq-delete: default settings only. asynq then deletes a task as soon as it succeeds.
//   - asynq-tuned: like asynq, but a worker with nothing to do looks every 5 ms for tasks (TaskCheckInterval), where
//     the default is 1 s, and clients and workers have up to 100 connections (PoolSize), where the default is 10 per
//     processor. asynq polls, so this is how its users lower the time that a task waits for an idle worker; most are
//     content with 100 ms. At 1 ms the wait is shorter still, for five times what scenario idle shows. More
//     connections save goroutines from waiting for one.
//
// asynq enqueues one task in a call and has nothing for many. SubmitMany therefore calls it from as many goroutines
// as a client has connections by default. On two processors, half as many or more than twice as many differed by less
// than the noise, with 100 connections too; with as many goroutines as tasks it was slower. Tasks are confirmed one
// by one.
//
// # What differs from its defaults, and why
//
//   - The log goes through slog and is dropped, as for every system. Level info is asynq's default.
//   - ShutdownTimeout is minutes, not 8 s: asynq puts tasks back that have not ended by then, and the scenario memory
//     ends 10,000 of them at once. It has no influence on anything that is measured.
package asynq

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
)

const (
	kind  = "bench"
	typed = "bench-typed"
	queue = "default" // asynq's, when none is named
)

const (
	hour         = time.Hour
	defaultCheck = time.Second          // asynq's TaskCheckInterval
	tunedCheck   = 5 * time.Millisecond // see the comment of the package
	endless      = 10 * time.Minute     // for handlers to end

	tunedConnections = 100 // at most, opened when they are needed
)

// defaultConnections is what the client library allows when nothing is asked for.
func defaultConnections() int { return 10 * runtime.GOMAXPROCS(0) }

// System is asynq in one configuration. It is a [driver.System].
type System struct {
	name, program string
	retention     time.Duration
	tuned         bool
}

// Default is asynq with its default settings; completed tasks are kept for an hour. program is the server to start.
func Default(program string) System {
	return System{name: "asynq", program: program, retention: hour}
}

// Delete is asynq with its default settings; completed tasks are deleted.
func Delete(program string) System { return System{name: "asynq-delete", program: program} }

// Tuned is [Default] with workers that poll every 5 ms and with more connections.
func Tuned(program string) System {
	return System{name: "asynq-tuned", program: program, retention: hour, tuned: true}
}

// Name of the configuration.
func (s System) Name() string { return s.name }

// Version names the versions of asynq and of its Redis client, and the settings that tell configurations apart.
func (s System) Version() string {
	connections := defaultConnections()
	if s.tuned {
		connections = tunedConnections
	}
	return fmt.Sprintf("%s, go-redis %s; Retention %s, TaskCheckInterval %s, PoolSize %d",
		driver.ModuleVersion("github.com/hibiken/asynq"), driver.ModuleVersion("github.com/redis/go-redis/v9"),
		s.retention, s.check(), connections)
}

func (s System) check() time.Duration {
	if s.tuned {
		return tunedCheck
	}
	return defaultCheck
}

// Serve starts a server.
func (s System) Serve(ctx context.Context) (driver.Server, error) {
	return server.Start(ctx, s.program)
}

// Open connects a client and an inspector.
func (s System) Open(_ context.Context, at driver.Server, cfg driver.Settings) (driver.Store, error) {
	socket, ok := strings.CutPrefix(at.URL(), "unix://")
	if !ok {
		return nil, fmt.Errorf("asynq: the server is at %s, want a unix socket", at.URL())
	}
	to := asynq.RedisClientOpt{Network: "unix", Addr: socket}
	if s.tuned {
		to.PoolSize = tunedConnections
	}
	st := &store{system: s, typed: cfg.Typed, to: to, client: asynq.NewClient(to), inspector: asynq.NewInspector(to)}
	if s.retention > 0 {
		st.options = append(st.options, asynq.Retention(s.retention))
	}
	if err := st.client.Ping(); err != nil {
		st.Close()
		return nil, fmt.Errorf("asynq: connect to %s: %w", at.URL(), err)
	}
	return st, nil
}

// store is one round's connection.
type store struct {
	system    System
	typed     bool
	to        asynq.RedisClientOpt
	client    *asynq.Client
	options   []asynq.Option // of every task
	inspector *asynq.Inspector
}

func (s *store) Close() {
	_ = s.client.Close()
	_ = s.inspector.Close()
}

func (s *store) Submit(ctx context.Context, payload []byte) error {
	task := asynq.NewTask(kind, payload)
	if s.typed {
		document, err := json.Marshal(driver.Typed(payload))
		if err != nil {
			return err
		}
		task = asynq.NewTask(typed, document)
	}
	_, err := s.client.EnqueueContext(ctx, task, s.options...)
	return err
}

// SubmitMany submits one by one, on many connections at once.
func (s *store) SubmitMany(ctx context.Context, payloads [][]byte) error {
	if len(payloads) == 0 {
		return nil
	}
	share := (len(payloads) + defaultConnections() - 1) / defaultConnections()
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for part := range slices.Chunk(payloads, share) {
		p.Go(func(ctx context.Context) error {
			for _, payload := range part {
				if err := s.Submit(ctx, payload); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return p.Wait()
}

// Work starts a server of asynq, which is what it calls a worker process.
func (s *store) Work(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	log := newLog()
	cfg := asynq.Config{Concurrency: w.Concurrency, Logger: log, LogLevel: asynq.InfoLevel, ShutdownTimeout: endless,
		BaseContext: func() context.Context { return ctx }}
	if s.system.tuned {
		cfg.TaskCheckInterval = tunedCheck
	}
	worker := asynq.NewServer(s.to, cfg)
	err = worker.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		if t.Type() == kind {
			w.Handle(ctx, t.Payload())
			return nil
		}
		var in driver.Document
		if err := json.Unmarshal(t.Payload(), &in); err != nil {
			return err
		}
		w.Handle(ctx, []byte(in.Text))
		out, err := json.Marshal(in.Answered())
		if err == nil {
			_, err = t.ResultWriter().Write(out)
		}
		return err
	}))
	if err != nil {
		return nil, err
	}
	return func() error {
		worker.Shutdown()
		return log.first()
	}, nil
}

// Poll implements [driver.Poller].
func (s *store) Poll() time.Duration { return s.system.check() }

// Done implements [driver.Counter].
func (s *store) Done(context.Context) (int, error) {
	queues, err := s.inspector.Queues()
	if err == nil && !slices.Contains(queues, queue) { // it begins to exist with its first task
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("asynq: list queues: %w", err)
	}
	info, err := s.inspector.GetQueueInfo(queue)
	if err != nil {
		return 0, fmt.Errorf("asynq: count completed tasks: %w", err)
	}
	return info.Completed, nil
}
