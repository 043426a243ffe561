package main

import (
	"context"

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
	inspect := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what is around an offset of a file",
		Long: `inspect shows the records around an offset of a file of the store, and the bytes where a record is
damaged. It changes nothing. The error of a server that refuses a damaged file has the file and the offset.`,
		Example: `  flowfabric store inspect ./data/log-3.resp --at 81920`,
		Args:    exactly("FILE"),
		RunE: a.once(func(_ context.Context, args []string) error {
			if at < 0 {
				return usage("--at is %d, want 0 or more", at)
			}
			return store.Inspect(a.out, args[0], at)
		}),
	}
	inspect.Flags().Int64Var(&at, "at", 0, "`offset` in the file, in bytes")
	cmd.AddCommand(inspect)
	return cmd
}
