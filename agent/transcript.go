package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
)

// readers is how many steps a transcript reads at once.
const readers = 8

// TranscriptOptions says whose transcript is read. The zero value does for the only agent of a definition with the
// default codec.
type TranscriptOptions struct {
	Name  string        // Config.Name of the agent
	Codec handler.Codec // of the definition; default handler.JSON
}

// ReadTranscript reads what an agent has recorded so far, while its execution runs or waits, and after it has ended,
// until it is purged: the same as [Result], of the turns and tools that are recorded. The user's messages are
// shortened if they are long: all those before one answer have at most 64 KiB or so, and are at most 100. Private
// parts of answers are included, to go on with the messages. Images and files that are blobs are
// references ([Part].Blob); the bytes are in Config.Blobs.
//
// It makes one call for the list of steps, and one for each of the agent's. Errors: those of client.Execution.Steps,
// and a value that does not decode.
func ReadTranscript(ctx context.Context, c *client.Client, id flowfabric.ExecutionID,
	o TranscriptOptions) (Result, error) {
	if o.Codec == nil {
		o.Codec = handler.JSON
	}
	records, err := c.Execution(id).Steps(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("transcript: %w", err)
	}
	values, err := readValues(ctx, c, id, stepsOf(o.Name, records))
	if err != nil {
		return Result{}, fmt.Errorf("transcript: %w", err)
	}
	return assemble(o.Codec, values)
}

// place is where a step belongs: a turn, from 1, and the number of the call in it, 0 for the model's own. A summary
// belongs to the turn after which it was made, 0 before the first.
type place struct{ turn, call int }

const summaryCall = -1

// stepsOf are the recorded steps of an agent.
func stepsOf(agent string, records []flowfabric.StepRecord) map[place]string {
	names := map[place]string{}
	for _, r := range records {
		if at, ok := placeOf(agent, r.Name); ok && r.State != "failed" && r.Kind == "step" {
			names[at] = r.Name
		}
	}
	return names
}

// placeOf reads the name of a step of an agent.
func placeOf(agent, step string) (place, bool) {
	rest, ok := strings.CutPrefix(step, Config{Name: agent}.prefixed(""))
	if !ok {
		return place{}, false
	}
	if number, ok := strings.CutPrefix(rest, "model "); ok {
		n, err := strconv.Atoi(number)
		return place{n, 0}, err == nil && n > 0
	}
	if number, ok := strings.CutPrefix(rest, "summary "); ok {
		n, err := strconv.Atoi(number)
		return place{n, summaryCall}, err == nil && n >= 0
	}
	numbers, ok := strings.CutPrefix(rest, "tool ")
	if !ok {
		return place{}, false
	}
	numbers, word, _ := strings.Cut(numbers, " ")
	if strings.Contains(word, " ") { // a step of the tool's own, on the way to its result
		return place{}, false
	}
	turn, call, _ := strings.Cut(numbers, ".")
	n, err := strconv.Atoi(turn)
	m, bad := strconv.Atoi(call)
	return place{n, m}, err == nil && bad == nil && n > 0 && m > 0
}

func readValues(ctx context.Context, c *client.Client, id flowfabric.ExecutionID,
	names map[place]string) (map[place][]byte, error) {
	type read struct {
		at    place
		value []byte
	}
	p := pool.NewWithResults[read]().WithMaxGoroutines(readers).WithContext(ctx).WithCancelOnError()
	for at, name := range names {
		p.Go(func(ctx context.Context) (read, error) {
			value, _, err := c.Execution(id).StepValue(ctx, name)
			return read{at, value}, err
		})
	}
	all, err := p.Wait()
	values := map[place][]byte{}
	for _, r := range all {
		if r.value != nil {
			values[r.at] = r.value
		}
	}
	return values, err
}

// assemble puts the values of steps in order.
func assemble(codec handler.Codec, values map[place][]byte) (Result, error) {
	var r Result
	for at := (place{1, 0}); values[at] != nil; at = (place{at.turn + 1, 0}) {
		var t turn
		if err := codec.Decode(values[at], &t); err != nil {
			return r, fmt.Errorf("transcript: model call %d does not decode: %w", at.turn, err)
		}
		r.Messages = append(append(r.Messages, t.Said...), t.Message)
		r.Text, r.Stop, r.Usage, r.Turns = t.Message.Text(), t.Stop, r.Usage.plus(t.Usage), at.turn
		for i := range t.Message.Calls {
			value := values[place{at.turn, i + 1}]
			if value == nil {
				continue
			}
			var done outcome
			if err := codec.Decode(value, &done); err != nil {
				return r, fmt.Errorf("transcript: call %d of turn %d does not decode: %w", i+1, at.turn, err)
			}
			r.Messages = append(r.Messages, done.Message)
		}
	}
	for at, value := range values {
		if at.call != summaryCall {
			continue
		}
		var s summary
		if err := codec.Decode(value, &s); err != nil {
			return r, fmt.Errorf("transcript: summary %d does not decode: %w", at.turn, err)
		}
		r.Usage = r.Usage.plus(s.Usage)
	}
	return r, nil
}

// MarshalJSON writes arguments that are not JSON as a member of their own, so that every answer can be stored.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	type plain ToolCall
	written := strings.ToValidUTF8(string(c.Arguments), "\ufffd")
	if json.Valid([]byte(written)) {
		c.Arguments = json.RawMessage(written)
		return json.Marshal(plain(c))
	}
	return json.Marshal(struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Written string `json:"written"`
	}{c.ID, c.Name, written})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	type plain ToolCall
	var in struct {
		plain
		Written *string `json:"written"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*c = ToolCall(in.plain)
	if in.Written != nil {
		c.Arguments = json.RawMessage(*in.Written)
	}
	return nil
}
