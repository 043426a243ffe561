package admit

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
)

// bring brings events to the waits that they match. A wait that is over, or that refuses the event, stays without it:
// it would refuse it again.
func (d *delivery) bring(ctx context.Context, entries []engine.OutboxEntry) (failed error) {
	for _, x := range entries {
		if x.Event == nil {
			continue
		}
		for _, r := range x.Event.Resumes {
			to := executions(r.Execution)
			if d.stuck[to] {
				continue
			}
			err := d.box.BringEvent(ctx, x.Event, r)
			if class := denied.ClassOf(err); err != nil && (class == 0 || class == fault.Retry) {
				failed = errors.Join(failed, err)
				d.stuck[to] = true
			}
		}
	}
	return failed
}

// subject is the partition in which a wait for an event is known.
func (d *delivery) subject(x engine.Expected) recipient {
	return recipient{executions: true, partition: x.At(d.box.Partitions())}
}

// forget tells subjects which waits are over.
func (d *delivery) forget(ctx context.Context, entries []engine.OutboxEntry) (failed error) {
	var over []engine.Expected
	for _, x := range entries {
		over = append(over, x.Forget...)
	}
	for _, batch := range batches(over, d.subject) {
		to := d.subject(batch[0])
		if d.stuck[to] {
			continue
		}
		if _, err := d.box.ForgetExpected(ctx, to.partition, batch); err != nil {
			failed = errors.Join(failed, err)
			d.stuck[to] = true
		}
	}
	return failed
}
