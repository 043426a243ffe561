package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/submission"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

const (
	maxTable      = 48 // bytes: names of indexes add to it
	maxOrderKey   = 256
	maxPartitions = 1024
	// stay is how many rows in a row go to the same partition, so that the relay needs few calls.
	stay = 32
)

// Config says where rows are and what submissions have in common. Only Dialect is required.
type Config struct {
	// Dialect of the database: PostgreSQL, MySQL (also MariaDB) or SQLite.
	Dialect Dialect
	// Table has the rows; a second one, with the suffix _lease, has the lease of the relays. Letters, digits and "_",
	// at most 48 bytes, and a schema and a dot before it if needed. Default "flowfabric_outbox".
	Table string
	// Partitions of the store that the rows are for, 1..1024: they are part of the ids that Submit makes. Default
	// 64, as of a new store on a server; that of an embedded store is 8.
	Partitions uint16
	// Namespace of submissions that name none, 1..64 printable ASCII bytes without braces. Default "default".
	Namespace string
	// Creator is stored with every submission, at most 64 bytes. Default none.
	Creator string
	// Cipher encrypts inputs before they are written to the table. Default the keys in the environment variable
	// FLOWFABRIC_CIPHER_KEYS; nothing is encrypted without them. The client of the relay should have the same.
	Cipher flowfabric.Cipher
	// Poll is how often an idle relay looks for rows, 1 ms..1 min. Default 200 ms.
	Poll time.Duration
	// Registerer gets the metrics of the relay. Default none.
	Registerer prometheus.Registerer
	// Logger of the relay. Default slog.Default().
	Logger *slog.Logger
}

// Outbox writes and relays the rows of one table. Make it with [New]; it may be used concurrently and needs no Close.
type Outbox struct {
	cfg     Config
	sql     statements
	from    submission.From
	tracer  *tracing.Tracer
	metrics *metrics
	first   uint32 // partition of the first row
	made    atomic.Uint32
}

// Tx is what Submit needs of a transaction. *sql.Tx is one, *sql.Conn too, and the module outbox/pgxoutbox makes one
// of a pgx.Tx. A *sql.DB is one whose transactions have a single statement.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*\.)?[A-Za-z_][A-Za-z0-9_]*$`)

// New checks a configuration. No I/O is made: the store need not be there, and the tables only when they are used.
// Error: flowfabric.ErrConfig, with the field.
func New(cfg Config) (*Outbox, error) {
	cfg.Table = cmp.Or(cfg.Table, "flowfabric_outbox")
	cfg.Partitions = cmp.Or(cfg.Partitions, limits.DefaultExecutionPartitions)
	cfg.Namespace = cmp.Or(cfg.Namespace, limits.DefaultNamespace)
	cfg.Poll = cmp.Or(cfg.Poll, 200*time.Millisecond)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	bad := func(format string, args ...any) (*Outbox, error) {
		return nil, fmt.Errorf("%w: outbox: "+format, append([]any{flowfabric.ErrConfig}, args...)...)
	}
	if !cfg.Dialect.known() {
		return bad("Config.Dialect is %.64q, want %q, %q or %q", cfg.Dialect, PostgreSQL, MySQL, SQLite)
	}
	if len(cfg.Table) > maxTable || !tableName.MatchString(cfg.Table) {
		return bad("Config.Table is %.64q, want 1..%d letters, digits and _, with a schema and a dot before it if "+
			"needed", cfg.Table, maxTable)
	}
	if cfg.Partitions > maxPartitions {
		return bad("Config.Partitions is %d, want 1..%d", cfg.Partitions, maxPartitions)
	}
	if err := valid.Name("Config.Namespace", cfg.Namespace); err != nil {
		return bad("%w", err)
	}
	if len(cfg.Creator) > limits.MaxName {
		return bad("Config.Creator has %d bytes, want at most %d", len(cfg.Creator), limits.MaxName)
	}
	if cfg.Poll < time.Millisecond || cfg.Poll > time.Minute {
		return bad("Config.Poll is %s, want 1 ms..1 min", cfg.Poll)
	}
	cipher, err := sealed.Configured(cfg.Cipher)
	if err != nil {
		return bad("%w", err)
	}
	cfg.Cipher = nil
	o := &Outbox{cfg: cfg, sql: cfg.Dialect.statements(cfg.Table), tracer: tracing.New(nil, nil),
		from:    submission.From{Namespace: cfg.Namespace, Creator: cfg.Creator, Box: sealed.New(cipher)},
		metrics: newMetrics(cfg.Table), first: rand.Uint32()}
	if cfg.Registerer != nil {
		if err := o.metrics.register(cfg.Registerer); err != nil {
			return bad("Config.Registerer: %w", err)
		}
	}
	return o, nil
}

// Schema is the statements that make the tables, in order, without semicolons: run each by itself, or put them in a
// migration of yours. Running them again changes nothing.
func (o *Outbox) Schema() []string { return o.sql.schema }

// ordered is [Ordered].
type ordered string

func (ordered) SubmitOption() {}

// Ordered is an option of [Submit]: rows of an equal key become executions in the order in which their transactions
// commit, each after the one before it, in one partition. They may still run at the same time; add flowfabric.LimitKey
// with a concurrency of one if they must not. The transaction holds a lock of the key until it ends, so transactions
// that use the same key wait for each other, and two that use several keys in different orders may deadlock, which the
// database resolves by an error. On MySQL keys share 64 locks. key has 1..256 bytes of UTF-8 without NUL.
func Ordered(key string) client.SubmitOption { return ordered(key) }

// Submit writes a row to the outbox in the transaction tx: once it has committed, a relay makes one execution of def
// with input in, and if it rolls back there is none. It returns the id that the execution will have. Until then
// client.Execution.Get answers flowfabric.ErrNotFound for it. Options are those of client.Submit, and [Ordered]. A
// delay or a deadline counts from here, on the database's clock.
//
// With a flowfabric.Key the row is a submission under this key when it is relayed. If another execution holds the key
// then, nothing is created, and the returned id names nothing. A key does not go with Ordered.
//
// Errors before any I/O are those of client.Submit: flowfabric.ErrInvalidInput, ErrPayloadTooLarge, the definition's
// own, the codec's. What only the store knows makes a row dead when it is relayed, see the package comment. Else the
// error of the database; then the transaction should be rolled back, as after any statement that failed.
func Submit[In, Out any](ctx context.Context, o *Outbox, tx Tx, def *handler.Definition[In, Out], in In,
	opts ...client.SubmitOption) (flowfabric.ExecutionID, error) {
	key, opts, err := o.order(opts)
	var common *submission.Common
	if err == nil {
		common, err = submission.Prepare(o.from, def, opts)
	}
	switch {
	case err != nil:
	case common.KeyFor != nil:
		err = fmt.Errorf("%w: client.Keys is for client.SubmitMany, use flowfabric.Key", flowfabric.ErrInvalidInput)
	case key != "" && common.Item.Key != nil:
		err = fmt.Errorf("%w: outbox.Ordered with a flowfabric.Key, which decides the partition by itself",
			flowfabric.ErrInvalidInput)
	}
	if err != nil {
		return flowfabric.ExecutionID{}, submission.Error(def, err)
	}
	x := &common.Item
	ctx, span := o.tracer.Send(ctx, tracing.Work{Namespace: x.Namespace, Lane: x.Lane, Kind: x.Kind})
	if span != nil {
		x.Tags = o.tracer.Tag(ctx, x.Tags)
	}
	if err = submission.Fill(&common.Submission, common, def, in, 0); err == nil {
		x.ID = o.identify(x, key)
		err = o.insert(ctx, tx, x, key)
	}
	if err != nil {
		err = submission.Error(def, err)
		span.Ended(err)
		return flowfabric.ExecutionID{}, err
	}
	if span != nil {
		span.Execution(x.ID)
	}
	span.Ended(nil)
	return x.ID, nil
}

// order takes [Ordered] out of options.
func (o *Outbox) order(opts []client.SubmitOption) (key string, rest []client.SubmitOption, err error) {
	for _, opt := range opts {
		k, ok := opt.(ordered)
		if !ok {
			rest = append(rest, opt)
			continue
		}
		key = string(k)
		if key == "" || len(key) > maxOrderKey || !utf8.ValidString(key) || strings.Contains(key, "\x00") {
			return "", nil, fmt.Errorf("%w: the key of outbox.Ordered has %d bytes, want 1..%d of UTF-8 without NUL",
				flowfabric.ErrInvalidInput, len(key), maxOrderKey)
		}
	}
	return key, rest, nil
}

// identify makes the id of an execution: its partition follows from its key, or from the key of its order, or changes
// every few rows.
func (o *Outbox) identify(x *engine.NewExecution, key string) flowfabric.ExecutionID {
	n := o.cfg.Partitions
	partition := uint16((o.first + o.made.Add(1)/stay) % uint32(n))
	if x.Key != nil {
		partition, _ = keyID(n, x)
	} else if key != "" {
		partition = ids.Partition(ids.Derive("flowfabric outbox order v1", key), n)
	}
	return mint.Join(partition, uuid.Must(uuid.NewV7()))
}

// keyID is what the server knows the key of an execution by, and its partition.
func keyID(partitions uint16, x *engine.NewExecution) (uint16, uuid.UUID) {
	if x.Key.Debounce > 0 {
		return ids.Debounced(partitions, x.Namespace, x.Kind, x.Key.Text)
	}
	return ids.Keyed(partitions, x.Namespace, x.Kind, x.Key.Text)
}

// insert writes the row.
func (o *Outbox) insert(ctx context.Context, tx Tx, x *engine.NewExecution, key string) error {
	text, err := details(x)
	if err != nil {
		return err
	}
	input := x.Payload
	if input == nil {
		input = []byte{}
	}
	args := []any{x.ID.String(), text, input}
	insert := o.sql.insert
	if key != "" {
		if o.sql.lock != "" {
			if _, err := tx.ExecContext(ctx, o.sql.lock, o.sql.lockOf(key)); err != nil {
				return fmt.Errorf("outbox: lock the order of %s: %w", o.cfg.Table, err)
			}
		}
		insert, args = o.sql.insertOrdered, append(args, key)
		if o.sql.lock == "" && o.cfg.Dialect == PostgreSQL {
			args = append(args, o.sql.lockOf(key))
		}
	}
	if _, err := tx.ExecContext(ctx, insert, args...); err != nil {
		return fmt.Errorf("outbox: insert into %s: %w", o.cfg.Table, err)
	}
	return nil
}
