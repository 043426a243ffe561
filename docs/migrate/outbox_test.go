package migrate_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// PlaceOrder writes the order and what is to follow it in one transaction.
func PlaceOrder(ctx context.Context, tx *sql.Tx, in Invoice) error {
	if _, err := tx.ExecContext(ctx, `insert into orders (number, address) values ($1, $2)`, in.Number,
		in.To); err != nil {
		return err
	}
	input, err := json.Marshal(in)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `insert into outbox (kind, key, input) values ($1, $2, $3)`,
		SendInvoice.Kind(), fmt.Sprintf("invoice-%d", in.Number), string(input))
	return err
}

// Relay submits up to 100 entries of the outbox and deletes those that were submitted; it says how many. Any number
// of processes may run it at once. One that dies between the two is repeated by the next: the keys make that
// duplicates of what is there.
func Relay(ctx context.Context, db *sql.DB, c *client.Client) (n int, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	rows, err := tx.QueryContext(ctx,
		`select id, key, input from outbox where kind = $1 order by id limit 100 for update skip locked`,
		SendInvoice.Kind())
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	var ids []int64
	var keys []string
	var inputs []Invoice
	for rows.Next() {
		var id int64
		var key, text string
		var in Invoice
		if err := rows.Scan(&id, &key, &text); err != nil {
			return 0, err
		}
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			return 0, fmt.Errorf("outbox %d: %w", id, err)
		}
		ids, keys, inputs = append(ids, id), append(keys, key), append(inputs, in)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, err
	}
	submitted, refused := client.SubmitMany(ctx, c, SendInvoice, inputs,
		client.Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(keys[i]) }))
	for i, x := range submitted {
		if x == nil {
			continue // says refused, and stays in the outbox
		}
		if _, err := tx.ExecContext(ctx, `delete from outbox where id = $1`, ids[i]); err != nil {
			return 0, err
		}
		n++
	}
	if err := tx.Commit(); err != nil {
		return 0, errors.Join(refused, err)
	}
	return n, refused
}

// Book applies an invoice to the books, exactly once, since the mark that it did is part of the same transaction.
func Book(ctx context.Context, db *sql.DB, t *handler.Task, in Invoice) (bool, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	mark, err := tx.ExecContext(ctx, `insert into applied (execution) values ($1) on conflict do nothing`,
		t.ID().String())
	if err != nil {
		return false, err
	}
	if n, err := mark.RowsAffected(); err != nil || n == 0 {
		return false, err // an earlier run has committed
	}
	if _, err := tx.ExecContext(ctx, `update books set invoices = invoices + 1`); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// A process that dies after it submitted, and before it deleted: what follows an order happens once.
func TestRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []int
		mailer := &Mailer{Send: func(_ context.Context, _ string, in Invoice) (string, error) {
			sent = append(sent, in.Number)
			return "m", nil
		}}
		w := fftest.New(t, runtime.Config{Concurrency: 1}, handler.Bind(SendInvoice, mailer.Handle))
		store := &tables{}
		db := sql.OpenDB(store)
		defer func() { _ = db.Close() }()
		for number := range 3 {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := PlaceOrder(t.Context(), tx, Invoice{number, "anna@example.com"}); err != nil {
				t.Fatal(err)
			}
			if number == 1 {
				err = tx.Rollback() // no order, no mail
			} else {
				err = tx.Commit()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		store.failCommit = true
		if n, err := Relay(t.Context(), db, w.Client()); n != 0 || err == nil {
			t.Fatalf("relayed %d, %v", n, err)
		}
		store.failCommit = false
		if n, err := Relay(t.Context(), db, w.Client()); n != 2 || err != nil {
			t.Fatalf("relayed %d, %v", n, err)
		}
		if n, err := Relay(t.Context(), db, w.Client()); n != 0 || err != nil {
			t.Fatalf("relayed %d from an empty outbox, %v", n, err)
		}
		w.Sleep(time.Minute)
		if slices.Sort(sent); !slices.Equal(sent, []int{0, 2}) {
			t.Errorf("sent %v", sent)
		}
		if len(store.orders) != 2 || len(store.outbox) != 0 {
			t.Errorf("orders %v, outbox %v", store.orders, store.outbox)
		}
	})
}

// An entry that is refused keeps no other from being submitted, and stays.
func TestRelayRefused(t *testing.T) {
	ctx, stop := testwait.Context(t, t.Context())
	defer stop()
	c, err := client.Connect(ctx,
		client.Config{URL: "embedded://", Namespace: "relay", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := client.Submit(ctx, c, SendInvoice, Invoice{0, "bert@example.com"},
		flowfabric.IdempotencyKey("invoice-0")); err != nil {
		t.Fatal(err)
	}
	store := &tables{}
	db := sql.OpenDB(store)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for number := range 3 {
		if err := PlaceOrder(ctx, tx, Invoice{number, "anna@example.com"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n, err := Relay(ctx, db, c); n != 2 || !errors.Is(err, flowfabric.ErrConflict) {
		t.Errorf("relayed %d, %v", n, err)
	}
	if len(store.outbox) != 1 || store.outbox[0].key != "invoice-0" {
		t.Errorf("left %v", store.outbox)
	}
}

// The worker dies wherever it can: the books are changed once.
func TestBook(t *testing.T) {
	var store *tables
	fftest.Crashes(t, SendInvoice,
		func(*fftest.Effects) func(context.Context, *handler.Task, Invoice) (Receipt, error) {
			store = &tables{}
			db := sql.OpenDB(store)
			db.SetMaxIdleConns(0)
			t.Cleanup(func() { _ = db.Close() })
			return func(ctx context.Context, t *handler.Task, in Invoice) (Receipt, error) {
				_, err := Book(ctx, db, t, in)
				return Receipt{}, err
			}
		}, Invoice{17, "anna@example.com"}, func(r *fftest.Report[Receipt]) {
			r.Want(fftest.Want{State: flowfabric.Completed})
			if store.books != 1 {
				t.Errorf("%s: booked %d times", r.Crash, store.books)
			}
		})
}
