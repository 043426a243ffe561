package admit

import (
	"context"
	"errors"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// executions is the partition of an execution as a recipient.
func executions(id flowfabric.ExecutionID) recipient {
	return recipient{executions: true, partition: id.Partition()}
}

// await tells executions who waits for them, and waiters how others ended. An answer that one has ended goes to its
// waiter at once: only then the notice that asked is forgotten.
func (d *delivery) await(ctx context.Context, entries []engine.OutboxEntry) (failed error) {
	var asks []engine.Awaiting
	var ends []engine.AwaitedEnd
	for _, x := range entries {
		asks, ends = append(asks, x.Awaiting...), append(ends, x.Ends...)
	}
	for _, batch := range batches(asks, func(x engine.Awaiting) recipient { return executions(x.Awaited) }) {
		to := executions(batch[0].Awaited)
		if d.stuck[to] {
			continue
		}
		answers, err := d.box.NoteWaiters(ctx, to.partition, batch, false)
		if err == nil {
			var ended []engine.AwaitedEnd
			for _, a := range answers {
				if a.Ended {
					ended = append(ended, a.End)
				}
			}
			err = d.tellWaiters(ctx, ended)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			d.stuck[to] = true
		}
	}
	return errors.Join(failed, d.tellWaiters(ctx, ends))
}

// tellWaiters tells each partition what concerns it. One that does not answer keeps no other waiting.
func (d *delivery) tellWaiters(ctx context.Context, ends []engine.AwaitedEnd) (failed error) {
	for _, batch := range batches(ends, func(x engine.AwaitedEnd) recipient { return executions(x.Waiter) }) {
		to := executions(batch[0].Waiter)
		if d.stuck[to] {
			failed = errors.Join(failed, errStuck)
			continue
		}
		if _, err := d.box.TellWaiters(ctx, to.partition, batch); err != nil {
			failed = errors.Join(failed, err)
			d.stuck[to] = true
		}
	}
	return failed
}

// errStuck stands for an error of the same partition that was told before.
var errStuck = errors.New("a partition of executions does not answer")
