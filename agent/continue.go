package agent

import (
	"context"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
)

// mostSteps is after how many steps a run lets its execution continue: a turn takes up to 64 more, and as many waits.
const mostSteps = 700

// goOn is the error of a run that is to continue with another input, nil if it is not. Nothing is left that would not
// be in its messages.
func (r *run) goOn(ctx context.Context) error {
	if r.cfg.Continue == nil || r.done.Turns == 0 || r.done.Turns < r.cfg.MaxTurns && r.steps < mostSteps {
		return nil
	}
	r.done.Messages = r.shrunk.view(slices.Concat(r.done.Messages, r.tells, r.says))
	r.tells, r.says = nil, nil
	if err := r.blobs.flush(ctx); err != nil {
		return err
	}
	if err := r.cfg.Continue(r.done); err != nil {
		return err
	}
	return handler.Permanent(fmt.Errorf("agent: %w: Config.Continue returned no error; return that of handler.Continue",
		flowfabric.ErrInvalidInput))
}

// Recent are the last messages of a conversation, at most n of them, n at least 1, that a model can begin with: the
// first one is the user's. If that leaves none, it is the messages since the user's last one, however many those are.
func Recent(messages []Message, n int) []Message {
	first := -1
	for i, m := range messages {
		if m.Role == User && (first < 0 || first < len(messages)-n) {
			first = i
		}
	}
	return slices.Clone(messages[max(0, first):])
}

// shown is how many of the messages that a run begins with readers of the stream have seen before the execution
// continued: those up to the last answer.
func shown(t *handler.Task, messages []Message) (n int) {
	for i, m := range messages {
		if m.Role == Assistant && t.Continues() > 0 {
			n = i + 1
		}
	}
	return n
}

// silent is the result of a run in which nobody said anything more: what it began with.
func (r *run) silent() {
	r.done.Messages = r.says
	for _, m := range r.says {
		if m.Role == Assistant {
			r.done.Text = m.Text()
		}
	}
}
