package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/store"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
)

// dataFlags say where the server of this process keeps its data, and when that reaches the disk.
type dataFlags struct{ dir, fsync string }

const fsyncUsual = "everysec"

// fsyncs are the values of --fsync: whether each answer waits for the disk.
var fsyncs = map[string]bool{"": false, fsyncUsual: false, "always": true}

func (d *dataFlags) add(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&d.dir, "data", "", usage)
	flags.StringVar(&d.fsync, "fsync", "",
		"`when` writes reach the disk: everysec (a crash of the machine loses at most the last second), or always (before each answer) (default "+
			fsyncUsual+")")
}

// read checks the flags and makes the path absolute: messages about it are read in other folders.
func (d *dataFlags) read() (always bool, err error) {
	always, known := fsyncs[d.fsync]
	switch {
	case !known:
		return always, usage("--fsync is %q, want everysec or always", d.fsync)
	case d.dir == "" && d.fsync != "":
		return always, usage("--fsync %s needs --data: without a folder nothing is written to disk", d.fsync)
	case d.dir == "":
		return always, nil
	}
	if d.dir, err = filepath.Abs(d.dir); err != nil {
		return always, usage("--data: %v", err)
	}
	return always, nil
}

// where says in one line what becomes of the data.
func (d *dataFlags) where() string {
	if d.dir == "" {
		return "in memory, nothing is persisted; --data DIR keeps it."
	}
	return fmt.Sprintf("data in %s (fsync %s).", d.dir, cmp.Or(d.fsync, fsyncUsual))
}

// startStore starts the server of dev or serve. flag is the one that names its address.
func startStore(ctx context.Context, flag string, cfg embedded.Config) (*embedded.Server, error) {
	server, err := embedded.Start(ctx, cfg)
	if listening, ok := errors.AsType[*net.OpError](err); ok && listening.Op == "listen" {
		err = fmt.Errorf("%w; %s names another address, and port 0 takes a free one", err, flag)
	}
	return server, err
}

// tokenKeys are the keys of the folder, which it keeps; in memory one of this process.
func (d *dataFlags) tokenKeys() (string, error) {
	if d.dir == "" {
		return tokenkeys.Fresh(), nil
	}
	return tokenkeys.Kept(d.dir, "")
}

// hasData reports whether a folder has files of a store.
func hasData(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, usage("%v", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".resp") {
			return true, nil
		}
	}
	return false, nil
}

// needData refuses a folder that has no store.
func needData(dir string) error {
	switch there, err := hasData(dir); {
	case err != nil:
		return err
	case !there:
		return usage("%s has no data of FlowFabric", dir)
	}
	return nil
}

// openData opens the store of a folder that no process has.
func (a *app) openData(dir string) (*store.Store, error) {
	return store.Open(dir, store.Options{Logger: a.logger()})
}
