package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/stream"
)

// protocolWithRounds is the first version in which a call that needs an answer is itself answered, with the question;
// the client repeats it with the answer. Before, the server asks while the call goes on.
const protocolWithRounds = "2026-07-28"

// call answers a call with the result of its execution. A client that goes away ends the wait.
func (s *Server) call(ctx context.Context, q *sdk.CallToolRequest, k *Kind) (*sdk.CallToolResult, error) {
	who, _ := ctx.Value(callerKey{}).(caller)
	if q.Params.RequestState != "" {
		return s.answered(ctx, q, who, k)
	}
	if k.tasks == TasksRequired {
		return nil, errUndeclared()
	}
	id, refused, err := s.submit(ctx, who, k, q.Params)
	if refused != nil || err != nil {
		return refused, err
	}
	return s.await(ctx, q, waiting{who: who, kind: k, id: id})
}

// answered goes on with a call that was answered with a question.
func (s *Server) answered(ctx context.Context, q *sdk.CallToolRequest, who caller,
	k *Kind) (*sdk.CallToolResult, error) {
	id, ok := s.tasks.openRound(q.Params.RequestState, who.Name)
	x, found, err := s.read(ctx, who, id, ok, "requestState is not known")
	if err != nil {
		return nil, err
	}
	if found != k {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is that of another tool"}
	}
	r, err := s.client.Execution(x.ID).Suspension(ctx)
	if err != nil {
		return nil, s.internal("read what "+x.ID.String()+" waits for", err)
	}
	all, dismissed, err := answers(k.questions(who, r), q.Params.InputResponses, who.Name)
	if err != nil {
		return nil, err
	}
	if err := s.deliver(ctx, who, x.ID, all); err != nil {
		return nil, s.internal("answer "+x.ID.String(), err)
	}
	if dismissed { // to ask again at once would be a loop
		return toolError(x.ID, "unanswered",
			"the question was not answered; the execution goes on waiting until somebody does"), nil
	}
	return s.await(ctx, q, waiting{who: who, kind: k, id: x.ID, later: true})
}

// answers are those to open questions. dismissed tells whether the client was shown a question and answered nothing.
func answers(open map[string]asked, responses sdk.InputResponseMap,
	by string) (all []delivery, dismissed bool, err error) {
	for key, a := range open {
		answer, ok := responses[key].(*sdk.ElicitResult)
		if !ok {
			continue
		}
		d, ok, err := a.judge(answer, by)
		if err != nil {
			return nil, false, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
				Message: "inputResponses: " + key + ": " + err.Error()}
		}
		if ok {
			all = append(all, d)
		} else {
			dismissed = true
		}
	}
	return all, dismissed, nil
}

// submit creates the execution of a call. refused is the result for arguments that are not good.
func (s *Server) submit(ctx context.Context, who caller, k *Kind,
	p *sdk.CallToolParamsRaw) (id flowfabric.ExecutionID, refused *sdk.CallToolResult, err error) {
	arguments := p.Arguments
	input, err := k.input.value(arguments)
	if err != nil {
		return id, toolError(id, "invalid_arguments", "arguments: "+err.Error()), nil
	}
	var opts []client.SubmitOption
	if !k.keeps {
		opts = append(opts, flowfabric.Retention(s.cfg.Retention))
	}
	opts = append(append(opts, k.options...), flowfabric.Creator(who.Name))
	if len(who.Namespaces) > 0 {
		opts = append(opts, flowfabric.Namespace(who.Namespaces[0]))
	}
	if key := k.keyOf(p); key != "" {
		sum := sha256.Sum256([]byte(who.Name + "\x00" + key))
		opts = append(opts, flowfabric.IdempotencyKey("mcp:"+hex.EncodeToString(sum[:])))
	}
	id, err = k.submit(ctx, s.client, input, opts)
	switch {
	case err == nil:
		return id, nil, nil
	case errors.Is(err, errArguments), errors.Is(err, flowfabric.ErrPayloadTooLarge),
		errors.Is(err, flowfabric.ErrConflict):
		return id, toolError(id, cmp.Or(flowfabric.CodeOf(err), "invalid_arguments"), err.Error()), nil
	}
	return id, nil, s.internal("submit "+k.kind, err)
}

// waiting is a call that waits for its execution.
type waiting struct {
	who   caller
	kind  *Kind
	id    flowfabric.ExecutionID
	later bool // its beginning was told in an earlier round
}

// await waits until the execution has ended, tells of progress, and asks what the execution asks.
func (s *Server) await(ctx context.Context, q *sdk.CallToolRequest, w waiting) (*sdk.CallToolResult, error) {
	asks := !w.kind.hidden && showsForms(q.ClientCapabilities())
	token := q.Params.GetProgressToken()
	if len(w.kind.frames) == 0 {
		token = nil
	}
	if !asks && token == nil {
		if _, err := s.client.Execution(w.id).Result(ctx); ctx.Err() != nil {
			return nil, err
		}
		return s.result(ctx, w.kind, w.id)
	}
	form := asking{server: s, session: q.Session, w: w}
	defer form.stop()
	from := []client.TailOption{client.WithoutChildren()}
	if w.later {
		from = append(from, client.FromNow())
	}
	var told float64
	for event, err := range s.client.Execution(w.id).Tail(ctx, from...) {
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			break // result says what became of it
		}
		switch event.Kind {
		case stream.TailFrame:
			message, ok := progressOf(w.kind, event.Frame)
			if token == nil || !ok {
				continue
			}
			told++
			if err := q.Session.NotifyProgress(ctx,
				&sdk.ProgressNotificationParams{ProgressToken: token, Progress: told, Message: message}); err != nil {
				s.log.Debug("mcp: progress", "execution", w.id.String(), "error", err)
			}
		case stream.TailSuspended:
			open := map[string]asked{}
			if asks {
				open = w.kind.questions(w.who, *event.Suspension)
			}
			if len(open) == 0 {
				continue
			}
			if q.ProtocolVersion() >= protocolWithRounds {
				return &sdk.CallToolResult{InputRequests: requests(open),
					RequestState: s.tasks.sealRound(w.id, event.Suspension.ID, w.who.Name)}, nil
			}
			form.show(ctx, open)
		default:
			form.stop()
		}
	}
	return s.result(ctx, w.kind, w.id)
}

func showsForms(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// progressOf is the text of a frame that is told.
func progressOf(k *Kind, f stream.Frame) (message string, ok bool) {
	return string(f.Payload), slices.Contains(k.frames, f.Type) && utf8.Valid(f.Payload)
}

// asking shows the questions of an execution to a client while the call waits, and takes them away when somebody else
// has answered.
type asking struct {
	server  *Server
	session *sdk.ServerSession
	w       waiting
	cancel  context.CancelFunc
	shown   conc.WaitGroup
}

func (f *asking) show(ctx context.Context, open map[string]asked) {
	f.stop()
	ctx, f.cancel = context.WithCancel(ctx)
	for _, a := range open {
		f.shown.Go(func() {
			answer, err := f.session.Elicit(ctx, a.request())
			if err == nil {
				var d delivery
				var ok bool
				if d, ok, err = a.judge(answer, f.w.who.Name); ok && err == nil {
					err = f.server.deliver(ctx, f.w.who, f.w.id, []delivery{d})
				}
			}
			if err != nil && ctx.Err() == nil {
				f.server.log.Warn("mcp: a question stays open", "execution", f.w.id.String(), "error", err)
			}
		})
	}
}

func (f *asking) stop() {
	if f.cancel != nil {
		f.cancel()
		f.shown.Wait()
		f.cancel = nil
	}
}

// faults are failures of our machinery and not of what the tool does. The protocol has an error of its own for them.
var faults = []string{causes.Panic, causes.Decode, causes.NoHandler, causes.AwaitIgnored,
	causes.Suspend, causes.FramesLost, causes.Reclaims}

// result is what an execution that has ended answers. An error is a *jsonrpc.Error.
func (s *Server) result(ctx context.Context, k *Kind, id flowfabric.ExecutionID) (*sdk.CallToolResult, error) {
	raw, err := s.client.Execution(id).ResultNow(ctx)
	if outcome, ok := errors.AsType[*client.OutcomeError](err); ok {
		category := cmp.Or(string(outcome.Category), string(outcome.State))
		if outcome.State == flowfabric.Failed && slices.Contains(faults, category) {
			s.log.Warn("mcp: execution failed", "execution", id.String(), "kind", k.kind, "category", category,
				"reason", outcome.Reason)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the tool failed: " + category,
				Data: details(id, category)}
		}
		if outcome.State == flowfabric.Cancelled {
			category = string(outcome.State)
		}
		return toolError(id, category, cmp.Or(outcome.Reason, "the execution ended "+string(outcome.State))), nil
	}
	if err != nil {
		return nil, s.internal("read the result of "+id.String(), err)
	}
	value, err := k.decode(raw)
	if err != nil {
		return nil, s.internal("decode the result of "+id.String(), err)
	}
	return s.content(k, id, value)
}

// content is a value as text and, with an output schema, as structured content.
func (s *Server) content(k *Kind, id flowfabric.ExecutionID, value any) (*sdk.CallToolResult, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, s.internal("encode the result of "+id.String(), err)
	}
	text := string(encoded)
	var plain string
	if json.Unmarshal(encoded, &plain) == nil {
		text = plain
	}
	r := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}},
		Meta: sdk.Meta{metaExecution: id.String()}}
	if k.output == nil {
		return r, nil
	}
	structured, err := json.Marshal(k.output.wrap(json.RawMessage(encoded)))
	if err != nil {
		return nil, s.internal("encode the result of "+id.String(), err)
	}
	var instance any
	if err := json.Unmarshal(structured, &instance); err != nil {
		return nil, s.internal("encode the result of "+id.String(), err)
	}
	if err := k.output.resolved.Validate(instance); err != nil {
		return nil, s.internal("fit the result of "+id.String()+" into the output schema of "+k.name, err)
	}
	r.StructuredContent = json.RawMessage(structured)
	return r, nil
}

// What a result says beside its content.
const (
	metaExecution = "flowfabric/execution"
	metaCategory  = "flowfabric/category"
)

// toolError is a result that models see as a failure of the tool.
func toolError(id flowfabric.ExecutionID, category, text string) *sdk.CallToolResult {
	r := &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: category + ": " + text}},
		Meta: sdk.Meta{metaCategory: category}}
	if !id.IsZero() {
		r.Meta[metaExecution] = id.String()
	}
	return r
}

func details(id flowfabric.ExecutionID, category string) json.RawMessage {
	data, _ := json.Marshal(map[string]string{"execution": id.String(), "category": category})
	return data
}

// internal logs what went wrong on this side and tells the client no more than our code for it.
func (s *Server) internal(doing string, err error) error {
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return answer
	}
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("mcp: cannot "+doing, "error", err)
	}
	code := cmp.Or(flowfabric.CodeOf(err), "internal")
	message := "internal error: " + code
	if unknown, ok := errors.AsType[*client.UnknownOutcomeError](err); ok {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("%s: execution %s may exist", message, unknown.ID), Data: details(unknown.ID, code)}
	}
	data, _ := json.Marshal(map[string]string{"code": code})
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message, Data: data}
}
