package migrate_test

import (
	"context"
	"database/sql"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

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
