// Package pgxoutbox lets outbox.Submit write in transactions of pgx.
//
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		…
//		id, err := outbox.Submit(ctx, box, pgxoutbox.In(tx), SendReceipt, order)
//		…
//	})
//
// The relay works on a *sql.DB: stdlib.OpenDBFromPool of package github.com/jackc/pgx/v5/stdlib makes one of a pool.
package pgxoutbox

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"

	"github.com/flowfabric/flowfabric-go/outbox"
)

// In is a transaction of pgx as outbox.Submit takes it. It may be used as the pgx.Tx may: by one goroutine at a time.
func In(tx pgx.Tx) outbox.Tx { return in{tx} }

type in struct{ tx pgx.Tx }

func (t in) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.tx.Exec(ctx, query, args...)
	return driver.RowsAffected(tag.RowsAffected()), err
}
