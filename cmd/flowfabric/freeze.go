package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
)

func freezeCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "freeze PARTITION...",
		Short: "Refuse all calls to partitions, while their slots are moved",
		Long: `freeze makes partitions refuse every call until they are thawed, so that their slots can be moved key
by key. Nothing is lost, but nothing runs, and leases go on running out: a freeze that is shorter
than the leases costs no work anything. It says what it froze. Freezing twice is no error.`,
		Example: `  flowfabric freeze 3 --reason 'move slot 8042'
  flowfabric freeze 0-7 12
  flowfabric freeze --all`,
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.eachPartition(ctx, args, all, "frozen", func(o *admin.Admin, partition uint16) error {
				return o.Freeze(ctx, partition, a.why())
			})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all partitions")
	return cmd
}

func thawCommand(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "thaw PARTITION...",
		Short:   "End a freeze",
		Long:    "thaw lets partitions work again. Thawing one that is not frozen is no error.",
		Example: "  flowfabric thaw --all",
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.eachPartition(ctx, args, all, "thawed", func(o *admin.Admin, partition uint16) error {
				return o.Thaw(ctx, partition, a.why())
			})
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all partitions")
	return cmd
}

// eachPartition changes the chosen partitions one after the other and tells what each answered.
func (a *app) eachPartition(ctx context.Context, args []string, all bool, done string,
	change func(o *admin.Admin, partition uint16) error) error {
	return a.operate(ctx, func(o *admin.Admin) error {
		chosen, err := choose(args, all, partitionsOf(ctx, o))
		if err != nil {
			return err
		}
		out := make([]partitionOutcome, len(chosen))
		var failed partial
		var changed []uint16
		for i, p := range chosen {
			err := change(o, p)
			out[i] = partitionOutcome{p, outcome(done, false, err), message(err)}
			if failed.add(p, err); err == nil {
				changed = append(changed, p)
			}
		}
		if err := a.show(out, func(p *page) {
			if len(changed) > 0 {
				p.say("%s %s: %s", done, count(len(changed), "partition"), ranges(changed))
			}
		}); err != nil {
			return err
		}
		return failed.err("not " + done)
	})
}

// partitionsOf is how many partitions a store has, those that do not answer included.
func partitionsOf(ctx context.Context, o *admin.Admin) uint16 {
	all, _ := o.Partitions(ctx)
	return uint16(len(all))
}
