package runtime

import (
	"context"
	"time"
)

const (
	pollEvery = time.Second // ±50 %, so that instances do not poll in step
	// pollTimeout bounds one poll.
	pollTimeout = 5 * time.Second
)

// poll is what finds work when a ring was lost, and nobody when a tick is overdue: off-cluster one call over
// all partitions, in a cluster one partition in rotation. It is made about once a second: more seldom would save
// little, and would leave the tick of a dead owner undone for longer.
func (r *run) poll(ctx context.Context) {
	pause := newBackoff(pollEvery, pollEvery)
	all := make([]uint16, len(r.sched.partitions))
	for i := range all {
		all[i] = uint16(i)
	}
	for turn := 0; ; turn++ {
		sleep(ctx, pause.NextBackOff())
		if ctx.Err() != nil {
			return
		}
		r.sched.sweep(time.Now())
		partitions := all
		if r.store.Cluster() {
			i := turn % len(all)
			partitions = all[i : i+1]
		}
		missed, err := r.pollOnce(ctx, partitions)
		if ctx.Err() != nil {
			return
		}
		r.metrics.polled(missed, err)
	}
}

// pollOnce makes one poll and returns how many partitions became hot by it.
func (r *run) pollOnce(ctx context.Context, partitions []uint16) (missed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	states, err := r.store.Poll(ctx, partitions)
	if err != nil {
		r.stopIfFatal(err)
		return 0, err // the claims and the subscription tell the same, and log it
	}
	r.health.success()
	for _, s := range states {
		if s.TickOverdue {
			r.tickOverdue(s.Partition)
		}
		if s.Ready > 0 && int(s.Partition) < len(r.sched.partitions) && r.slots.free() > 0 &&
			r.sched.suspect(r.sched.partitions[s.Partition]) {
			missed++
		}
	}
	return missed, nil
}
