package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Execution is a handle on one execution whose result is an Out. It holds no connection and no goroutine, may be
// dropped at any time, and can be made again from the id with [Attach]. Its methods may be called concurrently.
type Execution[Out any] struct {
	client    *Client
	id        flowfabric.ExecutionID
	duplicate bool
	replaced  bool
	result    decoder[Out]
}

// decoder reads results: a definition, or nothing but bytes.
type decoder[Out any] interface {
	Decode(stored []byte) (Out, error)
}

type bytesResult struct{}

func (bytesResult) Decode(stored []byte) ([]byte, error) { return stored, nil }

func newExecution[In, Out any](c *Client, def *handler.Definition[In, Out], created engine.Created,
	sub *coalesce.Submission) *Execution[Out] {
	e := Attach(c, def, created.ID)
	e.duplicate = created.ID != sub.Item.ID // one of the same id is our own repeated call
	e.replaced = created.Replaced
	return e
}

// Attach returns a handle on an execution of def that was submitted elsewhere or earlier. It makes no call and has no
// error; the methods answer flowfabric.ErrNotFound for an id that names nothing, ErrInvalidInput for the zero id and
// for one of a partition that this store does not have (it comes from another store), and Result the error of an
// invalid def.
func Attach[In, Out any](c *Client, def *handler.Definition[In, Out], id flowfabric.ExecutionID) *Execution[Out] {
	return &Execution[Out]{client: c, id: id, result: def}
}

// Execution is a handle on the execution of this id, whatever its kind; the result is the bytes that the
// handler's codec wrote. It makes no call, and the methods answer as those of [Attach].
func (c *Client) Execution(id flowfabric.ExecutionID) *Execution[[]byte] {
	return &Execution[[]byte]{client: c, id: id, result: bytesResult{}}
}

// AttachOption is flowfabric.Namespace.
type AttachOption interface{ AttachOption() }

// AttachKey returns a handle on the execution of def that holds a flowfabric.Key of this text that does not debounce,
// in the client's namespace or another one; or, if nobody has the key, on the last that had it and is still retained.
// It makes one call.
//
// Errors: flowfabric.ErrNotFound if there is no such execution; ErrInvalidInput for a key or a namespace that is out
// of bounds, and the error of an invalid def; ErrTransport.
func AttachKey[In, Out any](ctx context.Context, c *Client, def *handler.Definition[In, Out], key string,
	opts ...AttachOption) (*Execution[Out], error) {
	said := flowfabric.Start{Namespace: c.cfg.Namespace}
	err := errors.Join(def.Err(), valid.KeyText(key))
	for i, o := range opts {
		err = errors.Join(err, option.Apply(&said, i, o))
	}
	if err = errors.Join(err, valid.Name("namespace", said.Namespace)); err != nil {
		return nil, fmt.Errorf("attach key %.48q: %w", key, err)
	}
	if c.closed.Load() {
		return nil, fmt.Errorf("attach key %q: %w", key, ErrClosed)
	}
	partition, name := ids.Keyed(c.store.Partitions(), said.Namespace, def.Kind(), key)
	id, err := c.store.KeyHolder(ctx, partition, name)
	if err != nil {
		return nil, fmt.Errorf("attach key %q: %w", key, err)
	}
	return Attach(c, def, id), nil
}

// ID names the execution; its text form is what other processes need for [Attach].
func (e *Execution[Out]) ID() flowfabric.ExecutionID { return e.id }

// Duplicate reports whether a key led this submit to an execution that existed already.
func (e *Execution[Out]) Duplicate() bool { return e.duplicate }

// Replaced reports whether this submit replaced what that execution had been submitted with: its key is one of
// Key.Debounce. A later submit may have replaced it again since.
func (e *Execution[Out]) Replaced() bool { return e.replaced }

// Result waits until the execution has ended and returns its decoded result. It does not poll: it waits for the
// execution's event, and reads again every 5 s in case one was lost. The wait goes on while the server
// cannot be reached, so ctx should have a deadline when that matters. It also waits while no worker has a handler for
// the kind or serves the lane; admin.Admin.Why says what it waits for. After an admin.Replay has returned, only the
// new end counts.
//
// Errors: [*OutcomeError] (flowfabric.ErrFailed, ErrCancelled, ErrExpired, ErrSkipped) for an execution that
// ended without a result; ErrNotFound; ErrResultPurged; the context's error with its cause; [ErrClosed]; the
// codec's error when the result is not an Out.
func (e *Execution[Out]) Result(ctx context.Context) (Out, error) {
	raw, stored, err := e.client.await(ctx, e.id)
	return e.read(raw, stored, err)
}

// ResultNow is [Execution.Result] without waiting: flowfabric.ErrState while the execution has not ended, and
// otherwise the errors of Result. It makes two calls at most.
func (e *Execution[Out]) ResultNow(ctx context.Context) (Out, error) {
	raw, stored, err := e.client.outcomeNow(ctx, e.id)
	return e.read(raw, stored, err)
}

// read decodes what an execution stored.
func (e *Execution[Out]) read(raw []byte, stored bool, err error) (Out, error) {
	var none Out
	if err != nil {
		return none, err
	}
	out, err := e.result.Decode(raw)
	switch {
	case err == nil:
		return out, nil
	case !stored: // an empty result is not stored either, but then decode would have accepted it
		return none, fmt.Errorf("result of %s: %w", e.id, flowfabric.ErrResultPurged)
	}
	return none, fmt.Errorf("result of %s: %w", e.id, err)
}

// Get reads a consistent snapshot of an execution: state, attempts, times, tags, progress, failure.
// flowfabric.ErrNotFound when it never existed or was purged long ago; ErrResultPurged while its tombstone is left.
func (e *Execution[Out]) Get(ctx context.Context) (flowfabric.Snapshot, error) {
	c, id := e.client, e.id
	if err := c.admit("get", id); err != nil {
		return flowfabric.Snapshot{}, err
	}
	s, err := c.store.ReadExecution(ctx, id)
	if err != nil {
		return flowfabric.Snapshot{}, link.Operated("get", id, err)
	}
	s.Version = c.store.VersionOf(ctx, s.Session)
	return s.Snapshot, nil
}

// Input is what an execution was submitted with: the bytes that the definition's codec wrote. Empty is what was
// submitted empty. Errors: those of [Execution.Get].
func (e *Execution[Out]) Input(ctx context.Context) ([]byte, error) {
	c, id := e.client, e.id
	if err := c.admit("input of", id); err != nil {
		return nil, err
	}
	raw, stored, err := c.store.ReadInput(ctx, id)
	if err == nil && !stored { // empty, or there is no such execution
		_, err = c.store.ReadExecution(ctx, id)
	}
	if err != nil {
		return nil, link.Operated("input of", id, err)
	}
	return raw, nil
}

// outcomeNow reads the result of one that has ended.
func (c *Client) outcomeNow(ctx context.Context, id flowfabric.ExecutionID) (raw []byte, stored bool, err error) {
	if err := c.admit("result of", id); err != nil {
		return nil, false, err
	}
	raw, stored, done, _, err := c.outcome(ctx, id)
	if !done && err == nil {
		err = fmt.Errorf("result of %s: %w", id, denied.NotTerminal)
	}
	return raw, stored, err
}

// Cancel ends an execution in any state that is not terminal; a handler that runs it gets a context ended with
// flowfabric.ErrCancelled. The reason is cut to 1 KiB. Cancelling twice is no error, and the first stands. Snapshots,
// history and [OutcomeError] say who cancelled (flowfabric.By, or else Config.Creator; maybe nobody), and that it was
// on request: their source is operator_override.
//
// Errors: flowfabric.ErrTerminal, with the state, for one that ended otherwise; ErrNotFound, also for a purged one;
// ErrInvalidInput for a By of more than 64 bytes.
func (e *Execution[Out]) Cancel(ctx context.Context, opts ...flowfabric.ActOption) error {
	c, id := e.client, e.id
	if err := c.admit("cancel", id); err != nil {
		return err
	}
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, c.cfg.Creator)
	err := link.CheckBy(act.By)
	if err == nil {
		_, err = c.store.CancelExecution(act.Execution(ctx, "cancel", id), id,
			engine.Cancellation{Source: engine.CancelOperator})
	}
	return link.Operated("cancel", id, err)
}
