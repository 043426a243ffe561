package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Approval says who is asked before a tool runs, and for how long.
type Approval struct {
	// Title of the question, 1..200 bytes in one line. Default the first line of what [Question] says, or "Run the tool
	// NAME?".
	Title string
	// ≤ 128 bytes: who should answer. It is for lists to filter by, and keeps nobody from answering
	Assignee string
	Within   time.Duration // 1 ms to ten years; then the model is told that nobody approved. Default 0: for ever
}

// NeedsApproval makes a person decide about each call of the tool before it runs, see handler.Task.Ask: the run
// suspends, with a question that names the tool and shows the arguments, or what [Question] says. What is approved runs
// with exactly these arguments. After a rejection the model gets a failed result that says who rejected and their
// comment.
//
// The wait and its waitpoint are called "approve TURN.CALL TOOL", both counted from 1: "approve 2.1 refund" is about
// the first call of the second answer of the model, whose step is "tool 2.1 refund". That is the key for
// client.Approve, for fftest.Approve and for the command: flowfabric approve ID 'approve 2.1 refund'. With
// [Config].Name it begins with that name. Lists of approvals and of waitpoints show it.
//
// Calls of a turn that need no approval run first, then people are asked about one call after the other, then what
// was approved runs. The worker needs token keys, as for every wait.
func NeedsApproval(a Approval) ToolOption { return func(d *definition) { d.approval = &a } }

// Question words the question of a tool with [NeedsApproval], in place of the arguments. In is that of the tool. The
// function must depend on nothing but its argument. The first line is the title, too, unless [Approval] has one; all
// of it is the text. A title is cut to 200 bytes, a text to 4 KiB, with a note.
func Question[In any](text func(in In) string) ToolOption {
	return func(d *definition) {
		d.asks = reflect.TypeFor[In]()
		d.question = func(arguments []byte) string {
			var in In
			if err := json.Unmarshal(arguments, &in); err != nil {
				return err.Error()
			}
			return text(in)
		}
	}
}

func (a *Approval) validate() error {
	if a == nil {
		return nil
	}
	err := handler.On(suspend.Signal("approve"), suspend.Within(a.Within),
		suspend.Asking(suspend.Question{Title: cmp.Or(a.Title, "?"), Assignee: a.Assignee}))
	if !handler.IsWait(err) {
		return fmt.Errorf("approval: %w", err)
	}
	return nil
}

// ask asks about a call. refused says why it must not run, in words for the model; "" lets it run.
func (d *definition) ask(ctx context.Context, t *handler.Task, name string,
	arguments []byte) (refused string, err error) {
	answer, err := t.Ask(ctx, name, d.asking(arguments), suspend.Within(d.approval.Within),
		suspend.OnTimeout(suspend.Resume))
	switch {
	case errors.Is(err, flowfabric.ErrWaitTimeout):
		return fmt.Sprintf("the call was not made: nobody approved it within %v", d.approval.Within), nil
	case errors.Is(err, flowfabric.ErrNoSignal): // an operator let the execution go on without an answer
		return "the call was not made: it was not approved", nil
	case err != nil:
		return "", err
	case answer.Choice == "approve":
		return "", nil
	}
	refused = "the call was not made: rejected by " + cmp.Or(answer.By, "a person")
	if answer.Comment != "" {
		refused += ": " + answer.Comment
	}
	return refused, nil
}

// asking is the question about a call, within the bounds of a question whatever the arguments are.
func (d *definition) asking(arguments []byte) suspend.Question {
	q := suspend.Question{Title: d.approval.Title, Assignee: d.approval.Assignee}
	text := readable(arguments)
	if d.question != nil {
		text = visible(d.question(arguments))
		title, _, _ := strings.Cut(strings.TrimSpace(strings.ReplaceAll(text, "\t", " ")), "\n")
		q.Title = cmp.Or(q.Title, cut(title, limits.MaxQuestionTitle, 2*limits.MaxQuestionTitle))
	}
	q.Title = cmp.Or(q.Title, "Run the tool "+d.spec.Name+"?")
	q.Text = cut(visible(text), limits.MaxQuestionText, maxQuestionEncoded)
	return q
}

// readable is JSON with one member a line.
func readable(arguments []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, arguments, "", "  "); err != nil {
		return string(arguments)
	}
	return b.String()
}
