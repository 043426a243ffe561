package source

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

const (
	pollEvery  = time.Second // by each of a few workers
	pollJitter = 0.25        // so that instances do not poll in step
	// fleetPolls is how many polls a second all workers make together once they are more than that: each then polls
	// more seldom, but none more seldom than pollSeldom, or than keeps it ready. Still more workers ask for a part of
	// the partitions each.
	fleetPolls = 4
	pollSeldom = 8 * time.Second
	// pollTimeout bounds one poll.
	pollTimeout = 5 * time.Second
	// pollTurns is how many polls in a cluster, where each partition is a call, go by until every one was asked.
	pollTurns = 16
	// clusterPolls is how many polls a second a partition of a cluster gets at least from a fleet that is so large
	// that a worker can ask for a smaller part than one of pollTurns.
	clusterPolls = 1
	// A process that dies leaves many ticks undone, which become overdue within a second of each other: who hears
	// of one that is new listens closely for a while, but not all the time, in case the server is merely slow.
	alertEvery = 500 * time.Millisecond
	alertFor   = 2 * time.Second
	alertPause = 10 * time.Second // between the beginnings of two alerts
)

// poller remembers from poll to poll which ticks are overdue and which partitions come next.
type poller struct {
	cfg  *ListenerConfig
	late atomic.Int32 // partitions whose tick is overdue, as heard last

	all     []uint16
	next    int       // index of the first partition of the next poll
	overdue []bool    // by partition, as last heard
	workers []int     // registered in each partition, as last heard, off-cluster all in the first; -1 is not known yet
	failed  bool      // the last poll
	until   time.Time // end of the alert
	quiet   time.Time // no new alert before
}

func newPoller(cfg *ListenerConfig) *poller {
	n := int(cfg.Engine.Partitions())
	p := &poller{cfg: cfg, all: make([]uint16, n), overdue: make([]bool, n), next: rand.N(n)}
	for i := range p.all {
		p.all[i] = uint16(i)
		p.workers = append(p.workers, -1)
	}
	return p
}

// keep polls until ctx ends. A poll is what finds work when a ring was lost, and nobody when a tick is overdue:
// off-cluster one call over all partitions, in a cluster some partitions in rotation. It is made about once a second,
// so that the tick of a dead owner is not left undone for longer; many workers share that out among them, since one
// poll finds it for all.
func (p *poller) keep(ctx context.Context) {
	for {
		sleep(ctx, p.pause(time.Now()))
		if ctx.Err() != nil {
			return
		}
		for _, s := range p.cfg.Sources() {
			s.sweep(time.Now())
		}
		if !p.cfg.PollIdle && !p.wanted() {
			continue
		}
		answered, missed, err := p.once(ctx)
		p.failed = err != nil
		if ctx.Err() != nil {
			return
		}
		p.cfg.OnPoll(answered, missed, err)
	}
}

// wanted reports whether some source has room.
func (p *poller) wanted() bool {
	return slices.ContainsFunc(p.cfg.Sources(), func(s *Source) bool { return s.cfg.Room.Free() })
}

// pause is how long to wait before the next poll.
func (p *poller) pause(now time.Time) time.Duration {
	switch {
	case p.alert(now):
		return alertEvery
	case p.failed:
		return jittered(p.cfg.PollEvery)
	}
	return jittered(min(max(p.cfg.PollEvery, p.wished()), p.most()))
}

// wished is between two polls of a worker when all of them make fleetPolls, and most is what keeps this one ready.
func (p *poller) wished() time.Duration { return time.Duration(p.fleet()) * time.Second / fleetPolls }
func (p *poller) most() time.Duration   { return max(p.cfg.PollEvery, min(pollSeldom, p.cfg.Window/2)) }

// jittered varies a pause by pollJitter.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - pollJitter + 2*pollJitter*rand.Float64()))
}

// fleet is about how many workers are registered: those that were counted, and as many in the partitions that were
// not asked yet.
func (p *poller) fleet() int {
	if !p.cfg.Engine.Cluster() {
		return p.workers[0]
	}
	sum, known := 0, 0
	for _, n := range p.workers {
		if n >= 0 {
			sum, known = sum+n, known+1
		}
	}
	return sum * len(p.all) / max(known, 1)
}

func (p *poller) alert(now time.Time) bool { return now.Before(p.until) }

// turn is which partitions to ask now.
func (p *poller) turn(now time.Time) []uint16 {
	n := len(p.all)
	switch wished := p.wished(); {
	case p.alert(now):
	case p.cfg.Engine.Cluster():
		enough := time.Duration(n) * clusterPolls * p.most() / max(time.Duration(p.fleet())*time.Second, 1)
		n = min((n+pollTurns-1)/pollTurns, int(enough)+1)
	case wished > p.most(): // as many partitions a second are asked for as if it polled as seldom as wished
		n = int((time.Duration(n)*p.most() + wished - 1) / wished)
	}
	if n == len(p.all) {
		return p.all
	}
	turn := make([]uint16, n)
	for i := range turn {
		turn[i] = p.all[(p.next+i)%len(p.all)]
	}
	p.next = (p.next + n) % len(p.all)
	return turn
}

// once makes one poll. It tells whether anything answered, and how many partitions became hot by it.
func (p *poller) once(ctx context.Context) (answered bool, missed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	states, err := p.ask(ctx, p.turn(time.Now()))
	for _, s := range states {
		if int(s.Partition) >= len(p.all) {
			continue
		}
		p.heard(s, time.Now())
		if s.Ready > 0 && p.suspect(s.Partition) {
			missed++
		}
	}
	return len(states) > 0, missed, err
}

// suspect has the sources with room look at a partition that has ready routes.
func (p *poller) suspect(partition uint16) (missed bool) {
	for _, s := range p.cfg.Sources() {
		if s.cfg.Room.Free() && s.suspect(s.partitions[partition], time.Now()) {
			missed = true
		}
	}
	return missed
}

// ask makes the calls of one poll: off-cluster one, in a cluster one for each partition, which the driver sends
// together. With an error come the answers of the others.
func (p *poller) ask(ctx context.Context, partitions []uint16) ([]engine.PollState, error) {
	if !p.cfg.Engine.Cluster() {
		states, workers, err := p.cfg.Engine.Poll(ctx, partitions)
		if err == nil {
			p.workers[0] = (workers*len(p.all) + len(partitions) - 1) / len(partitions)
		}
		return states, err
	}
	answers := make([][]engine.PollState, len(partitions))
	calls := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(pollTurns)
	for i := range partitions {
		calls.Go(func() (err error) {
			var workers int
			if answers[i], workers, err = p.cfg.Engine.Poll(ctx, partitions[i:i+1]); err == nil {
				p.workers[partitions[i]] = workers
			}
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
		p.cfg.OnOverdue(s.Partition)
	}
	if news && p.cfg.Alert && !now.Before(p.quiet) {
		p.until, p.quiet = now.Add(alertFor), now.Add(alertPause)
	}
}
