package fftest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// outlook is what the store and the worker tell of the time to come.
type outlook struct {
	quiet bool      // nothing happens before due
	due   time.Time // of the first thing that a tick or an answer waits for; zero: there is none
	// of the first that moves an execution: a delay, a timeout, a deadline, a gate's window, an answer
	work      time.Time
	schedules bool // there are some, so that something is always due
}

// outlook looks at everything that may happen: the handlers at work, what could be claimed, and all that time brings
// to the store, of whatever origin. The caller has the turn.
func (w *Env) outlook(ctx context.Context) (o outlook, err error) {
	w.mu.Lock()
	broken := w.broken
	for at := range w.dues {
		o.moves(at)
	}
	w.mu.Unlock()
	if broken != nil {
		return o, fmt.Errorf("the worker could not go on: %w", broken)
	}
	if w.worker == nil || w.worker.dead.Load() || w.worker.working() {
		return o, nil
	}
	sent := w.worker.link.sent.Load()
	partitions, err := w.admin.Partitions(ctx)
	if err != nil {
		return o, err
	}
	sessions := 0
	for _, p := range partitions {
		if p.Backlog.Count > 0 || p.Outbox.Count > 0 { // a tick is at work
			return o, nil
		}
		if p.Ready > 0 {
			if claimed, err := w.claimable(ctx, p.Partition); err != nil || claimed {
				return o, err
			}
		}
		for _, t := range []flowfabric.Timer{p.Delayed, p.Alarms} {
			o.moves(t.Head)
		}
		for _, t := range []flowfabric.Timer{p.Pending, p.Ended, p.Schedules, p.FlowDue} {
			o.sooner(t.Head)
		}
		if p.Closed.Count > 0 {
			if err := w.openings(ctx, p.Partition, &o); err != nil {
				return o, err
			}
		}
		sessions += p.Sessions.Count
		o.schedules = o.schedules || p.Schedules.Count > 0
	}
	if sessions > 0 {
		held, err := w.held(ctx, &o)
		if err != nil || held {
			return o, err
		}
	}
	o.quiet = w.worker.link.sent.Load() == sent // else what was read first may not be so any more
	return o, nil
}

// held reports whether the worker holds something, be it on the way to or from a handler. What dead ones hold is due
// when their leases run out.
func (w *Env) held(ctx context.Context, o *outlook) (busy bool, err error) {
	workers, err := w.admin.Workers(ctx)
	if err != nil {
		return false, err
	}
	for _, x := range workers {
		for _, s := range x.Sessions {
			switch {
			case s.Held == 0:
			case x.Instance == w.worker.name || !s.Alive:
				return true, nil
			default:
				o.moves(s.ExpiresAt)
			}
		}
	}
	return false, nil
}

// claimable reports whether something waits in a partition that the environment's workers take.
func (w *Env) claimable(ctx context.Context, partition uint16) (bool, error) {
	queues, err := w.client.Link().Engine.Queues(ctx, partition, "", 0)
	if err != nil {
		return false, err
	}
	for _, q := range queues {
		if q.Depth == 0 || q.Drift != "" || !w.serves(q.Route) {
			continue
		}
		if open, err := w.handedOut(ctx, keys.Of(partition), q.Route.Namespace,
			strconv.FormatUint(q.Route.ID, 10)); open || err != nil {
			return open, err
		}
	}
	return false, nil
}

// handedOut reports whether claims look at a route: no gate closed it, and its lane dispatches.
func (w *Env) handedOut(ctx context.Context, p keys.Partition, namespace, route string) (bool, error) {
	if len(route) <= 9 { // the class's own
		ready, err := w.words(ctx, "SMEMBERS", p.Ready())
		return slices.Contains(ready, route), err
	}
	class := route[:len(route)-9]
	_, turn, err := w.score(ctx, p.Turns(class, namespace), route)
	if err != nil {
		return false, err
	}
	ring := p.Ring(class)
	if turn {
		ring = p.Gring(class)
	} else if gated, err := w.gated(ctx, p, route); gated || err != nil {
		return false, err
	}
	_, open, err := w.score(ctx, ring, namespace)
	return open, err
}

// gated reports whether a route has gates.
func (w *Env) gated(ctx context.Context, p keys.Partition, route string) (bool, error) {
	rows, err := w.hash(ctx, p.Routes())
	return !strings.HasSuffix(rows[route], "\x1f"), err
}

// serves reports whether the environment's workers take work of a queue.
func (w *Env) serves(r flowfabric.Route) bool {
	cfg := w.cfg
	if len(cfg.Lanes) == 0 {
		cfg.Lanes = []string{limits.DefaultLane}
	}
	info := flowfabric.WorkerInfo{
		Namespaces: append([]string{cmp.Or(cfg.Namespace, limits.DefaultNamespace)}, cfg.Namespaces...)}
	for _, c := range r.Capabilities {
		if !slices.Contains(cfg.Capabilities, c) {
			return false
		}
	}
	for _, b := range w.bindings {
		if b.Info().Kind == r.Kind {
			return engine.Serves(info, r.Namespace) && slices.Contains(cfg.Lanes, r.Lane)
		}
	}
	return false
}

// openings adds when the routes open that gates have closed. For an amount a gate is asked every 30 s whether it has
// room, which is the more often the longer it has none: it opens with its next period. What does not exist opens when
// somebody makes it.
func (w *Env) openings(ctx context.Context, partition uint16, o *outlook) error {
	p := keys.Of(partition)
	closings, err := w.hash(ctx, p.Closings())
	if err != nil {
		return err
	}
	for route, text := range closings {
		if _, err := strconv.ParseUint(route, 10, 64); err != nil { // it counts wakes, or says what gates measure
			continue
		}
		opens, err := w.opens(ctx, p, route, strings.Fields(text))
		if err != nil {
			return err
		}
		o.moves(opens)
	}
	return nil
}

// reopens is when a gate that keeps an execution waiting opens by itself; zero: never, or none does.
func (w *Env) reopens(ctx context.Context, s flowfabric.Snapshot) (opens time.Time, err error) {
	if len(s.Route.Gates) == 0 {
		return opens, nil
	}
	p, route := keys.Of(s.ID.Partition()), strconv.FormatUint(s.Route.ID, 10)
	closings, err := w.hash(ctx, p.Closings())
	if err != nil || closings[route] == "" {
		return opens, err
	}
	return w.opens(ctx, p, route, strings.Fields(closings[route]))
}

// opens is when one route opens, zero when only somebody's doing opens it.
func (w *Env) opens(ctx context.Context, p keys.Partition, route string, why []string) (opens time.Time, err error) {
	if len(why) >= 2 {
		switch {
		case why[0] == "gate_not_found":
			return opens, nil
		case why[0] == "gate" && len(why) > 2 && why[2] == "amount":
			root := keys.GateRoot(ids.GatePartition(why[1], limits.DefaultGatePartitions))
			b, err := w.hash(ctx, keys.Partition(root).Gate(why[1]))
			if err != nil || b["nx"] == "" {
				return opens, err
			}
			ms, err := strconv.ParseInt(b["nx"], 10, 64)
			return time.UnixMilli(ms), err
		}
	}
	opens, _, err = w.score(ctx, p.Closed(), route)
	return opens, err
}

// counts reports whether a nap uses up the patience of who waits for an execution: when no execution goes on by
// itself. With schedules there is no end of what is due, so then it is only the execution itself that counts, and the
// children it waits for.
func (w *Env) counts(ctx context.Context, id flowfabric.ExecutionID, o outlook) (bool, error) {
	if o.work.IsZero() || !o.schedules || id.IsZero() {
		return o.work.IsZero(), nil
	}
	for ids := []flowfabric.ExecutionID{id}; len(ids) > 0; ids = ids[1:] {
		s, err := w.client.Execution(ids[0]).Get(ctx)
		if err != nil {
			return false, err
		}
		moved := !s.DeadlineAt.IsZero() || !s.DelayUntil.IsZero()
		switch s.State.Public {
		case flowfabric.Suspended:
			u, err := w.client.Execution(ids[0]).Suspension(ctx)
			if err != nil {
				return false, err
			}
			moved = moved || !u.TimeoutAt.IsZero()
			if waitwords.OfChildren(u.Condition) {
				children, err := w.children(ctx, ids[0])
				if err != nil {
					return false, err
				}
				ids = append(ids, children...)
			}
		case flowfabric.WaitingChildren:
			children, err := w.children(ctx, ids[0])
			if err != nil {
				return false, err
			}
			ids = append(ids, children...)
		case flowfabric.Waiting, flowfabric.WaitingGate:
			opens, err := w.reopens(ctx, s)
			if err != nil {
				return false, err
			}
			moved = moved || !opens.IsZero()
		}
		if moved && !s.State.Terminal() {
			return false, nil
		}
	}
	return true, nil
}

// children lists those that an execution waits for, others that it did not make among them.
func (w *Env) children(ctx context.Context, id flowfabric.ExecutionID) (all []flowfabric.ExecutionID, err error) {
	hash, err := w.hash(ctx, keys.Of(id.Partition()).Children(ids.UUID(id)))
	if err != nil {
		return nil, err
	}
	for name := range hash { // some names are no executions
		partition := uint64(id.Partition())
		if number, other, ok := strings.Cut(name, "."); ok { // one that it did not make
			partition, _ = strconv.ParseUint(number, 10, 16)
			name = other
		}
		if child, err := ids.ParseUUID(name); err == nil {
			all = append(all, mint.Join(uint16(partition), child))
		}
	}
	return all, nil
}

// moves is sooner for a time at which an execution goes on.
func (o *outlook) moves(at time.Time) {
	o.work = earlier(o.work, at)
	o.sooner(at)
}

// sooner moves due to a time, if there is one and it is earlier.
func (o *outlook) sooner(at time.Time) { o.due = earlier(o.due, at) }

// earlier is the earlier one of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
