package runtime

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// gaugeCollector reports how things are, at the moment of a scrape: gauges that are sums over the workers of this process. What belongs
// to a partition is told by the process that owns its tick, so that sums over processes count each partition once.
type gaugeCollector struct {
	workers, ready, slots, partitions, owned, overdue, schedules, serving, stuck *prometheus.Desc
	waiting, oldest, executions, timers, purge, frozen                           *prometheus.Desc
	flows, backlog, behind                                                       *prometheus.Desc
	outbox, outboxLag                                                            *prometheus.Desc

	mu   sync.Mutex
	runs map[*run]struct{}
}

var queueLabels = []string{"namespace", "lane", "kind", "state"}

func newGaugeCollector(prefix string) *gaugeCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	return &gaugeCollector{
		workers:    desc("workers", "Workers of this process that run or drain."),
		ready:      desc("workers_ready", "Workers of this process whose Ready says yes."),
		slots:      desc("slots", "Handlers that may run at once: Concurrency, over all workers of this process."),
		partitions: desc("partitions", "Execution partitions of the deployment."),
		owned:      desc("partitions_owned", "Partitions whose ticks this process makes."),
		overdue:    desc("ticks_overdue", "Partitions that nobody has ticked although it is due, as this process heard last."),
		schedules:  desc("schedules_due", "Schedules that were due and not fired yet at the last tick of the partitions this process owns."),
		serving:    desc("serving", "Workers of this process that take work of the namespace, lane and kind, whatever capabilities it requires.", "namespace", "lane", "kind"),
		stuck:      desc("stuck_handlers", "Handlers that run on although their context ended more than five seconds ago; each keeps its slot.", "kind"),

		waiting:    desc("queue_waiting", "Executions that wait to be claimed, in the partitions this process owns.", queueLabels...),
		oldest:     desc("queue_oldest_age_seconds", "Time since the creation of the oldest execution that waits.", queueLabels...),
		executions: desc("executions", "Executions in the partitions this process owns, by index: delayed, suspended, blocked (members of flows that wait for others), ended (kept until they are purged).", "index"),
		timers:     desc("timer_lag_seconds", "For how long the first thing that a tick should have done has been due."),
		purge:      desc("purge_lag_seconds", "For how long the first execution that should have been purged has been due."),
		frozen:     desc("partitions_frozen", "Partitions this process owns that are frozen."),
		flows:      desc("flows", "Flows that are retained, in the partitions this process owns."),
		backlog:    desc("flow_backlog", "Pieces of unfinished work of flows, in the partitions this process owns."),
		behind:     desc("flow_backlog_lag_seconds", "For how long the first piece of unfinished work of flows has waited for its turn."),
		outbox:     desc("outbox", "Entries of outboxes that budgets and quotas had not been told of at the last tick of the partitions this process owns."),
		outboxLag:  desc("outbox_lag_seconds", "For how long a partition's outbox has not been seen empty."),
		runs:       map[*run]struct{}{},
	}
}

func (c *gaugeCollector) add(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[r] = struct{}{}
}

func (c *gaugeCollector) remove(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, r)
}

// Describe implements [prometheus.Collector].
func (c *gaugeCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.workers, c.ready, c.slots, c.partitions, c.owned, c.overdue, c.schedules, c.serving, c.stuck,
		c.waiting, c.oldest, c.executions, c.timers, c.purge, c.frozen, c.flows, c.backlog, c.behind, c.outbox, c.outboxLag} {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. It asks nobody but this process; samples are taken for the next time.
func (c *gaugeCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	runs := slices.Collect(maps.Keys(c.runs))
	c.mu.Unlock()
	var ready, slots, partitions, owned, overdue, schedules, outbox int
	var behind time.Duration
	type work struct{ namespace, lane, kind string }
	serving, stuck, all, now := map[work]int{}, map[string]int{}, newSampled(), time.Now()
	for _, r := range runs {
		if r.health.check() == nil {
			ready++
		}
		slots += r.slots.capacity
		partitions = max(partitions, len(r.sched.partitions))
		s := r.tended.sum()
		owned, schedules, outbox = owned+s.owned, schedules+s.schedules, outbox+s.outbox
		behind = max(behind, r.tended.undelivered(now))
		overdue = max(overdue, int(r.polls.late.Load()))
		all.add(r.samples, now)
		r.samples.ask()
		for kind := range r.claims.offer.Kinds {
			stuck[kind] += 0 // so that an alert sees it go down
		}
		r.watch.kinds(stuck)
		for namespace := range r.claims.offer.Namespaces {
			for lane := range r.claims.offer.Lanes {
				for kind := range r.claims.offer.Kinds {
					serving[work{namespace, lane, kind}]++
				}
			}
		}
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(c.workers, len(runs))
	gauge(c.ready, ready)
	gauge(c.slots, slots)
	gauge(c.partitions, partitions)
	gauge(c.owned, owned)
	gauge(c.overdue, overdue)
	gauge(c.schedules, schedules)
	gauge(c.outbox, outbox)
	for w, n := range serving {
		gauge(c.serving, n, w.namespace, w.lane, w.kind)
	}
	for kind, n := range stuck {
		gauge(c.stuck, n, kind)
	}
	seconds := func(d *prometheus.Desc, t time.Duration, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, t.Seconds(), labels...)
	}
	for q, d := range all.queues {
		gauge(c.waiting, d.waiting, q.namespace, q.lane, q.kind, q.state)
		seconds(c.oldest, d.oldest, q.namespace, q.lane, q.kind, q.state)
	}
	for index, n := range all.indexes {
		gauge(c.executions, n, index)
	}
	seconds(c.outboxLag, behind)
	seconds(c.timers, all.timers)
	seconds(c.purge, all.purge)
	gauge(c.frozen, all.frozen)
	gauge(c.flows, all.flows)
	gauge(c.backlog, all.backlog)
	seconds(c.behind, all.behind)
}

// tended is what the ticks of one worker said last of each partition.
type tended struct {
	mu      sync.Mutex
	replies map[uint16]engine.TickReply // of owned partitions
	since   map[uint16]time.Time        // when an outbox was first seen with entries, and not empty after that
}

// told remembers an answered tick.
func (t *tended) told(partition uint16, reply engine.TickReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !reply.Owner {
		delete(t.replies, partition)
		delete(t.since, partition)
		return
	}
	if t.replies == nil {
		t.replies, t.since = map[uint16]engine.TickReply{}, map[uint16]time.Time{}
	}
	t.replies[partition] = reply
	t.noted(partition, reply.Outbox)
}

// tendedSum is what all owned partitions have in sum.
type tendedSum struct{ owned, schedules, outbox int }

func (t *tended) sum() (s tendedSum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.owned = len(t.replies)
	for _, reply := range t.replies {
		s.schedules += reply.Schedules
		s.outbox += reply.Outbox
	}
	return s
}

// noted remembers since when an outbox has had entries. Called with mu held.
func (t *tended) noted(partition uint16, entries int) {
	if entries == 0 {
		delete(t.since, partition)
	} else if _, ok := t.since[partition]; !ok {
		t.since[partition] = time.Now()
	}
}

// delivered records a delivery of a partition's outbox.
func (t *tended) delivered(partition uint16, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	reply, ok := t.replies[partition]
	if !ok {
		return
	}
	reply.Outbox = max(0, reply.Outbox-n)
	t.replies[partition] = reply
	t.noted(partition, reply.Outbox)
}

// undelivered is for how long the outbox that waits longest has had entries.
func (t *tended) undelivered(now time.Time) (longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, since := range t.since {
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// owns tells whether the last tick of a partition was answered as its owner's.
func (t *tended) owns(partition uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.replies[partition]
	return ok
}

// partitions lists those that are owned, in order.
func (t *tended) partitions() []uint16 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.replies))
}
