// Package river drives River, which keeps its jobs in PostgreSQL, through what its users have: client.Insert and
// InsertManyFast to submit, a client with workers to work.
//
// Arguments of a job are JSON in River, and a []byte in JSON is base64: that is what users get who have bytes, and what
// jobs here have. A payload of 256 B therefore travels as 344 and is decoded before the handler has it.
//
// Producers share one client that only inserts; every worker is a client with connections of its own. Workers listen
// for notifications, as they do unless told otherwise. River completes jobs in batches, in the background, some time
// after their handlers have returned; stopping a worker waits for that. Completed jobs are retained for 24 hours, its
// default. It has no metrics of its own to turn on.
//
// # What is tuned
//
// "river" has the defaults of [river.Config] and of pgxpool (four connections, or as many as there are processors),
// and as many workers as the scenario says. It fetches at most every 100 ms, and no more jobs at once than there are
// idle workers: with 64 workers, 640 jobs a second are the most it can do.
//
// "river-tuned" has [tunedWorkers] workers whatever the scenario says, so that it fetches as many jobs at once. That
// is in its favour, and costs the others nothing: handlers do nothing here; where they take time, it has as many
// workers as the others. It fetches and notifies every 2 ms at most, looks for jobs ten times as often without being
// notified (more often changed neither rates nor latencies, and costs idle workers as much more), and has more
// connections (beyond that, the server only uses more processor time).
//
// Tables are vacuumed and analyzed before a worker starts, as PostgreSQL would have done by itself long before in
// production. PostgreSQL is set as [postgres.Settings] says, not as it is delivered.
package river

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/postgres"
)

// What river-tuned has instead of the defaults.
const (
	tunedWorkers     = 2000
	tunedCooldown    = 2 * time.Millisecond
	tunedPoll        = 100 * time.Millisecond
	tunedConnections = 16
)

// mostAtOnce bounds the jobs of one COPY.
const mostAtOnce = 10_000

// System is River on PostgreSQL. It is a [driver.System].
type System struct {
	Tuned bool
}

// Name is "river" or "river-tuned".
func (s System) Name() string {
	if s.Tuned {
		return "river-tuned"
	}
	return "river"
}

// Version names the modules' versions, and what was tuned.
func (s System) Version() string {
	out := fmt.Sprintf("%s, pgx %s", driver.ModuleVersion("github.com/riverqueue/river"),
		driver.ModuleVersion("github.com/jackc/pgx/v5"))
	if s.Tuned {
		out += fmt.Sprintf(", MaxWorkers %d, FetchCooldown %v, FetchPollInterval %v, %d connections", tunedWorkers,
			tunedCooldown, tunedPoll, tunedConnections)
	}
	return out + ", PostgreSQL with " + strings.Join(postgres.Settings, ", ")
}

// Serve starts a server.
func (System) Serve(ctx context.Context) (driver.Server, error) {
	return postgres.Start(ctx)
}

// Open makes River's tables and connects a client that inserts.
func (s System) Open(ctx context.Context, server driver.Server, cfg driver.Settings) (driver.Store, error) {
	// Records are formatted and thrown away: what an application pays for its log's destination is its own affair.
	st := &store{url: server.URL(), tuned: s.Tuned, typed: cfg.Typed,
		log: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	var err error
	if st.pool, err = st.connect(ctx); err != nil {
		return nil, err
	}
	if err := st.prepare(ctx); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// store is one round's connection.
type store struct {
	url   string
	tuned bool
	typed bool
	log   *slog.Logger

	pool     *pgxpool.Pool // of the producers
	producer *river.Client[pgx.Tx]
}

// connect opens a pool of connections.
func (s *store) connect(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return nil, err
	}
	if s.tuned {
		config.MaxConns = tunedConnections
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func (s *store) prepare(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(s.pool), &rivermigrate.Config{Logger: s.log})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("make River's tables: %w", err)
	}
	s.producer, err = river.NewClient(riverpgxv5.New(s.pool), s.config())
	return err
}

// config is that of producers, and the part of the workers' that is the same.
func (s *store) config() *river.Config {
	c := &river.Config{Logger: s.log}
	if s.tuned {
		c.FetchCooldown, c.FetchPollInterval = tunedCooldown, tunedPoll
	}
	return c
}

func (s *store) Close() { s.pool.Close() }

// job is the arguments of the benchmark's jobs.
type job struct {
	Payload []byte `json:"payload"`
}

// Kind is what River calls the jobs.
func (job) Kind() string { return "bench" }

// document is the arguments of typed jobs.
type document struct{ driver.Document }

// Kind is what River calls typed jobs.
func (document) Kind() string { return "bench-typed" }

// args are those of a job with this payload.
func (s *store) args(payload []byte) river.JobArgs {
	if s.typed {
		return document{driver.Typed(payload)}
	}
	return job{payload}
}

func (s *store) Submit(ctx context.Context, payload []byte) error {
	_, err := s.producer.Insert(ctx, s.args(payload), nil)
	return err
}

func (s *store) SubmitMany(ctx context.Context, payloads [][]byte) error {
	for some := range slices.Chunk(payloads, mostAtOnce) {
		jobs := make([]river.InsertManyParams, len(some))
		for i, payload := range some {
			jobs[i].Args = s.args(payload)
		}
		if _, err := s.producer.InsertManyFast(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

// Work starts a client that works.
func (s *store) Work(ctx context.Context, w driver.Worker) (stop func() error, err error) {
	pool, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "VACUUM (ANALYZE) river_job"); err != nil {
		pool.Close()
		return nil, fmt.Errorf("analyze River's table: %w", err)
	}
	config := s.config()
	config.Workers = river.NewWorkers()
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.workers(w)}}
	work := river.WorkFunc(func(ctx context.Context, j *river.Job[job]) error {
		w.Handle(ctx, j.Args.Payload)
		return nil
	})
	answer := river.WorkFunc(func(ctx context.Context, j *river.Job[document]) error {
		w.Handle(ctx, []byte(j.Args.Text))
		return river.RecordOutput(ctx, j.Args.Answered())
	})
	err = errors.Join(river.AddWorkerSafely(config.Workers, work), river.AddWorkerSafely(config.Workers, answer))
	var client *river.Client[pgx.Tx]
	if err == nil {
		client, err = river.NewClient(riverpgxv5.New(pool), config)
	}
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return func() error {
		defer pool.Close()
		// After the end of ctx it stops by itself, and this waits for it.
		if err := client.Stop(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("stop the worker: %w", err)
		}
		return nil
	}, nil
}

func (s *store) workers(w driver.Worker) int {
	if s.tuned && w.Work == 0 {
		return max(w.Concurrency, tunedWorkers)
	}
	return w.Concurrency
}

// Done implements [driver.Counter].
func (s *store) Done(ctx context.Context) (n int, err error) {
	if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n); err != nil {
		return 0, fmt.Errorf("count completed jobs: %w", err)
	}
	return n, nil
}

// Settle implements [driver.Settler]: rows of jobs that were fetched are "running" until they are completed.
func (s *store) Settle(ctx context.Context, most int) (left int, err error) {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		// It counts no further than it must, so that asking costs next to nothing.
		const count = "SELECT count(*) FROM (SELECT FROM river_job WHERE state = 'running' LIMIT $1) fetched"
		if err := s.pool.QueryRow(ctx, count, most+1).Scan(&left); err != nil {
			return 0, fmt.Errorf("count running jobs: %w", err)
		}
		if left <= most {
			return left, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return left, context.Cause(ctx)
		}
	}
}
