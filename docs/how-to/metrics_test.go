package howto_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flowfabric/flowfabric-go/runtime"
)

func serveMetrics(ctx context.Context, url string) error {
	registry := prometheus.NewRegistry()
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	err := runtime.Run(ctx, runtime.Config{URL: url, Registerer: registry}, runtime.Handle(Fetch, fetch))
	return err
}

func TestMetrics(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, serveMetrics(ctx, "embedded://"))
}
