// Package partmetrics tells Prometheus of partitions: what their ticks bring about, how long their queues are, and
// what is late. Workers and `flowfabric serve` use it. A process tells of the partitions whose ticks it makes, and of
// no others, so a sum over processes counts every partition once; docs/reference/metrics.md says what each metric
// means.
package partmetrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// tickLagBuckets are the bounds, in seconds, of the histogram of late ticks.
var tickLagBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 2, 5, 15}

// Store is what is read of partitions; the reads do not hold up the work.
type Store interface {
	Partitions() uint16
	Queues(ctx context.Context, partition uint16, namespace string, most int) ([]engine.Queue, error)
	DescribePartition(ctx context.Context, partition uint16) (flowfabric.Partition, error)
	ReadGates(ctx context.Context, partition uint16) (engine.PartitionGates, error)
}

// Metrics is one collector for all loops of a process that keep time. No label carries an id or an error's text.
type Metrics struct {
	ticks      *prometheus.CounterVec // result: owner, refused
	effects    *prometheus.CounterVec // effect
	tickLag    prometheus.Histogram
	firings    *prometheus.CounterVec // outcome
	missed     *prometheus.CounterVec // reason
	deliveries *prometheus.CounterVec // result: ok, error
	reckoned   prometheus.Counter

	flows         *prometheus.CounterVec // state
	siblings      *prometheus.CounterVec // disposition
	skipped       prometheus.Counter
	tokensRefused prometheus.Counter

	gauges gauges

	mu      sync.Mutex
	watches map[*Watch]struct{}
}

// New makes the collector; all names begin with prefix.
func New(prefix string) *Metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	m := &Metrics{
		ticks: vec("ticks_total",
			"Ticks answered, by result: owner, refused (another process owns the partition's tick).", "result"),
		effects: vec("tick_effects_total", "What ticks of owned partitions brought about, by effect.", "effect"),
		tickLag: prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + "tick_lag_seconds",
			Help: "How late ticks of owned partitions began.", Buckets: tickLagBuckets}),
		firings: vec("schedule_firings_total",
			"Instants of schedules that this process fired, by what became of them.", "outcome"),
		missed: vec("schedule_missed_total", "Instants of schedules that this process found missed, by why.",
			"reason"),
		deliveries: vec("outbox_deliveries_total", "Deliveries of outboxes to gates by result: ok, error.",
			"result"),
		reckoned: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "reckoned_total",
			Help: "Reservations that this process ended because their leases were over: charged in full, or given back."}),

		flows: vec("flows_ended_total",
			"Flows that ended in owned partitions, by state: completed, failed, cancelled.", "state"),
		siblings: vec("sibling_cancels_total",
			"Members that a decided group did not need any more, by what became of them: cancelled, already_terminal, not_found, spared.",
			"disposition"),
		skipped: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "skipped_total",
			Help: "Members of flows that were skipped in owned partitions."}),
		tokensRefused: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "tokens_refused_total",
			Help: "Tokens of waitpoints that were refused in owned partitions."}),

		gauges:  newGauges(prefix),
		watches: map[*Watch]struct{}{},
	}
	for _, state := range []string{"completed", "failed", "cancelled"} { // so that a rate begins at zero
		m.flows.WithLabelValues(state)
	}
	for _, disposition := range []string{"cancelled", "already_terminal", "not_found", "spared"} {
		m.siblings.WithLabelValues(disposition)
	}
	for _, result := range []string{"ok", "error"} {
		m.deliveries.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) counters() []prometheus.Collector {
	return []prometheus.Collector{m.ticks, m.effects, m.tickLag, m.firings, m.missed, m.deliveries, m.reckoned, m.flows,
		m.siblings, m.skipped, m.tokensRefused}
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.counters() {
		c.Describe(out)
	}
	m.gauges.describe(out)
}

// Collect implements [prometheus.Collector]. It asks nobody but this process.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.counters() {
		c.Collect(out)
	}
	m.collect(out)
}

// Watch is what one loop of package maintain tells. Its methods that end in -ed, and Lag, are that loop's hooks; all
// of them may be called concurrently and never block.
type Watch struct {
	metrics *Metrics
	total   int
	tended  *tended
	samples *sampler
}

// Watch makes one for a loop that begins; what it tells is counted at once, its gauges from [Watch.Run] on.
func (m *Metrics) Watch(store Store, log *slog.Logger) *Watch {
	w := &Watch{metrics: m, total: int(store.Partitions()), tended: &tended{}}
	w.samples = newSampler(m, store, w.tended, log)
	return w
}

// Run shows the gauges of this loop, and reads its partitions when somebody scrapes, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	w.show(true)
	defer w.show(false)
	w.samples.keep(ctx)
}

func (w *Watch) show(on bool) {
	w.metrics.mu.Lock()
	defer w.metrics.mu.Unlock()
	if on {
		w.metrics.watches[w] = struct{}{}
	} else {
		delete(w.metrics.watches, w)
	}
}

// Lag records how late a tick began.
func (w *Watch) Lag(_ uint16, lag time.Duration) { w.metrics.tickLag.Observe(max(lag, 0).Seconds()) }

// Ticked records an answered tick.
func (w *Watch) Ticked(partition uint16, reply engine.TickReply) {
	w.metrics.ticked(reply)
	w.tended.told(partition, reply)
}

// Delivered records what gates were told.
func (w *Watch) Delivered(partition uint16, entries int, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	w.metrics.deliveries.WithLabelValues(result).Inc()
	w.tended.delivered(partition, entries)
}

// Reckoned records how many reservations of a partition of gates were ended for dead leases.
func (w *Watch) Reckoned(_ uint16, ended int, _ error) { w.metrics.reckoned.Add(float64(ended)) }

// Fired records a step of a schedule.
func (w *Watch) Fired(_ uint16, call engine.Firing, answer engine.Fired) {
	m := w.metrics
	if call.Missed.Count > 0 {
		m.missed.WithLabelValues(call.Missed.Reason).Add(float64(call.Missed.Count))
	}
	switch answer.Outcome {
	case engine.FireCreated, engine.FireKnown:
		m.firings.WithLabelValues("fired").Inc()
	case engine.FireOverlap, engine.FireRefused:
		m.firings.WithLabelValues("missed").Inc()
		reason := "overlap"
		if answer.Outcome == engine.FireRefused {
			reason = flowfabric.CodeOf(answer.Refusal)
		}
		m.missed.WithLabelValues(reason).Inc()
	}
}

// ticked records an answered tick.
func (m *Metrics) ticked(reply engine.TickReply) {
	if !reply.Owner {
		m.ticks.WithLabelValues("refused").Inc()
		return
	}
	m.ticks.WithLabelValues("owner").Inc()
	for _, e := range [...]struct {
		effect string
		n      int
	}{
		{"requeued", reply.Requeued}, {"exhausted", reply.Exhausted}, {"promoted", reply.Promoted},
		{"attempt_timeout", reply.TimedOut},
		{"expired", reply.Expired}, {"suspension_timeout", reply.Suspensions}, {"waitpoint_expired", reply.Waitpoints},
		{"purged", reply.Purged}, {"rung", reply.Rung},
	} {
		if e.n > 0 {
			m.effects.WithLabelValues(e.effect).Add(float64(e.n))
		}
	}
}

// flowed records what happened to flows between two looks at a partition. What happened before the first look of a
// process is not its own.
func (m *Metrics) flowed(from, to flowfabric.Partition) {
	last, now := from.FlowTotals, to.FlowTotals
	add := func(c *prometheus.CounterVec, label string, last, now int) {
		if now > last { // a store that was emptied starts over
			c.WithLabelValues(label).Add(float64(now - last))
		}
	}
	add(m.flows, "completed", last.Completed, now.Completed)
	add(m.flows, "failed", last.Failed, now.Failed)
	add(m.flows, "cancelled", last.Cancelled, now.Cancelled)
	add(m.siblings, "cancelled", from.Siblings.Cancelled, to.Siblings.Cancelled)
	add(m.siblings, "already_terminal", from.Siblings.AlreadyTerminal, to.Siblings.AlreadyTerminal)
	add(m.siblings, "not_found", from.Siblings.NotFound, to.Siblings.NotFound)
	add(m.siblings, "spared", from.Siblings.Spared, to.Siblings.Spared)
	if now.Skipped > last.Skipped {
		m.skipped.Add(float64(now.Skipped - last.Skipped))
	}
}
