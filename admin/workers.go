package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// registry is the part of the engine that knows who works.
type registry interface {
	Workers(ctx context.Context) []engine.PartitionWorkers
	Sessions(ctx context.Context) []engine.PartitionSessions
	MarkWorkerDead(ctx context.Context, instance, reason string) (already bool, err error)
	MarkSessionDead(ctx context.Context, partition uint16, session, reason string) (already bool, err error)
}

// Worker is one worker process, as it registered itself and as the partitions know it.
type Worker struct {
	Instance string
	// Info is what the worker says it is: its pool, namespace, lanes, kinds, capabilities, process and application.
	// Zero for one that is not Registered.
	Info WorkerInfo
	// Alive: it has registered or renewed within its lease time, or one of its sessions lives. A worker that was
	// killed is alive until that time is over.
	Alive bool
	// Registered is false for one whose registration was forgotten and that still holds something.
	Registered bool
	// Dead: an operator gave it up, for Reason, and it has not come back since.
	Dead   bool
	Reason string

	RegisteredAt time.Time // first, by this process; zero when not Registered
	LastSeen     time.Time // of the registration; zero when not Registered
	ExpiresAt    time.Time // of the registration, unless it is renewed; zero when not Registered
	InFlight     int       // executions that its sessions hold
	// handlers that were at work, as it said when it was last seen; each takes one of Info.Concurrency slots
	Reported int
	// those of them that ignored the end of their context: their slots are not free until they return
	Stuck int
	// Sessions are its leases: those that are open, and dead ones that still hold something.
	Sessions []WorkerSession
}

// WorkerSession is a worker's lease in one partition.
type WorkerSession struct {
	Partition uint16
	ID        string
	ExpiresAt time.Time
	Alive     bool   // not declared dead, and not expired on the server's clock
	Dead      bool   // declared dead; the tick takes what it holds
	Reason    string // why an operator declared it dead
	Held      int    // executions
}

// WorkerInfo is what a worker says of itself when it registers.
type WorkerInfo struct {
	Pool         string
	Namespace    string
	Namespaces   []string // besides Namespace; "*" is every one
	Lanes        []string
	LaneWeights  map[string]int // how its lanes share it, where a weight is not 1
	Kinds        []string
	Capabilities []string
	Concurrency  int
	Host         string
	PID          int
	Revision     int               // of the library that the process would load
	Version      string            // of the application
	Labels       map[string]string // of the application
	StartedAt    time.Time
	Truncated    bool // lists were cut, because they are too long
	// LeaseMs is how long a worker in another language has an execution without renewing it; 0 for others, which have
	// a lease for all they do.
	LeaseMs int64
}

// Workers lists the worker processes by instance name: those that are registered, those lost for up to an hour, and
// those that are not registered and hold something. The listing is made of many reads, so it is no picture of one
// moment.
//
// It asks every partition. When some do not answer, the list is what the others know and the error says so; it wraps
// what they answered (flowfabric.ErrTransport, ErrPartitionFrozen…). client.ErrClosed.
func (a *Admin) Workers(ctx context.Context) ([]Worker, error) {
	if a.closed() {
		return nil, fmt.Errorf("list workers: %w", client.ErrClosed)
	}
	var failed partitionErrors
	all := map[string]*Worker{}
	of := func(instance string) *Worker {
		if all[instance] == nil {
			all[instance] = &Worker{Instance: instance}
		}
		return all[instance]
	}
	rows := a.store.Workers(ctx)
	for _, p := range rows {
		if p.Err != nil {
			failed.add(p.Partition, p.Err)
		}
		for _, r := range p.Workers {
			w := of(r.Instance)
			w.Registered, w.Info, w.Alive, w.Dead, w.Reason = true, WorkerInfo(r.Info), r.Alive, r.Dead, r.Reason
			w.RegisteredAt, w.LastSeen, w.ExpiresAt, w.Reported, w.Stuck = r.RegisteredAt, r.SeenAt, r.ExpiresAt,
				r.InFlight, r.Stuck
		}
	}
	for _, p := range a.store.Sessions(ctx) {
		if p.Err != nil && rows[p.Partition].Err == nil { // else it is counted
			failed.add(p.Partition, p.Err)
		}
		for _, s := range p.Sessions {
			w := of(engine.Instance(s.ID))
			w.Alive = w.Alive || s.Alive
			w.InFlight += s.Held
			w.Sessions = append(w.Sessions, WorkerSession{p.Partition, s.ID, s.ExpiresAt, s.Alive, s.Dead, s.Reason,
				s.Held})
		}
	}
	out := make([]Worker, 0, len(all))
	for _, w := range all {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Worker) int { return strings.Compare(a.Instance, b.Instance) })
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
	ctx, reason := act.Noted(ctx, "mark dead", "worker", instance), act.Words()
	_, err = a.store.MarkWorkerDead(ctx, instance, reason)
	unknown := errors.Is(err, denied.NoWorker)
	if err != nil && !unknown {
		return 0, fmt.Errorf("%s %s: %w", verb, instance, err)
	}
	var failed partitionErrors
	known := false
	listed := a.store.Sessions(ctx)
	for _, p := range listed {
		err := p.Err
		for _, s := range p.Sessions {
			if engine.Instance(s.ID) != instance {
				continue
			}
			known = true
			already, refused := a.store.MarkSessionDead(ctx, p.Partition, s.ID, reason)
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
