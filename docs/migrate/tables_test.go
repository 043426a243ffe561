package migrate_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// tables is a database that understands the statements of outbox_test.go, and no others. Transactions wait for one
// another.
type tables struct {
	failCommit bool // the next commits are lost

	turn sync.Mutex // held by a transaction
	rows
}

type rows struct {
	serial  int64
	orders  []int64
	outbox  []entry
	applied map[string]bool
	books   int
}

type entry struct {
	id               int64
	kind, key, input string
}

func (r rows) clone() rows {
	r.orders, r.outbox, r.applied = slices.Clone(r.orders), slices.Clone(r.outbox), maps.Clone(r.applied)
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
	if c.t.failCommit {
		return errors.Join(errors.New("the connection broke"), c.Rollback())
	}
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
	case `insert into orders (number, address) values ($1, $2)`:
		t.orders = append(t.orders, args[0].Value.(int64))
	case `insert into outbox (kind, key, input) values ($1, $2, $3)`:
		t.serial++
		t.outbox = append(t.outbox,
			entry{t.serial, args[0].Value.(string), args[1].Value.(string), args[2].Value.(string)})
	case `delete from outbox where id = $1`:
		t.outbox = slices.DeleteFunc(t.outbox, func(e entry) bool { return e.id == args[0].Value.(int64) })
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

func (c *connection) QueryContext(_ context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	if statement != `select id, key, input from outbox where kind = $1 order by id limit 100 for update skip locked` {
		return nil, fmt.Errorf("unknown query: %s", statement)
	}
	found := slices.DeleteFunc(slices.Clone(c.t.outbox), func(e entry) bool { return e.kind != args[0].Value.(string) })
	return &page{found[:min(len(found), 100)]}, nil
}

type page struct{ left []entry }

func (p *page) Columns() []string { return []string{"id", "key", "input"} }
func (p *page) Close() error      { return nil }

func (p *page) Next(into []driver.Value) error {
	if len(p.left) == 0 {
		return io.EOF
	}
	e := p.left[0]
	into[0], into[1], into[2], p.left = e.id, e.key, e.input, p.left[1:]
	return nil
}
