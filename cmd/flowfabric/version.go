package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, protocol and build",
		Args:  cobra.NoArgs,
		RunE: ran(func(cmd *cobra.Command) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "flowfabric %s (protocol %d, %s %s/%s)\n",
				version(), flowfabric.Protocol, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}

// version is the module version the binary was built from: a tag after `go install …@v0.3.0`, else what the
// go tool derives from the checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
