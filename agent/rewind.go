package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Place says which answer of an execution is meant. The zero value is the answer to the last message of the user, of
// the only agent of a definition with the default codec.
type Place struct {
	Name  string        // Config.Name of the agent
	Codec handler.Codec // of the definition; default handler.JSON
	// Turn is the number of the answer, from 1: its step is "model N". Default 0: the first answer after the last
	// message of the user that was answered. After Config.Continue numbers restart at 1, and earlier answers are input:
	// they cannot be made again.
	Turn int
}

// Rewound is what [Regenerate] and [Edit] have dropped, as it was recorded when they looked. Answers, Usage and Effects
// are those of the agent of Place; what the handler has recorded behind them beside, other agents too, is in Dropped.
type Rewound struct {
	client.Rewound
	Turn    int      `json:"turn"`    // the answer that is made again
	Answers []string `json:"answers"` // texts of the dropped answers, Turn first
	Usage   Usage    `json:"usage"`   // of the dropped answers: it stays paid
	Effects []Effect `json:"effects"` // calls of the dropped answers: what they did stays done
}

// Effect is a call of an answer that was stopped or dropped: what it did, is done. Calls that a stop kept from being
// made are none.
type Effect struct {
	Step      string          `json:"step"` // "tool 2.1 refund"
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // that it ran with
	// Recorded says that it had ended; else it may have had its effect, also if a stop has kept it from being repeated.
	// Result is what the model was told, "" if nobody looked before it was dropped; Failed says that this was an error,
	// or that the call was not made.
	Recorded bool   `json:"recorded"`
	Result   string `json:"result,omitempty"`
	Failed   bool   `json:"failed,omitempty"`
}

// effectOf is a call of an answer, of which value is what was recorded, nil for nothing; made is false for one that was
// not made because of a stop.
func effectOf(at Place, of place, call ToolCall, value []byte) (e Effect, made bool, err error) {
	e = Effect{Tool: call.Name, Arguments: call.Arguments, Recorded: value != nil, Step: Config{Name: at.Name}.prefixed(
		(&job{ToolCall: call, number: fmt.Sprintf("%d.%d", of.turn, of.call)}).named("tool"))}
	if value == nil {
		return e, true, nil
	}
	var done outcome
	if err := at.Codec.Decode(value, &done); err != nil {
		return e, true, fmt.Errorf("transcript: call %d of turn %d does not decode: %w", of.call, of.turn, err)
	}
	e.Result, e.Failed, e.Recorded = done.Message.Text(), done.Message.Failed, !done.Unknown
	if done.Message.Edited != nil {
		e.Arguments = done.Message.Edited.Arguments
	}
	return e, !done.Halted, nil
}

// Regenerate has an agent make an answer again, whatever its execution does, and go on from there. The answer and
// everything after it are dropped: later answers, results of tools, open questions, messages that were received since.
// Sub-agents that run for it are cancelled; those of the new answer are other executions, and its calls have other
// keys. Tokens of dropped answers stay paid, and effects of their tools stay done: both are returned, so
// that you can compensate. Readers of the stream see what stays, then the new answer. See client.Execution.Rewind.
//
// It makes one call for the execution, one for the list of its steps, one for each of the agent's steps, and one that
// drops. If the execution has begun another attempt meanwhile, nothing is done.
//
// Errors: flowfabric.ErrNotFound also if the answer is not recorded: one that is being made is dropped by naming the
// one before, or stopped first; ErrConflict if another attempt has begun meanwhile, for example because somebody else
// regenerated; a value that does not decode; else those of client.Execution.Rewind.
func Regenerate(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, at Place,
	opts ...flowfabric.ActOption) (Rewound, error) {
	return rewind(ctx, c, id, at, nil, opts)
}

// Edit is [Regenerate] with another message in the place of what the user said before the answer: Config.Prompt, or the
// messages that were received for it. Before an answer that follows results of tools it is an additional message. It
// is sent as by client.Execution.Send, at most 64 KiB: a string, []Part, or what else a mailbox takes. One that does
// not name itself has the name ([Message].ID) of the last message that it replaces. One that has the name of a message
// replaces that one and those behind it, and leaves those before. The last edit of a message counts, also for later
// calls of Regenerate.
func Edit(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, at Place, message any,
	opts ...flowfabric.ActOption) (Rewound, error) {
	if message == nil {
		return Rewound{}, fmt.Errorf("edit %s: %w: the message is nil", id, flowfabric.ErrInvalidInput)
	}
	return rewind(ctx, c, id, at, message, opts)
}

func rewind(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, at Place, message any,
	opts []flowfabric.ActOption) (Rewound, error) {
	if at.Codec == nil {
		at.Codec = handler.JSON
	}
	x := c.Execution(id)
	seen, err := x.Get(ctx)
	if err != nil {
		return Rewound{}, err
	}
	records, err := x.Steps(ctx)
	if err != nil {
		return Rewound{}, err
	}
	names := stepsOf(at.Name, records)
	values, err := readValues(ctx, c, id, names)
	if err != nil {
		return Rewound{}, fmt.Errorf("transcript: %w", err)
	}
	turns, err := turnsOf(at.Codec, values)
	if err != nil {
		return Rewound{}, err
	}
	if at.Turn == 0 {
		at.Turn = lastSaid(turns)
	}
	out := Rewound{Turn: at.Turn, Answers: []string{}, Effects: []Effect{}}
	step := Config{Name: at.Name}.prefixed(modelStep(at.Turn))
	out.Rewound, err = x.Rewind(ctx, client.Rewind{Step: step, Attempt: seen.Attempt, Message: message}, opts...)
	if err != nil {
		return Rewound{}, err
	}
	return out, out.tell(at, turns, values)
}

// turnsOf are the answers that are recorded, from the first on.
func turnsOf(codec handler.Codec, values map[place][]byte) (turns []turn, err error) {
	for n := 1; values[place{n, 0}] != nil; n++ {
		var t turn
		if err := codec.Decode(values[place{n, 0}], &t); err != nil {
			return nil, fmt.Errorf("transcript: model call %d does not decode: %w", n, err)
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// lastSaid is the number of the first answer after the last message of the user, at least 1.
func lastSaid(turns []turn) int {
	for i, t := range slices.Backward(turns) {
		if slices.ContainsFunc(t.Said, func(m Message) bool {
			return m.Role == User && m.From != limits.FromForm && !strings.HasPrefix(m.From, limits.FromLimit)
		}) {
			return i + 1
		}
	}
	return 1
}

// tell says what was dropped, of the answers that were read.
func (r *Rewound) tell(at Place, turns []turn, values map[place][]byte) error {
	for n := r.Turn; n <= len(turns); n++ {
		t := turns[n-1]
		r.Answers, r.Usage = append(r.Answers, t.Message.Text()), r.Usage.plus(t.Usage)
		for i, call := range t.Message.Calls {
			e, made, err := effectOf(at, place{n, i + 1}, call, values[place{n, i + 1}])
			if err != nil {
				return err
			}
			e.Recorded = e.Recorded || values[place{n, i + 1}] == nil && slices.Contains(r.Dropped, e.Step)
			if made {
				r.Effects = append(r.Effects, e)
			}
		}
	}
	// What was recorded while we looked is known by its name alone.
	for _, step := range r.Dropped {
		p, ok := placeOf(at.Name, step)
		if !ok || p.call == 0 || p.turn <= len(turns) {
			continue
		}
		_, tool, _ := strings.Cut(strings.TrimPrefix(step, Config{Name: at.Name}.prefixed("tool ")), " ")
		r.Effects = append(r.Effects, Effect{Step: step, Tool: cmp.Or(tool, step), Recorded: true})
	}
	return nil
}
