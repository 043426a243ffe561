package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// dialect says how a tool's calls become tasks.
type dialect string

const (
	noTasks  dialect = ""
	newTasks dialect = extension
	oldTasks dialect = "2025-11-25"
)

// extension is the name of the extension for tasks, and extensionSince the first version of the protocol that has
// extensions in each request.
const (
	extension      = "io.modelcontextprotocol/tasks"
	extensionSince = "2026-07-28"
)

// The bounds of the pauses between polls.
const (
	minPoll     = time.Second
	maxPoll     = time.Hour
	defaultPoll = 5 * time.Second
	evenPolls   = 10 // after these the pauses grow
	maxMissed   = 10 // polls in a row that do not reach the server
	cancelIn    = 2 * time.Second
	maxTaskID   = 4 << 10 // bytes
)

// dialect is that of a tool of the session.
func (s *session) dialect(tool string) dialect {
	if s.current() >= extensionSince {
		if c := s.InitializeResult().Capabilities; c != nil && c.Extensions[extension] != nil {
			return newTasks
		}
		return noTasks
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if support := s.support[tool]; s.legacy && (support == "optional" || support == "required") {
		return oldTasks
	}
	return noTasks
}

type taskParams struct {
	TTL int64 `json:"ttl"` // milliseconds
}

// task is where a task is. It is recorded.
type task struct {
	ID      string        `json:"id"`
	Status  string        `json:"status"`
	Message string        `json:"message,omitempty"`
	Poll    time.Duration `json:"poll"`             // the server's wish
	Missed  int           `json:"missed,omitempty"` // polls in a row that did not reach it
	Old     bool          `json:"old,omitempty"`    // of protocol 2025-11-25

	result   json.RawMessage
	fault    *jsonrpc.Error
	requests sdk.InputRequestMap
}

// wireTask is a task of both kinds.
type wireTask struct {
	TaskID         string              `json:"taskId"`
	Status         string              `json:"status"`
	StatusMessage  string              `json:"statusMessage"`
	PollIntervalMs int64               `json:"pollIntervalMs"`
	PollInterval   int64               `json:"pollInterval"`
	Result         json.RawMessage     `json:"result"`
	Error          *jsonrpc.Error      `json:"error"`
	InputRequests  sdk.InputRequestMap `json:"inputRequests"`
}

func (w wireTask) task() *task {
	poll := time.Duration(min(max(w.PollIntervalMs, w.PollInterval), maxPoll.Milliseconds())) * time.Millisecond
	return &task{ID: w.TaskID, Status: w.Status, Message: cut(w.StatusMessage, 1<<10), Poll: poll, result: w.Result,
		fault: w.Error, requests: w.InputRequests}
}

// taskOf reads the answer to a call as a task, if it is one.
func taskOf(text json.RawMessage) *task {
	var answer struct {
		ResultType string    `json:"resultType"`
		Task       *wireTask `json:"task"`
		wireTask
	}
	if json.Unmarshal(text, &answer) != nil {
		return nil
	}
	switch {
	case answer.ResultType == "task" && answer.TaskID != "":
		return answer.wireTask.task()
	case answer.ResultType == "" && answer.Task != nil && answer.Task.TaskID != "":
		t := answer.Task.task()
		t.Old = true
		return t
	}
	return nil
}

// errOver ends a step that is not to be recorded: what it found becomes the result of the tool, which is.
var errOver = errors.New("the task is over")

// long makes a call that may become a task. The start of the task, and each poll that finds it at work, is recorded.
// Its result is recorded as that of the tool.
func (e *entry) long(ctx context.Context, w work) ([]agent.Part, error) {
	var r reply
	var failed error
	at, err := handler.Step(ctx, w.Task, w.Step+" start", func(ctx context.Context) (task, error) {
		if r, failed = e.call(ctx, w); failed != nil {
			return task{}, failed
		}
		if r.task == nil {
			return task{}, errOver
		}
		return *r.task, nil
	})
	switch {
	case errors.Is(err, errOver):
		return partsOf(r.result)
	case failed != nil:
		return nil, failed
	case err != nil:
		return nil, err
	}
	started := at
	defer func() {
		if errors.Is(context.Cause(ctx), flowfabric.ErrCancelled) {
			e.cancel(ctx, started)
		}
	}()
	for n, waited := 1, time.Duration(0); ; n++ {
		if waited >= e.TaskLimit {
			e.cancel(ctx, started)
			return nil, fmt.Errorf("the tool was not done after %v, and was cancelled: %s", e.TaskLimit, at.Message)
		}
		pause := min(pauseBefore(n, at.Poll), max(e.TaskLimit-waited, minPoll))
		over, err := w.Task.Wait(ctx, fmt.Sprintf("%s wait %d", w.Step, n), suspend.Timeout(), suspend.Within(pause),
			suspend.OnTimeout(suspend.Resume), suspend.Because(suspend.ReasonToolResult))
		if err == nil && over.Cause == suspend.CauseOperator { // somebody has stopped the agent, or let it go on
			e.cancel(ctx, started)
			return nil, fmt.Errorf("the tool was not done when its wait was ended, and was cancelled: %s", at.Message)
		}
		if err != nil && !errors.Is(err, flowfabric.ErrWaitTimeout) {
			return nil, err
		}
		waited += pause
		var parts []agent.Part
		step := fmt.Sprintf("%s poll %d", w.Step, n)
		at, err = handler.Step(ctx, w.Task, step, func(ctx context.Context) (task, error) {
			var now task
			if now, parts, failed = e.poll(ctx, w, at); failed != nil {
				return now, failed
			}
			if now.Status != "working" {
				return now, errOver
			}
			return now, nil
		})
		switch {
		case errors.Is(err, errOver):
			return parts, nil
		case failed != nil:
			return nil, failed
		case err != nil:
			return nil, err
		}
	}
}

// pauseBefore is how long to wait before a poll.
func pauseBefore(n int, wish time.Duration) time.Duration {
	if wish <= 0 {
		wish = defaultPoll
	}
	pause := min(max(wish, minPoll), maxPoll)
	for ; n > evenPolls && pause < maxPoll; n-- {
		pause += pause / 4
	}
	return min(pause, maxPoll).Truncate(time.Millisecond)
}

// poll asks for a task. parts are the result of one that is over, and an error is what is wrong with it.
func (e *entry) poll(ctx context.Context, w work, at task) (now task, parts []agent.Part, err error) {
	var result *sdk.CallToolResult
	err = e.with(ctx, func(ctx context.Context, s *session) error {
		t, err := s.get(ctx, at)
		if err != nil {
			return err
		}
		now = *t
		if now.Status == "completed" || now.Status == "failed" {
			result, err = s.result(ctx, now)
		}
		return err
	})
	if ctx.Err() == nil && (errors.As(err, new(*away)) || errors.Is(err, errTimeout)) && at.Missed < maxMissed {
		at.Missed++
		at.Status = "working"
		return at, nil, nil
	}
	if err != nil {
		return now, nil, e.worded(ctx, w, err)
	}
	switch now.Status {
	case "working":
		return now, nil, nil
	case "cancelled":
		return now, nil, errors.New("the task of the tool was cancelled: " + now.Message)
	case "input_required":
		e.cancel(ctx, at)
		text := asksFor(now.requests)
		if len(now.requests) == 0 && now.Message != "" {
			text += ": " + now.Message
		}
		return now, nil, errors.New("the task of the tool was cancelled: " + text)
	case "completed", "failed":
		parts, err = partsOf(result)
		return now, parts, err
	}
	return now, nil, fmt.Errorf("the server %s says that the task is %.40q, which is not known", e.Name, now.Status)
}

// get asks for a task.
func (s *session) get(ctx context.Context, at task) (*task, error) {
	text, err := s.request(ctx, "tasks/get", &params{TaskID: at.ID})
	if err != nil {
		return nil, err
	}
	var answer wireTask
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, &refusal{"the server answered with a task that is not valid: " + err.Error()}
	}
	t := answer.task()
	t.ID, t.Old = at.ID, at.Old
	if t.Poll == 0 {
		t.Poll = at.Poll
	}
	return t, nil
}

// result is that of a task that is over.
func (s *session) result(ctx context.Context, t task) (*sdk.CallToolResult, error) {
	switch {
	case t.Old:
		text, err := s.request(ctx, "tasks/result", &params{TaskID: t.ID})
		if err != nil {
			return nil, err
		}
		return resultOf(text)
	case t.Status == "failed":
		text := "the tool failed: " + t.Message
		if t.fault != nil {
			text = "the tool failed: " + t.fault.Message
		}
		return nil, &refusal{text}
	}
	return resultOf(t.result)
}

// cancel cancels a task if the server can be reached soon.
func (e *entry) cancel(ctx context.Context, t task) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelIn)
	defer cancel()
	err := e.with(ctx, func(ctx context.Context, s *session) error {
		_, err := s.request(ctx, "tasks/cancel", &params{TaskID: t.ID})
		return err
	})
	if err != nil {
		e.pool.log.Warn("mcptools: a task was not cancelled", "server", e.Name, "task", t.ID, "error", err)
	}
}
