package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/store"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

func backupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR DEST",
		Short: "Copy the folder of a store while it is in use",
		Long: `backup copies a folder of 'dev --data' or 'serve --data' to a new folder, while a process may be using
it. The copy is the state at one moment, and has the keys that sign tokens, so keep it as safe as the folder. To
restore it, stop the process, put the copy in the place of the folder, and start the process.`,
		Example: `  flowfabric backup ./data /backups/data-2026-11-30`,
		Args:    exactly("DIR", "DEST"),
		RunE: a.lasting(func(ctx context.Context, args []string) error {
			dir, dest := args[0], args[1]
			if err := needData(dir); err != nil {
				return err
			}
			if err := newFolder(dest); err != nil {
				return err
			}
			if err := store.Backup(ctx, dir, dest); err != nil {
				return err
			}
			if err := copyKeys(dir, dest); err != nil {
				return err
			}
			return a.show(map[string]string{"folder": dir, "backup": dest}, func(p *page) {
				p.say("copied %s to %s", dir, dest)
			})
		}),
	}
}

// newFolder refuses a folder that has something in it.
func newFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usage("%v", err)
	case len(entries) > 0:
		return usage("%s is not empty: name a folder that does not exist yet", dir)
	}
	return nil
}

// copyKeys copies the token keys of a folder, if it has any.
func copyKeys(dir, dest string) error {
	text, err := os.ReadFile(filepath.Join(dir, tokenkeys.File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = tokenkeys.Kept(dest, string(text))
	}
	return err
}
