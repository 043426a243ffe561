package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// registry is the part of the engine that knows who works.
type registry interface {
	Workers(ctx context.Context) []engine.InPartition[[]flowfabric.Worker]
	Sessions(ctx context.Context) []engine.InPartition[[]flowfabric.WorkerSession]
	MarkWorkerDead(ctx context.Context, instance string) (already bool, err error)
	MarkSessionDead(ctx context.Context, partition uint16, session string) (already bool, err error)
}

// Workers lists the worker processes by instance name: those that are registered, those lost for up to an hour, and
// those that are not registered and hold something. The listing is made of many reads, so it is no picture of one
// moment.
//
// It asks every partition. When some do not answer, the list is what the others know and the error says so; it wraps
// what they answered (flowfabric.ErrTransport, ErrPartitionFrozen…). client.ErrClosed.
func (a *Admin) Workers(ctx context.Context) ([]flowfabric.Worker, error) {
	if a.closed() {
		return nil, fmt.Errorf("list workers: %w", client.ErrClosed)
	}
	var failed partitionErrors
	all := map[string]*flowfabric.Worker{}
	rows := a.store.Workers(ctx)
	for _, p := range rows {
		if p.Err != nil {
			failed.add(p.Partition, p.Err)
		}
		for _, w := range p.Reply {
			all[w.Instance] = &w
		}
	}
	for _, p := range a.store.Sessions(ctx) {
		if p.Err != nil && rows[p.Partition].Err == nil { // else it is counted
			failed.add(p.Partition, p.Err)
		}
		for _, s := range p.Reply {
			instance := ids.Worker(s.ID)
			w := all[instance]
			if w == nil {
				w = &flowfabric.Worker{Instance: instance}
				all[instance] = w
			}
			w.Alive = w.Alive || s.Alive
			w.InFlight += s.Held
			w.Sessions = append(w.Sessions, s)
		}
	}
	out := make([]flowfabric.Worker, 0, len(all))
	for _, w := range all {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b flowfabric.Worker) int { return strings.Compare(a.Instance, b.Instance) })
	return out, failed.sum("list workers", len(rows))
}

// MarkWorkerDead gives a worker process up without waiting for its leases to run out: what its sessions hold is queued
// again by the next tick, as after a crash, which uses up no retry. held is how many executions that were. Why and,
// in parentheses, who, together cut to 256 bytes, is shown with the worker. Doing it again is no error.
//
// It is meant for a process that is known to be gone. One that lives loses its running work to others (its writes are
// refused and its handlers' contexts end with flowfabric.ErrLeaseLost, within a second or so), registers again, and
// goes on with new sessions: to stop it, stop the process.
//
// Errors: flowfabric.ErrNotFound when neither a registration nor a session has the name; ErrInvalidInput. When some
// partitions do not answer, the others are done and the error says so; do it again. client.ErrClosed.
func (a *Admin) MarkWorkerDead(ctx context.Context, instance string,
	opts ...flowfabric.ActOption) (held int, err error) {
	const verb = "mark worker dead"
	if a.closed() {
		return 0, fmt.Errorf("%s: %w", verb, client.ErrClosed)
	}
	act, err := a.act(opts)
	if err := cmp.Or(err, valid.Name("instance", instance)); err != nil {
		return 0, fmt.Errorf("%s: %w", verb, err)
	}
	ctx = act.Noted(ctx, "mark dead", "worker", instance)
	_, err = a.store.MarkWorkerDead(ctx, instance)
	unknown := errors.Is(err, denied.NoWorker)
	if err != nil && !unknown {
		return 0, fmt.Errorf("%s %s: %w", verb, instance, err)
	}
	var failed partitionErrors
	known := false
	listed := a.store.Sessions(ctx)
	for _, p := range listed {
		err := p.Err
		for _, s := range p.Reply {
			if ids.Worker(s.ID) != instance {
				continue
			}
			known = true
			already, refused := a.store.MarkSessionDead(ctx, p.Partition, s.ID)
			switch {
			case errors.Is(refused, denied.NoSession): // it ended meanwhile
			case refused != nil:
				err = refused
			case !already:
				held += s.Held
			}
		}
		if err != nil {
			failed.add(p.Partition, err)
		}
	}
	if err := failed.sum(verb+" "+instance, len(listed)); err != nil {
		return held, err
	}
	if unknown && !known {
		return 0, fmt.Errorf("%s %s: %w", verb, instance, err)
	}
	return held, nil
}
