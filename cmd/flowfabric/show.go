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
	"github.com/flowfabric/flowfabric-go/internal/engine"
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

// execution is an engine.Snapshot for --json. Times are RFC 3339 in UTC, absent when there is none.
type execution struct {
	ID    flowfabric.ExecutionID `json:"id"`
	State flowfabric.PublicState `json:"state"`
	// of one whose gates keep it from running, as why tells it
	Reason       string          `json:"blocking_reason,omitempty"`
	Closed       *closing        `json:"closed,omitempty"`      // its queue, by a gate
	ClosedUntil  time.Time       `json:"closed_until,omitzero"` // its gates are asked again
	Code         flowfabric.Code `json:"code"`
	Namespace    string          `json:"namespace"`
	Lane         string          `json:"lane"`
	Kind         string          `json:"kind"`
	Capabilities []string        `json:"capabilities,omitempty"`
	Budgets      []string        `json:"budgets,omitempty"`
	Quotas       []string        `json:"quotas,omitempty"`
	Priority     int             `json:"priority"`
	Creator      string          `json:"creator,omitempty"`
	// how long it holds the key that it was submitted with, in words
	Key             string                 `json:"key,omitempty"`
	Attempts        uint32                 `json:"attempts"`
	AttemptType     flowfabric.AttemptType `json:"attempt_type,omitempty"`
	Epoch           uint64                 `json:"epoch"`
	Session         string                 `json:"session,omitempty"`
	Worker          string                 `json:"worker,omitempty"`
	LeaseExpiresAt  time.Time              `json:"lease_expires_at,omitzero"`
	Retries         int                    `json:"retries"`
	MaxRetries      int                    `json:"max_retries"`
	Reclaims        int                    `json:"reclaims"`
	Replays         int                    `json:"replays"`
	Continues       int                    `json:"continues"`
	CreatedAt       time.Time              `json:"created_at,omitzero"`
	StartedAt       time.Time              `json:"started_at,omitzero"`
	ClaimedAt       time.Time              `json:"claimed_at,omitzero"`
	CompletedAt     time.Time              `json:"completed_at,omitzero"`
	DelayUntil      time.Time              `json:"delay_until,omitzero"`
	DeadlineAt      time.Time              `json:"deadline_at,omitzero"`
	FailureCategory string                 `json:"failure_category,omitempty"`
	FailureReason   string                 `json:"failure_reason,omitempty"`
	CancelledBy     string                 `json:"cancelled_by,omitempty"`
	CancelSource    string                 `json:"cancel_source,omitempty"`
	CancelReason    string                 `json:"cancel_reason,omitempty"`
	InputBytes      int                    `json:"input_bytes"`
	Steps           int                    `json:"steps"`
	Tags            map[string]string      `json:"tags,omitempty"`
	Progress        *progress              `json:"progress,omitempty"`
	AttemptLog      []attempt              `json:"attempt_log,omitempty"`
	End             *ended                 `json:"end,omitempty"`          // --result
	Summary         *summaryView           `json:"summary,omitempty"`      // --summary
	StepList        []stepView             `json:"step_list,omitempty"`    // --steps
	Input           json.RawMessage        `json:"input,omitempty"`        // --input, if it is JSON
	InputRaw        []byte                 `json:"input_base64,omitempty"` // --input, if it is not
}

type progress struct {
	Percent *int      `json:"percent,omitempty"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// attempt is one that ended.
type attempt struct {
	Index     uint32                 `json:"index"`
	Type      flowfabric.AttemptType `json:"type"`
	State     string                 `json:"state"`
	Worker    string                 `json:"worker,omitempty"`
	ClaimedAt time.Time              `json:"claimed_at,omitzero"`
	EndedAt   time.Time              `json:"ended_at,omitzero"`
	Category  string                 `json:"category,omitempty"`
	Reason    string                 `json:"reason,omitempty"`
}

// stepView is a step that was recorded, or that an attempt failed in.
type stepView struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Attempt   uint32    `json:"attempt"`
	State     string    `json:"state"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Bytes     int       `json:"bytes"`
	Error     string    `json:"error,omitempty"`
}

func newStepView(s flowfabric.StepRecord) stepView {
	v := stepView{s.Name, s.Kind, s.Attempt, "recorded", utc(s.StartedAt), utc(s.EndedAt), s.Bytes, s.Error}
	if s.Failed {
		v.State = "failed"
	}
	return v
}

type summaryView struct {
	Attempt   uint32          `json:"attempt"`
	Version   uint64          `json:"version"`
	UpdatedAt time.Time       `json:"updated_at,omitzero"`
	Document  json.RawMessage `json:"document,omitempty"`
}

// keyHold says how long an execution holds its key.
func keyHold(k flowfabric.KeyHold) string {
	switch {
	case !k.Keyed:
		return ""
	case k.Debounced && k.Replaced == 0:
		return "debounced, until it is claimed"
	case k.Debounced:
		return fmt.Sprintf("debounced, until it is claimed; the last of %d submits", k.Replaced+1)
	case k.Retained:
		return "as long as it is retained"
	case k.Until.IsZero():
		return "until it has ended"
	}
	return "until " + instant(utc(k.Until)) + ", and until it has ended"
}

func newExecution(s engine.Snapshot) execution {
	x := execution{
		ID: s.ID, State: s.State.Public, Code: s.State.Code, Namespace: s.Route.Namespace, Lane: s.Route.Lane,
		Kind: s.Route.Kind, Capabilities: s.Route.Capabilities, Priority: s.Priority, Creator: s.Creator,
		Attempts: s.Attempts, AttemptType: s.AttemptType, Epoch: s.Epoch, Session: s.Session,
		Worker: engine.Instance(s.Session), LeaseExpiresAt: utc(s.LeaseExpiresAt), Retries: s.Retries,
		MaxRetries: s.Policy.Retry.MaxRetries, Reclaims: s.Reclaims, Replays: s.Replays,
		Continues: s.Continues, CreatedAt: utc(s.CreatedAt), StartedAt: utc(s.StartedAt), ClaimedAt: utc(s.ClaimedAt),
		CompletedAt: utc(s.CompletedAt), DelayUntil: utc(s.DelayUntil), DeadlineAt: utc(s.DeadlineAt),
		FailureCategory: s.FailureCategory, FailureReason: s.FailureReason, CancelledBy: s.CancelledBy,
		CancelSource: s.CancelSource,
		CancelReason: s.CancelReason, InputBytes: s.InputBytes, Steps: s.Steps, Tags: s.Tags,
	}
	x.Budgets, x.Quotas = byKind(s.Route.Gates)
	x.Key = keyHold(s.Key)
	if s.State.BlockingReason != "none" {
		x.Reason = s.State.BlockingReason
	}
	if !s.Progress.At.IsZero() {
		x.Progress = &progress{Message: s.Progress.Message, At: utc(s.Progress.At)}
		if s.Progress.Percent >= 0 {
			x.Progress.Percent = &s.Progress.Percent
		}
	}
	for _, r := range s.AttemptLog {
		x.AttemptLog = append(x.AttemptLog, attempt{Index: r.Index, Type: r.Type, State: r.State, Worker: r.Worker,
			ClaimedAt: utc(r.ClaimedAt), EndedAt: utc(r.EndedAt), Category: r.Category, Reason: r.Reason})
	}
	return x
}

func (a *app) showExecution(ctx context.Context, o *admin.Admin, id flowfabric.ExecutionID, with shown) error {
	c := o.Client()
	s, err := c.Get(ctx, id)
	if err != nil {
		return err
	}
	x := newExecution(s)
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
		list, err := c.Steps(ctx, id)
		if err != nil {
			return err
		}
		for _, s := range list {
			x.StepList = append(x.StepList, newStepView(s))
		}
	}
	if with.summary {
		doc, err := c.Summary(ctx, id)
		if err != nil {
			return err
		}
		x.Summary = &summaryView{Attempt: doc.Attempt, Version: doc.Version, UpdatedAt: utc(doc.UpdatedAt),
			Document: doc.Document}
	}
	return a.show(x, x.text)
}

// forWorkers are the causes for which one that waits really waits for a worker.
var forWorkers = []string{"waiting_next", "waiting_behind", "waiting_no_worker", "waiting_no_capability",
	"waiting_unregistered", "waiting_unlisted"}

// gated says what keeps one with gates from running, if that is no worker, and if it still waits. Without an
// explanation, x stays.
func (x *execution) gated(e admin.Explanation, err error) {
	if err != nil || e.Code != x.Code || x.Reason == heldReason || slices.Contains(forWorkers, e.Reason) {
		return
	}
	x.Reason = e.Reason
	if !e.ClosedUntil.IsZero() {
		why := newClosing(e.ClosedWhy)
		x.Closed, x.ClosedUntil = &why, utc(e.ClosedUntil)
	}
}

func (x execution) text(p *page) {
	state := styled(stateStyle(x.State), x.State)
	switch {
	case x.Reason == heldReason && x.State == flowfabric.Waiting:
		state = styled(yellow, "held (by an operator)")
	case x.Closed != nil:
		state.text += " (" + x.Closed.String() + ")"
	case x.Reason != "":
		state.text += " (" + strings.ReplaceAll(x.Reason, "_", " ") + ")"
	}
	holder := x.Worker
	if x.State != flowfabric.Active && holder != "" {
		holder += " (last)"
	}
	said := ""
	if x.Progress != nil {
		said = x.Progress.Message
		if x.Progress.Percent != nil {
			said = strings.TrimSpace(fmt.Sprintf("%d %% %s", *x.Progress.Percent, said))
		}
	}
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(x.Tags)) {
		tags = append(tags, k+"="+x.Tags[k])
	}
	p.facts("id", x.ID.String(), "state", state, "kind", x.Kind, "lane", x.Namespace+"/"+x.Lane, "requires",
		strings.Join(x.Capabilities, ","), "budgets", strings.Join(x.Budgets, ","), "quotas",
		strings.Join(x.Quotas, ","), "priority", x.Priority, "created", instant(x.CreatedAt), "creator", x.Creator,
		"key held", x.Key, "started", instant(x.StartedAt), "claimed", instant(x.ClaimedAt), "worker", holder,
		"lease until", leaseOf(x), "not before", instant(x.DelayUntil), "deadline", instant(x.DeadlineAt), "ended",
		instant(x.CompletedAt),
		"attempts", fmt.Sprintf("%d (%d of %d retries, %d lost leases, %d replays)", x.Attempts, x.Retries,
			x.MaxRetries, x.Reclaims, x.Replays),
		"continued", times(x.Continues),
		"progress", said, "failure", join(": ", x.FailureCategory, x.FailureReason),
		"cancelled", join(": ", canceller(x.CancelledBy, x.CancelSource), x.CancelReason), "input",
		count(x.InputBytes, "byte"), "steps", x.Steps,
		"tags", strings.Join(tags, " "))
	if len(x.AttemptLog) > 0 {
		p.WriteByte('\n')
		rows := make([][]any, len(x.AttemptLog))
		for i, r := range x.AttemptLog {
			rows[i] = []any{r.Index, r.Type, r.State, r.Worker, instant(r.ClaimedAt), instant(r.EndedAt),
				join(": ", r.Category, r.Reason)}
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
	if x.State != flowfabric.Active {
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
