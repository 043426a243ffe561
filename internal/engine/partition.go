package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// DueFor is for how long, at a time, the head of a timer has been due.
func DueFor(t flowfabric.Timer, now time.Time) time.Duration {
	if t.Head.IsZero() {
		return 0
	}
	return max(0, now.Sub(t.Head))
}

// DescribePartition reads how a partition is (lua/operate/ff_describe_partition.lua), also while it is frozen.
func (e *Engine) DescribePartition(ctx context.Context, partition uint16) (flowfabric.Partition, error) {
	r, _, err := ask[wire.DescribePartitionReply](ctx, e, partition, wire.DescribePartition{})
	if err != nil {
		return flowfabric.Partition{}, err
	}
	p := flowfabric.Partition{Partition: partition, Now: r.Now, Protocol: r.Protocol, Frozen: r.Frozen,
		FrozenReason: r.Reason, WakeAt: r.Wake, Owner: r.Owner, TickOverdue: r.Overdue, BootedAt: r.Booted,
		Table: uint64(r.Table), Recording: r.Feed, Ready: r.Ready, Routes: r.Routes, Lanes: r.Lanes, Feed: r.Fed}
	x, t, s := &p.Totals, &p.FlowTotals, &p.Siblings
	err = cmp.Or(
		timers("sets", r.Sets, &p.Delayed, &p.Alarms, &p.Sessions, &p.Pending, &p.Suspended, &p.Ended, &p.Workers,
			&p.Schedules),
		timers("sets of flows", r.Flows, &p.Blocked, &p.Flows, &p.FlowDue, &p.Backlog),
		spread("tallies", r.Tallies, &t.Skipped, &t.Completed, &t.Failed, &t.Cancelled, &s.Cancelled,
			&s.AlreadyTerminal, &s.NotFound, &s.Spared, &p.TokensRefused),
		timers("sets of gates", r.Gates, &p.Closed, &p.Held, &p.Outbox),
		spread("ends", r.Ends, &x.Purged, &x.Completed, &x.Failed, &x.Cancelled, &x.Expired, &x.Skipped))
	for _, t := range []flowfabric.Timer{p.Delayed, p.Alarms, p.Sessions, p.Pending, p.Ended, p.Schedules, p.FlowDue,
		p.Closed} {
		p.Lag = max(p.Lag, flowfabric.Millis(DueFor(t, p.Now)))
	}
	p.Behind = flowfabric.Millis(DueFor(p.Backlog, p.Now))
	p.Undelivered = flowfabric.Millis(DueFor(p.Outbox, p.Now))
	return p, unread("ff_describe_partition", err)
}

// spread puts what is answered by place where it belongs.
func spread[T any](what string, list []T, to ...*T) error {
	if len(list) != len(to) {
		return fmt.Errorf("%d %s, want %d", len(list), what, len(to))
	}
	for i, x := range list {
		*to[i] = x
	}
	return nil
}

// timers is spread for sets that are ordered by a time.
func timers[T ~struct {
	Count int
	Head  time.Time
}](what string, rows []T, to ...*flowfabric.Timer) error {
	list := make([]flowfabric.Timer, len(rows))
	for i, x := range rows {
		list[i] = flowfabric.Timer(struct {
			Count int
			Head  time.Time
		}(x))
	}
	return spread(what, list, to...)
}
