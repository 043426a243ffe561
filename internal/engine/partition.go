package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Timer is one of a partition's sets that are ordered by time.
type Timer struct {
	Count int
	Head  time.Time // the earliest entry's time; zero when there is none
}

// late is for how long the head has been due.
func (t Timer) late(now time.Time) time.Duration {
	if t.Head.IsZero() {
		return 0
	}
	return max(0, now.Sub(t.Head))
}

// FlowTally is what was counted of the flows of a partition since its store was made. It never goes down.
type FlowTally struct {
	Skipped                      int // members that were skipped
	Completed, Failed, Cancelled int // flows that ended so; one that was open again counts again
	Siblings                     SiblingCancels
}

// PartitionInfo is how a partition is.
type PartitionInfo struct {
	Partition    uint16
	Now          time.Time // the server's, with which the times that follow are compared
	Protocol     int
	Frozen       bool
	FrozenReason string
	Booted       time.Time
	Wake         time.Time // when a tick is due; zero when nothing waits for one
	Owner        string    // the process that ticks, "" when there is none
	TickOverdue  bool      // nobody ticks although it is time
	Table        uint64    // version of the route table
	Recording    string    // what is recorded in the feed and until when; "" when nobody wants to know

	Ready  int // routes that have work which is handed out, those with gates included
	Routes int
	Lanes  int // that an operator said something about
	Feed   int // entries

	Delayed   Timer
	Alarms    Timer // deadlines, attempt and suspension timeouts
	Sessions  Timer // a head that is due may belong to a session that was renewed since: the tick files it anew
	Pending   Timer // waitpoints that are not yet waited for
	Parked    Timer // suspended executions, by when they were suspended
	Done      Timer // ended executions, by when they may be purged
	Workers   Timer // registered instances, by expiry
	Schedules Timer // that are not paused

	Blocked Timer // members of flows that wait for others, or for the release of their flow, by when they were created
	Flows   Timer // retained ones, by when they were created
	FlowDue Timer // flows that were staged and are to be given up, or are empty and to be forgotten
	Backlog Timer // unfinished work of flows, by when it was looked at last
	Tally   FlowTally

	Ends Ends // since the store was made

	// since the store was made: tokens of waitpoints that opened nothing, or whose key was rotated out
	TokensRefused int

	Closed Timer // routes that gates closed, by when they open again
	Held   Timer // executions that operators hold, by since when
	Outbox Timer // what budgets and quotas have not been told of, by when it was filed

	Err error // of this partition, where many are asked
}

// Ends counts executions that were purged, and how often one ended in each way: one that is replayed ends again.
type Ends struct {
	Purged, Completed, Failed, Cancelled, Expired, Skipped int
}

// Lag is for how long the tick of this partition has been owing something: the time since the earliest thing came due
// that waits for it. It stays below a second while somebody ticks.
func (p PartitionInfo) Lag() time.Duration {
	most := time.Duration(0)
	for _, t := range []Timer{p.Delayed, p.Alarms, p.Sessions, p.Pending, p.Done, p.Schedules, p.FlowDue, p.Closed} {
		most = max(most, t.late(p.Now))
	}
	return most
}

// Behind is for how long the first piece of unfinished work of flows has waited for its turn: what a call about a
// flow leaves behind is worked off by ticks, some thousand members a second.
func (p PartitionInfo) Behind() time.Duration { return p.Backlog.late(p.Now) }

// Undelivered is for how long the oldest entry of the outbox has waited for budgets and quotas to be told: as long
// slots that are free may look taken. It stays below a second while somebody ticks and the partitions of budgets and
// quotas answer.
func (p PartitionInfo) Undelivered() time.Duration { return p.Outbox.late(p.Now) }

// DescribePartition reads how a partition is (lua/operate/ff_describe_partition.lua), also while it is frozen.
func (e *Engine) DescribePartition(ctx context.Context, partition uint16) (PartitionInfo, error) {
	r, _, err := ask[wire.DescribePartitionReply](ctx, e, partition, wire.DescribePartition{})
	if err != nil {
		return PartitionInfo{}, err
	}
	p := PartitionInfo{Partition: partition, Now: r.Now, Protocol: r.Protocol, Frozen: r.Frozen, FrozenReason: r.Reason,
		Wake: r.Wake, Owner: r.Owner, TickOverdue: r.Overdue, Booted: r.Booted, Table: uint64(r.Table),
		Recording: r.Feed, Ready: r.Ready, Routes: r.Routes, Lanes: r.Lanes, Feed: r.Fed}
	t, x, s := &p.Tally, &p.Ends, &p.Tally.Siblings
	return p, unread(fnDescribe.name, cmp.Or(
		timers("sets", r.Sets, &p.Delayed, &p.Alarms, &p.Sessions, &p.Pending, &p.Parked, &p.Done, &p.Workers,
			&p.Schedules),
		timers("sets of flows", r.Flows, &p.Blocked, &p.Flows, &p.FlowDue, &p.Backlog),
		spread("tallies", r.Tallies, &t.Skipped, &t.Completed, &t.Failed, &t.Cancelled, &s.Cancelled,
			&s.AlreadyTerminal, &s.NotFound, &s.Spared, &p.TokensRefused),
		timers("sets of gates", r.Gates, &p.Closed, &p.Held, &p.Outbox),
		spread("ends", r.Ends, &x.Purged, &x.Completed, &x.Failed, &x.Cancelled, &x.Expired, &x.Skipped)))
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

func timers[T ~struct {
	Count int
	Head  time.Time
}](what string, rows []T, to ...*Timer) error {
	list := make([]Timer, len(rows))
	for i, x := range rows {
		list[i] = Timer(x)
	}
	return spread(what, list, to...)
}
