package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
)

const defaultAddr = "127.0.0.1:7700"

func devCommand(a *app) *cobra.Command {
	var addr, web string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a development server until interrupted",
		Long: `dev runs the embedded server on a port of this machine, so that workers and producers in other
processes can meet without anything installed. It has the real semantics, but it keeps everything in memory and
has no access control: it is for development only, listens on a loopback address only, and refuses to start when
FLOWFABRIC_ENV=production.

It also keeps time (delays, timeouts, lost leases), so a producer alone already sees them happen, and serves the
dashboard and the HTTP API, open to everybody on this machine.`,
		Example: `  flowfabric dev
  flowfabric dev --addr 127.0.0.1:0       # any free port; the URL is printed`,
		Args: cobra.NoArgs,
		RunE: a.lasting(func(ctx context.Context, _ []string) error {
			return a.dev(ctx, addr, web, slog.New(slog.NewTextHandler(a.err, nil)))
		}),
	}
	cmd.Flags().StringVar(&addr, "addr", defaultAddr, "loopback `host:port` to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&web, "http", "",
		"loopback `host:port` of the HTTP API (default "+defaultHTTP+", or a free port with --addr of port 0)")
	return cmd
}

// announcement is what dev prints with --json once it serves. The key is made for this run, to be shown.
type announcement struct {
	URL       string `json:"url"`
	TokenKeys string `json:"token_keys"`
	API       string `json:"api"`
	Dashboard string `json:"dashboard"`
}

// dev serves until ctx ends, which is success.
func (a *app) dev(ctx context.Context, addr, web string, logger *slog.Logger) error {
	if at := devAPI(addr, web); !loopback(at) {
		return usage(
			"--http %s is no loopback address: everybody who reaches it may do everything; 'flowfabric serve' with tokens is for others",
			at)
	}
	server, err := embedded.Start(ctx, embedded.Config{Addr: addr, Logger: logger})
	if err != nil {
		return err
	}
	defer server.Close()
	eng, err := engine.Open(ctx, engine.Config{URL: server.URL(), ClientName: "flowfabric-dev", Logger: logger})
	if err != nil {
		return err
	}
	defer eng.Close()

	key := devKey()
	c, err := client.Connect(ctx, client.Config{URL: server.URL(), TokenKeys: key, Namespace: a.namespace,
		Creator: "dev", ClientName: "flowfabric-dev-api", Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close()
	registry, partitions := prometheus.NewRegistry(), partmetrics.New(metricPrefix)
	registry.MustRegister(partitions)
	api, err := newGateway(gatewayConfig{client: c, logger: slog.New(slog.DiscardHandler), registry: registry})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", devAPI(addr, web))
	if err != nil {
		return fmt.Errorf("the HTTP API: %w; --http names another address", err)
	}
	if err := a.show(announcement{server.URL(), key, "http://" + listener.Addr().String(),
		"http://" + listener.Addr().String() + "/"}, func(p *page) {
		fmt.Fprintf(p, `FlowFabric development server: in memory, for development only, nothing is persisted.

  export FLOWFABRIC_URL=%s
  export FLOWFABRIC_TOKEN_KEYS=%s   # for handlers that wait

  Dashboard   http://%[3]s/
  HTTP API    http://%[3]s/v1/openapi.json
  Both are open to everybody on this machine.

Press Ctrl-C to stop.
`, server.URL(), key, listener.Addr())
	}); err != nil {
		_ = listener.Close()
		return err
	}
	tasks := pool.New().WithContext(ctx).WithCancelOnError()
	tasks.Go(func(ctx context.Context) error {
		return tend(ctx, eng, fmt.Sprintf("dev-%d", os.Getpid()), logger, partitions)
	})
	tasks.Go(func(ctx context.Context) error { return api.serve(ctx, listener) })
	return tasks.Wait()
}

// devAPI is where the API listens: a free port if the server's is one.
func devAPI(server, web string) string {
	if web != "" {
		return web
	}
	if _, port, err := net.SplitHostPort(server); err == nil && port == "0" {
		return "127.0.0.1:0"
	}
	return defaultHTTP
}

// devKey is a token key for those who try things out.
func devKey() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return "dev:" + hex.EncodeToString(secret)
}
