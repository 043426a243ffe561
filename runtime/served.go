package runtime

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/joblog"
)

// served is a kind that the worker has a handler for, with the collectors that every job of it reports to. To look
// one up by its labels costs more than to count, so each is looked up once, when it is first needed: a kind that
// never ran has no series.
type served struct {
	handle    handler.Handler // inside the middleware
	logs      bool            // what its handlers log is kept, from this level on
	level     slog.Level
	metrics   *metrics
	waited    func() prometheus.Observer
	handled   func() prometheus.Observer
	completed func() prometheus.Counter
	batched   func() prometheus.Observer
	gathered  func() prometheus.Observer
}

// servedBy is what a worker has handlers for, by kind.
func servedBy(w *Worker) map[string]*served {
	kinds := map[string]*served{}
	// A binding recovers its own panics; those of middleware must not leave an execution held for ever either.
	for _, kind := range w.registry.kinds() {
		handle := handler.Handler(w.registry[kind].Run)
		if len(w.cfg.Middleware) > 0 {
			for _, m := range slices.Backward(w.cfg.Middleware) {
				if m != nil {
					handle = m(handle)
				}
			}
			handle = handler.Recover()(handle)
		}
		s := newServed(w.metrics, kind, handle)
		s.level, s.logs = joblog.LevelOf(cmp.Or(w.registry[kind].KeptLogs(), w.cfg.KeepLogs))
		kinds[kind] = s
	}
	return kinds
}

func newServed(m *metrics, kind string, handle handler.Handler) *served {
	return &served{
		handle: handle, metrics: m,
		waited:    sync.OnceValue(func() prometheus.Observer { return m.waited.WithLabelValues(kind) }),
		handled:   sync.OnceValue(func() prometheus.Observer { return m.handled.WithLabelValues(kind) }),
		batched:   sync.OnceValue(func() prometheus.Observer { return m.batchSize.WithLabelValues(kind) }),
		gathered:  sync.OnceValue(func() prometheus.Observer { return m.batchWait.WithLabelValues(kind) }),
		completed: sync.OnceValue(func() prometheus.Counter { return m.settled.WithLabelValues(kind, "complete", "") }),
	}
}
