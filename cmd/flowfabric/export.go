package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/store"
)

func exportCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "export DIR",
		Short: "Write the data of a folder as commands, for valkey-cli --pipe",
		Long: `export writes everything that a folder of 'dev --data' or 'serve --data' holds to stdout, as
commands in the protocol of Valkey and Redis. Sent to an empty server, they build the same data there. So it
moves from a folder to a server. The server must not be a cluster. The keys that sign tokens are not part of it:
give the content of the file token-keys in the folder to all processes as FLOWFABRIC_TOKEN_KEYS.

The folder must not be in use, because what is written afterwards would be left behind. To read one that is,
export a backup of it.`,
		Example: `  flowfabric export ./data | valkey-cli -h valkey.internal --pipe
  flowfabric backup ./data /tmp/copy && flowfabric export /tmp/copy >data.resp`,
		Args: exactly("DIR"),
		RunE: a.lasting(func(ctx context.Context, args []string) error { return a.export(ctx, args[0]) }),
	}
}

func (a *app) export(ctx context.Context, dir string) (err error) {
	switch {
	case a.json:
		return usage("export writes commands, so it takes no --json")
	case a.terminal():
		return usage("export writes bytes that no terminal shows: send them to a file, or to 'valkey-cli --pipe'")
	}
	if err := needData(dir); err != nil {
		return err
	}
	s, err := a.openData(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out := bufio.NewWriterSize(a.out, 1<<20)
	s.Lock()
	defer s.Unlock()
	keys := s.Do([]string{"DBSIZE"}).Int
	var text []byte
	s.Export(func(args ...string) {
		if err == nil {
			text = store.AppendCommand(text[:0], args...)
			if _, err = out.Write(text); err == nil {
				err = ctx.Err()
			}
		}
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	fmt.Fprintf(a.err, "exported %s\n", count(int(keys), "key"))
	return nil
}
