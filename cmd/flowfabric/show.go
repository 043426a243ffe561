package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

func showCommand(a *app) *cobra.Command {
	var with shown
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one execution: state, attempts, times, tags, failure",
		Long: `show prints what the store knows of an execution. --input adds what it was submitted with, --result
the result of one that completed, --summary the summary document that its handler writes, --steps the
durable steps: which attempt ran each, how long it took, and which ones failed.`,
		Example: `  flowfabric show 3-0197f3a0-…
  flowfabric show 3-0197f3a0-… --json | jq .state`,
		Args: exactly("ID"),
		RunE: a.once(func(ctx context.Context, args []string) error {
			id, err := executionID(args[0])
			if err != nil {
				return err
			}
			return a.operate(ctx, func(o *admin.Admin) error { return a.showExecution(ctx, o, id, with) })
		}),
	}
	cmd.Flags().BoolVar(&with.input, "input", false, "also the input")
	cmd.Flags().BoolVar(&with.result, "result", false, "also the result")
	cmd.Flags().BoolVar(&with.summary, "summary", false, "also the summary document of the newest attempt")
	cmd.Flags().BoolVar(&with.steps, "steps", false, "also the recorded and the failed steps")
	return cmd
}

// shown is what else is shown of an execution.
type shown struct{ input, result, summary, steps bool }

// execution is what show prints of one.
type execution struct {
	flowfabric.Snapshot
	Closed      *admission.Closing      `json:"closed,omitempty"`      // its queue, by a gate
	ClosedUntil time.Time               `json:"closed_until,omitzero"` // its gates are asked again
	Budgets     []string                `json:"budgets,omitempty"`
	Quotas      []string                `json:"quotas,omitempty"`
	End         *ended                  `json:"end,omitempty"`          // --result
	Summary     *stream.Summary         `json:"summary,omitempty"`      // --summary
	StepList    []flowfabric.StepRecord `json:"step_list,omitempty"`    // --steps
	Input       json.RawMessage         `json:"input,omitempty"`        // --input, if it is JSON
	InputRaw    []byte                  `json:"input_base64,omitempty"` // --input, if it is not
}

// keyHold says how long an execution holds its key.
func keyHold(s flowfabric.Snapshot) string {
	switch s.KeyHeld {
	case "until_claimed":
		if s.Replaced > 0 {
			return fmt.Sprintf("debounced, until it is claimed; the last of %d submits", s.Replaced+1)
		}
		return "debounced, until it is claimed"
	case "retained":
		return "as long as it is retained"
	case "until_time":
		return "until " + instant(s.KeyUntil) + ", and until it has ended"
	case "until_ended":
		return "until it has ended"
	}
	return ""
}

func (a *app) showExecution(ctx context.Context, o *admin.Admin, id flowfabric.ExecutionID, with shown) error {
	c := o.Client()
	s, err := c.Get(ctx, id)
	if err != nil {
		return err
	}
	x := execution{Snapshot: s}
	x.Budgets, x.Quotas = admin.GateNames(s.Route.Gates)
	if len(s.Route.Gates) > 0 && s.State.LifecyclePhase == "runnable" {
		x.gated(o.Why(ctx, id))
	}
	if with.input {
		raw, err := c.RawInput(ctx, id)
		if err != nil {
			return err
		}
		if json.Valid(raw) {
			x.Input = raw
		} else {
			x.InputRaw = raw
		}
	}
	if with.result && s.State.Terminal() {
		end, ok := endOf(c.RawResult(ctx, id))
		if ok {
			x.End = &end
		}
	}
	if with.steps {
		if x.StepList, err = c.Steps(ctx, id); err != nil {
			return err
		}
	}
	if with.summary {
		doc, err := c.Summary(ctx, id)
		if err != nil {
			return err
		}
		x.Summary = &doc
	}
	return a.show(x, x.text)
}

// forWorkers are the causes for which one that waits really waits for a worker.
var forWorkers = []string{"waiting_next", "waiting_behind", "waiting_no_worker", "waiting_no_capability",
	"waiting_unregistered", "waiting_unlisted"}

// gated says what keeps one with gates from running, if that is no worker, and if it still waits. Without an
// explanation, x stays.
func (x *execution) gated(e admin.Explanation, err error) {
	if err != nil || e.Code != x.Code || x.BlockingReason == heldReason || slices.Contains(forWorkers, e.Reason) {
		return
	}
	x.BlockingReason = e.Reason
	if !e.ClosedUntil.IsZero() {
		why := engine.WhyClosed(e.ClosedWhy)
		x.Closed, x.ClosedUntil = &why, utc(e.ClosedUntil)
	}
}

func (x execution) text(p *page) {
	state := styled(stateStyle(x.Public), x.Public)
	switch {
	case x.BlockingReason == heldReason && x.Public == flowfabric.Waiting:
		state = styled(yellow, "held (by an operator)")
	case x.Closed != nil:
		state.text += " (" + x.Closed.String() + ")"
	case x.BlockingReason != "":
		state.text += " (" + strings.ReplaceAll(x.BlockingReason, "_", " ") + ")"
	}
	holder := x.Worker
	if x.Public != flowfabric.Active && holder != "" {
		holder += " (last)"
	}
	said := x.Progress.Message
	if x.Progress.Percent != nil {
		said = strings.TrimSpace(fmt.Sprintf("%d %% %s", *x.Progress.Percent, said))
	}
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(x.Tags)) {
		tags = append(tags, k+"="+x.Tags[k])
	}
	p.facts("id", x.ID.String(), "state", state, "kind", x.Kind, "lane", x.Namespace+"/"+x.Lane, "requires",
		strings.Join(x.Capabilities, ","), "budgets", strings.Join(x.Budgets, ","), "quotas",
		strings.Join(x.Quotas, ","), "priority", x.Priority, "created", instant(x.CreatedAt), "creator", x.Creator,
		"key held", keyHold(x.Snapshot), "started", instant(x.StartedAt), "claimed", instant(x.ClaimedAt),
		"worker", holder, "lease until", leaseOf(x), "not before", instant(x.DelayUntil), "deadline",
		instant(x.DeadlineAt), "ended", instant(x.EndedAt), "attempts",
		fmt.Sprintf("%d (%d of %d retries, %d lost leases, %d replays)", x.Attempts, x.Retries,
			x.MaxRetries, x.Reclaims, x.Replays),
		"continued", times(x.Continues),
		"progress", said, "failure", join(": ", x.Failure.Category, x.Failure.Message),
		"cancelled", join(": ", canceller(x.CancelledBy, x.CancelSource), x.CancelReason), "input",
		count(x.InputBytes, "byte"), "steps", x.Steps,
		"tags", strings.Join(tags, " "))
	if len(x.AttemptLog) > 0 {
		p.WriteByte('\n')
		rows := make([][]any, len(x.AttemptLog))
		for i, r := range x.AttemptLog {
			rows[i] = []any{r.Index, r.Type, r.State, r.Worker, instant(r.ClaimedAt), instant(r.EndedAt),
				join(": ", r.Category, r.Message)}
		}
		p.table([]string{"ATTEMPT", "TYPE", "STATE", "WORKER", "CLAIMED", "ENDED", "FAILURE"}, rows)
	}
	if len(x.StepList) > 0 {
		p.WriteByte('\n')
		rows := make([][]any, len(x.StepList))
		for i, s := range x.StepList {
			rows[i] = []any{s.Name, s.Kind, s.Attempt, s.State, instant(s.EndedAt), s.EndedAt.Sub(s.StartedAt).String(),
				s.Bytes, s.Error}
		}
		p.table([]string{"STEP", "KIND", "ATTEMPT", "STATE", "ENDED", "TOOK", "BYTES", "ERROR"}, rows)
	}
	if x.Summary != nil && x.Summary.Version > 0 {
		p.say("\nsummary of attempt %d, version %d:", x.Summary.Attempt, x.Summary.Version)
		p.Write(append(x.Summary.Document, '\n'))
	}
	if x.Input != nil || x.InputRaw != nil {
		p.say("\ninput:")
		ended{Result: x.Input, Bytes: x.InputRaw}.text(p)
	}
	if x.End != nil && (x.End.Result != nil || x.End.Bytes != nil) {
		p.say("\nresult:")
		x.End.text(p)
	}
}

// leaseOf is when the lease ends, while there is one.
func leaseOf(x execution) string {
	if x.Public != flowfabric.Active {
		return ""
	}
	return instant(x.LeaseExpiresAt)
}

// stateStyle colours what needs a look.
func stateStyle(s flowfabric.PublicState) style {
	switch s {
	case flowfabric.Failed, flowfabric.Expired:
		return red
	case flowfabric.Completed:
		return green
	case flowfabric.Active:
		return bold
	case flowfabric.Suspended, flowfabric.Delayed, flowfabric.Cancelled:
		return yellow
	}
	return normal
}

// times says how often something happened, "" for never.
func times(n int) string {
	if n == 0 {
		return ""
	}
	return count(n, "time")
}
