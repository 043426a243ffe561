package mcptools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/agent"
)

// KeyName is where a server finds the key of a call (agent.Call.Key), in _meta of the request: a text of 36 bytes that
// is the same whenever the call is made again, and for no other call.
const KeyName = "io.flowfabric/idempotency-key"

// maxMade is how many tools an entry keeps.
const maxMade = 1024

// tool is a tool of an agent. Its name is the model's. It is made once, since to understand a schema takes longer than
// all else that a run does with it.
func (e *entry) tool(d definition, name string) agent.Tool {
	text, err := json.Marshal(d)
	if err != nil {
		return e.make(d, name)
	}
	key := sha256.Sum256(append(text, name...))
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.made[key]
	if !ok {
		if len(e.made) >= maxMade {
			clear(e.made)
		}
		t = e.make(d, name)
		e.made[key] = t
	}
	return t
}

func (e *entry) make(d definition, name string) agent.Tool {
	var opts []agent.ToolOption
	if e.Options != nil {
		opts = e.Options(&sdk.Tool{Name: d.Name, Title: d.Title, Description: d.Description, InputSchema: d.Schema,
			Annotations: d.Annotations})
	}
	call := e.once
	if d.Tasks != noTasks && !e.NoTasks {
		call, opts = e.long, append(opts, agent.MaySuspend())
	}
	description := d.Description
	if description == "" {
		description = d.Title
	}
	spec := agent.ToolSpec{Name: name, Description: description, Schema: schemaOf(d.Schema)}
	return agent.ToolOf(spec, func(ctx context.Context, arguments json.RawMessage) ([]agent.Part, error) {
		about, _ := agent.CallFrom(ctx)
		return call(ctx, work{Call: about, tool: d, arguments: arguments})
	}, opts...)
}

// work is a call of a tool.
type work struct {
	agent.Call
	tool      definition
	arguments json.RawMessage
}

// once makes a call that is answered with its result.
func (e *entry) once(ctx context.Context, w work) ([]agent.Part, error) {
	r, err := e.call(ctx, w)
	if err != nil {
		return nil, err
	}
	if r.task != nil {
		return nil, fmt.Errorf("the server %s answered with a task that it was not asked for", e.Name)
	}
	return partsOf(r.result)
}

// reply is the answer to a call: one of its fields is set.
type reply struct {
	result *sdk.CallToolResult
	task   *task
}

// call makes a call. Its errors are in words for the model, or end the run.
func (e *entry) call(ctx context.Context, w work) (r reply, err error) {
	sent := false
	err = e.with(ctx, func(ctx context.Context, s *session) error {
		err := s.knows(ctx, w.tool)
		if sent = err == nil; sent {
			r, err = s.call(ctx, w)
		}
		return err
	})
	var gone *away
	var network *net.OpError
	if errors.As(err, &gone) {
		gone.sent = sent && !(errors.As(err, &network) && network.Op == "dial")
	}
	return r, e.worded(ctx, w, err)
}

// worded is an error of [entry.with] as a tool returns it.
func (e *entry) worded(ctx context.Context, w work, err error) error {
	var told *jsonrpc.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case errors.Is(err, errTimeout):
		return fmt.Errorf("the tool %s did not answer within %v; what it was to do may have happened", w.tool.Name,
			e.CallTimeout)
	case errors.As(err, new(*away)): // it may have an error of the SDK in it, which looks like one of the server
		if e.RetryAway > 0 {
			return e.fails(err)
		}
	case errors.As(err, &told):
		return fmt.Errorf("the server %s refuses the call: %s", e.Name, told.Message)
	}
	return err
}

// call makes the request.
func (s *session) call(ctx context.Context, w work) (r reply, err error) {
	meta := map[string]any{KeyName: w.Key}
	if w.tool.Headers { // the SDK makes headers of arguments, and no tasks
		meta[sdk.MetaKeyClientCapabilities] = struct{}{}
		if s.current() < extensionSince {
			delete(meta, sdk.MetaKeyClientCapabilities)
		}
		r.result, err = s.CallTool(ctx, &sdk.CallToolParams{Meta: meta, Name: w.tool.Name, Arguments: w.arguments})
		return r, err
	}
	q := &params{Name: w.tool.Name, Arguments: w.arguments}
	q.SetMeta(meta)
	if w.tool.Tasks == oldTasks {
		q.Task = &taskParams{TTL: s.entry.TaskLimit.Milliseconds()}
	}
	text, err := s.request(ctx, "tools/call", q)
	if err != nil {
		return r, err
	}
	if r.task = taskOf(text); r.task != nil {
		if n := len(r.task.ID); n > maxTaskID {
			return r, &refusal{fmt.Sprintf("the server answered with a task whose id has %d bytes", n)}
		}
		return r, nil
	}
	r.result, err = resultOf(text)
	return r, err
}

// current is the version of the protocol.
func (s *session) current() string {
	if r := s.InitializeResult(); r != nil {
		return r.ProtocolVersion
	}
	return ""
}

// request makes a request and returns its whole result.
func (s *session) request(ctx context.Context, method string, q *params) (json.RawMessage, error) {
	r, err := sdk.CallCustomMethod[*params, *whole](ctx, s.ClientSession, unknown+method, q)
	if err != nil {
		return nil, err
	}
	return r.text, nil
}

// resultOf reads the result of a call.
func resultOf(text json.RawMessage) (*sdk.CallToolResult, error) {
	if len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return nil, &refusal{"the server answered without a result"}
	}
	r := new(sdk.CallToolResult)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, &refusal{"the server answered with a result that is not valid: " + err.Error()}
	}
	return r, nil
}
