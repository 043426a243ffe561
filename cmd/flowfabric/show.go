package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/stream"
)

var showVerb = verb{
	use: "show ID", short: "Show one execution: state, attempts, times, tags, failure",
	long: `show prints the stored record of an execution. --input adds its input, --result the result of a
completed one, --summary the summary document that its handler writes, and --steps the durable steps: the
attempt that ran each, its duration, and the failed ones.`,
	example: `  flowfabric show 3-0197f3a0-…
  flowfabric show 3-0197f3a0-… --json | jq .state`,
	route: "GET /v1/executions/{ID}",
	flags: []member{yes("", "input", "also the input"), yes("", "result", "also the result"),
		yes("", "summary", "also the summary document of the newest attempt"),
		yes("", "steps", "also the recorded and the failed steps")},
	run: showExecution,
}

// execution is what show prints of one.
type execution struct {
	flowfabric.Snapshot
	Closed      *admission.Closing      `json:"closed,omitempty"`      // its queue, by a gate
	ClosedUntil time.Time               `json:"closed_until,omitzero"` // its gates are asked again
	End         *ended                  `json:"end,omitempty"`         // --result
	Summary     *stream.Summary         `json:"summary,omitempty"`     // --summary
	StepList    []flowfabric.StepRecord `json:"step_list,omitempty"`   // --steps
	Input       *flowfabric.Payload     `json:"input,omitempty"`       // --input
}

func showExecution(ctx context.Context, q *request) error {
	var x execution
	if err := q.do(ctx, &x.Snapshot); err != nil {
		return err
	}
	id := q.args[0]
	if len(x.GateNames) > 0 && waits(x.Public) {
		var e flowfabric.Explanation
		x.gated(e, q.get(ctx, &e, "/v1/executions/*/why", id))
	}
	if q.said("input") {
		if err := q.get(ctx, &x.Input, "/v1/executions/*/input", id); err != nil {
			return err
		}
	}
	if q.said("result") && x.State.Terminal() {
		if err := q.get(ctx, &x.End, "/v1/executions/*/result", id); err != nil {
			return err
		}
	}
	if q.said("steps") {
		var steps admin.Page[flowfabric.StepRecord]
		if err := q.get(ctx, &steps, "/v1/executions/*/steps", id); err != nil {
			return err
		}
		x.StepList = steps.Items
	}
	if q.said("summary") {
		if err := q.get(ctx, &x.Summary, "/v1/executions/*/summary", id); err != nil {
			return err
		}
	}
	return q.app.show(x, x.text)
}

// forkOf says what a fork was made of.
func forkOf(of flowfabric.ForkOf) string {
	switch {
	case of.ID.IsZero():
		return ""
	case of.Step == "":
		return of.ID.String()
	}
	return of.ID.String() + ", before the step " + of.Step
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

// forWorkers are the causes for which one that waits really waits for a worker.
var forWorkers = []string{"waiting_next", "waiting_behind", "waiting_no_worker", "waiting_no_capability",
	"waiting_unregistered", "waiting_unlisted"}

// gated says what keeps one with gates from running, if that is no worker, and if it still waits. Without an
// explanation, x stays.
func (x *execution) gated(e flowfabric.Explanation, err error) {
	if err != nil || e.State != x.Public || x.BlockingReason == codes.Held || slices.Contains(forWorkers, e.Reason) {
		return
	}
	x.BlockingReason = e.Reason
	if !e.ClosedUntil.IsZero() {
		why := gatetext.WhyClosed(e.ClosedWhy)
		x.Closed, x.ClosedUntil = &why, utc(e.ClosedUntil)
	}
}

// waits tells whether no worker has got it yet, or has it any more.
func waits(s flowfabric.PublicState) bool {
	return !s.Terminal() && s != flowfabric.Active && s != flowfabric.Suspended
}

func (x execution) text(p *page) {
	state := styled(stateStyle(x.Public), x.Public)
	switch {
	case x.BlockingReason == codes.Held && x.Public == flowfabric.Waiting:
		state = styled(yellow, "held (by an operator)")
	case x.Closed != nil:
		state.text += " (" + x.Closed.Text + ")"
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
		strings.Join(x.Capabilities, ","), "gates", strings.Join(x.GateNames,
			","), "priority", x.Priority, "created", instant(x.CreatedAt), "creator", x.Creator,
		"fork of", forkOf(x.ForkOf), "key held", keyHold(x.Snapshot), "started", instant(x.StartedAt),
		"claimed", instant(x.ClaimedAt), "worker", holder, "version", x.Version,
		"lease until", leaseOf(x), "not before", instant(x.DelayUntil), "deadline",
		instant(x.DeadlineAt), "ended", instant(x.EndedAt), "attempts",
		fmt.Sprintf("%d (%d of %d retries, %d lost leases, %d replays)", x.Attempts, x.Retries,
			x.MaxRetries, x.Reclaims, x.Replays),
		"continued", times(x.Continues),
		"progress", said, "failure", join(": ", string(x.Failure.Category), x.Failure.Message),
		"cancelled", join(": ", canceller(x.CancelledBy, x.CancelSource), x.CancelReason), "input",
		count(x.InputBytes, "byte"), "steps", ofMost(x.Steps, limits.MaxSteps),
		"tags", strings.Join(tags, " "))
	if len(x.AttemptLog) > 0 {
		p.WriteByte('\n')
		rows := make([][]any, len(x.AttemptLog))
		for i, r := range x.AttemptLog {
			rows[i] = []any{r.Index, r.Type, r.State, r.Worker, instant(r.ClaimedAt), instant(r.EndedAt),
				join(": ", string(r.Category), r.Message)}
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
		if x.Summary.Encrypted {
			p.say("%s", sealed.Hidden)
		} else {
			p.Write(append(x.Summary.Document, '\n'))
		}
	}
	if x.Input != nil {
		p.say("\ninput:")
		payloadText(p, *x.Input)
	}
	if x.End != nil && x.End.Output != nil {
		p.say("\nresult:")
		payloadText(p, *x.End.Output)
	}
}

// ofMost is a number, and how many there may be when four fifths are there.
func ofMost(n, most int) any {
	if !limits.Near(n, most) {
		return n
	}
	return styled(yellow, fmt.Sprintf("%d of %d", n, most))
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
