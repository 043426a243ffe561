package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// changed is the answer of what changes one execution.
type changed struct {
	ID   flowfabric.ExecutionID `json:"id"`
	Done string                 `json:"done"` // the past participle: cancelled, replayed, …
}

// change makes one call about an execution and says what it did.
func (a *app) change(ctx context.Context, id flowfabric.ExecutionID, done string,
	call func(o *admin.Admin) error) error {
	return a.operate(ctx, func(o *admin.Admin) error {
		if err := call(o); err != nil {
			return err
		}
		return a.show(changed{id, done}, func(p *page) { p.say("%s %s", done, id.String()) })
	})
}

func cancelCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "End an execution",
		Long: `cancel ends an execution in any state that is not an end. A handler that runs it sees its context
end. The execution keeps who asks (--by) and why. Cancelling twice is no error.`,
		Example: "  flowfabric cancel 3-0197f3a0-… --reason 'no longer needed'",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			by, err := a.who()
			if err != nil {
				return err
			}
			return a.change(ctx, id, "cancelled", func(o *admin.Admin) error {
				return o.Client().Cancel(ctx, id, flowfabric.By(by), a.why())
			})
		}),
	}
	return cmd
}

func replayCommand(a *app) *cobra.Command {
	var request, from string
	var scratch, force bool
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "Run an ended execution again",
		Long: `replay runs an execution that has ended again, under its id and with its input. Recorded steps and
answers are kept, so only what is missing runs; --from-scratch drops them, and --from-step drops a step and
everything that was recorded after it. A success is replayed only with --force.`,
		Example: "  flowfabric replay 3-0197f3a0-… --reason 'ink refilled'",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			how := admin.Replay{FromScratch: scratch, FromStep: from, Force: force}
			if request != "" {
				if how.Request, err = requestID("--request", request); err != nil {
					return err
				}
			}
			return a.change(ctx, id, "replayed", func(o *admin.Admin) error { return o.Replay(ctx, id, how, a.why()) })
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&scratch, "from-scratch", false, "forget recorded steps and answers")
	flags.StringVar(&from, "from-step", "", "forget the step of this `name` and what was recorded after it")
	cmd.MarkFlagsMutuallyExclusive("from-scratch", "from-step")
	flags.BoolVar(&force, "force", false, "also one that succeeded")
	flags.StringVar(&request, "request", "", "`uuid` of this request: repeated with the same, it replays once")
	return cmd
}

func priorityCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "priority ID NUMBER",
		Short:   "Change the priority of an execution",
		Long:    "priority moves an execution within its queue: 0..9000, higher is claimed first. Its age is kept.",
		Example: "  flowfabric priority 3-0197f3a0-… 9000",
		Args:    exactly("ID", "NUMBER"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usage("NUMBER %q is not a whole number of 0..%d", args[1], limits.MaxPriority)
			}
			return a.change(ctx, id, "reprioritised", func(o *admin.Admin) error {
				return o.SetPriority(ctx, id, n, a.why())
			})
		}),
	}
}

func runNowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run-now ID",
		Short: "Make a delayed execution claimable at once",
		Long: `run-now ends the pause of an execution that waits for a time: a delayed start, the pause before a
retry or after a lost worker, a delay that its handler asked for, or that of a resumption. It costs
no retry. One that can be claimed already is no error.`,
		Example: "  flowfabric run-now 3-0197f3a0-… --reason 'the mail server is back'",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.change(ctx, id, "made claimable", func(o *admin.Admin) error { return o.RunNow(ctx, id, a.why()) })
		}),
	}
	return cmd
}

func delayCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delay ID DURATION",
		Short: "Change until when a delayed execution waits",
		Long: `delay lets an execution that waits for a time wait for DURATION from now instead, longer or shorter than
before: a delayed start, the pause before a retry or after a lost worker, a delay that its handler
asked for, or that of a resumption. 0 is run-now. One that is not delayed is refused.`,
		Example: "  flowfabric delay 3-0197f3a0-… 2h --reason 'not before the maintenance'",
		Args:    exactly("ID", "DURATION"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			d, err := time.ParseDuration(args[1])
			if err != nil || d < 0 {
				return usage("DURATION %q is not a duration such as 90s or 2h", args[1])
			}
			return a.change(ctx, id, "delayed", func(o *admin.Admin) error { return o.SetDelay(ctx, id, d, a.why()) })
		}),
	}
	return cmd
}

func tagsCommand(a *app) *cobra.Command {
	var set, remove []string
	cmd := &cobra.Command{
		Use:   "tags ID",
		Short: "Show, set or remove the tags of an execution",
		Long: `tags sets and removes tags, all of them or none, and prints those that are left. A key is dotted
lower-case words, such as team.region.`,
		Example: `  flowfabric tags 3-0197f3a0-…
  flowfabric tags 3-0197f3a0-… --set print.ink=refilled --remove print.waiting`,
		Args: exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			values, err := pairs("--set", set)
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				if len(values)+len(remove) > 0 {
					if err := o.SetTags(ctx, id, values, remove, a.why()); err != nil {
						return err
					}
				}
				s, err := o.Client().Get(ctx, id)
				if err != nil {
					return err
				}
				left := s.Tags
				if left == nil {
					left = map[string]string{}
				}
				return a.show(struct {
					ID   flowfabric.ExecutionID `json:"id"`
					Tags map[string]string      `json:"tags"`
				}{id, left}, func(p *page) {
					for _, k := range slices.Sorted(maps.Keys(left)) {
						p.say("%s=%s", k, left[k])
					}
				})
			})
		}),
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "`key=value`; may be repeated")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "`key`; may be repeated")
	return cmd
}

func revokeCommand(a *app) *cobra.Command {
	var session string
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Take an execution away from the worker that runs it",
		Long: `revoke takes the lease away at once: what the worker still writes is refused, its handler's context
ends, and the work is queued again as after a crash, which costs no retry. It does not end the
execution; cancel does.`,
		Example: "  flowfabric revoke 3-0197f3a0-… --reason 'worker hangs'",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.change(ctx, id, "revoked", func(o *admin.Admin) error {
				return o.RevokeFrom(ctx, id, session, a.why())
			})
		}),
	}
	cmd.Flags().StringVar(&session, "held-by", "", "only if this `session` still holds it (show --json tells it)")
	return cmd
}

func purgeCommand(a *app) *cobra.Command {
	var keep time.Duration
	cmd := &cobra.Command{
		Use:   "purge ID",
		Short: "Remove an ended execution for good",
		Long: `purge removes an execution that has ended, with its input, results, steps, frames and history. There
is no way back. Its id stays taken for --tombstone; its key is free.`,
		Example: "  flowfabric purge 3-0197f3a0-…",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.change(ctx, id, "purged", func(o *admin.Admin) error { return o.Purge(ctx, id, keep, a.why()) })
		}),
	}
	cmd.Flags().DurationVar(&keep, "tombstone", limits.MinTombstone, "how long the id stays taken, 24h to ten years")
	return cmd
}

func holdCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hold ID",
		Short: "Keep an execution from being handed out",
		Long: `hold keeps an execution that waits for a worker from being handed out until unhold. One that runs,
is delayed, suspended, or waits for others is refused; revoke or cancel it, or pause its lane.`,
		Example: "  flowfabric hold 3-0197f3a0-… --reason 'look at the input first'",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.change(ctx, id, "held", func(o *admin.Admin) error { return o.Hold(ctx, id, a.why()) })
		}),
	}
	return cmd
}

func unholdCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "unhold ID",
		Short:   "Let a held execution be handed out again",
		Long:    "unhold puts an execution that was held back into its queue, at its old place.",
		Example: "  flowfabric unhold 3-0197f3a0-…",
		Args:    exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.change(ctx, id, "unheld", func(o *admin.Admin) error { return o.Unhold(ctx, id, a.why()) })
		}),
	}
}
