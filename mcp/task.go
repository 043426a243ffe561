package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// The Tasks extension of 2026-07-28 on the wire:
// https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html

// task is CreateTaskResult (resultType task) and the answer of tasks/get (resultType complete).
type task struct {
	sdk.ResultBase
	ResultType     string              `json:"resultType"`
	TaskID         string              `json:"taskId"`
	Status         string              `json:"status"`
	StatusMessage  string              `json:"statusMessage,omitempty"`
	CreatedAt      time.Time           `json:"createdAt"`
	LastUpdatedAt  time.Time           `json:"lastUpdatedAt"`
	TTLMs          *int64              `json:"ttlMs"` // from creation; null while nobody knows the end
	PollIntervalMs int64               `json:"pollIntervalMs"`
	InputRequests  sdk.InputRequestMap `json:"inputRequests,omitempty"`
	Result         json.RawMessage     `json:"result,omitempty"`
	Error          *jsonrpc.Error      `json:"error,omitempty"`
}

const (
	working       = "working"
	inputRequired = "input_required"
	completed     = "completed"
	failed        = "failed"
	cancelled     = "cancelled"
)

// ack answers tasks/update and tasks/cancel.
type ack struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

type taskParams struct {
	sdk.ParamsBase
	TaskID string `json:"taskId"`
}

type updateParams struct {
	sdk.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses"`
}

// createTask answers a call with a task: the execution, once it is stored.
func (s *Server) createTask(ctx context.Context, q *sdk.CallToolRequest, who caller, k *Kind) (sdk.Result, error) {
	id, refused, err := s.submit(ctx, who, k, q.Params)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return &inline{CallToolResult: refused}, nil
	}
	x, err := s.client.Execution(id).Get(ctx)
	if err != nil {
		return nil, s.internal("read "+id.String(), err)
	}
	t := s.describe(who, x)
	t.ResultType = "task"
	t.Status, t.StatusMessage = working, said(x) // what comes of it is for tasks/get to say
	return t, nil
}

func (s *Server) getTask(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*task, error) {
	if p == nil || !declares(p.GetMeta()) {
		return nil, errUndeclared()
	}
	who, _ := ctx.Value(callerKey{}).(caller)
	x, k, err := s.find(ctx, who, p.TaskID)
	if err != nil {
		return nil, err
	}
	t := s.describe(who, x)
	switch {
	case x.State.Public == flowfabric.Cancelled:
		t.Status, t.StatusMessage = cancelled, x.CancelReason
	case x.State.Public.Terminal():
		return t, s.conclude(ctx, t, k, x)
	case x.State.Public == flowfabric.Suspended:
		return t, s.asks(ctx, t, who, k, x)
	}
	return t, nil
}

// conclude adds the result of an execution that has ended.
func (s *Server) conclude(ctx context.Context, t *task, k *Kind, x flowfabric.Snapshot) error {
	r, err := s.result(ctx, k, x.ID)
	if fault, ok := errors.AsType[*jsonrpc.Error](err); ok && x.State.Public == flowfabric.Failed {
		t.Status, t.StatusMessage, t.Error = failed, fault.Message, fault
		return nil
	}
	if err != nil {
		return err
	}
	t.Status, t.StatusMessage = completed, ""
	t.Result, err = json.Marshal(&inline{CallToolResult: r})
	return err
}

// asks adds what a suspended execution asks this caller.
func (s *Server) asks(ctx context.Context, t *task, who caller, k *Kind, x flowfabric.Snapshot) error {
	r, err := s.client.Execution(x.ID).Suspension(ctx)
	if err != nil {
		return s.internal("read what "+x.ID.String()+" waits for", err)
	}
	if !k.hidden && r.Question != nil && r.ClosedAt.IsZero() {
		t.StatusMessage = "waiting for an answer: " + r.Question.Title
	}
	if open := k.questions(who, r); len(open) > 0 {
		t.Status, t.InputRequests = inputRequired, requests(open)
	}
	return nil
}

func (s *Server) updateTask(ctx context.Context, _ *sdk.ServerSession, p *updateParams) (*ack, error) {
	if p == nil || !declares(p.GetMeta()) {
		return nil, errUndeclared()
	}
	who, _ := ctx.Value(callerKey{}).(caller)
	x, k, err := s.find(ctx, who, p.TaskID)
	if err != nil {
		return nil, err
	}
	open := map[string]asked{}
	if x.State.Public == flowfabric.Suspended {
		r, err := s.client.Execution(x.ID).Suspension(ctx)
		if err != nil {
			return nil, s.internal("read what "+x.ID.String()+" waits for", err)
		}
		open = k.questions(who, r)
	}
	for key := range p.InputResponses {
		if mailbox, ok := strings.CutPrefix(key, mailboxPrefix); ok && !x.State.Public.Terminal() && !k.hidden {
			if err := waitwords.CheckMailbox(mailbox); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "inputResponses: " + err.Error()}
			}
			open[key] = asked{to: address{mailbox: mailbox}, form: k.form(mailbox, "a message")}
		}
	}
	all, err := judged(open, p.InputResponses, who.Name)
	if err != nil {
		return nil, err
	}
	if err := s.deliver(ctx, who, x.ID, all); err != nil {
		return nil, s.internal("answer "+x.ID.String(), err)
	}
	return &ack{ResultType: "complete"}, nil
}

// mailboxPrefix begins the keys of answers that nobody has asked for: messages to a mailbox, which an execution takes
// while it runs, too.
const mailboxPrefix = "mailbox:"

// judged reads the answers to open questions, all of them before any is delivered. Answers to others are ignored, as
// the protocol wants.
func judged(open map[string]asked, responses map[string]json.RawMessage, by string) ([]delivery, error) {
	var all []delivery
	for _, key := range slices.Sorted(maps.Keys(responses)) {
		a, ok := open[key]
		if !ok {
			continue
		}
		var answer sdk.ElicitResult
		err := decode(responses[key], &answer)
		if err == nil {
			var d delivery
			if d, ok, err = a.judge(&answer, by); ok {
				all = append(all, d)
			}
		}
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: fmt.Sprintf("inputResponses: %.64s: %v", key, err)}
		}
	}
	return all, nil
}

func (s *Server) cancelTask(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*ack, error) {
	if p == nil || !declares(p.GetMeta()) {
		return nil, errUndeclared()
	}
	who, _ := ctx.Value(callerKey{}).(caller)
	x, _, err := s.find(ctx, who, p.TaskID)
	if err != nil {
		return nil, err
	}
	err = s.client.Execution(x.ID).Cancel(ctx, who.by(), flowfabric.Reason("tasks/cancel"))
	if err != nil && !errors.Is(err, flowfabric.ErrTerminal) {
		return nil, s.internal("cancel "+x.ID.String(), err)
	}
	return &ack{ResultType: "complete"}, nil
}

// find reads the execution of a task that the caller has. Others are not told whether there is one.
func (s *Server) find(ctx context.Context, who caller, taskID string) (flowfabric.Snapshot, *Kind, error) {
	id, ok := s.tasks.open(taskID, who.Name)
	return s.read(ctx, who, id, ok, "task not found")
}

// read is find once the id was judged. missing is all that is said of what is not there for this caller.
func (s *Server) read(ctx context.Context, who caller, id flowfabric.ExecutionID, ok bool,
	missing string) (flowfabric.Snapshot, *Kind, error) {
	refusal := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: missing}
	if !ok {
		return flowfabric.Snapshot{}, nil, refusal
	}
	x, err := s.client.Execution(id).Get(ctx)
	switch {
	case errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrResultPurged),
		errors.Is(err, flowfabric.ErrInvalidInput):
		return x, nil, refusal
	case err != nil:
		return x, nil, s.internal("read "+id.String(), err)
	}
	k := s.byKind[x.Route.Kind]
	if k == nil || !who.may(x.Route.Namespace) {
		return x, nil, refusal
	}
	return x, k, nil
}

// describe is what every answer says of a task.
func (s *Server) describe(who caller, x flowfabric.Snapshot) *task {
	t := &task{ResultType: "complete", TaskID: s.tasks.seal(x.ID, who.Name), Status: working, StatusMessage: said(x),
		CreatedAt: x.CreatedAt.UTC(), LastUpdatedAt: x.ChangedAt.UTC(),
		PollIntervalMs: s.cfg.PollInterval.Milliseconds()}
	if t.LastUpdatedAt.Before(t.CreatedAt) {
		t.LastUpdatedAt = t.CreatedAt
	}
	if kept := valid.RetentionOf(x.Policy.Retention, x.State.Public); x.State.Public.Terminal() && kept > 0 {
		ms := (x.EndedAt.Sub(x.CreatedAt) + kept).Milliseconds()
		t.TTLMs = &ms
	}
	return t
}

// said is where an execution is, in words.
func said(x flowfabric.Snapshot) string {
	switch {
	case x.State.Public == flowfabric.Active && x.Progress.Message != "":
		return x.Progress.Message
	case x.State.Public == flowfabric.Active:
		return "running"
	case x.State.Public == flowfabric.Suspended && x.State.BlockingReason == "waiting_for_children":
		return "waiting for children"
	case x.State.Public == flowfabric.Suspended:
		return "waiting for an answer"
	case !x.State.Public.Terminal() && x.Failure.Category != "":
		return fmt.Sprintf("waiting for attempt %d after %s", x.Attempts+1, x.Failure.Category)
	}
	return strings.ReplaceAll(string(x.State.Public), "_", " ")
}

// inline is the result of a call where the SDK does not see it, and so does not complete it.
type inline struct{ *sdk.CallToolResult }

// MarshalJSON adds what the SDK adds.
func (r *inline) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(r.CallToolResult)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	all["resultType"] = json.RawMessage(`"complete"`)
	return json.Marshal(all)
}
