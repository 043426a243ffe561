package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

const defaultAddr = "127.0.0.1:7700"

func devCommand(a *app) *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a development server until interrupted",
		Long: `dev runs the embedded server on a port of this machine, so that workers and producers in
other processes can meet without anything installed. It has the real semantics, but it keeps
everything in memory and has no access control: it is for development only, listens on a loopback
address only, and refuses to start when FLOWFABRIC_ENV=production.

It also keeps time (delays, timeouts, lost leases), so a producer alone already sees them happen.`,
		Example: `  flowfabric dev
  flowfabric dev --addr 127.0.0.1:0       # any free port; the URL is printed`,
		Args: cobra.NoArgs,
		RunE: a.lasting(func(ctx context.Context, _ []string) error {
			return a.dev(ctx, addr, slog.New(slog.NewTextHandler(a.err, nil)))
		}),
	}
	cmd.Flags().StringVar(&addr, "addr", defaultAddr, "loopback `host:port` to listen on; port 0 takes a free one")
	return cmd
}

// announcement is what dev prints with --json once it serves. The key is made for this run, to be shown.
type announcement struct {
	URL       string `json:"url"`
	TokenKeys string `json:"token_keys"`
}

// dev serves until ctx ends, which is success.
func (a *app) dev(ctx context.Context, addr string, logger *slog.Logger) error {
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

	owner := fmt.Sprintf("dev-%d", os.Getpid())
	loop := maintain.New(maintain.Config{Engine: eng, Owner: owner, Logger: logger})
	key := devKey()
	if err := a.show(announcement{server.URL(), key}, func(p *page) {
		fmt.Fprintf(p, `FlowFabric development server: in memory, for development only, nothing is persisted.

  export FLOWFABRIC_URL=%s
  export FLOWFABRIC_TOKEN_KEYS=%s   # for handlers that wait

Press Ctrl-C to stop.
`, server.URL(), key)
	}); err != nil {
		return err
	}
	tasks := pool.New().WithContext(ctx).WithCancelOnError()
	tasks.Go(loop.Run)
	tasks.Go(func(ctx context.Context) error { return listen(ctx, eng, owner, loop) })
	return tasks.Wait()
}

// listen hands the bells of all partitions to the loop until ctx ends. The server is embedded and so off
// cluster: one subscription covers them all.
func listen(ctx context.Context, eng *engine.Engine, owner string, loop *maintain.Loop) error {
	channels := make([]string, eng.Partitions())
	partitions := make(map[string]uint16, len(channels))
	for p := range eng.Partitions() {
		channels[p] = engine.BellChannel(p, owner)
		partitions[channels[p]] = p
	}
	missed := func() { // whatever rang while nobody listened
		for p := range eng.Partitions() {
			loop.Ring(p)
		}
	}
	rung := func(channel, message string) {
		if p, ok := partitions[channel]; ok && message == "t" {
			loop.Ring(p)
		}
	}
	again := backoff.WithContext(backoff.NewConstantBackOff(time.Second), ctx)
	_ = backoff.Retry(func() error { // ends with ctx, never with an error of the connection
		err := eng.Subscribe(ctx, 0, channels, missed, rung)
		if err == nil && ctx.Err() == nil {
			err = fmt.Errorf("subscription ended")
		}
		return err
	}, again)
	return nil
}

// devKey is a token key for those who try things out.
func devKey() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return "dev:" + hex.EncodeToString(secret)
}
