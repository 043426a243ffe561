package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Types of the frames that an agent appends.
const (
	FrameMessage   = "message"   // a [Message] as JSON
	FrameToken     = "token"     // a piece of an answer's text
	FrameReasoning = "reasoning" // a piece of what the model thinks
	// FrameSummary says that a summary has taken the place of the beginning for the model ([Compact]). It is a JSON
	// object: for how many of the run's first messages it stands (messages), about how many tokens the next request
	// had and has (before, after), and the text.
	FrameSummary = "summary"
	// FrameTurn says, beside the message of an answer, that the answer was broken off, or that somebody has stopped
	// the turn behind it. Its payload is a JSON object: act (stop or interrupt), by and reason of who stopped it, model
	// (the number of the answer), tokens that the answer cost and how many of them are estimated, done (the steps of
	// the turn's tools that were called), not_made (those that were not any more) and unknown (those that a lost worker
	// may have begun). It comes before the message, and behind that of a whole answer whose last word a stop has
	// overtaken.
	FrameTurn = "turn"
	// FrameUsage comes behind the message of an answer, one that was broken off too, and says what the answer cost. Its
	// payload is a JSON object: turn (the number of the answer), model (which one answered, as its service names it; ""
	// if that is not known), usage (a [Usage]), stop (a [StopReason]; if a stop has overtaken the last word of a whole
	// answer, the frame behind this one says so) and took_ms (how long the model took, in milliseconds).
	FrameUsage = "usage"
)

// pieces appends a delta as frames of at most 64 KiB.
func (r *run) pieces(ctx context.Context, typ, text string) error {
	text = strings.ToValidUTF8(text, "\ufffd")
	for len(text) > limits.MaxFrame {
		end := limits.MaxFrame
		for !utf8.RuneStart(text[end]) {
			end--
		}
		if err := r.task.Frame(ctx, typ, text[:end]); err != nil {
			return err
		}
		text = text[end:]
	}
	if text == "" {
		return nil
	}
	return r.task.Frame(ctx, typ, text)
}

// show appends a message as one frame.
func (r *run) show(ctx context.Context, m Message) error {
	payload, err := json.Marshal(shortened(m, limits.MaxFrame))
	if err != nil {
		return handler.Permanent(fmt.Errorf("a message does not encode: %w", err))
	}
	return r.task.FrameBytes(ctx, stream.Frame{Type: FrameMessage, Encoding: "json", Payload: payload})
}

// showUsage appends what an answer cost.
func (r *run) showUsage(ctx context.Context, number int, a turn) error {
	payload, err := json.Marshal(struct {
		Turn  int        `json:"turn"`
		Model string     `json:"model,omitempty"`
		Usage Usage      `json:"usage"`
		Stop  StopReason `json:"stop"`
		Took  int64      `json:"took_ms"`
	}{number, cut(a.Model, maxPartName, 2*maxPartName), a.Usage, a.Stop, a.Took.Milliseconds()})
	if err != nil {
		return handler.Permanent(fmt.Errorf("what an answer cost does not encode: %w", err))
	}
	return r.task.FrameBytes(ctx, stream.Frame{Type: FrameUsage, Encoding: "json", Payload: payload})
}
