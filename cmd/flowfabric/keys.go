package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func keysCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List and rotate the keys that sign tokens",
		Long: `keys shows and rotates the keys that sign the tokens of waitpoints. Secrets never travel: the store
knows fingerprints, and this command reads the keys of FLOWFABRIC_TOKEN_KEYS.`,
	}
	list := keysListCommand(a)
	cmd.AddCommand(list, keysRotateCommand(a))
	listsAlone(cmd, list)
	return cmd
}

func keysListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the keys of every partition",
		Long:    "list shows which key signs, until when others are still good, and how many waitpoints are open under each. With --json every partition is told apart.",
		Example: "  flowfabric keys list",
		Args:    cobra.NoArgs,
		RunE: a.once(func(ctx context.Context, _ []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				listed, err := o.TokenKeys(ctx)
				if err != nil && len(listed) == 0 {
					return err
				}
				if shown := a.show(listed, func(p *page) { keysTable(p, listed) }); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
}

// keysTable sums up the partitions: a key is one row.
func keysTable(p *page, listed []suspend.PartitionKeys) {
	type sum struct {
		fingerprints     map[string]bool
		partitions, sign int
		open             int
		until            time.Time
	}
	sums := map[string]*sum{}
	for _, part := range listed {
		for _, k := range part.Keys {
			s := sums[k.Kid]
			if s == nil {
				s = &sum{fingerprints: map[string]bool{}}
				sums[k.Kid] = s
			}
			s.fingerprints[k.Fingerprint] = true
			s.partitions++
			s.open += k.Open
			if k.Current {
				s.sign++
			}
			if k.ExpiresAt.After(s.until) {
				s.until = k.ExpiresAt
			}
		}
	}
	if len(sums) == 0 {
		p.say("no token keys: a worker with FLOWFABRIC_TOKEN_KEYS makes them known")
		return
	}
	var rows [][]any
	for _, kid := range slices.Sorted(maps.Keys(sums)) {
		s := sums[kid]
		for _, f := range slices.Sorted(maps.Keys(s.fingerprints)) {
			rows = append(rows, []any{kid, f, fmt.Sprintf("%d of %d", s.sign, len(listed)), s.partitions, s.open,
				instant(s.until)})
		}
	}
	p.table([]string{"KID", "FINGERPRINT", "SIGNS IN", "KNOWN IN", "OPEN WAITPOINTS", "GOOD UNTIL"}, rows)
}

func keysRotateCommand(a *app) *cobra.Command {
	var grace time.Duration
	var force bool
	cmd := &cobra.Command{
		Use:   "rotate KID",
		Short: "Make a key sign new tokens, in every partition",
		Long: `rotate makes the key of this id sign new tokens. Give it to every worker first (FLOWFABRIC_TOKEN_KEYS,
behind the one in use), then rotate, then drop the old one once the grace is over. It may be repeated:
partitions that are done answer "already". A partition with open waitpoints whose tokens are needed for
longer than the grace refuses, unless --force.`,
		Example: "  FLOWFABRIC_TOKEN_KEYS=\"$OLD,$NEW\" flowfabric keys rotate k2026 --grace 72h",
		Args:    exactly("KID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			return a.operate(ctx, func(o *admin.Admin) error {
				rotated, err := o.RotateTokenKeys(ctx, admin.Rotation{Kid: args[0], Grace: grace, Force: force},
					a.why())
				if err != nil && len(rotated) == 0 {
					return err
				}
				done := 0
				for _, r := range rotated {
					if r.Err == nil {
						done++
					}
				}
				if shown := a.show(rotated, func(p *page) {
					p.say("%s signs in %d of %s", args[0], done, count(len(rotated), "partition"))
				}); shown != nil {
					return shown
				}
				return err
			})
		}),
	}
	cmd.Flags().DurationVar(&grace, "grace", limits.DefaultKeyGrace, "how long tokens of the key before stay good")
	cmd.Flags().BoolVar(&force, "force", false, "also where tokens then end before they are needed")
	return cmd
}
