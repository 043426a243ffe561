package runtime

import (
	"context"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/engine"
)

const (
	pollEvery  = time.Second
	pollJitter = 0.25 // so that instances do not poll in step
	// pollTimeout bounds one poll.
	pollTimeout = 5 * time.Second
	// pollTurns is how many polls in a cluster, where each partition is a call, go by until every one was asked.
	pollTurns = 16
	// A process that dies leaves many ticks undone, which become overdue within a second of each other: who hears
	// of one that is new listens closely for a while, but not all the time, in case the server is merely slow.
	alertEvery = 500 * time.Millisecond
	alertFor   = 2 * time.Second
	alertPause = 10 * time.Second // between the beginnings of two alerts
)

// poll is what finds work when a ring was lost, and nobody when a tick is overdue: off-cluster one call over
// all partitions, in a cluster some partitions in rotation. It is made about once a second: more seldom would save
// little, and would leave the tick of a dead owner undone for longer.
func (r *run) poll(ctx context.Context) {
	p := newPoller(r)
	pause := newBackoff(pollEvery, pollEvery)
	pause.RandomizationFactor = pollJitter
	for {
		wait := pause.NextBackOff()
		if p.alert(time.Now()) {
			wait = alertEvery
		}
		sleep(ctx, wait)
		if ctx.Err() != nil {
			return
		}
		r.sched.sweep(time.Now())
		missed, err := p.once(ctx)
		if ctx.Err() != nil {
			return
		}
		r.metrics.polled(missed, err)
	}
}

// poller remembers from poll to poll which ticks are overdue and which partitions come next.
type poller struct {
	*run
	all     []uint16
	next    int       // in a cluster: index of the first partition of the next poll
	overdue []bool    // by partition, as last heard
	until   time.Time // end of the alert
	quiet   time.Time // no new alert before
}

func newPoller(r *run) *poller {
	p := &poller{run: r, all: make([]uint16, len(r.sched.partitions)), overdue: make([]bool, len(r.sched.partitions))}
	for i := range p.all {
		p.all[i] = uint16(i)
	}
	return p
}

func (p *poller) alert(now time.Time) bool { return now.Before(p.until) }

// turn is which partitions to ask now.
func (p *poller) turn(now time.Time) []uint16 {
	if !p.store.Cluster() || p.alert(now) {
		return p.all
	}
	n := (len(p.all) + pollTurns - 1) / pollTurns
	turn := make([]uint16, n)
	for i := range turn {
		turn[i] = p.all[(p.next+i)%len(p.all)]
	}
	p.next = (p.next + n) % len(p.all)
	return turn
}

// once makes one poll and returns how many partitions became hot by it.
func (p *poller) once(ctx context.Context) (missed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	states, err := p.ask(ctx, p.turn(time.Now()))
	if err != nil {
		p.stopIfFatal(err) // else the claims and the subscription tell the same, and log it
	}
	if len(states) > 0 {
		p.health.success()
	}
	for _, s := range states {
		if int(s.Partition) >= len(p.all) {
			continue
		}
		p.heard(s, time.Now())
		if s.Ready > 0 && p.slots.free() > 0 && p.sched.suspect(p.sched.partitions[s.Partition]) {
			missed++
		}
	}
	return missed, err
}

// ask makes the calls of one poll: off-cluster one, in a cluster one for each partition, which the driver sends together.
// With an error come the answers of the others.
func (p *poller) ask(ctx context.Context, partitions []uint16) ([]engine.PollState, error) {
	if !p.store.Cluster() {
		return p.store.Poll(ctx, partitions)
	}
	answers := make([][]engine.PollState, len(partitions))
	calls := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(pollTurns)
	for i := range partitions {
		calls.Go(func() (err error) {
			answers[i], err = p.store.Poll(ctx, partitions[i:i+1])
			return err
		})
	}
	err := calls.Wait()
	states := make([]engine.PollState, 0, len(partitions))
	for _, a := range answers {
		states = append(states, a...)
	}
	return states, err
}

// heard passes an overdue tick on and, when it is news to a process that could take it over, begins an alert.
func (p *poller) heard(s engine.PollState, now time.Time) {
	news := s.TickOverdue && !p.overdue[s.Partition]
	switch {
	case news:
		p.late.Add(1)
	case !s.TickOverdue && p.overdue[s.Partition]:
		p.late.Add(-1)
	}
	p.overdue[s.Partition] = s.TickOverdue
	if s.TickOverdue {
		p.tickOverdue(s.Partition)
	}
	if news && p.ticks != nil && !now.Before(p.quiet) {
		p.until, p.quiet = now.Add(alertFor), now.Add(alertPause)
	}
}
