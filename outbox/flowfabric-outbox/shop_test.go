package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/outbox"
	"github.com/flowfabric/flowfabric-go/outbox/pgxoutbox"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// The code of docs/how-to/outbox.md.

type Order struct {
	Number int
	Email  string
}

var SendReceipt = handler.Define[Order, string]("send-receipt")

// place writes an order and the mail that follows it in one transaction: both happen, or none.
func place(ctx context.Context, db *sql.DB, box *outbox.Outbox, order Order) (flowfabric.ExecutionID, error) {
	var none flowfabric.ExecutionID
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return none, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (number, email) VALUES (?, ?)`, order.Number,
		order.Email); err != nil {
		return none, err
	}
	id, err := outbox.Submit(ctx, box, tx, SendReceipt, order, outbox.Ordered(order.Email))
	if err != nil {
		return none, err
	}
	return id, tx.Commit()
}

// serveShop runs a worker, and relays the outbox beside it, until ctx ends.
func serveShop(ctx context.Context, url string, db *sql.DB, box *outbox.Outbox) error {
	for _, statement := range box.Schema() {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	c, err := client.Connect(ctx, client.Config{URL: url})
	if err != nil {
		return err
	}
	defer c.Close()
	worker, err := runtime.New(runtime.Config{URL: url}, handler.Bind(SendReceipt, sendReceipt))
	if err != nil {
		return err
	}
	both := pool.New().WithErrors().WithContext(ctx).WithCancelOnError()
	both.Go(worker.Run)
	both.Go(func(ctx context.Context) error { return box.Relay(ctx, db, c) })
	return both.Wait()
}

func sendReceipt(_ context.Context, _ *handler.Task, order Order) (string, error) {
	return fmt.Sprintf("receipt of order %d to %s", order.Number, order.Email), nil
}

// placeWithPgx is place for a transaction of pgx.
func placeWithPgx(ctx context.Context, conn *pgx.Conn, box *outbox.Outbox, order Order) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO orders (number, email) VALUES ($1, $2)`, order.Number,
			order.Email); err != nil {
			return err
		}
		_, err := outbox.Submit(ctx, box, pgxoutbox.In(tx), SendReceipt, order)
		return err
	})
}

const orders = `CREATE TABLE orders (number INTEGER PRIMARY KEY, email VARCHAR(100))`

func TestShop(t *testing.T) {
	url := testserver.Redis(t)
	db := (&database{t: t, url: "sqlite://" + filepath.Join(t.TempDir(), "shop.db")}).open()
	_, err := db.Exec(orders)
	must.No(t, err)
	box, err := outbox.New(outbox.Config{Dialect: outbox.SQLite})
	must.No(t, err)
	ctx, cancel := testwait.Context(t, t.Context())
	var running conc.WaitGroup
	running.Go(func() {
		if err := serveShop(ctx, url, db, box); err != nil {
			t.Error(err)
		}
	})
	defer func() { cancel(); running.Wait() }()
	testwait.Until(t, "the tables are there", func() bool {
		return db.QueryRow("SELECT COUNT(*) FROM flowfabric_outbox_lease WHERE until_ms > 0").Scan(new(int)) == nil
	})
	id, err := place(ctx, db, box, Order{7, "anna@example.com"})
	must.No(t, err)
	if _, err := place(ctx, db, box, Order{7, "bert@example.com"}); err == nil {
		t.Error("two orders have the same number")
	}
	c, err := client.Connect(ctx, client.Config{URL: url, Logger: quiet})
	must.No(t, err)
	defer c.Close()
	testwait.Until(t, "it is relayed", func() bool { return len(existing(t, c)) == 1 })
	got, err := client.Attach(c, SendReceipt, id).Result(ctx)
	if err != nil || got != "receipt of order 7 to anna@example.com" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestShopWithPgx(t *testing.T) {
	e := newEnv(t, startPostgres(t))
	_, err := e.db.Exec(orders)
	must.No(t, err)
	conn, err := pgx.Connect(t.Context(), e.url)
	must.No(t, err)
	defer conn.Close(context.Background())
	must.No(t, placeWithPgx(t.Context(), conn, e.box, Order{7, "anna@example.com"}))
	if err := placeWithPgx(t.Context(), conn, e.box, Order{7, "bert@example.com"}); err == nil {
		t.Error("two orders have the same number")
	}
	e.relay()
	e.emptied()
	if all := existing(t, e.c); len(all) != 1 {
		t.Errorf("%v", all)
	}
}
