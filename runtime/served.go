package runtime

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowfabric/flowfabric-go/handler"
)

// served is a kind that the worker has a handler for, with the collectors that every job of it reports to. To look one up by its
// labels costs more than to count, so each is looked up once, when it is first needed: a kind that never ran has no series.
type served struct {
	handle    handler.Handler // inside the middleware
	metrics   *metrics
	waited    func() prometheus.Observer
	handled   func() prometheus.Observer
	completed func() prometheus.Counter
}

func newServed(m *metrics, kind string, handle handler.Handler) *served {
	return &served{
		handle: handle, metrics: m,
		waited:    sync.OnceValue(func() prometheus.Observer { return m.waited.WithLabelValues(kind) }),
		handled:   sync.OnceValue(func() prometheus.Observer { return m.handled.WithLabelValues(kind) }),
		completed: sync.OnceValue(func() prometheus.Counter { return m.settled.WithLabelValues(kind, "complete", "") }),
	}
}
