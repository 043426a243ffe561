package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
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
	// FrameCall says that the model has begun to write a call of a tool. Its payload is a JSON object: id, and name of
	// the tool. FrameArguments is a piece of the arguments, whole UTF-8 of at most 64 KiB; its Correlation is the id.
	// The message of the answer has the whole call. One that it does not have is none: the answer was broken off.
	FrameCall      = "call"
	FrameArguments = "arguments"
	// FrameResult is the message of a tool as soon as the call has ended, like that of FrameMessage, which follows when
	// the model is shown it and is what counts. It is for those who listen now (stream.ModeBestEffort), comes only if
	// the model is not asked at once, and comes again for a call that a crash repeats.
	FrameResult = "result"
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

// heard is what readers have been shown of an answer as it comes, and what of it counts if it is broken off.
type heard struct {
	run   *run
	said  spoken
	calls int    // that began
	last  string // id of the last one
}

// add shows a delta.
func (h *heard) add(ctx context.Context, d Delta) error {
	h.said.add(d)
	err := h.run.pieces(ctx, stream.Frame{Type: FrameReasoning}, d.Reasoning)
	if err == nil {
		err = h.run.pieces(ctx, stream.Frame{Type: FrameToken}, d.Text)
	}
	if err == nil && d.Call != nil {
		err = h.call(ctx, *d.Call)
	}
	return err
}

// call shows a piece of a call. Nobody is shown one with an id that no answer can have.
func (h *heard) call(ctx context.Context, d CallDelta) error {
	id := d.ID
	switch {
	case d.Name != "":
		h.calls++
		if id == "" {
			id = callID(h.run.done.Turns+1, h.calls)
		}
		h.last = id
	case id == "":
		id = h.last
	}
	if id == "" || len(id) > maxCallID || !utf8.ValidString(id) || strings.Contains(id, "\x1f") {
		return nil
	}
	if d.Name != "" {
		payload, err := json.Marshal(struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		}{id, cut(d.Name, maxPartName, 2*maxPartName)})
		if err != nil {
			return handler.Permanent(fmt.Errorf("a call does not encode: %w", err))
		}
		f := stream.Frame{Type: FrameCall, Encoding: "json", Payload: payload}
		if err := h.run.task.FrameBytes(ctx, f); err != nil {
			return err
		}
	}
	return h.run.pieces(ctx, stream.Frame{Type: FrameArguments, Correlation: id}, d.Arguments)
}

// pieces appends a text as frames of at most 64 KiB that are like f.
func (r *run) pieces(ctx context.Context, f stream.Frame, text string) error {
	text = strings.ToValidUTF8(text, "\ufffd")
	for text != "" {
		end := len(text)
		if end > limits.MaxFrame {
			for end = limits.MaxFrame; !utf8.RuneStart(text[end]); end-- {
			}
		}
		var err error
		if f.Correlation == "" {
			err = r.task.Frame(ctx, f.Type, text[:end]) // copies less
		} else {
			f.Payload = []byte(text[:end])
			err = r.task.FrameBytes(ctx, f)
		}
		if err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}

// show appends a message as one frame.
func (r *run) show(ctx context.Context, m Message) error {
	payload, err := json.Marshal(shortened(m, limits.MaxFrame))
	if err != nil {
		return handler.Permanent(fmt.Errorf("a message does not encode: %w", err))
	}
	return r.task.FrameBytes(ctx, stream.Frame{Type: FrameMessage, Encoding: "json", Payload: payload})
}

// resultLives is how long readers find the frame of a result that is shown early.
const resultLives = 30 * time.Second

// showEarly appends what came of a call, if the model will not be shown it, and readers with it, at once.
func (r *run) showEarly(ctx context.Context, m Message) error {
	if !r.early {
		return nil
	}
	payload, err := json.Marshal(shortened(m, limits.MaxFrame))
	if err != nil {
		return handler.Permanent(fmt.Errorf("a result does not encode: %w", err))
	}
	return r.task.FrameBytes(ctx, stream.Frame{Type: FrameResult, Encoding: "json", Mode: stream.ModeBestEffort,
		TTL: resultLives, Payload: payload})
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
