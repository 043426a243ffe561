package runtime

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// metrics are the worker's collectors; docs/reference/metrics.md says what each means. No label carries an id or an
// error's text: kinds are the registered ones, functions, codes and causes are tables of the library, and categories,
// which handlers choose, are capped. The workers of a process share them.
type metrics struct {
	claims       *prometheus.CounterVec // result: work, empty, error
	executions   prometheus.Counter
	claimSeconds prometheus.Histogram
	waited       *prometheus.HistogramVec // kind; from creation to the first attempt
	wakeUps      *prometheus.CounterVec   // message: work, urgent, routes, lost, timers, forwarded
	polls        *prometheus.CounterVec   // result: empty, found, error

	grants      prometheus.Counter
	admissions  *prometheus.CounterVec // outcome: admitted, refused, and the kinds of a refusal
	gateSeconds prometheus.Histogram
	gateHits    *prometheus.CounterVec // reason: amount, rate, cap; dimension
	reports     *prometheus.CounterVec // verdict: ok, soft, hard; action
	// outcome: made, refused, settled, released, forgotten
	reservations *prometheus.CounterVec
	// outcome: admitted, away, settled, released, refused, forgotten
	serviceCalls *prometheus.CounterVec

	inFlight  prometheus.Gauge
	handled   *prometheus.HistogramVec // kind
	settled   *prometheus.CounterVec   // kind, outcome, category
	batchSize *prometheus.HistogramVec // kind
	batchWait *prometheus.HistogramVec // kind
	resumed   *prometheus.CounterVec   // kind, cause
	near      *prometheus.CounterVec   // kind, limit: steps, step_bytes, history

	renewals *prometheus.CounterVec // result: ok, error
	lost     *prometheus.CounterVec // cause
	sessions *prometheus.CounterVec // cause

	calls  *prometheus.HistogramVec // function
	failed *prometheus.CounterVec   // function, class, error

	frames     *prometheus.CounterVec // mode
	frameBytes *prometheus.CounterVec // mode
	framesLost *prometheus.CounterVec // cause: shed, dropped

	gauges     *gaugeCollector
	partitions *partmetrics.Metrics
	build      prometheus.Gauge

	mu         sync.Mutex
	categories map[string]bool
}

const maxCategoryLabels = 64

// Bounds of buckets, in seconds.
var (
	callBuckets    = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 3}
	handlerBuckets = []float64{.001, .005, .025, .1, .5, 1, 5, 15, 60, 300, 1800}
	waitBuckets    = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 15, 60, 300, 1800, 7200}
	sizeBuckets    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

func newMetrics(prefix string) *metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	times := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets},
			labels)
	}
	m := &metrics{
		claims: vec("claims_total", "Claim calls by result: work, empty, error.", "result"),
		executions: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "claimed_executions_total",
			Help: "Executions claimed."}),
		claimSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "claim_seconds", Help: "Duration of answered claim calls.", Buckets: callBuckets,
		}),
		waited: times("start_latency_seconds",
			"From the creation of an execution to the claim of its first attempt, its delay included.", waitBuckets,
			"kind"),
		wakeUps: vec("doorbell_total",
			"Doorbell messages by meaning: work, urgent (work of high priority, told to all workers), routes, lost, timers; and forwarded, wake-ups for work that went to the next waiter for want of a slot.",
			"message"),
		polls: vec("polls_total",
			"Fallback polls by result: empty, found (ready routes that no ring had announced), error.", "result"),

		grants: prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "grants_total",
			Help: "Executions with gates that were granted: they run once their gates let them pass."}),
		admissions: vec("admissions_total",
			"Granted executions by what became of them: admitted, amount, rate, cap, not_found, error, unknown (the route's gates were).",
			"outcome"),
		gateSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    prefix + "gate_seconds",
			Help:    "From the grant to the claim or the return, for all that one claim was granted.",
			Buckets: callBuckets,
		}),
		gateHits: vec("gate_hits_total",
			"Routes closed because a gate let nothing more pass, by reason: amount, rate, cap; and for amount the dimension.",
			"reason", "dimension"),
		reports: vec("spends_total",
			"Spends of handlers that a gate has answered, by verdict: ok, soft, hard; and what a hard one leads to: reject, fail, block, warn.",
			"verdict", "action"),
		reservations: vec("reservations_total",
			"Reservations of handlers by what became of them: made or refused, then settled, released, or forgotten (charged in full when the handler returned).",
			"outcome"),
		serviceCalls: vec("service_calls_total",
			"Calls of handlers to services by what became of them: admitted or away (the execution waits without a slot), then settled, released, refused (status 429), or forgotten (counts as estimated when the handler returned).",
			"outcome"),

		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "in_flight", Help: "Handlers running."}),
		handled:  times("handler_seconds", "Duration of one run of a handler.", handlerBuckets, "kind"),
		settled: vec("settled_total", "Attempts that ended here, by execution kind, outcome and failure category.",
			"kind", "outcome", "category"),
		near: vec("nearly_full_total",
			"Runs in which an execution had used four fifths of a limit, by the limit: steps, step_bytes, history.",
			"kind", "limit"),
		resumed: vec("resumptions_total", "Runs of handlers that go on after a wait, by what ended it.", "kind",
			"cause"),

		renewals: vec("lease_renewals_total", "Session renewals by result: ok, error.", "result"),
		lost:     vec("leases_lost_total", "Executions taken from this worker, by cause.", "cause"),
		sessions: vec("sessions_lost_total",
			"Sessions that ended against this worker's will, by cause; trust_ended when renewals did not get through in time.",
			"cause"),

		batchSize: times("batch_size", "Executions in one call of a batch handler.", sizeBuckets, "kind"),
		batchWait: times("batch_wait_seconds",
			"From the first execution of a call of a batch handler to the call: for how long it waited for others.",
			callBuckets, "kind"),

		calls: times("server_call_seconds", "Duration of calls of server functions with all repeats, answered or not.",
			callBuckets, "function"),
		failed: vec("server_call_errors_total",
			"Calls of server functions that ended with an error, by class (stop, retry, info, caller, bug, unknown) and code.",
			"function", "class", "error"),

		frames: vec("frames_appended_total", "Frames acknowledged by the server, by mode.", "mode"),
		frameBytes: vec("frames_appended_bytes_total", "Payload of frames acknowledged by the server, by mode.",
			"mode"),
		framesLost: vec("frames_lost_total",
			"Frames that were not sent: shed (best-effort ones, for want of room), dropped (given up with the lease or an error).",
			"cause"),

		gauges:     newGaugeCollector(prefix),
		partitions: partmetrics.New(prefix),
		build:      buildInfo(prefix),
		categories: make(map[string]bool, maxCategoryLabels),
	}
	for _, r := range []admission.Reported{{}, {Verdict: codes.SoftBreach},
		{Verdict: codes.HardBreach, Applied: true}, {Verdict: codes.HardBreach, Action: admission.HardReject},
		{Verdict: codes.HardBreach, Action: admission.HardFail},
		{Verdict: codes.HardBreach, Action: admission.HardBlock},
		{Verdict: codes.HardBreach, Action: admission.HardAsk}} {
		// so that a rate begins at zero
		m.reports.WithLabelValues(reportLabels(r)...)
	}
	for _, what := range []tasks.Reservation{tasks.ReservationMade, tasks.ReservationRefused,
		tasks.ReservationSettled, tasks.ReservationReleased, tasks.ReservationForgotten} {
		m.reservations.WithLabelValues(string(what))
	}
	for _, what := range []tasks.Call{tasks.CallAdmitted, tasks.CallAway, tasks.CallSettled, tasks.CallReleased,
		tasks.CallRefused, tasks.CallForgotten} {
		m.serviceCalls.WithLabelValues(string(what))
	}
	for _, reason := range []string{string(admit.RefusedRate), string(admit.RefusedCap)} {
		m.gateHits.WithLabelValues(reason, "")
	}
	return m
}

// buildInfo is a constant 1 that carries the versions.
func buildInfo(prefix string) prometheus.Gauge {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		const module = "github.com/flowfabric/flowfabric-go"
		if info.Main.Path == module {
			version = info.Main.Version
		}
		for _, dep := range info.Deps {
			if dep.Path == module {
				version = dep.Version
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "build_info",
		Help: "Always 1; the labels are the versions of FlowFabric, of its function library and of Go.",
		ConstLabels: prometheus.Labels{
			"version": version, "protocol": strconv.Itoa(limits.Protocol),
			"library_revision": strconv.Itoa(library.Revision), "library_hash": library.Hash(),
			"go_version": goruntime.Version(),
		},
	})
	g.Set(1)
	return g
}

// register adds all collectors to a registerer. A second worker of one process shares those of the first.
func (m *metrics) register(reg prometheus.Registerer) error {
	return errors.Join(
		share(reg, &m.claims), share(reg, &m.executions), share(reg, &m.claimSeconds), share(reg, &m.waited),
		share(reg, &m.wakeUps), share(reg, &m.polls),
		share(reg, &m.grants), share(reg, &m.admissions), share(reg, &m.gateSeconds), share(reg, &m.gateHits),
		share(reg, &m.reports), share(reg, &m.reservations), share(reg, &m.serviceCalls), share(reg, &m.inFlight),
		share(reg, &m.handled),
		share(reg, &m.settled), share(reg, &m.batchSize), share(reg, &m.batchWait), share(reg, &m.resumed),
		share(reg, &m.near),
		share(reg, &m.renewals), share(reg, &m.lost), share(reg, &m.sessions),
		share(reg, &m.calls), share(reg, &m.failed),
		share(reg, &m.frames), share(reg, &m.frameBytes), share(reg, &m.framesLost),
		share(reg, &m.gauges), share(reg, &m.partitions), share(reg, &m.build),
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
