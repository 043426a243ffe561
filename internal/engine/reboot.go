package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
)

// Counts are the numbers of partitions of a deployment.
type Counts struct{ Executions, Gates uint16 }

func (c Counts) String() string {
	return fmt.Sprintf("%d execution and %d gate partitions", c.Executions, c.Gates)
}

// CountsError says that the store was made anew with other partition counts while this process ran. Nothing but a
// restart of the process helps: it would look for executions where they are not. It wraps flowfabric.ErrConfig.
type CountsError struct{ Stored, Used Counts }

// Error names both and says what to do.
func (e *CountsError) Error() string {
	return fmt.Sprintf("%s: the store was made anew with %s, and this process began with %s; restart this process",
		flowfabric.ErrConfig, e.Stored, e.Used)
}

// Unwrap is flowfabric.ErrConfig.
func (e *CountsError) Unwrap() error { return flowfabric.ErrConfig }

// refusedFor is how long a refusal to boot the store again stands for all calls: many may wait for it.
const refusedFor = time.Second

// reboots records how often this process booted a store that it had found ready before. turn guards refused and at.
type reboots struct {
	turn    chan struct{} // capacity 1: somebody boots
	count   atomic.Uint64
	refused error
	at      time.Time // of the refusal
}

// bootAgain makes the partition roots of a store that was flushed, or came back without its data, as [Open] does;
// never with other partition counts than this process uses. One boot runs at a time, and serves all calls that met
// the missing root before: seen is the count of boots when the caller's call began.
func (e *Engine) bootAgain(ctx context.Context, seen uint64) error {
	select {
	case e.reboots.turn <- struct{}{}:
		defer func() { <-e.reboots.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e.reboots.count.Load() != seen {
		return nil
	}
	if e.reboots.refused != nil && time.Since(e.reboots.at) < refusedFor {
		return e.reboots.refused
	}
	err := e.sameCounts(ctx)
	if err == nil {
		err = e.boot(ctx)
	}
	if err != nil {
		if class := denied.ClassOf(err); class != 0 && class != fault.Retry && ctx.Err() == nil {
			e.reboots.refused, e.reboots.at = err, time.Now()
		}
		return fmt.Errorf("boot the store again, which has lost its partitions: %w", err)
	}
	e.reboots.refused = nil
	e.reboots.count.Add(1)
	e.log.WarnContext(ctx,
		"flowfabric: the store had lost partitions (it was flushed, or restarted without its data); they are booted again, and their data is gone",
		"server", e.Server(), "partitions", e.partitions)
	return nil
}

// sameCounts compares the stored partition counts with those that this process uses, and stores its own where there
// are none. A [*CountsError] when they differ.
func (e *Engine) sameCounts(ctx context.Context) error {
	used := e.counts()
	stored, err := e.configure(ctx, used, true)
	if err == nil && stored != used {
		err = &CountsError{Stored: stored, Used: used}
	}
	return err
}

func (e *Engine) counts() Counts {
	return Counts{e.partitions, uint16(len(e.gates))}
}
