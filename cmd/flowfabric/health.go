package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// healthCommand is for containers, whose image has no other program that could ask.
func healthCommand(a *app) *cobra.Command {
	var addr string
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a process that serves whether it is ready",
		Long: `health asks the process of "flowfabric serve" at --addr whether it reaches its store (/readyz),
and ends with exit code 0 if it does. With --live it asks only whether the process answers (/healthz). It
works with any process that serves these two paths. It needs no token and no server URL, so it suits the
health check of a container.`,
		Example: `  flowfabric health --addr 127.0.0.1:7788 --timeout 3s`,
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			if _, _, err := net.SplitHostPort(addr); err != nil {
				return usage("--addr is %q, want host:port", addr)
			}
			path := "/readyz"
			if live {
				path = "/healthz"
			}
			return a.health(ctx, "http://"+addr+path)
		}),
	}
	cmd.Flags().StringVar(&addr, "addr", defaultHTTP, "`host:port` of the process")
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether it lives")
	return cmd
}

// healthy is what health prints with --json.
type healthy struct {
	Status string `json:"status"`
	URL    string `json:"url"`
}

func (a *app) health(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usage("%v", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", flowfabric.ErrTransport, err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)); answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s: %s: %s", errUnhealthy, url, answer.Status, body)
	}
	return a.show(healthy{"ok", url}, func(p *page) { p.say("ok") })
}
