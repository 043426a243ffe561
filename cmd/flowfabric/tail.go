package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/stream"
)

func tailCommand(a *app) *cobra.Command {
	var attempt int
	var after string
	var now, raw, durable bool
	cmd := &cobra.Command{
		Use:   "tail ID",
		Short: "Follow the output of an execution until it ends",
		Long: `tail prints the frames of an execution as its handler makes them, beginning with those that are
stored, over all attempts, and ends with the execution. It goes on when the connection is lost
for a while. However the execution ends, and after an interrupt, the exit code is 0; how it ended is on
the last line, with category and reason of a failure.

When a handler runs again in the same attempt (its worker drained, it was delayed or suspended), it repeats
the frames of the step that was not recorded. A line "resumed" comes before them, with the reason and the
sequence of the last recorded frame: drop the frames after that one. The end of an attempt names it, too.

--raw prints nothing but what the frames contain that are kept, one after the other: no summaries and
nothing that was not meant to last. How a failed execution ended, and that frames are repeated, is then on
stderr. With --json every event is one line; "cursor" is what --after takes to go on from there.`,
		Example: `  flowfabric tail 3-0197f3a0-… --raw
  flowfabric tail 3-0197f3a0-… --json | jq -r 'select(.type=="token").text'`,
		Args: exactly("ID"),
	}
	cmd.RunE = a.lasting(func(ctx context.Context, args []string) error {
		id, err := executionID(args[0])
		if err != nil {
			return err
		}
		var opts []client.TailOption
		if cmd.Flags().Changed("attempt") {
			if attempt < 0 {
				return usage("--attempt is %d, want 0 or more", attempt)
			}
			opts = append(opts, client.OnlyAttempt(uint32(attempt)))
		}
		if after != "" {
			cursor, err := stream.ParseCursor(after)
			if err != nil {
				return usage("--after: %v", err)
			}
			opts = append(opts, client.After(cursor))
		}
		if now {
			opts = append(opts, client.FromNow())
		}
		if durable {
			opts = append(opts, client.WithoutBestEffort())
		}
		return a.with(ctx, func(c *client.Client) error {
			_, err := a.tail(ctx, c, id, raw, opts...)
			return err
		})
	})
	flags := cmd.Flags()
	flags.IntVar(&attempt, "attempt", 0, "only this attempt, `0` is the first (default all)")
	flags.StringVar(&after, "after", "", "begin behind this `cursor` of the first attempt that is shown")
	flags.BoolVar(&now, "from-now", false, "leave out what is stored")
	flags.BoolVar(&durable, "durable", false, "leave out frames that were not meant to last")
	flags.BoolVar(&raw, "raw", false, "print the contents of the frames that are kept and nothing else")
	cmd.MarkFlagsMutuallyExclusive("from-now", "after")
	return cmd
}

// tailEvent is a stream.TailEvent for --json.
type tailEvent struct {
	Event    string                 `json:"event"` // attempt, resumed, gap, frame, attempt_end, end
	Attempt  uint32                 `json:"attempt"`
	Cursor   string                 `json:"cursor,omitempty"`
	Sequence uint64                 `json:"sequence,omitempty"`
	Mode     string                 `json:"mode,omitempty"`
	Type     string                 `json:"type,omitempty"`
	At       time.Time              `json:"produced_at,omitzero"`
	Text     *string                `json:"text,omitempty"`     // of a utf8 frame
	Value    json.RawMessage        `json:"value,omitempty"`    // of a json frame
	Bytes    []byte                 `json:"bytes,omitempty"`    // base64, of any other
	Run      uint32                 `json:"run,omitempty"`      // of a frame, or that begins
	Epoch    uint64                 `json:"epoch,omitempty"`    // of the claim of a run that begins
	Recorded *uint64                `json:"recorded,omitempty"` // sequence of the last recorded frame: what came after it is repeated
	Trimmed  uint64                 `json:"trimmed,omitempty"`
	Missed   uint64                 `json:"missed,omitempty"`
	Reason   string                 `json:"reason,omitempty"`       // why a run began, of the attempt's end, or of the failure or cancellation
	State    flowfabric.PublicState `json:"state,omitempty"`        // of the end, with what follows
	Category string                 `json:"category,omitempty"`     // of the failure
	By       string                 `json:"cancelled_by,omitempty"` // who cancelled
}

func newTailEvent(e stream.TailEvent, end *client.OutcomeError) tailEvent {
	v := tailEvent{Event: e.Kind.String(), Attempt: e.Attempt, Trimmed: e.Trimmed, Missed: e.Missed, Reason: e.Reason}
	if e.Kind == stream.TailEnd {
		v.State = e.State
		if end != nil {
			v.Category, v.Reason, v.By = end.Category, end.Reason, end.By
		}
	}
	switch e.Kind {
	case stream.TailResumed:
		v.Run, v.Epoch, v.Reason, v.Recorded = e.Resumed.Run, e.Resumed.Epoch, e.Resumed.Reason, &e.Resumed.Recorded
	case stream.TailAttemptEnd:
		v.Recorded = &e.Recorded
	}
	if e.Kind != stream.TailFrame {
		return v
	}
	f := e.Frame
	v.Run, v.Cursor, v.Sequence, v.Mode, v.Type, v.At = f.Run, f.ID.String(), f.Sequence, f.Mode.String(), f.Type, utc(f.ProducedAt)
	switch {
	case f.Encoding == stream.JSON && json.Valid(f.Payload):
		v.Value = f.Payload
	case f.Encoding != stream.Bytes && utf8.Valid(f.Payload):
		text := string(f.Payload)
		v.Text = &text
	default:
		v.Bytes = f.Payload
	}
	return v
}

// tail follows an execution; an interrupt is how a person ends it. The end is nil for a success, and when it was not seen.
func (a *app) tail(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, raw bool, opts ...client.TailOption) (end *client.OutcomeError, err error) {
	for e, err := range c.Tail(ctx, id, opts...) {
		if err == nil && e.Kind == stream.TailEnd {
			end, err = outcomeOf(ctx, c, id, e.Code)
		}
		if errors.Is(err, context.Canceled) {
			return nil, nil
		}
		if err == nil {
			err = a.tailed(e, end, raw)
		}
		if err != nil {
			return nil, err
		}
	}
	return end, nil
}

// outcomeOf is how an execution ended, nil for a success. What is gone since, or runs again, has an end without details.
func outcomeOf(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, code flowfabric.Code) (*client.OutcomeError, error) {
	state, _ := flowfabric.Project(code)
	if state.Public == flowfabric.Completed {
		return nil, nil
	}
	end := &client.OutcomeError{ID: id, State: state.Public}
	s, err := c.Get(ctx, id)
	if err != nil && !errors.Is(err, flowfabric.ErrNotFound) {
		return nil, err
	}
	if err == nil && s.State.Public == end.State {
		end.Category, end.Reason, end.Attempts = s.FailureCategory, s.FailureReason, s.Attempts
		if end.State == flowfabric.Cancelled {
			end.Reason, end.By = s.CancelReason, s.CancelledBy
		}
	}
	return end, nil
}

func (a *app) tailed(e stream.TailEvent, end *client.OutcomeError, raw bool) error {
	if raw {
		if e.Kind == stream.TailFrame && e.Frame.Mode == stream.ModeDurable {
			return a.write(string(e.Frame.Payload))
		}
		if e.Kind == stream.TailResumed {
			fmt.Fprintln(a.err, again(e.Resumed))
		}
		if end != nil {
			fmt.Fprintln(a.err, printable(end.Error()))
		}
		return nil
	}
	v := newTailEvent(e, end)
	return a.show(v, func(p *page) {
		switch e.Kind {
		case stream.TailFrame:
			p.put(styled(faint, e.Attempt))
			p.WriteString(" ")
			p.put(styled(bold, v.Type))
			if e.Frame.Mode != stream.ModeDurable {
				p.put(styled(faint, " ("+e.Frame.Mode.String()+")"))
			}
			p.say("  %s", string(e.Frame.Payload))
		case stream.TailGap:
			p.say("%d -- %d frames dropped, %d missed", e.Attempt, e.Trimmed, e.Missed)
		case stream.TailResumed:
			p.say("%d -- %s", e.Attempt, again(e.Resumed))
		case stream.TailAttempt:
			p.say("%d -- attempt begins", e.Attempt)
		case stream.TailAttemptEnd:
			if e.Reason == "attempt_success" || e.Recorded == 0 {
				p.say("%d -- attempt ends: %s", e.Attempt, e.Reason)
			} else { // another one may follow
				p.say("%d -- attempt ends: %s; recorded up to frame %d", e.Attempt, e.Reason, e.Recorded)
			}
		case stream.TailEnd:
			p.say("%d -- execution %s", e.Attempt, join(": ", join(" ", string(v.State), bracketed(cmp.Or(v.By, v.Category))), v.Reason))
		}
	})
}

// again says what the frames of a run that begins stand for.
func again(r stream.Resumption) string {
	text := "resumed"
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	if r.Recorded == 0 {
		return text + ": no frame was recorded, all of this attempt are repeated"
	}
	return fmt.Sprintf("%s: frames after %d were not recorded and are repeated", text, r.Recorded)
}

func bracketed(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}
