package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/outbox"
	"github.com/flowfabric/flowfabric-go/outbox/pgxoutbox"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	work  = handler.Define[int, int]("work")
)

const partitions = 4

// env is an outbox with its tables, a store, and a client.
type env struct {
	*testing.T
	*database
	db    *sql.DB
	store *testserver.Server
	c     *client.Client
	reg   *prometheus.Registry
	box   *outbox.Outbox
}

func newEnv(t *testing.T, d *database) *env {
	e := &env{T: t, database: d, db: d.open(), store: testserver.Start(t, testserver.ServerRedis, testserver.AOF()),
		reg: prometheus.NewRegistry()}
	var err error
	e.c, err = client.Connect(t.Context(), client.Config{URL: e.store.URL(), Partitions: partitions, Logger: quiet})
	must.No(t, err)
	t.Cleanup(e.c.Close)
	e.box, err = outbox.New(outbox.Config{Dialect: d.dialect, Partitions: partitions, Poll: 10 * time.Millisecond,
		Registerer: e.reg, Logger: quiet})
	must.No(t, err)
	for range 2 { // again, as at every start of an application
		for _, statement := range e.box.Schema() {
			if _, err := e.db.Exec(statement); err != nil {
				t.Fatalf("%v in %s", err, statement)
			}
		}
	}
	return e
}

// relay relays until the test ends, or until it is stopped.
func (e *env) relay() (stop func()) {
	ctx, cancel := context.WithCancel(e.Context())
	var running conc.WaitGroup
	running.Go(func() {
		if err := e.box.Relay(ctx, e.db, e.c); err != nil {
			e.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	e.Cleanup(stop)
	return stop
}

// in runs f in a transaction, which is committed if f says so.
func (e *env) in(commit bool, f func(tx *sql.Tx)) {
	e.Helper()
	tx, err := e.db.Begin()
	must.No(e, err)
	f(tx)
	if commit {
		must.No(e, tx.Commit())
	} else {
		must.No(e, tx.Rollback())
	}
}

func (e *env) submit(tx outbox.Tx, in int, opts ...client.SubmitOption) flowfabric.ExecutionID {
	e.Helper()
	id, err := outbox.Submit(e.Context(), e.box, tx, work, in, opts...)
	must.No(e, err)
	return id
}

// number is what a query counts.
func (e *env) number(query string) (n int) {
	e.Helper()
	must.No(e, e.db.QueryRow(query).Scan(&n))
	return n
}

func (e *env) emptied() {
	e.Helper()
	testwait.Until(e, "the outbox is empty", func() bool {
		return e.number("SELECT COUNT(*) FROM flowfabric_outbox") == 0
	})
}

// existing are the executions that the store has, by id.
func existing(t *testing.T, c *client.Client) map[flowfabric.ExecutionID]admin.Listed {
	t.Helper()
	all := map[flowfabric.ExecutionID]admin.Listed{}
	for x, err := range admin.New(c).List(t.Context(), admin.Filter{WithTags: true}) {
		must.No(t, err)
		all[x.ID] = x
	}
	return all
}

func TestACommittedRowIsOneExecution(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		e := newEnv(t, d)
		var committed, rolledBack []flowfabric.ExecutionID
		e.in(true, func(tx *sql.Tx) {
			for i := range 40 {
				committed = append(committed, e.submit(tx, i))
			}
		})
		e.in(false, func(tx *sql.Tx) { rolledBack = append(rolledBack, e.submit(tx, 1)) })
		var late flowfabric.ExecutionID
		e.in(true, func(tx *sql.Tx) {
			late = e.submit(tx, 7, flowfabric.Delay(time.Hour), flowfabric.Deadline(2*time.Hour),
				flowfabric.Priority(9), flowfabric.Lane("slow"), flowfabric.Creator("anna"),
				flowfabric.Tags(map[string]string{"app.team": "größer"}),
				flowfabric.Retries(7), flowfabric.Retention(time.Hour, flowfabric.Completed),
				flowfabric.LimitKey("tenant", flowfabric.Limit{Concurrency: 2}))
		})
		// A row that was relayed, and comes again because nobody noted that, makes nothing.
		if _, err := e.db.Exec("INSERT INTO flowfabric_outbox (execution, details, input) " +
			"SELECT execution, details, input FROM flowfabric_outbox ORDER BY id LIMIT 20"); err != nil {
			t.Fatal(err)
		}
		// Half of the delay passes.
		if _, err := e.db.Exec("UPDATE flowfabric_outbox SET created_ms = created_ms - 1800000"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.c.Execution(late).Get(t.Context()); !errors.Is(err, flowfabric.ErrNotFound) {
			t.Errorf("before the relay: %v", err)
		}
		e.relay()
		e.emptied()
		all := existing(t, e.c)
		for i, id := range committed {
			x, ok := all[id]
			input, err := e.c.Execution(id).Input(t.Context())
			if !ok || err != nil || string(input) != fmt.Sprint(i) || x.Kind != "work" ||
				x.State.Public != flowfabric.Waiting {
				t.Errorf("row %d: %+v, input %s, %v", i, x, input, err)
			}
		}
		if _, ok := all[rolledBack[0]]; ok || len(all) != 41 {
			t.Errorf("%d executions, want 41; the one that was rolled back: %v", len(all), ok)
		}
		x, err := e.c.Execution(late).Get(t.Context())
		delay, deadline := time.Until(x.DelayUntil), time.Until(x.DeadlineAt)
		if err != nil || delay > 30*time.Minute || (deadline-delay-time.Hour).Abs() > time.Second ||
			x.Priority != 9 || x.Lane != "slow" || x.Creator != "anna" || x.Tags["app.team"] != "größer" ||
			x.Policy.Retry.MaxRetries != 7 || x.Policy.Retention.Completed != time.Hour {
			t.Errorf("with options: %+v, %v; it is delayed by %s, and its deadline is in %s", x, err, delay, deadline)
		}
	})
}

// A transaction that is slow holds back those of its key, and no others, so that the order of commits is that of rows.
func TestRowsOfAKeyHaveTheOrderOfTheirCommits(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		if d.dialect == outbox.SQLite {
			t.Skip("SQLite has one transaction that writes at a time")
		}
		e := newEnv(t, d)
		e.relay()
		slow, err := e.db.Begin()
		must.No(t, err)
		first := e.submit(slow, 1, outbox.Ordered("k"))
		var other flowfabric.ExecutionID
		e.in(true, func(tx *sql.Tx) { other = e.submit(tx, 2, outbox.Ordered("other")) })
		waiting, done := make(chan struct{}), make(chan struct{})
		var second flowfabric.ExecutionID
		var running conc.WaitGroup
		running.Go(func() {
			defer close(done)
			close(waiting)
			e.in(true, func(tx *sql.Tx) { second = e.submit(tx, 3, outbox.Ordered("k")) })
		})
		<-waiting
		e.emptied() // of what is committed; the row of the other key passed
		select {
		case <-done:
			t.Error("a second transaction of the key went on before the first one had ended")
		default:
		}
		must.No(t, slow.Commit())
		running.Wait()
		e.emptied()
		all := existing(t, e.c)
		a, b := all[first], all[second]
		if len(all) != 3 || all[other].CreatedAt.After(a.CreatedAt) || a.CreatedAt.After(b.CreatedAt) ||
			first.Partition() != second.Partition() {
			t.Errorf("%v", all)
		}
	})
}

func TestARowThatCannotWorkHoldsBackItsKeyAlone(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		e := newEnv(t, d)
		var bad, behind, free flowfabric.ExecutionID
		e.in(true, func(tx *sql.Tx) {
			bad = e.submit(tx, 1, outbox.Ordered("k"), flowfabric.Gates("missing"))
			behind = e.submit(tx, 2, outbox.Ordered("k"))
			free = e.submit(tx, 3)
		})
		stop := e.relay()
		testwait.Until(t, "two rows are left", func() bool {
			return e.number("SELECT COUNT(*) FROM flowfabric_outbox") == 2 &&
				e.number("SELECT COUNT(*) FROM flowfabric_outbox WHERE due_ms = 9223372036854775807") == 1
		})
		e.in(true, func(tx *sql.Tx) { e.submit(tx, 4, outbox.Ordered("other")) })
		testwait.Until(t, "what came later is relayed", func() bool {
			return e.number("SELECT COUNT(*) FROM flowfabric_outbox") == 2
		})
		stop()
		all := existing(t, e.c)
		if _, ok := all[free]; len(all) != 2 || !ok {
			t.Errorf("%v", all)
		}
		var execution, why string
		must.No(t, e.db.QueryRow("SELECT execution, error FROM flowfabric_outbox WHERE due_ms = 9223372036854775807").
			Scan(&execution, &why))
		if execution != bad.String() || !bytes.Contains([]byte(why), []byte("missing")) {
			t.Errorf("dead is %s: %s", execution, why)
		}
		// A new relay counts it.
		box, err := outbox.New(outbox.Config{Dialect: d.dialect, Partitions: partitions, Poll: 10 * time.Millisecond,
			Registerer: e.reg, Logger: quiet})
		must.No(t, err)
		e.box = box
		stop = e.relay()
		testwait.Until(t, "the metric shows it", func() bool {
			return e.metric("flowfabric_sql_outbox_dead_rows") == 1 &&
				e.metric("flowfabric_sql_outbox_oldest_age_seconds") > 0
		})
		stop()
		// It is mended.
		must.No(t, admin.New(e.c).PutGate(t.Context(), admission.Gate{Name: "missing", Concurrency: 1},
			flowfabric.IfNew()))
		if _, err := e.db.Exec("UPDATE flowfabric_outbox SET due_ms = 0"); err != nil {
			t.Fatal(err)
		}
		e.relay()
		e.emptied()
		all = existing(t, e.c)
		if len(all) != 4 || all[bad].CreatedAt.After(all[behind].CreatedAt) {
			t.Errorf("%v", all)
		}
	})
}

// metric is the sum of a metric of the outbox.
func (e *env) metric(name string) (sum float64) {
	e.Helper()
	families, err := e.reg.Gather()
	must.No(e, err)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestAStoreThatIsAwayLeavesRowsAsTheyAre(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		e := newEnv(t, d)
		stop := e.relay()
		e.in(true, func(tx *sql.Tx) { e.submit(tx, 0) })
		e.emptied()
		e.store.Kill()
		e.in(true, func(tx *sql.Tx) {
			for i := range 10 {
				e.submit(tx, i, outbox.Ordered(fmt.Sprint(i%3)))
			}
		})
		stop() // which waits for a call that fails
		if n := e.number("SELECT COUNT(*) FROM flowfabric_outbox WHERE due_ms = 0 AND attempts = 0"); n != 10 {
			t.Errorf("%d rows are as they were, want 10", n)
		}
		e.relay()
		e.store.Restart()
		e.emptied()
		if all := existing(t, e.c); len(all) != 11 {
			t.Errorf("%d executions, want 11", len(all))
		}
		if got := e.metric("flowfabric_sql_outbox_rows_total"); got < 11 {
			t.Errorf("%v rows are counted", got)
		}
	})
}

// Inputs of the greatest size come in several batches and calls, beside many small ones.
func TestLargeInputs(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		e := newEnv(t, d)
		raw := handler.Define[[]byte, []byte]("raw")
		large := bytes.Repeat([]byte{0, 255, '\'', '\\'}, 1<<18)
		e.in(true, func(tx *sql.Tx) {
			for i := range 700 {
				input := large[:i%7]
				if i%35 == 0 {
					input = large
				}
				_, err := outbox.Submit(t.Context(), e.box, tx, raw, input, outbox.Ordered(fmt.Sprint(i%50)))
				must.No(t, err)
			}
		})
		e.relay()
		e.emptied()
		all, whole := existing(t, e.c), 0
		for id := range all {
			if input, err := e.c.Execution(id).Input(t.Context()); err != nil {
				t.Error(err)
			} else if len(input) == len(large) && bytes.Equal(input, large) {
				whole++
			}
		}
		if len(all) != 700 || whole != 20 {
			t.Errorf("%d executions, want 700; %d have the large input, want 20", len(all), whole)
		}
	})
}

func TestTransactionsOfPgx(t *testing.T) {
	e := newEnv(t, startPostgres(t))
	conn, err := pgx.Connect(t.Context(), e.url)
	must.No(t, err)
	defer conn.Close(context.Background())
	ids := map[bool]flowfabric.ExecutionID{}
	for _, commit := range []bool{true, false} {
		tx, err := conn.Begin(t.Context())
		must.No(t, err)
		ids[commit] = e.submit(pgxoutbox.In(tx), 1, outbox.Ordered("k"))
		e.submit(pgxoutbox.In(tx), 2)
		if commit {
			must.No(t, tx.Commit(t.Context()))
		} else {
			must.No(t, tx.Rollback(t.Context()))
		}
	}
	e.relay()
	e.emptied()
	all := existing(t, e.c)
	if _, ok := all[ids[true]]; len(all) != 2 || !ok {
		t.Errorf("%v, want %s", all, ids[true])
	}
}

// Many transactions and several relays at once keep the order of every key.
func TestSeveralRelays(t *testing.T) {
	databases(t, func(t *testing.T, d *database) {
		e := newEnv(t, d)
		_, err := e.db.Exec(ledger[d.dialect])
		must.No(t, err)
		for range 3 {
			e.relay()
		}
		var running conc.WaitGroup
		for w := range 4 {
			running.Go(func() {
				for i := range 50 {
					must.No(t, write(t.Context(), e.db, e.box, entry{n: w*1000 + i, key: fmt.Sprint(i % 3)}))
				}
			})
		}
		running.Wait()
		e.emptied()
		compare(t, e.db, e.c, 200)
	})
}
