package partmetrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
)

const (
	// sampleEvery is how old a sample must be before a scrape leads to another.
	sampleEvery = 15 * time.Second
	// sampleCalls is how many partitions are read at the same time.
	sampleCalls   = 2
	sampleTimeout = 5 * time.Second
	// maxQueueLabels bounds the queues that have series of their own; producers choose lanes and kinds.
	maxQueueLabels = 256
	// maxGateLabels bounds the gates that have series of their own: those for which most waits.
	maxGateLabels = 64
	// sampleQueues is how many queues of a partition are read; of more, a scrape tells of some.
	sampleQueues = 4096
)

// sampler reads, for the partitions whose ticks a loop makes, how long their queues are and what is late there. It
// reads when it is asked to, which a scrape does, and seldom: who is not scraped costs nothing.
type sampler struct {
	store   Store
	tended  *tended
	log     *slog.Logger
	metrics *Metrics
	wake    chan struct{} // capacity 1

	mu      sync.Mutex
	samples map[uint16]sample
	tallies map[uint16]flowfabric.Partition // of owned partitions, what was recorded last
	refused map[uint16]int                  // likewise
}

// sample is how a partition was.
type sample struct {
	at     time.Time // here
	info   flowfabric.Partition
	queues []engine.Queue // nil while the partition is frozen
	closed []engine.Closing
}

func newSampler(m *Metrics, store Store, owned *tended, log *slog.Logger) *sampler {
	return &sampler{store: store, tended: owned, log: log, metrics: m, wake: make(chan struct{}, 1),
		samples: map[uint16]sample{}, tallies: map[uint16]flowfabric.Partition{}, refused: map[uint16]int{}}
}

// ask has samples taken, unless they are young. It never blocks.
func (s *sampler) ask() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// keep takes samples until ctx ends.
func (s *sampler) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		calls := pool.New().WithMaxGoroutines(sampleCalls)
		for _, p := range s.due(time.Now()) {
			calls.Go(func() { s.take(ctx, p) })
		}
		calls.Wait()
	}
}

// due lists the owned partitions without a young sample, and forgets those that are others' now.
func (s *sampler) due(now time.Time) (due []uint16) {
	owned := map[uint16]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.tended.partitions() {
		owned[p] = true
		if last, ok := s.samples[p]; !ok || now.Sub(last.at) >= sampleEvery {
			due = append(due, p)
		}
	}
	for p := range s.samples {
		if !owned[p] {
			delete(s.samples, p)
		}
	}
	for p := range s.tallies {
		if !owned[p] {
			delete(s.tallies, p)
			delete(s.refused, p)
		}
	}
	return due
}

// take reads one partition. Without an answer the old sample is forgotten: no news is better than wrong news.
func (s *sampler) take(ctx context.Context, partition uint16) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	now := sample{at: time.Now()}
	var err error
	if now.info, err = s.store.DescribePartition(ctx, partition); err == nil && !now.info.Frozen {
		now.queues, err = s.store.Queues(ctx, partition, "", sampleQueues)
		if err == nil && now.info.Closed.Count > 0 {
			var gates engine.PartitionGates
			gates, err = s.store.ReadGates(ctx, partition)
			now.closed = gates.Closed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.samples, partition)
		return
	}
	if last, ok := s.tallies[partition]; ok {
		s.metrics.flowed(last, now.info)
	}
	s.tallies[partition] = now.info
	if last, ok := s.refused[partition]; ok && now.info.TokensRefused > last {
		s.metrics.tokensRefused.Add(float64(now.info.TokensRefused - last))
		s.log.Warn(
			"flowfabric: waitpoint tokens were refused: forged or cut links, or tokens of a key that was rotated out",
			"partition", partition,
			"count", now.info.TokensRefused-last)
	}
	s.refused[partition] = now.info.TokensRefused
	s.samples[partition] = now
}

// queue names what is counted together: the queues of all partitions and capabilities.
type queue struct{ namespace, lane, kind, state string }

// depth is how much waits in a queue, and since when.
type depth struct {
	waiting int
	oldest  time.Duration
}

// sampled is what all samples of a process say together.
type sampled struct {
	queues        map[queue]depth
	indexes       map[string]int
	timers, purge time.Duration
	frozen        int
	flows         int
	backlog       int
	behind        time.Duration
	gates         gatetext.UsedUp
}

func newSampled() *sampled {
	return &sampled{queues: map[queue]depth{}, indexes: map[string]int{}, gates: gatetext.UsedUp{}}
}

// add adds the samples of a loop. What was late has become later since.
func (all *sampled) add(s *sampler, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, x := range s.samples {
		if !s.tended.owns(p) {
			continue
		}
		since := now.Sub(x.at)
		if x.info.Frozen {
			all.frozen++
		}
		all.indexes["delayed"] += x.info.Delayed.Count
		all.indexes["suspended"] += x.info.Suspended.Count
		all.indexes["ended"] += x.info.Ended.Count
		all.indexes["blocked"] += x.info.Blocked.Count
		all.flows += x.info.Flows.Count
		all.backlog += x.info.Backlog.Count
		all.behind = max(all.behind, time.Duration(x.info.Behind))
		all.timers = max(all.timers, time.Duration(x.info.Lag))
		all.purge = max(all.purge, engine.DueFor(x.info.Ended, x.info.Now))
		for _, c := range x.closed {
			all.gates.Add(gatetext.WhyClosed(c.Why), c.Waiting)
		}
		for _, q := range x.queues {
			all.queue(q, x.info.Now, since)
		}
	}
}

func (all *sampled) queue(q engine.Queue, now time.Time, since time.Duration) {
	name := queue{q.Route.Namespace, q.Route.Lane, q.Route.Kind, q.State}
	if _, ok := all.queues[name]; !ok && len(all.queues) >= maxQueueLabels {
		name = queue{"other", "other", "other", q.State}
	}
	d := all.queues[name]
	d.waiting += q.Depth
	if !q.Oldest.IsZero() {
		d.oldest = max(d.oldest, now.Sub(q.Oldest)+since)
	}
	all.queues[name] = d
}
