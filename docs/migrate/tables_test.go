package migrate_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// tables is a database that understands the statements of book_test.go, and no others. Transactions wait for one
// another.
type tables struct {
	turn sync.Mutex // held by a transaction
	rows
}

type rows struct {
	applied map[string]bool
	books   int
}

func (r rows) clone() rows {
	r.applied = maps.Clone(r.applied)
	return r
}

func (t *tables) Connect(context.Context) (driver.Conn, error) { return &connection{t: t}, nil }
func (t *tables) Driver() driver.Driver                        { return nil }

// connection has at most one transaction, which works on the tables and keeps what to go back to.
type connection struct {
	t      *tables
	before rows
}

func (c *connection) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not needed") }
func (c *connection) Close() error                        { return nil }

func (c *connection) Begin() (driver.Tx, error) {
	c.t.turn.Lock()
	c.before = c.t.clone()
	return c, nil
}

func (c *connection) Commit() error {
	c.t.turn.Unlock()
	return nil
}

func (c *connection) Rollback() error {
	c.t.rows = c.before
	c.t.turn.Unlock()
	return nil
}

func (c *connection) ExecContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	t := c.t
	switch statement {
	case `insert into applied (execution) values ($1) on conflict do nothing`:
		id := args[0].Value.(string)
		if t.applied[id] {
			return driver.RowsAffected(0), nil
		}
		if t.applied == nil {
			t.applied = map[string]bool{}
		}
		t.applied[id] = true
	case `update books set invoices = invoices + 1`:
		t.books++
	default:
		return nil, fmt.Errorf("unknown statement: %s", statement)
	}
	return driver.RowsAffected(1), nil
}
