package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func importCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import DIR",
		Short: "Read the data of a server into a new folder",
		Long: `import reads all keys of FlowFabric from the server of --url, and writes them to a new folder for 'dev
--data' or 'serve --data'. It changes nothing on the server, and leaves keys of other applications out. Stop all
workers and other processes of FlowFabric before: import fails if one wrote meanwhile. The keys that sign tokens
are not on the server, so set FLOWFABRIC_TOKEN_KEYS as your processes have it, and import puts them into the
folder. It has no time limit unless --timeout is given.`,
		Example: `  flowfabric import ./data --url redis://valkey.internal:6379
  flowfabric serve --data ./data`,
		Args: exactly("DIR"),
		RunE: a.lasting(func(ctx context.Context, args []string) error { return a.importTo(ctx, args[0]) }),
	}
}

// imported is what import prints with --json.
type imported struct {
	Folder    string `json:"folder"`
	Keys      int    `json:"keys"`
	Others    int64  `json:"other_keys"` // which it left out
	TokenKeys bool   `json:"token_keys"` // are in the folder
}

// importTo reads into a folder beside the one that is asked for, which is there as a whole or not at all.
func (a *app) importTo(ctx context.Context, dir string) (err error) {
	if err := newFolder(dir); err != nil {
		return err
	}
	keys := os.Getenv(suspend.EnvTokenKeys)
	if _, err := tokenkeys.Parse(keys); err != nil {
		return usage("%s: %v", suspend.EnvTokenKeys, err)
	}
	cfg, err := a.engineConfig(mustExist)
	if err != nil {
		return err
	}
	cfg.CallTimeout = time.Minute // a call reads hundreds of keys
	server, err := engine.Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-import-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	done := imported{Folder: dir, TokenKeys: keys != ""}
	if err := a.readInto(ctx, made, server, &done); err != nil {
		return err
	}
	if keys != "" {
		if _, err := tokenkeys.Kept(made, keys); err != nil {
			return err
		}
	}
	_ = os.Remove(dir) // an empty one, over which not every system renames
	if err := os.Rename(made, dir); err != nil {
		return err
	}
	return a.show(done, func(p *page) {
		p.say("imported %s into %s", count(done.Keys, "key"), dir)
		if done.Others > 0 {
			p.say("note: %s of other applications stay on the server only", count(int(done.Others), "key"))
		}
		if !done.TokenKeys {
			p.say("note: %s is not set; if handlers wait, put the keys of your processes into %s before you start it",
				suspend.EnvTokenKeys, filepath.Join(dir, tokenkeys.File))
		}
	})
}

func (a *app) readInto(ctx context.Context, dir string, server *engine.Probe, done *imported) (err error) {
	s, err := a.openData(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	primaries, err := primariesOf(ctx, server)
	if err != nil {
		return err
	}
	before, err := writes(ctx, primaries)
	if err != nil {
		return err
	}
	i := &importer{to: s}
	for _, p := range primaries {
		if err := i.all(ctx, p); err != nil {
			return err
		}
		size, err := p.Ask(ctx, "DBSIZE").AsInt64()
		if err != nil {
			return engine.CallError("dbsize", err)
		}
		done.Others += size
	}
	switch after, err := writes(ctx, primaries); {
	case err != nil:
		return err
	case after != before:
		return errors.New("a process of FlowFabric used the server meanwhile: stop all of them and import again")
	case i.keys == 0:
		return usage("the server has no data of FlowFabric: check --url")
	}
	done.Keys = i.keys
	done.Others = max(done.Others-int64(i.keys), 0)
	return nil
}

// primariesOf are the servers that hold keys.
func primariesOf(ctx context.Context, server *engine.Probe) (list []*engine.Probe, err error) {
	if !server.Cluster {
		return []*engine.Probe{server}, nil
	}
	for address, node := range server.Nodes() {
		role, err := node.Role(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		if role == "master" {
			list = append(list, node)
		}
	}
	return list, nil
}
