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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	"github.com/flowfabric/flowfabric-go/docs/tutorial/articles"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func main() {
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:9090"))
	if err == nil {
		err = serve(context.Background(), listener, articles.Model{Pause: 500 * time.Millisecond})
	}
	if err != nil {
		slog.Error("the service ends", "error", err)
		os.Exit(1)
	}
}

// serve runs the worker until ctx or a signal ends it. Meanwhile it answers probes and Prometheus on the listener.
func serve(ctx context.Context, listener net.Listener, model articles.Model) error {
	return runtime.Run(ctx, runtime.Config{
		URL:        os.Getenv("FLOWFABRIC_URL"), // FLOWFABRIC_TOKEN_KEYS is read by the worker itself
		AppVersion: os.Getenv("VERSION"),
	},
		runtime.Provide(articles.Write, newWriter),
		fx.Supply(model, fx.Annotate(listener, fx.As(new(net.Listener)))),
		fx.Provide(fx.Annotate(newRegistry, fx.As(new(prometheus.Registerer)), fx.As(new(prometheus.Gatherer)))),
		fx.Invoke(serveProbes), // started before the worker and stopped after its drain
	)
}

func newWriter(model articles.Model) *articles.Writer { return &articles.Writer{Model: model} }

// newRegistry is shared by the process's collectors and the worker's.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// serveProbes answers as long as the application lives. A server that fails ends the application.
func serveProbes(life fx.Lifecycle, end fx.Shutdowner, worker *runtime.Worker, metrics prometheus.Gatherer,
	listener net.Listener) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {}) // that it answers says that it lives
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := worker.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second}
	var serving conc.WaitGroup
	life.Append(fx.StartStopHook(
		func() {
			serving.Go(func() {
				if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
					slog.Error("serve probes", "error", err)
					_ = end.Shutdown(fx.ExitCode(1))
				}
			})
		},
		func() error {
			defer serving.Wait()
			return server.Close()
		}))
}
