package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/postgres"
)

var riverSteps = system{
	name:  "River",
	serve: func(ctx context.Context, _ string) (driver.Server, error) { return postgres.Start(ctx) },
	talk:  func() dialect { return &pgwire{} },
	work:  workRiver, open: openRiver,
	version: func() string { return driver.ModuleVersion("github.com/riverqueue/river") },
}

type riverArgs struct{}

func (riverArgs) Kind() string { return "agent" }

// riverWorker is the agent as a resumable job.
type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	pool    *pgxpool.Pool
	service string
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	messages, err := w.load(ctx)
	if err != nil {
		return err
	}
	// Steps that are recorded are named again and skipped.
	for at := 1; at < len(messages) || !over(messages); at++ {
		failed := true
		river.ResumableStep(ctx, fmt.Sprint("step ", at), nil, func(ctx context.Context) error {
			m, err := w.step(ctx, job, messages)
			if err == nil {
				messages, failed = append(messages, m), false
			}
			return err
		})
		if failed && at >= len(messages) { // River returns the error of the step
			return nil
		}
	}
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "INSERT INTO results (text) VALUES ($1)", messages[len(messages)-1].Text); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// step makes one and records it.
func (w *riverWorker) step(ctx context.Context, job *river.Job[riverArgs], messages []message) (message, error) {
	m, err := next(ctx, w.service, messages, func(token string) error {
		_, err := w.pool.Exec(ctx, "INSERT INTO tokens (text) VALUES ($1)", token)
		return err
	})
	if err != nil {
		return m, err
	}
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return m, err
	}
	defer tx.Rollback(ctx)
	text, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO transcript (message) VALUES ($1)", string(text)); err != nil {
		return m, err
	}
	if _, err := river.ResumableSetStepTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return m, err
	}
	return m, tx.Commit(ctx)
}

func (w *riverWorker) load(ctx context.Context) ([]message, error) {
	rows, err := w.pool.Query(ctx, "SELECT message FROM transcript ORDER BY id")
	if err != nil {
		return nil, err
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
	out := []message{question}
	for _, text := range kept {
		var m message
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, err
}

// soon retries at once.
type soon struct{}

func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

func workRiver(ctx context.Context, url, service string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{pool: pool, service: service})
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler),
		Workers: workers, RetryPolicy: soon{},
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// through is the address of a server with another socket directory.
func through(address, dir string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// postgresSocket is the path of the socket that an address names.
func postgresSocket(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	return filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port")), nil
}

type riverCaller struct {
	pool *pgxpool.Pool
	id   int64
}

func openRiver(ctx context.Context, s driver.Server) (caller, error) {
	pool, err := pgxpool.New(ctx, s.URL())
	if err != nil {
		return nil, err
	}
	c := &riverCaller{pool: pool}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err == nil {
		_, err = pool.Exec(ctx, `CREATE TABLE tokens (id bigserial PRIMARY KEY, text text NOT NULL);
			CREATE TABLE transcript (id bigserial PRIMARY KEY, message text NOT NULL);
			CREATE TABLE results (id bigserial PRIMARY KEY, text text NOT NULL)`)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return c, nil
}

func (c *riverCaller) submit(ctx context.Context) error {
	inserter, err := river.NewClient(riverpgxv5.New(c.pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	inserted, err := inserter.Insert(ctx, riverArgs{}, nil)
	if err == nil {
		c.id = inserted.Job.ID
	}
	return err
}

func (c *riverCaller) result(ctx context.Context) (out string, err error) {
	return out, poll(ctx, func() (bool, error) {
		var state string
		err := c.pool.QueryRow(ctx, "SELECT state, coalesce((SELECT text FROM results LIMIT 1), '') FROM river_job "+
			"WHERE id = $1", c.id).Scan(&state, &out)
		if state == "discarded" || state == "cancelled" {
			return false, fmt.Errorf("the job is %s", state)
		}
		return state == "completed", err
	})
}

func (c *riverCaller) pass(ctx context.Context) error {
	_, err := c.pool.Exec(ctx,
		"UPDATE river_job SET attempted_at = attempted_at - interval '2 hours' WHERE state = 'running'")
	if err == nil {
		_, err = c.pool.Exec(ctx, "DELETE FROM river_leader")
	}
	return err
}

func (c *riverCaller) shown(ctx context.Context) ([]string, int, error) {
	rows, err := c.pool.Query(ctx, "SELECT text FROM tokens ORDER BY id")
	if err != nil {
		return nil, 0, err
	}
	tokens, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return tokens, 0, err
}

func (c *riverCaller) close() { c.pool.Close() }
