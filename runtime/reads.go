package runtime

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/stream"
)

// reads are what a handler reads of its execution, its children and others, each until it is answered or the hold is
// lost: a store that is away must not cost an attempt.
type reads struct {
	store interface {
		tasks.ResultReader
		tasks.FrameReader
	}
	held *keeper.Held
}

func (r *reads) ReadResult(ctx context.Context, id flowfabric.ExecutionID,
	attempt uint32) (result []byte, ok bool, err error) {
	err = r.held.Read(ctx, func(ctx context.Context) (err error) {
		result, ok, err = r.store.ReadResult(ctx, id, attempt)
		return err
	})
	return result, ok, err
}

func (r *reads) Upstreams(ctx context.Context, id flowfabric.ExecutionID) (all []engine.UpstreamOutcome, err error) {
	err = r.held.Read(ctx, func(ctx context.Context) (err error) {
		all, err = r.store.Upstreams(ctx, id)
		return err
	})
	return all, err
}

func (r *reads) CheckOthers(ctx context.Context, waiter flowfabric.ExecutionID,
	ids []flowfabric.ExecutionID) (all []engine.ChildOutcome, err error) {
	err = r.held.Read(ctx, func(ctx context.Context) (err error) {
		all, err = r.store.CheckOthers(ctx, waiter, ids)
		return err
	})
	return all, err
}

func (r *reads) ReadFrames(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after stream.Cursor,
	limit int) (page []stream.Frame, err error) {
	err = r.held.Read(ctx, func(ctx context.Context) (err error) {
		page, err = r.store.ReadFrames(ctx, id, attempt, after, limit)
		return err
	})
	return page, err
}

// ReadExecution also answers who has lost the hold: middleware asks for the retry policy then.
func (r *reads) ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (s engine.Snapshot, err error) {
	if r.held.Check() != nil {
		return r.store.ReadExecution(ctx, id)
	}
	err = r.held.Read(ctx, func(ctx context.Context) (err error) {
		s, err = r.store.ReadExecution(ctx, id)
		return err
	})
	return s, err
}
