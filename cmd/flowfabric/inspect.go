package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/store"
)

func storeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look into the files of a folder of data",
		Long:  "store looks into the files of a folder of 'dev --data' or 'serve --data'.",
	}
	var at int64
	var inspect *cobra.Command
	inspect = &cobra.Command{
		Use:   "inspect PATH",
		Short: "List the files of a folder, or show what is around an offset of one",
		Long: `inspect lists the files of a folder and says which are damaged. Of a file it shows the records around
--at, or before the first damage; of the damage, its bytes and where the next whole record begins. It changes
nothing. The exit code is 1 when it has shown damage. A server that refuses a damaged file names the file and
the offset.`,
		Example: `  flowfabric store inspect ./data
  flowfabric store inspect ./data/log-3.resp
  flowfabric store inspect ./data/log-3.resp --at 81920`,
		Args: exactly("PATH"),
		RunE: a.once(func(_ context.Context, args []string) error {
			if at < 0 {
				return usage("--at is %d, want 0 or more", at)
			}
			if !inspect.Flags().Changed("at") {
				at = math.MaxInt64
			}
			return store.Inspect(a.out, args[0], at)
		}),
	}
	inspect.Flags().Int64Var(&at, "at", 0, "`offset` in the file, in bytes (default its first damage, or its end)")
	cmd.AddCommand(inspect)
	return cmd
}
