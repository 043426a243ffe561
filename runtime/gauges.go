package runtime

import (
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// gaugeCollector reports how things are, at the moment of a scrape: gauges that are sums over the workers of this
// process. What belongs to partitions is told by package partmetrics.
type gaugeCollector struct {
	workers, ready, slots, overdue, serving, stuck *prometheus.Desc

	mu   sync.Mutex
	runs map[*run]struct{}
}

func newGaugeCollector(prefix string) *gaugeCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	return &gaugeCollector{
		workers: desc("workers", "Workers of this process that run or drain."),
		ready:   desc("workers_ready", "Workers of this process whose Ready says yes."),
		slots:   desc("slots", "Handlers that may run at once: Concurrency, over all workers of this process."),
		overdue: desc("ticks_overdue",
			"Partitions that nobody has ticked although it is due, as this process heard last."),
		serving: desc("serving",
			"Workers of this process that take work of the namespace, lane and kind, whatever capabilities it requires.",
			"namespace", "lane", "kind"),
		stuck: desc("stuck_handlers",
			"Handlers that run on although their context ended more than five seconds ago; each keeps its slot.",
			"kind"),
		runs: map[*run]struct{}{},
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
	for _, d := range []*prometheus.Desc{c.workers, c.ready, c.slots, c.overdue, c.serving, c.stuck} {
		out <- d
	}
}

// Collect implements [prometheus.Collector]. It asks nobody but this process.
func (c *gaugeCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	runs := slices.Collect(maps.Keys(c.runs))
	c.mu.Unlock()
	var ready, slots, overdue int
	type work struct{ namespace, lane, kind string }
	serving, stuck := map[work]int{}, map[string]int{}
	for _, r := range runs {
		if r.health.check() == nil {
			ready++
		}
		slots += r.slots.capacity
		overdue = max(overdue, r.session.Listener.Late())
		for kind := range r.offer.Kinds {
			stuck[kind] += 0 // so that an alert sees it go down
		}
		r.watch.kinds(stuck)
		for namespace := range r.offer.Namespaces {
			for lane := range r.offer.Lanes {
				for kind := range r.offer.Kinds {
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
	gauge(c.overdue, overdue)
	for w, n := range serving {
		gauge(c.serving, n, w.namespace, w.lane, w.kind)
	}
	for kind, n := range stuck {
		gauge(c.stuck, n, kind)
	}
}
