package runtime

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

// metrics are the worker's collectors. No label carries an id; kinds are the registered ones, and categories,
// which handlers choose, are capped (design §11).
type metrics struct {
	claims       *prometheus.CounterVec // result: work, empty, error
	executions   prometheus.Counter
	claimSeconds prometheus.Histogram
	inFlight     prometheus.Gauge
	settled      *prometheus.CounterVec // kind, outcome, category
	renewals     *prometheus.CounterVec // result: ok, error
	lost         *prometheus.CounterVec // cause
	wakeUps      *prometheus.CounterVec // message: work, routes, lost, timers, passed
	polls        *prometheus.CounterVec // result: empty, found, error
	tickLag      prometheus.Histogram
	frames       prometheus.Counter

	mu         sync.Mutex
	categories map[string]bool
}

const maxCategoryLabels = 64

func newMetrics() *metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "flowfabric_" + name, Help: help}, labels)
	}
	one := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "flowfabric_" + name, Help: help})
	}
	return &metrics{
		claims:     vec("claims_total", "Claim calls by result: work, empty, error.", "result"),
		executions: one("claimed_executions_total", "Executions claimed."),
		claimSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "flowfabric_claim_seconds", Help: "Duration of answered claim calls.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 3},
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "flowfabric_in_flight", Help: "Handlers running."}),
		settled:  vec("settled_total", "Attempts that ended here, by execution kind, outcome and failure category.", "kind", "outcome", "category"),
		renewals: vec("lease_renewals_total", "Session renewals by result.", "result"),
		lost:     vec("leases_lost_total", "Executions taken from this worker, by cause.", "cause"),
		wakeUps:  vec("doorbell_total", "Doorbell messages by meaning: work, routes, lost, timers; and passed, rings for work handed on for want of a slot.", "message"),
		polls:    vec("polls_total", "Fallback polls by result: empty, found (ready routes that no ring had announced), error.", "result"),
		tickLag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "flowfabric_tick_lag_seconds", Help: "How late ticks of owned partitions began.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 2, 5, 15},
		}),
		frames:     one("frames_appended_total", "Frames acknowledged by the server."),
		categories: make(map[string]bool, maxCategoryLabels),
	}
}

// register adds all collectors to a registerer. A second worker of one process shares those of the first.
func (m *metrics) register(reg prometheus.Registerer) error {
	return errors.Join(
		share(reg, &m.claims), share(reg, &m.executions), share(reg, &m.claimSeconds), share(reg, &m.inFlight),
		share(reg, &m.settled), share(reg, &m.renewals), share(reg, &m.lost), share(reg, &m.wakeUps),
		share(reg, &m.polls), share(reg, &m.tickLag), share(reg, &m.frames),
	)
}

// share registers a collector, or replaces it by an equal one that is registered already.
func share[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	err := reg.Register(*c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, same := already.ExistingCollector.(C); same {
			*c = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%w: Config.Registerer: %w", flowfabric.ErrConfig, err)
	}
	return nil
}

func (m *metrics) claimFailed() { m.claims.WithLabelValues("error").Inc() }

// claimed books an answered claim; one that only asked for the route table is neither work nor empty.
func (m *metrics) claimed(n int, forWork bool, took time.Duration) {
	switch {
	case n > 0:
		m.claims.WithLabelValues("work").Inc()
	case forWork:
		m.claims.WithLabelValues("empty").Inc()
	}
	m.executions.Add(float64(n))
	m.claimSeconds.Observe(took.Seconds())
}

func (m *metrics) settle(kind, outcome, category string) {
	m.settled.WithLabelValues(kind, outcome, m.category(category)).Inc()
}

// category folds what exceeds the cap into "other": a handler that makes one up per failure must not fill the
// registry.
func (m *metrics) category(c string) string {
	if c == "" {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.categories[c] {
		if len(m.categories) >= maxCategoryLabels {
			return "other"
		}
		m.categories[c] = true
	}
	return c
}

func (m *metrics) renewed(_ uint16, err error) {
	if err != nil {
		m.renewals.WithLabelValues("error").Inc()
		return
	}
	m.renewals.WithLabelValues("ok").Inc()
}

func (m *metrics) leaseLost(_ flowfabric.ExecutionID, cause error) {
	m.lost.WithLabelValues(flowfabric.CodeOf(cause)).Inc()
}

func (m *metrics) lag(_ uint16, lag time.Duration) { m.tickLag.Observe(max(lag, 0).Seconds()) }

func (m *metrics) polled(missed int, err error) {
	switch {
	case err != nil:
		m.polls.WithLabelValues("error").Inc()
	case missed > 0:
		m.polls.WithLabelValues("found").Inc()
	default:
		m.polls.WithLabelValues("empty").Inc()
	}
}

func (m *metrics) appended(frames []engine.Frame) { m.frames.Add(float64(len(frames))) }
