package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// answerFlags are the flags of what answers a waitpoint.
type answerFlags struct {
	payload, choice, comment, name, key, category, correlation string

	otherwise string // the choice when neither a choice nor a payload was given; "" delivers the payload
}

func (f *answerFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	payload, choice := " (default null)", ""
	if f.otherwise != "" {
		payload, choice = "", fmt.Sprintf(" (default %s, unless there is a --payload)", f.otherwise)
	}
	flags.StringVar(&f.payload, "payload", "",
		"what the handler gets: `JSON`, @file, or - for stdin, at most 64 KiB"+payload)
	flags.StringVar(&f.choice, "choice", "",
		"answer as the approval page does, with this `choice` (approve, reject, …)"+choice)
	flags.StringVar(&f.comment, "comment", "", "`text` that goes with --choice")
	flags.StringVar(&f.name, "name", "",
		"`name` of the signal, which conditions tell apart (default the choice, or \"signal\")")
	flags.StringVar(&f.key, "key", "", "idempotency `key`: a repeated answer with the same key counts once")
	flags.StringVar(&f.category, "category", "", "`word` for readers of the log")
	flags.StringVar(&f.correlation, "correlation", "", "`id` that the sender's own system knows it by")
	cmd.MarkFlagsMutuallyExclusive("payload", "choice")
}

// answer makes payload and options; given tells whether a flag was set.
func (f *answerFlags) answer(a *app, by string,
	given func(flag string) bool) (payload any, opts []client.SignalOption, err error) {
	if f.name != "" {
		opts = append(opts, client.SignalName(f.name))
	}
	if f.category != "" || f.correlation != "" {
		opts = append(opts, client.SignalDetails(suspend.SentSignal{Category: f.category, Correlation: f.correlation}))
	}
	if f.key != "" {
		opts = append(opts, flowfabric.IdempotencyKey(f.key))
	}
	if given("choice") && f.choice == "" {
		return nil, nil, usage("--choice is empty")
	}
	if !given("choice") && !given("payload") {
		f.choice = f.otherwise
	}
	if f.comment != "" && f.choice == "" {
		return nil, nil, usage("--comment goes with --choice; put it into --payload otherwise")
	}
	if f.choice != "" {
		return suspend.Answer{Choice: f.choice, Comment: f.comment, By: by}, opts, nil
	}
	value := f.payload
	if !given("payload") {
		value = "null"
	}
	data, err := a.read("--payload", value)
	if err == nil {
		data, err = compact("--payload", data)
	}
	return json.RawMessage(data), opts, err
}

func signalCommand(a *app) *cobra.Command {
	var f answerFlags
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "signal TOKEN",
		Short: "Answer a waitpoint with its token",
		Long: `signal brings an answer to an execution that waits for one. The token is the right to do so: it is
read from the argument, from a file (@file) or from stdin (-), and never printed. An argument can be
seen by other users of the machine and stays in the shell's history, so prefer a file or stdin.`,
		Example: `  flowfabric signal @token.txt --payload '{"paid":true}' --key charge-17
  pass show editor | flowfabric signal - --choice approve --comment 'reads well'`,
		Args: exactly("TOKEN"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			if args[0] == "-" && f.payload == "-" {
				return usage("TOKEN and --payload cannot both come from stdin")
			}
			text, err := a.secret("TOKEN", args[0])
			if err != nil {
				return err
			}
			token, err := suspend.ParseToken(text)
			if err != nil {
				return usage("TOKEN: what was given is no token (<partition>.<execution>.<waitpoint>.<kid>:<mac>)")
			}
			by, err := a.who()
			if err != nil {
				return err
			}
			payload, opts, err := f.answer(a, by, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return a.with(ctx, func(c *client.Client) error {
				d, err := c.Signal(ctx, token, payload, opts...)
				return a.delivered(token.Execution(), d, err)
			})
		}),
	}
	f.add(cmd)
	return cmd
}

func approveCommand(a *app) *cobra.Command {
	f := answerFlags{otherwise: "approve"}
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "approve ID WAITPOINT",
		Short: "Answer a waitpoint as an operator, without a token",
		Long: `approve answers a waitpoint, named by its id or its key, on the word of an operator. Who asks (--by)
is kept with the answer. The answer is {"choice":"approve","by":…}, as from the approval page, unless
something else is said: --choice reject refuses, and --payload is for handlers that wait for other JSON.`,
		Example: `  flowfabric waitpoints 3-0197f3a0-…
  flowfabric approve 3-0197f3a0-… editor --by anna
  flowfabric approve 3-0197f3a0-… editor --choice reject --comment 'too long'
  flowfabric approve 3-0197f3a0-… payment --payload '{"paid":true}'`,
		Args: exactly("ID", "WAITPOINT"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			by, err := a.who()
			if err != nil {
				return err
			}
			payload, opts, err := f.answer(a, by, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return a.with(ctx, func(c *client.Client) error {
				approval := []client.ApproveOption{flowfabric.By(by)}
				for _, o := range opts {
					approval = append(approval, o)
				}
				d, err := c.Approve(ctx, id, args[1], payload, approval...)
				return a.delivered(id, d, err)
			})
		}),
	}
	f.add(cmd)
	return cmd
}

// delivery is what became of a signal to an execution.
type delivery struct {
	ID flowfabric.ExecutionID `json:"id"`
	suspend.Delivered
}

func (a *app) delivered(id flowfabric.ExecutionID, d suspend.Delivered, err error) error {
	if err != nil {
		return err
	}
	return a.show(delivery{id, d}, func(p *page) {
		more := "the waitpoint is closed"
		if d.Open {
			more = "the waitpoint takes more"
		}
		if d.Duplicate {
			more += "; it had been delivered before"
		}
		p.say("%s: %s (%s)", id.String(), d.Effect, more)
	})
}

func resumeCommand(a *app) *cobra.Command {
	var request string
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Let a suspended execution go on without an answer",
		Long: `resume ends a wait although nobody answered. The handler is told so (flowfabric.ErrNoSignal); to give
it an answer instead, use approve.`,
		Example: "  flowfabric resume 3-0197f3a0-… --reason 'editor is on leave'",
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
			how := admin.Resume{Delay: delay}
			if request != "" {
				if how.Request, err = requestID("--request", request); err != nil {
					return err
				}
			}
			return a.change(ctx, id, "resumed", func(o *admin.Admin) error {
				return o.Resume(ctx, id, how, flowfabric.By(by), a.why())
			})
		}),
	}
	cmd.Flags().DurationVar(&delay, "delay", 0, "keep it back this long, at most 30 days")
	cmd.Flags().StringVar(&request, "request", "", "`uuid` of this request: repeated with the same, it resumes once")
	return cmd
}
