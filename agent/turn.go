package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

const maxCallID = 256 // bytes

// turn is the value of a model's step.
type turn struct {
	// Said is what the user said before it, for readers of the transcript: the run itself has the whole of it.
	Said    []Message     `json:"said,omitempty"`
	Message Message       `json:"message"`
	Stop    StopReason    `json:"stop"`
	Usage   Usage         `json:"usage"`
	Model   string        `json:"model,omitempty"`
	ID      string        `json:"id,omitempty"`
	Took    time.Duration `json:"took"`
	// Take is in which take of the execution it was answered (handler.Task.Takes): so an answer that is made again has
	// children and keys of calls of its own.
	Take int `json:"take,omitempty"`

	run    *run // for Heed; nil in one that was recorded
	goesOn bool // the answer does not end the turn, though it wants no tools
}

// ask has the model answer what is new, and returns the tools that it wants.
func (r *run) ask(ctx context.Context) ([]ToolCall, error) {
	fresh := slices.Concat(r.tells, r.says)
	news := fresh[min(r.seen, len(fresh)):]
	conversation := slices.Concat(r.done.Messages, fresh)
	r.halts.cut, r.wrote = nil, false
	defer func() { r.shrunk.broken = Usage{} }()
	answer, err := handler.Step(ctx, r.task, r.modelStep(), func(ctx context.Context) (turn, error) {
		r.wrote = true
		return r.answer(ctx, news, r.shrunk.view(conversation))
	})
	if err != nil {
		return nil, err
	}
	r.done.Messages = append(conversation, answer.Message)
	r.done.Text, r.done.Stop = answer.Message.Text(), answer.Stop
	r.done.Usage = r.done.Usage.plus(answer.Usage)
	r.done.Turns++
	r.sizes = append(r.sizes, answer.Usage.Output)
	r.shrunk.answered(answer.Usage)
	r.steps += 1 + 2*len(answer.Message.Calls) // each may be asked about
	r.took += answer.Took
	r.take = answer.Take
	r.blobs.stored(answer.Said)
	r.tells, r.says, r.seen = nil, nil, 0
	return answer.Message.Calls, nil
}

// modelStep is the step of an answer, without the name of the agent.
func modelStep(turn int) string { return fmt.Sprint("model ", turn) }

// modelStep is the step of the next answer.
func (r *run) modelStep() string { return r.cfg.prefixed(modelStep(r.done.Turns + 1)) }

// answer is the step of a model call: it stores and shows what is new, shows the answer as it comes, and pays for it.
func (r *run) answer(ctx context.Context, fresh, conversation []Message) (turn, error) {
	req, err := r.request(slices.DeleteFunc(slices.Clone(conversation), Message.mute))
	if err != nil {
		return turn{}, err
	}
	permit, err := r.acquire(ctx, req)
	if err != nil {
		return turn{}, err
	}
	if err := r.ready(ctx, req, fresh); err != nil {
		return turn{}, errors.Join(err, permit.notMade(ctx))
	}
	response, took, err := r.call(ctx, req, permit)
	if err != nil {
		return turn{}, err
	}
	if err := r.spend(ctx, response.Usage); err != nil {
		return turn{}, err
	}
	answer := turn{Message: response.Message, Stop: response.Stop, Usage: response.Usage, Model: response.Model,
		ID: response.ID, Took: took, run: r, Take: r.task.Takes()}
	answer.goesOn = r.form != nil && r.form.read([]byte(unfenced(answer.Message.Text()))) != nil
	if err := answer.settle(r.done.Turns + 1); err != nil {
		return turn{}, err
	}
	if err := r.keep(ctx, &answer.Message); err != nil {
		return turn{}, err
	}
	answer.Said = told(r.says, limits.MaxToolResult-messageLen(answer.Message))
	if act, ok := acts[answer.Stop]; ok {
		if err := r.showHalt(ctx, act, r.done.Turns+1, answer.Usage); err != nil {
			return turn{}, err
		}
	}
	if err := r.show(ctx, answer.Message); err != nil {
		return turn{}, err
	}
	return answer, r.showUsage(ctx, r.done.Turns+1, answer)
}

// call calls the model, unless the turn was halted before, and tells the gate of its service what it used.
func (r *run) call(ctx context.Context, req Request, permit *permit) (Response, time.Duration, error) {
	if why := r.halt(); why != nil {
		return Response{Stop: stopOf(why), Usage: r.shrunk.broken}, 0, permit.notMade(ctx)
	}
	began := time.Now()
	response, err := r.generate(ctx, req)
	took := time.Since(began)
	permit.made(ctx, response.Usage, err)
	return response, took, err
}

// mute says of a message that it is an answer without a word: it was broken off, and no service takes it.
func (m Message) mute() bool {
	return m.Role == Assistant && len(m.Calls) == 0 && len(m.Private) == 0 && m.Text() == ""
}

// ready gives a request its bytes, and stores and shows what is new. That is not before its turn has come: it would be
// read, and shown, again when the run comes back.
func (r *run) ready(ctx context.Context, req Request, fresh []Message) error {
	if err := r.blobs.fetch(ctx, req.Messages); err != nil {
		return err
	}
	if err := r.blobs.flush(ctx); err != nil {
		return err
	}
	for _, m := range fresh {
		if err := r.show(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// keep stores the blobs of an answer. What the model thought is cut before the answer has no room.
func (r *run) keep(ctx context.Context, m *Message) error {
	data := map[string][]byte{}
	m.Parts = r.blobs.shelve(m.Parts, data)
	if err := tooLarge(m.Parts); err != nil {
		return handler.Permanent(fmt.Errorf("agent: the answer: %w", err))
	}
	if over := messageLen(*m) - limits.MaxToolResult; over > 0 {
		cutTexts(m.Parts, PartReasoning, over)
	}
	return r.blobs.put(ctx, data)
}

// request is what the model is asked.
func (r *run) request(conversation []Message) (Request, error) {
	return r.edited(Request{System: r.cfg.System, Messages: slices.Clone(conversation), Tools: slices.Clone(r.specs),
		MaxTokens: r.cfg.MaxOutput, Schema: r.form.native(), Cache: r.cache(conversation)})
}

// edited is a request as Config.Edit wants it.
func (r *run) edited(req Request) (Request, error) {
	if r.cfg.Edit != nil {
		for i := range req.Messages {
			req.Messages[i].Parts = slices.Clone(req.Messages[i].Parts)
		}
		r.cfg.Edit(&req)
		if len(req.Messages) == 0 {
			return req, invalid("Edit left no messages")
		}
		req.Cache.Marks = slices.DeleteFunc(req.Cache.Marks, func(n int) bool { return n < 0 || n > len(req.Messages) })
	}
	return req, nil
}

// cache marks what the next requests will begin with: the instructions and tools, what the model was asked before, and
// all of it, if the model may be asked again. It depends on what is recorded alone.
func (r *run) cache(conversation []Message) Cache {
	c := Cache{Key: r.task.ID().String(), Marks: []int{0}}
	for i, m := range slices.Backward(conversation) {
		if m.Role == Assistant {
			c.Marks = append(c.Marks, i)
			break
		}
	}
	again := len(r.specs) > 0 || r.cfg.Mailbox != "" || r.form != nil
	if again && (r.done.Turns+1 < r.cfg.MaxTurns || r.cfg.Continue != nil) {
		c.Marks = append(c.Marks, len(conversation))
	}
	return c
}

// generate calls the model, in a span. An answer that is broken off is what was said until then.
func (r *run) generate(ctx context.Context, req Request) (response Response, err error) {
	ctx, span := r.spans.chat(ctx, req)
	defer func() { span.answered(ctx, r.task, response, err) }()
	inner, end := r.breakable(ctx, false)
	defer end()
	heard := heard{run: r}
	err = errPanicked
	response, err = r.cfg.Model.Generate(inner, req, func(d Delta) error { return heard.add(ctx, d) })
	if why := broken(inner); why != nil && err != nil && ctx.Err() == nil {
		response, err = r.partial(heard.said.parts(), why, response.Usage, req), nil
	}
	return response, err
}

// spend reports what an answer cost to the execution's gates. A refusal ends the run for good, unless the gate has it
// wait or ask: a retry would pay for the answer again.
func (r *run) spend(ctx context.Context, u Usage) error {
	amounts := map[string]int64{"tokens": u.Total()}
	if r.cfg.Spend != nil {
		amounts = maps.Clone(r.cfg.Spend(u))
	} else {
		ctx = tasks.Unasked(ctx) // without a gate there is nothing to warn of
	}
	maps.DeleteFunc(amounts, func(_ string, n int64) bool { return n == 0 })
	if len(amounts) == 0 {
		return nil
	}
	err := r.task.SpendUsage(ctx, admission.Usage{Amounts: amounts})
	if errors.Is(err, flowfabric.ErrOverBudget) {
		return handler.Permanent(err)
	}
	return err
}

// callID is the id of a call to which its model gave none, by the numbers of the answer and of the call.
func callID(answer, call int) string { return fmt.Sprintf("call-%d.%d", answer, call) }

// settle makes an answer what a later run will read back, and refuses one that is none.
func (a *turn) settle(number int) error {
	m := &a.Message
	m.ID, m.Role, m.From, m.Call, m.Tool, m.Failed, m.Denied, m.Edited = "", Assistant, "", "", "", false, false, nil
	if err := checkParts(m.Parts); err != nil {
		return handler.Category(categoryProtocol, fmt.Errorf("the answer: %w", err))
	}
	m.Parts = cleaned(m.Parts)
	if a.Stop == StopRefusal {
		m.Calls = nil // nobody would answer them
	}
	if len(m.Calls) > limits.MaxToolCalls {
		return handler.Category(categoryProtocol,
			fmt.Errorf("the answer wants %d tools at once, want at most %d", len(m.Calls), limits.MaxToolCalls))
	}
	m.Calls = slices.Clone(m.Calls)
	seen := map[string]bool{}
	for i := range m.Calls {
		c := &m.Calls[i]
		if c.ID == "" {
			c.ID = callID(number, i+1)
		}
		if len(c.ID) > maxCallID || seen[c.ID] {
			return handler.Category(categoryProtocol,
				fmt.Errorf("the id %.40q of tool call %d has %d bytes or comes twice, want at most %d bytes, once",
					c.ID, i+1, len(c.ID), maxCallID))
		}
		seen[c.ID] = true
		if len(strings.TrimSpace(string(c.Arguments))) == 0 {
			c.Arguments = json.RawMessage("{}")
		}
	}
	if a.Stop == "" {
		a.Stop = StopEnd
		if len(m.Calls) > 0 {
			a.Stop = StopTools
		}
	}
	data, err := json.Marshal(m)
	if err == nil {
		*m = Message{}
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return handler.Permanent(fmt.Errorf("the answer does not encode: %w", err))
	}
	return nil
}
