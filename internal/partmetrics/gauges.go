package partmetrics

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges tell how things are at the moment of a scrape: sums over the loops of this process.
type gauges struct {
	partitions, owned, schedules, outbox, outboxLag    *prometheus.Desc
	waiting, oldest, executions, timers, purge, frozen *prometheus.Desc
	flows, backlog, behind, gates                      *prometheus.Desc
}

var queueLabels = []string{"namespace", "lane", "kind", "state"}

func newGauges(prefix string) gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	return gauges{
		partitions: desc("partitions", "Execution partitions of the deployment."),
		owned:      desc("partitions_owned", "Partitions whose ticks this process makes."),
		schedules: desc("schedules_due",
			"Schedules that were due and not fired yet at the last tick of the partitions this process owns."),
		outbox: desc("outbox",
			"Entries of outboxes that gates had not been told of at the last tick of the partitions this process owns."),
		outboxLag: desc("outbox_lag_seconds", "For how long a partition's outbox has not been seen empty."),
		waiting: desc("queue_waiting", "Executions that wait to be claimed, in the partitions this process owns.",
			queueLabels...),
		oldest: desc("queue_oldest_age_seconds", "Time since the creation of the oldest execution that waits.",
			queueLabels...),
		executions: desc("executions",
			"Executions in the partitions this process owns, by index: delayed, suspended, blocked (members of flows that wait for others), ended (kept until they are purged).",
			"index"),
		timers: desc("timer_lag_seconds",
			"For how long the first thing that a tick should have done has been due."),
		purge: desc("purge_lag_seconds",
			"For how long the first execution that should have been purged has been due."),
		frozen:  desc("partitions_frozen", "Partitions this process owns that are frozen."),
		flows:   desc("flows", "Flows that are retained, in the partitions this process owns."),
		backlog: desc("flow_backlog", "Pieces of unfinished work of flows, in the partitions this process owns."),
		behind: desc("flow_backlog_lag_seconds",
			"For how long the first piece of unfinished work of flows has waited for its turn."),
		gates: desc("gate_waiting",
			"Executions that wait because an amount of a gate is used up, in the partitions this process owns.",
			"gate"),
	}
}

func (g *gauges) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.partitions, g.owned, g.schedules, g.outbox, g.outboxLag, g.waiting, g.oldest,
		g.executions, g.timers, g.purge, g.frozen, g.flows, g.backlog, g.behind, g.gates} {
		out <- d
	}
}

// collect asks nobody but this process; samples are taken for the next time.
func (m *Metrics) collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	watches := slices.Collect(maps.Keys(m.watches))
	m.mu.Unlock()
	g := &m.gauges
	var partitions, owned, schedules, outbox int
	var undelivered time.Duration
	all, now := newSampled(), time.Now()
	for _, w := range watches {
		partitions = max(partitions, w.total)
		s := w.tended.sum()
		owned, schedules, outbox = owned+s.owned, schedules+s.schedules, outbox+s.outbox
		undelivered = max(undelivered, w.tended.undelivered(now))
		all.add(w.samples, now)
		w.samples.ask()
	}
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	seconds := func(d *prometheus.Desc, t time.Duration, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, t.Seconds(), labels...)
	}
	gauge(g.partitions, partitions)
	gauge(g.owned, owned)
	gauge(g.schedules, schedules)
	gauge(g.outbox, outbox)
	seconds(g.outboxLag, undelivered)
	for q, d := range all.queues {
		gauge(g.waiting, d.waiting, q.namespace, q.lane, q.kind, q.state)
		seconds(g.oldest, d.oldest, q.namespace, q.lane, q.kind, q.state)
	}
	for i, name := range all.gates.Names() {
		if i == maxGateLabels {
			break
		}
		gauge(g.gates, all.gates[name], name)
	}
	for index, n := range all.indexes {
		gauge(g.executions, n, index)
	}
	seconds(g.timers, all.timers)
	seconds(g.purge, all.purge)
	gauge(g.frozen, all.frozen)
	gauge(g.flows, all.flows)
	gauge(g.backlog, all.backlog)
	seconds(g.behind, all.behind)
}
