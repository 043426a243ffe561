package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/partmetrics"
)

const defaultAddr = "127.0.0.1:7700"

func devCommand(a *app) *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a development server until interrupted",
		Long: `dev runs the embedded server on a port of this machine, so that workers and producers in other
processes can meet without anything installed. It has the real semantics, but no access control: it is for
development only, and listens on loopback addresses only. 'flowfabric serve --data' is for others.

Without --data everything is kept in memory and lost when dev ends, and FLOWFABRIC_ENV=production refuses to
start it. With --data everything is kept in a folder, with the keys that sign tokens: work goes on and links
work after a restart. One process at a time uses a folder.

It also keeps time (delays, timeouts, lost leases), so a producer alone already sees them happen, and serves the
dashboard and the HTTP API, open to everybody on this machine. A new store keeps lists of all states in the order of
creation, as after 'flowfabric index set --all'. Later starts leave the index as it is.`,
		Example: `  flowfabric dev
  flowfabric dev --data ./data            # keeps everything in this folder
  flowfabric dev --addr 127.0.0.1:0       # any free port; the URL is printed`,
		Args: cobra.NoArgs,
		RunE: a.lasting(func(ctx context.Context, _ []string) error {
			return a.dev(ctx, f, slog.New(slog.NewTextHandler(a.err, nil)))
		}),
	}
	f.data.add(cmd.Flags(), "`folder` in which to keep everything; made if it does not exist (default in memory)")
	cmd.Flags().StringVar(&f.addr, "addr", defaultAddr, "loopback `host:port` to listen on; port 0 takes a free one")
	webhooksFlag(cmd.Flags(), &f.webhooks)
	cmd.Flags().StringVar(&f.http, "http", "",
		"loopback `host:port` of the HTTP API (default "+defaultHTTP+", or a free port with --addr of port 0)")
	return cmd
}

type devFlags struct {
	data       dataFlags
	addr, http string
	webhooks   string
}

// announcement is what dev prints with --json once it serves. The key is made to be shown.
type announcement struct {
	URL       string `json:"url"`
	Data      string `json:"data,omitempty"` // the folder
	TokenKeys string `json:"token_keys"`
	API       string `json:"api"`
	Dashboard string `json:"dashboard"`
}

// dev serves until ctx ends, which is success.
func (a *app) dev(ctx context.Context, f devFlags, logger *slog.Logger) error {
	for _, at := range [][2]string{{"--addr", f.addr}, {"--http", f.api()}} {
		if !loopback(at[1]) {
			return usage(
				"%s %s is no loopback address: everybody who reaches it may do everything; 'flowfabric serve' is for others, with a password and tokens",
				at[0], at[1])
		}
	}
	always, err := f.data.read()
	if err != nil {
		return err
	}
	hooks, err := readWebhooks(f.webhooks, a.namespace)
	if err != nil {
		return err
	}
	server, err := startStore(ctx, "--addr", embedded.Config{Addr: f.addr, Dir: f.data.dir, FsyncAlways: always,
		Logger: logger})
	if err != nil {
		return err
	}
	defer server.Close()
	eng, err := engine.Open(ctx, engine.Config{URL: server.URL(), ClientName: "flowfabric-dev", Logger: logger})
	if err != nil {
		return err
	}
	defer eng.Close()

	key, err := f.data.tokenKeys()
	if err != nil {
		return err
	}
	c, err := client.Connect(ctx, client.Config{URL: server.URL(), TokenKeys: key, Namespace: a.namespace,
		Creator: "dev", ClientName: "flowfabric-dev-api", Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := keepIndex(ctx, eng, c); err != nil {
		return err
	}
	registry, partitions := prometheus.NewRegistry(), partmetrics.New(metricPrefix)
	registry.MustRegister(partitions)
	api, err := newGateway(gatewayConfig{client: c, logger: slog.New(slog.DiscardHandler), registry: registry,
		webhooks: hooks})
	if err != nil {
		return err
	}
	defer api.api.Close()
	defer api.end()
	listener, err := net.Listen("tcp", f.api())
	if err != nil {
		return fmt.Errorf("the HTTP API: %w; --http names another address", err)
	}
	if err := a.show(announcement{server.URL(), f.data.dir, key, "http://" + listener.Addr().String(),
		"http://" + listener.Addr().String() + "/"}, func(p *page) {
		fmt.Fprintf(p, `FlowFabric development server: for development only, %[4]s

  export FLOWFABRIC_URL=%[1]s
  export FLOWFABRIC_TOKEN_KEYS=%[2]s   # for handlers that wait

  Dashboard   http://%[3]s/
  HTTP API    http://%[3]s/v1/openapi.json
  Approvals   http://%[3]s/approve   # what approval.Link begins with
  All are open to everybody on this machine.

Press Ctrl-C to stop.
`, server.URL(), key, listener.Addr(), f.data.where())
	}); err != nil {
		_ = listener.Close()
		return err
	}
	tasks := pool.New().WithContext(ctx).WithCancelOnError()
	tasks.Go(func(ctx context.Context) error {
		return tend(ctx, eng, fmt.Sprintf("dev-%d", os.Getpid()), logger, partitions)
	})
	tasks.Go(func(ctx context.Context) error { return api.serve(ctx, listener) })
	tasks.Go(func(ctx context.Context) error {
		return hooks.run(ctx, reached{url: server.URL(), tokenKeys: key}, c, logger)
	})
	return tasks.Wait()
}

// keepIndex has a new store list executions of all states in the order of creation. The memory that it takes does not
// matter here. An index that was set before stays as it is.
func keepIndex(ctx context.Context, eng *engine.Engine, c *client.Client) error {
	for p := range eng.Partitions() {
		now, err := eng.ReadIndex(ctx, p)
		if err == nil && now.New {
			_, err = admin.New(c).SetIndex(ctx, admin.IndexChange{All: new(true)})
			return err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// api is where the API listens: a free port if the server's is one.
func (f devFlags) api() string {
	if f.http != "" {
		return f.http
	}
	if _, port, err := net.SplitHostPort(f.addr); err == nil && port == "0" {
		return "127.0.0.1:0"
	}
	return defaultHTTP
}
