// Command service is a worker as it is deployed: configured by the environment, with metrics, with answers for the
// probes of Kubernetes or Compose, and with a drain when it is told to stop. It runs the handler of the tutorial; put
// yours there.
package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/docs/tutorial/articles"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:9090"))
	if err == nil {
		err = serve(ctx, listener, articles.Model{Pause: 500 * time.Millisecond})
	}
	if err != nil {
		slog.Error("the service ends", "error", err)
		os.Exit(1)
	}
}

// serve runs the worker until ctx ends, and answers probes and Prometheus on the listener meanwhile.
func serve(ctx context.Context, listener net.Listener, model articles.Model) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	writer := &articles.Writer{Model: model}
	worker, err := runtime.New(runtime.Config{
		URL:        os.Getenv("FLOWFABRIC_URL"), // FLOWFABRIC_TOKEN_KEYS is read by the worker itself
		AppVersion: os.Getenv("VERSION"),
		Registerer: registry,
	}, handler.Bind(articles.Write, writer.Handle))
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {}) // that it answers says that it lives
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := worker.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second}

	running := pool.New().WithContext(ctx).WithCancelOnError()
	running.Go(func(ctx context.Context) error {
		defer server.Close() // last: while the worker drains, it is still asked how it is
		return worker.Run(ctx)
	})
	running.Go(func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return running.Wait()
}
