package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/library"
)

func loadCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "load",
		Short: "Load the function library and boot the store",
		Long: `load installs the function library of this version on every primary that lacks it or has an older
one, and boots a store that was never used. Run it before you start workers of a new version that may not
load the library themselves. It needs no more rights than the user loader of ops/acl has. A newer library
stays. You may repeat the command.`,
		Example: "  flowfabric load --url redis://loader:…@db:6379",
		Args:    cobra.NoArgs,
		RunE:    a.once(func(ctx context.Context, _ []string) error { return a.load(ctx) }),
	}
}

// loaded is the answer of load.
type loaded struct {
	Server     string   `json:"server"`
	Revision   int      `json:"library_revision"` // the oldest on a primary
	Own        int      `json:"own_revision"`     // of this program
	Partitions uint16   `json:"partitions"`
	Without    []string `json:"without,omitempty"` // nodes that were away, or did not take it
}

func (a *app) load(ctx context.Context) error {
	cfg, err := a.engineConfig(mayBoot)
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	v := loaded{Server: e.Server(), Revision: library.Revision, Own: library.Revision, Partitions: e.Partitions()}
	if !e.Embedded() { // which has no library to look at
		d, err := doctor.Diagnose(ctx, cfg)
		if err != nil {
			return err
		}
		v.Revision, v.Without = carried(d.Nodes)
	}
	if err := a.show(v, func(p *page) {
		p.say("%s carries library revision %d; the store has %s", v.Server, v.Revision,
			count(int(v.Partitions), "partition"))
	}); err != nil {
		return err
	}
	if len(v.Without) > 0 {
		return fmt.Errorf("%w: not loaded on %s: repeat it when they answer", errUnhealthy,
			strings.Join(v.Without, ", "))
	}
	return nil
}

// carried is the oldest library on a primary, and who has none that this program can work with.
func carried(nodes []doctor.NodeReport) (revision int, without []string) {
	for _, n := range nodes {
		switch {
		case n.Err == nil && !n.Primary():
		case n.Err != nil || n.Library.Err != nil || n.Library.Missing || n.Library.Revision < library.Revision:
			without = append(without, n.Address)
		case revision == 0 || n.Library.Revision < revision:
			revision = n.Library.Revision
		}
	}
	return revision, without
}
