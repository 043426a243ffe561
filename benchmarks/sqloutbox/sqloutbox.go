// Package sqloutbox measures submissions inside SQL transactions: those of package outbox beside the inserts of River,
// in turns, on one PostgreSQL server. Each transaction writes a row of the application as well.
//
//	transaction only   BEGIN, INSERT of the application, COMMIT
//	river              … river.Client.InsertTx
//	outbox             … outbox.Submit, with pgx, and with a key of order
//	relay              the rows of the rounds before become executions in a Redis server
package sqloutbox

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/benchmarks/postgres"
	"github.com/flowfabric/flowfabric-go/benchmarks/server"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/outbox"
	"github.com/flowfabric/flowfabric-go/outbox/pgxoutbox"
)

// Options says how much is measured.
type Options struct {
	Server      string // program of the store
	Rounds      int
	Jobs        int // transactions of a round
	Concurrency int // goroutines, each with a connection
}

// job is what both systems store, as JSON.
type job struct {
	Text string `json:"text"`
}

func (job) Kind() string { return "job" }

var work = handler.Define[job, int]("job")

// input is a job of 256 bytes.
var input = job{strings.Repeat("x", 256-len(`{"text":""}`))}

// bench is one run.
type bench struct {
	o     Options
	pool  *pgxpool.Pool
	river *river.Client[pgx.Tx]
	box   *outbox.Outbox
	c     *client.Client
}

// Run measures, and writes a table of medians.
func Run(ctx context.Context, o Options, out io.Writer) error {
	pg, err := postgres.Start(ctx)
	if err != nil {
		return err
	}
	defer pg.Stop()
	store, err := server.Start(ctx, o.Server)
	if err != nil {
		return err
	}
	defer store.Stop()
	b := &bench{o: o}
	if err := b.prepare(ctx, pg.URL(), store.URL()); err != nil {
		return err
	}
	defer b.pool.Close()
	defer b.c.Close()
	writers := []struct {
		name  string
		write func(ctx context.Context, tx pgx.Tx, n int) error
	}{
		{"transaction only", func(context.Context, pgx.Tx, int) error { return nil }},
		{"river", func(ctx context.Context, tx pgx.Tx, _ int) error {
			_, err := b.river.InsertTx(ctx, tx, input, nil)
			return err
		}},
		{"outbox", func(ctx context.Context, tx pgx.Tx, _ int) error {
			_, err := outbox.Submit(ctx, b.box, pgxoutbox.In(tx), work, input)
			return err
		}},
		{"outbox, of 1,000 orders", func(ctx context.Context, tx pgx.Tx, n int) error {
			_, err := outbox.Submit(ctx, b.box, pgxoutbox.In(tx), work, input, outbox.Ordered(fmt.Sprint(n%1000)))
			return err
		}},
	}
	rates := map[string][]float64{}
	for range o.Rounds {
		for _, w := range writers {
			took, err := b.write(ctx, w.write)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			rates[w.name] = append(rates[w.name], float64(o.Jobs)/took.Seconds())
			if !strings.HasPrefix(w.name, "outbox") {
				continue
			}
			if took, err = b.relay(ctx); err != nil {
				return fmt.Errorf("relay: %w", err)
			}
			name := strings.Replace(w.name, "outbox", "relay", 1)
			rates[name] = append(rates[name], float64(o.Jobs)/took.Seconds())
		}
	}
	fmt.Fprintf(out, "%d transactions a round, %d at once, %d rounds; %s\n", o.Jobs, o.Concurrency, o.Rounds, pg.Name())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\ta second\tleast\tmost")
	for _, name := range []string{"transaction only", "river", "outbox", "outbox, of 1,000 orders", "relay",
		"relay, of 1,000 orders"} {
		list := slices.Sorted(slices.Values(rates[name]))
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\n", name, list[len(list)/2], list[0], list[len(list)-1])
	}
	return table.Flush()
}

func (b *bench) prepare(ctx context.Context, database, store string) error {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return err
	}
	config.MaxConns = int32(b.o.Concurrency)
	if b.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	driver := riverpgxv5.New(b.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if b.river, err = river.NewClient(driver, &river.Config{Logger: quiet}); err != nil {
		return err
	}
	if b.box, err = outbox.New(outbox.Config{Dialect: outbox.PostgreSQL, Logger: quiet}); err != nil {
		return err
	}
	for _, statement := range append(b.box.Schema(), `CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, n BIGINT)`) {
		if _, err := b.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	b.c, err = client.Connect(ctx, client.Config{URL: store, Logger: quiet})
	return err
}

// write makes the transactions of a round. Tables are vacuumed and analyzed before, as PostgreSQL would do by itself.
func (b *bench) write(ctx context.Context, submit func(ctx context.Context, tx pgx.Tx, n int) error) (time.Duration,
	error) {
	if _, err := b.pool.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return 0, err
	}
	began := time.Now()
	writers := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for w := range b.o.Concurrency {
		writers.Go(func(ctx context.Context) error {
			for n := w; n < b.o.Jobs; n += b.o.Concurrency {
				err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, `INSERT INTO orders (n) VALUES ($1)`, n); err != nil {
						return err
					}
					return submit(ctx, tx, n)
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := writers.Wait()
	return time.Since(began), err
}

// relay relays all rows.
func (b *bench) relay(ctx context.Context) (took time.Duration, err error) {
	db := stdlib.OpenDBFromPool(b.pool)
	defer db.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	var relaying conc.WaitGroup
	var failed error
	relaying.Go(func() { failed = b.box.Relay(ctx, db, b.c) })
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for left := true; left && err == nil; {
		select {
		case <-again.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err == nil {
			err = b.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM flowfabric_outbox)").Scan(&left)
		}
	}
	took = time.Since(began)
	stop()
	relaying.Wait()
	if err == nil {
		err = failed
	}
	return took, err
}
