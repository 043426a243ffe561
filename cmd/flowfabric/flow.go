package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

func flowCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "List, show, draw, cancel, replay and seal flows",
		Long: `flow looks after flows: graphs of executions that run once those they depend on allow it. Members of
a flow are executions, for which show, why, history and tail work as for any other. Alone it does what ls does.`,
	}
	list := flowListCommand(a)
	cmd.AddCommand(list, flowShowCommand(a), flowGraphCommand(a), flowCancelCommand(a), flowReplayCommand(a),
		flowSealCommand(a))
	listsAlone(cmd, list)
	cmd.Long = strings.TrimSuffix(cmd.Long, " Alone it does what list does.")
	return cmd
}

// flowID reads an argument that names a flow.
func flowID(text string) (flowfabric.FlowID, error) {
	id, err := executionID(text)
	return flowfabric.FlowID(id), err
}

// onFlow adapts a body about one flow.
func (a *app) onFlow(body func(ctx context.Context, f *client.Flow) error) func(*cobra.Command, []string) error {
	return a.once(func(ctx context.Context, args []string) error {
		id, err := flowID(args[0])
		if err != nil {
			return err
		}
		return a.with(ctx, func(c *client.Client) error { return body(ctx, c.Flow(id)) })
	})
}

func flowListCommand(a *app) *cobra.Command {
	var q admin.FlowQuery
	var all bool
	var states []string
	var limit int
	var cursor string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List flows by state and kind",
		Long: `ls lists the flows of all partitions, newest first. It prints --limit of them, and the cursor of the
next page when there are more; --limit 0 lists all. With --json it prints one flow per line, and the
cursor as {"cursor":…} on stderr.`,
		Example: `  flowfabric flow ls --state failed
  flowfabric flow ls --kind report --limit 0 --json | jq -r .id`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = a.once(func(ctx context.Context, _ []string) error {
		for _, s := range states {
			q.States = append(q.States, flowfabric.FlowState(s))
		}
		if limit < 0 {
			return usage("--limit is %d, want 0 or more", limit)
		}
		if all {
			q.Namespace = admin.AllNamespaces
		}
		return a.operate(ctx, func(o *admin.Admin) error { return a.listFlows(ctx, o, q, cursor, limit) })
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&states, "state", nil, "`states`: staging, open, completed, failed, cancelled")
	flags.StringVar(&q.Kind, "kind", "", "only this `kind`")
	flags.BoolVar(&q.Oldest, "oldest", false, "from the other end")
	flags.BoolVar(&all, "all-namespaces", false, "of all namespaces")
	flags.IntVar(&limit, "limit", limits.DefaultListPage, "how many at most; `0` is all")
	flags.StringVar(&cursor, "cursor", "", "go on where the page with this `cursor` ended, with the same query")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"staging", "open", "completed",
		"failed", "cancelled"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) listFlows(ctx context.Context, o *admin.Admin, q admin.FlowQuery, cursor string, limit int) error {
	p := &page{colour: a.colour()}
	var rows [][]any
	for left := limit; ; {
		size := limits.MaxListPage
		if limit > 0 {
			size = min(left, size)
		}
		found, err := o.FlowsPage(ctx, q, cursor, size)
		if err != nil {
			return err
		}
		for _, x := range found.Items {
			if !a.json {
				ended := 0
				for state, n := range x.Count {
					if state.Terminal() {
						ended += n
					}
				}
				rows = append(rows, []any{x.ID.String(), styled(flowStyle(x.State), x.State), x.Kind, x.Members, ended,
					x.Failing, instant(x.CreatedAt), instant(x.EndedAt)})
			} else if err := a.line(x); err != nil {
				return err
			}
		}
		cursor = found.Cursor
		if left -= len(found.Items); cursor == "" || limit > 0 && left <= 0 {
			break
		}
	}
	if a.json {
		if cursor == "" {
			return nil
		}
		return json.NewEncoder(a.err).Encode(struct {
			Cursor string `json:"cursor"`
		}{cursor})
	}
	p.table([]string{"ID", "STATE", "KIND", "MEMBERS", "ENDED", "FAILING", "CREATED", "ENDED AT"}, rows)
	if cursor != "" {
		p.say("more: --cursor %s", cursor)
	}
	_, err := p.WriteTo(a.out)
	return err
}

func flowStyle(s flowfabric.FlowState) style {
	switch s {
	case flowfabric.FlowCompleted:
		return green
	case flowfabric.FlowFailed:
		return red
	case flowfabric.FlowCancelled, flowfabric.FlowStaging:
		return faint
	}
	return yellow
}

func flowShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show FLOW",
		Short: "Show a flow: its state, its counters, and every member with what it depends on",
		Long: `show prints a flow level by level: its members, their states, what each needs and how far that is.
With --json it prints the same as one value, with the ids of the members, which why, show and tail take.`,
		Example: `  flowfabric flow show 3-0197f3a0-…
  flowfabric flow show 3-0197f3a0-… --json | jq -r '.nodes[] | select(.state == "waiting").id' | xargs -n1 flowfabric why`,
		Args: exactly("FLOW"),
		RunE: a.onFlow(func(ctx context.Context, f *client.Flow) error {
			s, err := f.Snapshot(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.line(s)
			}
			return s.Text(a.out)
		}),
	}
}

func flowGraphCommand(a *app) *cobra.Command {
	format := "text"
	cmd := &cobra.Command{
		Use:   "graph FLOW",
		Short: "Draw a flow, as text, for Mermaid or for Graphviz",
		Long: `graph draws a flow with the states of its members: --format mermaid for Markdown files, dot for
Graphviz. What a name holds cannot break the drawing.`,
		Example: `  flowfabric flow graph 3-0197f3a0-… --format mermaid
  flowfabric flow graph 3-0197f3a0-… --format dot | dot -Tsvg > flow.svg`,
		Args: exactly("FLOW"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if format != "text" && format != "mermaid" && format != "dot" {
			return usage("--format is %q, want text, mermaid or dot", format)
		}
		return a.onFlow(func(ctx context.Context, f *client.Flow) error {
			s, err := f.Snapshot(ctx)
			if err != nil {
				return err
			}
			draw := s.Text
			switch format {
			case "mermaid":
				draw = s.Mermaid
			case "dot":
				draw = s.Graphviz
			}
			if !a.json {
				return draw(a.out)
			}
			var b strings.Builder
			if err := draw(&b); err != nil {
				return err
			}
			return a.line(struct {
				ID     flowfabric.FlowID `json:"id"`
				Format string            `json:"format"`
				Graph  string            `json:"graph"`
			}{f.ID(), format, b.String()})
		})(cmd, args)
	}
	cmd.Flags().StringVar(&format, "format", "text", "`text`, mermaid or dot")
	_ = cmd.RegisterFlagCompletionFunc("format",
		cobra.FixedCompletions([]string{"text", "mermaid", "dot"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func flowCancelCommand(a *app) *cobra.Command {
	var wait bool
	policy := string(flowfabric.CancelAll)
	cmd := &cobra.Command{
		Use:   "cancel FLOW",
		Short: "Cancel a flow",
		Long: `cancel ends a flow. --policy says what becomes of its members: cancel_all cancels all that have not
ended, cancel_pending those that are not active, flow_only none. From then on no member that the policy
covers is handed out. --wait returns once none of them is left. Cancelling twice is no error, the first
policy and reason stand.`,
		Example: "  flowfabric flow cancel 3-0197f3a0-… --policy cancel_pending --reason 'no longer needed'",
		Args:    exactly("FLOW"),
		RunE: a.onFlow(func(ctx context.Context, f *client.Flow) error {
			cancel := f.Cancel
			if wait {
				cancel = f.CancelAndWait
			}
			out, err := cancel(ctx, flowfabric.CancellationPolicy(policy), a.why())
			if err != nil && !errors.Is(err, client.ErrPartiallyCancelled) {
				return err
			}
			return errors.Join(a.show(struct {
				ID      flowfabric.FlowID             `json:"id"`
				Done    string                        `json:"done"`
				Already bool                          `json:"already"`
				Policy  flowfabric.CancellationPolicy `json:"policy"`
				Reason  string                        `json:"reason"`
				Unended int                           `json:"unended"`
				Left    int                           `json:"left"`
			}{f.ID(), "cancelled", out.Already, out.Policy, out.Reason, out.Unended, len(out.Left)}, func(p *page) {
				before := ""
				if out.Already {
					before = " before"
				}
				p.say("cancelled%s %s with %s: %s", before, f.ID().String(), string(out.Policy), out.Reason)
				if out.Unended > 0 {
					p.say("%s not ended yet", haveOrHas(out.Unended, "member"))
				}
			}), err)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&policy, "policy", policy, "`policy`: cancel_all, cancel_pending or flow_only")
	flags.BoolVar(&wait, "wait", false, "until nothing that the policy covers is left, or --timeout runs out")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{"cancel_all", "cancel_pending",
		"flow_only"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func haveOrHas(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " has"
	}
	return count(n, noun) + " have"
}

func flowReplayCommand(a *app) *cobra.Command {
	var nodes []string
	var request string
	var everything, scratch, force bool
	cmd := &cobra.Command{
		Use:   "replay FLOW",
		Short: "Run what did not succeed in a flow again",
		Long: `replay runs members of a flow again that failed, expired, were cancelled or skipped: all that somebody
still needs, or with --from a node and those it made skipped. What succeeded stays, and its results are
used again; but nodes that run whatever the others came to (cleanup) run again after them. A flow that has ended is open again. A flow that was cancelled cannot be replayed, unless with
flow_only: submit it again.`,
		Example: `  flowfabric flow replay 3-0197f3a0-… --reason 'the model is back'
  flowfabric flow replay 3-0197f3a0-… --from fetch --from-scratch`,
		Args: exactly("FLOW"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := flowID(args[0])
			if err != nil {
				return err
			}
			which := admin.FlowReplay{Nodes: nodes, Everything: everything,
				How: admin.Replay{FromScratch: scratch, Force: force}}
			if request != "" {
				if which.How.Request, err = requestID("--request", request); err != nil {
					return err
				}
			}
			return a.operate(ctx, func(o *admin.Admin) error {
				out, err := o.ReplayFlow(ctx, id, which, a.why())
				if err != nil {
					return err
				}
				return a.replayed(id, out)
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&nodes, "from", nil,
		"only this `node`, and those behind it that were skipped; may be repeated")
	flags.BoolVar(&everything, "everything", false,
		"also those that nobody needs any more, such as the losers of a race")
	flags.BoolVar(&scratch, "from-scratch", false, "forget recorded steps and answers")
	flags.BoolVar(&force, "force", false, "also a node of --from that succeeded")
	flags.StringVar(&request, "request", "", "`uuid` of this request: repeated with the same, it replays once")
	return cmd
}

// replayed prints what became of a replay. That members were refused is an error once everything is said.
func (a *app) replayed(id flowfabric.FlowID, out admin.FlowReplayed) error {
	err := a.show(struct {
		ID   flowfabric.FlowID `json:"id"`
		Done string            `json:"done"`
		admin.FlowReplayed
	}{id, "replayed", out}, func(p *page) {
		if out.Runnable+out.Blocked == 0 {
			p.say("replayed nothing of %s", id.String())
		} else {
			p.say("replayed %s: %d can run, %d wait for others", id.String(), out.Runnable, out.Blocked)
		}
		if out.Unneeded > 0 {
			p.say("%s not needed any more; --everything replays them, too", plainly(out.Unneeded))
		}
		for _, node := range out.Kept {
			p.say("kept %s: it has completed behind a node that is replayed", node)
		}
		for _, r := range out.Refused {
			p.say("refused %s: %s", r.Node, r.Why)
		}
	})
	if err == nil && len(out.Refused) > 0 {
		err = out.Refused[0]
	}
	return err
}

func plainly(n int) string {
	if n == 1 {
		return "1 member is"
	}
	return count(n, "member") + " are"
}

func flowSealCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "seal FLOW",
		Short: "Close a flow to new members",
		Long: `seal ends the growth of a flow that was submitted unsealed or growing: it takes no members any more, and
ends by itself when none is left. Sealing twice is no error; a growing flow that has ended by itself is refused.`,
		Example: "  flowfabric flow seal 3-0197f3a0-…",
		Args:    exactly("FLOW"),
		RunE: a.onFlow(func(ctx context.Context, f *client.Flow) error {
			if err := f.Seal(ctx, a.why()); err != nil {
				return err
			}
			return a.show(struct {
				ID   flowfabric.FlowID `json:"id"`
				Done string            `json:"done"`
			}{f.ID(), "sealed"}, func(p *page) { p.say("sealed %s", f.ID().String()) })
		}),
	}
}
