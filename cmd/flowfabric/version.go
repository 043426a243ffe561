package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, protocol and build",
		Args:  cobra.NoArgs,
		RunE: a.once(func(context.Context, []string) error {
			v := build{version(), limits.Protocol, library.Revision, runtime.Version(),
				runtime.GOOS + "/" + runtime.GOARCH}
			return a.show(v, func(p *page) {
				p.say("flowfabric %s (protocol %d, library %d, %s %s)", v.Version, v.Protocol, v.Library, v.Go,
					v.Platform)
			})
		}),
	}
}

// build is what version prints with --json.
type build struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	Library  int    `json:"library_revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version is the module version the binary was built from: a tag after `go install …@v0.3.0`, else what the
// go tool derives from the checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
