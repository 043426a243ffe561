package admin

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Partition is how a partition is.
type Partition struct {
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

	Skipped                                     int // members of flows that were skipped, since the store was made
	FlowsCompleted, FlowsFailed, FlowsCancelled int // flows that ended so; one that was open again counts again
	Siblings                                    flowfabric.SiblingCancels

	Totals Totals // since the store was made

	// since the store was made: tokens of waitpoints that opened nothing, or whose key was rotated out
	TokensRefused int

	Closed Timer // routes that gates closed, by when they open again
	Held   Timer // executions that operators hold, by since when
	Outbox Timer // what budgets and quotas have not been told of, by when it was filed

	// Lag is for how long the first thing that time moves has been due: far above a second, nobody ticks.
	Lag time.Duration
	// Behind is for how long the first piece of unfinished work of flows has waited for its turn: ticks work it off,
	// some thousand members a second.
	Behind time.Duration
	// Undelivered is for how long the oldest message to budgets and quotas has waited: as long slots that are free
	// may look taken. It stays below a second while somebody ticks.
	Undelivered time.Duration

	Err error // why the partition did not answer
}

// Totals counts executions that were purged, and how often one ended in each way: one that is replayed ends again.
// Failed are those whose attempts failed; what timed out is among Expired. The difference of two looks is what
// happened in between.
type Totals struct {
	Purged, Completed, Failed, Cancelled, Expired, Skipped int
}

// Ended is the sum of all ways to end.
func (t Totals) Ended() int { return t.Completed + t.Failed + t.Cancelled + t.Expired + t.Skipped }

// Timer is what waits in a partition, in the order of a time.
type Timer struct {
	Count int
	Head  time.Time // the earliest; zero when nothing waits
}

func newPartition(p engine.PartitionInfo) Partition {
	return Partition{Partition: p.Partition, Now: p.Now, Protocol: p.Protocol, Frozen: p.Frozen,
		FrozenReason: p.FrozenReason, Booted: p.Booted, Wake: p.Wake, Owner: p.Owner, TickOverdue: p.TickOverdue,
		Table: p.Table, Recording: p.Recording, Ready: p.Ready, Routes: p.Routes, Lanes: p.Lanes, Feed: p.Feed,
		Delayed: Timer(p.Delayed), Alarms: Timer(p.Alarms), Sessions: Timer(p.Sessions), Pending: Timer(p.Pending),
		Parked: Timer(p.Parked), Done: Timer(p.Done), Workers: Timer(p.Workers), Schedules: Timer(p.Schedules),
		Blocked: Timer(p.Blocked), Flows: Timer(p.Flows), FlowDue: Timer(p.FlowDue), Backlog: Timer(p.Backlog),
		Skipped: p.Tally.Skipped, FlowsCompleted: p.Tally.Completed, FlowsFailed: p.Tally.Failed,
		FlowsCancelled: p.Tally.Cancelled, Siblings: p.Tally.Siblings, Totals: Totals(p.Ends),
		TokensRefused: p.TokensRefused, Closed: Timer(p.Closed), Held: Timer(p.Held), Outbox: Timer(p.Outbox),
		Lag: p.Lag(), Behind: p.Behind(), Undelivered: p.Undelivered()}
}

// Partitions tells how every partition is, in order: which process ticks it and whether that is overdue, whether it
// is frozen and why, how much waits for a time and since when something is due. A partition that does not answer has
// its error in Err; the error names all of those.
//
// Errors: a [*PartitionsError]; client.ErrClosed.
func (a *Admin) Partitions(ctx context.Context) ([]Partition, error) {
	if a.closed() {
		return nil, fmt.Errorf("describe partitions: %w", client.ErrClosed)
	}
	out := make([]Partition, a.store.Partitions())
	failed := a.eachPartition(func(p uint16) error {
		info, err := a.store.DescribePartition(ctx, p)
		out[p] = newPartition(info)
		out[p].Partition, out[p].Err = p, err
		return err
	})
	return out, failed.sum("describe partitions", len(out))
}

// Freeze makes a partition refuse every call (flowfabric.ErrPartitionFrozen) until [Admin.Thaw], so that its slot can
// be moved key by key. Workers, submits and waits repeat what is refused; leases go on running out. The partition
// keeps why. Freezing twice is no error.
//
// Errors: flowfabric.ErrInvalidInput for a partition that the store does not have; ErrTransport; client.ErrClosed.
func (a *Admin) Freeze(ctx context.Context, partition uint16, opts ...flowfabric.ActOption) error {
	act, err := a.act(opts)
	if err = cmp.Or(a.conn.Closed(), err); err == nil {
		err = a.store.FreezePartition(act.Noted(ctx, "freeze", "partition", strconv.Itoa(int(partition))), partition,
			act.Words())
	}
	if err != nil {
		return fmt.Errorf("freeze partition %d: %w", partition, err)
	}
	return nil
}

// Thaw ends a freeze. Thawing a partition that is not frozen is no error. Errors: those of [Admin.Freeze].
func (a *Admin) Thaw(ctx context.Context, partition uint16, opts ...flowfabric.ActOption) error {
	act, err := a.act(opts)
	if err = cmp.Or(a.conn.Closed(), err); err == nil {
		err = a.store.ThawPartition(act.Noted(ctx, "thaw", "partition", strconv.Itoa(int(partition))), partition)
	}
	if err != nil {
		return fmt.Errorf("thaw partition %d: %w", partition, err)
	}
	return nil
}
