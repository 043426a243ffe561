package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

const (
	// finish is for how long the relay goes on noting what it did when its context has ended.
	finish = 5 * time.Second
	// renewAt is how old the lease is when it is renewed.
	renewAt = leaseMS / 2 * time.Millisecond
	// measureEvery is how often the gauges are read.
	measureEvery = 5 * time.Second
)

// relay is one run of [Outbox.Relay].
type relay struct {
	*Outbox
	db       *sql.DB
	client   *client.Client
	owner    string
	leased   time.Time // when the lease was asked for that it has; zero: it has none
	measured time.Time
}

// Relay makes executions of the rows in db that were committed, through c, and deletes the rows, until ctx ends; then
// it returns nil. Run it in a worker's process, beside Worker.Run, or alone. Several processes may: one of them works
// at a time, and another one goes on within 5 s of its end. Errors of the database and the store are logged, and the
// call is repeated at growing pauses of at most 15 s.
//
// Errors at the start: flowfabric.ErrConfig if c is of a store with another count of partitions than
// Config.Partitions; client.ErrClosed, also later, once c is closed.
func (o *Outbox) Relay(ctx context.Context, db *sql.DB, c *client.Client) error {
	if n := c.Link().Engine.Partitions(); n != o.cfg.Partitions {
		return fmt.Errorf("%w: outbox: Config.Partitions is %d, but the store has %d partitions", flowfabric.ErrConfig,
			o.cfg.Partitions, n)
	}
	r := &relay{Outbox: o, db: db, client: c, owner: uuid.NewString()}
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(15*time.Second), backoff.WithMaxElapsedTime(0))
	defer r.release(ctx)
	away := false
	for ctx.Err() == nil {
		if err := c.Link().Closed(); err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		more, err := r.round(ctx)
		pause := o.cfg.Poll
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			pause = pauses.NextBackOff()
			o.cfg.Logger.Warn("the outbox cannot be relayed now", "table", o.cfg.Table, "error", err, "again_in", pause)
			away = true
		case away:
			o.cfg.Logger.Info("the outbox is relayed again", "table", o.cfg.Table)
			away = false
			pauses.Reset()
		}
		if !more || err != nil {
			sleep(ctx, pause)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// round relays one batch, if it is this relay's turn, and tells whether there may be more.
func (r *relay) round(ctx context.Context) (more bool, err error) {
	if now := time.Now(); now.Sub(r.measured) >= measureEvery {
		if err := r.measure(ctx); err != nil {
			return false, err
		}
		r.measured = now
	}
	if now := time.Now(); now.Sub(r.leased) >= renewAt {
		r.leased = time.Time{}
		result, err := r.db.ExecContext(ctx, r.sql.lease, r.owner, r.owner)
		if err != nil {
			return false, fmt.Errorf("outbox: take the lease of %s: %w", r.cfg.Table, err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return false, err // another one has it
		}
		r.leased = now
	}
	rows, err := r.read(ctx)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	r.submit(ctx, rows)
	// What was done is noted even if ctx has ended meanwhile: it would be done again otherwise.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
	defer cancel()
	return true, r.note(ctx, rows)
}

// release lets another relay begin at once.
func (r *relay) release(ctx context.Context) {
	if r.leased.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
	defer cancel()
	_, _ = r.db.ExecContext(ctx, r.sql.release, r.owner) // it ends by itself
}

func (r *relay) measure(ctx context.Context) error {
	var ageMS, dead int64
	if err := r.db.QueryRowContext(ctx, r.sql.gauge).Scan(&ageMS, &dead); err != nil {
		return fmt.Errorf("outbox: measure %s: %w", r.cfg.Table, err)
	}
	r.metrics.age.WithLabelValues(r.cfg.Table).Set(float64(max(ageMS, 0)) / 1000)
	r.metrics.dead.WithLabelValues(r.cfg.Table).Set(float64(dead))
	return nil
}

// read reads the next batch, in the order of the rows.
func (r *relay) read(ctx context.Context) (list []*row, err error) {
	rows, err := r.db.QueryContext(ctx, r.sql.pick)
	if err == nil {
		defer rows.Close()
		for rows.Next() {
			x := &row{}
			if err = rows.Scan(&x.id, &x.execution, &x.orderKey, &x.details, &x.input, &x.age); err != nil {
				break
			}
			list = append(list, x)
		}
		err = errors.Join(err, rows.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: read %s: %w", r.cfg.Table, err)
	}
	return list, nil
}

// note deletes rows that became executions, marks dead ones, and puts off the others that were tried.
func (r *relay) note(ctx context.Context, rows []*row) error {
	var done []*row
	dead, putOff := map[string][]*row{}, map[string][]*row{}
	var failure error
	for _, x := range rows {
		switch {
		case x.state == relayed:
			done = append(done, x)
		case x.state == failed && final(x.err):
			dead[message(x.err)] = append(dead[message(x.err)], x)
			r.cfg.Logger.Error("a row of the outbox is dead", "table", r.cfg.Table, "row", x.id,
				"execution", x.execution, "error", x.err)
		case x.state == failed:
			putOff[message(x.err)] = append(putOff[message(x.err)], x)
			failure = x.err
		}
	}
	if len(done) == 0 && len(dead) == 0 && failure != nil && r.client.Ping(ctx) != nil {
		return failure // the store is away: no row is to blame
	}
	var errs []error
	change := func(result, statement string, rows []*row, args ...any) {
		if len(rows) == 0 {
			return
		}
		if _, err := r.db.ExecContext(ctx, forIDs(statement, rows), args...); err != nil {
			errs = append(errs, fmt.Errorf("outbox: note what became of rows of %s: %w", r.cfg.Table, err))
			return
		}
		r.metrics.counted(result, len(rows))
	}
	change("relayed", r.sql.done, done)
	for text, rows := range dead {
		change("dead", r.sql.dead, rows, text)
	}
	for text, rows := range putOff {
		change("put_off", r.sql.putOff, rows, text)
	}
	if len(done) == 0 && len(dead) == 0 && failure != nil {
		errs = append(errs, failure) // a pause before the next batch
	}
	return errors.Join(errs...)
}

// final reports whether no retry can remove the error.
func final(err error) bool {
	return errors.Is(err, flowfabric.ErrInvalidInput) || errors.Is(err, flowfabric.ErrPayloadTooLarge) ||
		errors.Is(err, flowfabric.ErrConflict) || errors.Is(err, denied.NoGate)
}

// message is an error as a row keeps it.
func message(err error) string {
	const most = 1000
	text := []rune(err.Error())
	return string(text[:min(len(text), most)])
}
