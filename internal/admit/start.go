package admit

import (
	"context"
	"errors"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
)

// maxStarts bounds the executions of one call that events start, by the bytes and tags that a call may have.
const maxStarts = 10

// start is an execution that a trigger starts because of an event.
type start struct {
	event *engine.Published
	engine.TriggerStart
}

// starts are those of some events.
func starts(entries []engine.OutboxEntry) (all []start) {
	for _, x := range entries {
		if x.Event == nil {
			continue
		}
		for _, s := range x.Event.Starts {
			all = append(all, start{x.Event, s})
		}
	}
	return all
}

// late tells whether something that an event starts was not created, or a wait did not get it.
func (d *delivery) late(x *engine.Published) bool {
	return x != nil && (slices.ContainsFunc(x.Starts, func(s engine.TriggerStart) bool {
		return d.stuck[executions(s.Execution)]
	}) || slices.ContainsFunc(x.Resumes, func(r engine.EventResume) bool { return d.stuck[executions(r.Execution)] }))
}

// start creates what events start. Ids follow from event and trigger, so what was created before is left alone. What a
// partition refuses would be refused again: its trigger says so, and the event counts as delivered.
func (d *delivery) start(ctx context.Context, entries []engine.OutboxEntry) (failed error) {
	for _, all := range batches(starts(entries), func(s start) recipient { return executions(s.Execution) }) {
		to := executions(all[0].Execution)
		for batch := range slices.Chunk(all, maxStarts) {
			if d.stuck[to] {
				break
			}
			if err := d.create(ctx, to.partition, batch); err != nil {
				failed = errors.Join(failed, err)
				d.stuck[to] = true
			}
		}
	}
	return failed
}

// create creates executions of one partition.
func (d *delivery) create(ctx context.Context, partition uint16, batch []start) error {
	var items []engine.NewExecution
	var of []start
	for _, s := range batch {
		definition, err := trigger.Decode(s.Definition)
		if err != nil {
			if err := d.refuse(ctx, s, err); err != nil {
				return err
			}
			continue
		}
		of = append(of, s)
		items = append(items, engine.NewExecution{ID: s.Execution, Payload: s.event.Data, AsStored: true,
			Start: definition.Begun(s.event.Text, s.event.ID)})
	}
	if len(items) == 0 {
		return nil
	}
	created, err := d.box.CreateExecutions(ctx, partition, items)
	if err != nil {
		return err
	}
	for i, x := range created {
		if x.Err != nil {
			if err := d.refuse(ctx, of[i], x.Err); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuse notes with the trigger that what it starts was refused.
func (d *delivery) refuse(ctx context.Context, s start, why error) error {
	code := flowfabric.CodeOf(why)
	if code == "" {
		code = "refused"
	}
	return d.box.RefuseStart(ctx, s.event.Subject, s.Name, code, s.event.ID)
}
