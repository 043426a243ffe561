package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/edit"
	"github.com/flowfabric/flowfabric-go/internal/integer"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Decision says what happens with a call before its tool runs, see [Needs]. The zero value runs it without asking.
type Decision struct {
	Refuse string // not "": the call is not made, and the model is told this
	Ask    bool   // a person decides

	// What they are asked, in plain text. Control characters are shown as escapes. Default of Title is the tool and
	// its arguments, such as "refund: cents 5, reason late", in one line; it is cut to 200 bytes. Default of Text are
	// the arguments, one a line; it is cut to 4 KiB, with a note.
	Title, Text string
	// ≤ 128 bytes: who should answer. It is for lists to filter by, and keeps nobody from answering
	Assignee string
	// Always offers the choice always: later calls of the tool in this run, by answers of the model that come later,
	// are not asked about. One whose own decision does not offer it is asked about all the same.
	Always bool
	// Fixed keeps people from changing the arguments. Else they may, if arguments and schema fit into the question.
	Fixed bool

	Within time.Duration // 1 ms to ten years. Default 0: people may answer for ever
	Over   Over          // what follows when Within is over
}

// Over is what follows when nobody has decided about a call within its time.
type Over string

// What may follow. The zero value tells the model that nobody approved the call.
const (
	OverRun Over = "run" // it runs
	OverEnd Over = "end" // the run ends for good, category agent_unapproved, with an error that wraps ErrWaitTimeout
)

const categoryUnapproved = "agent_unapproved" // of an execution whose agent waited for nothing

// Needs has a function decide about each call of the tool before it runs: that it runs, that it is refused, or that a
// person is asked. In is that of the tool; of one made with [ToolOf] it is json.RawMessage. The function must depend on
// its argument alone: every run of the handler calls it again.
//
//	agent.Needs(func(in Refund) agent.Decision {
//		return agent.Decision{Ask: in.Cents > 1000, Assignee: "support", Within: 48 * time.Hour}
//	})
//
// To ask, the run suspends, after the calls of the turn that need nobody. All questions of a turn are open at the same
// time (handler.Task.AskAll) and are answered in any order, each on a waitpoint of its own, "approve TURN.CALL TOOL",
// both counted from 1: "approve 2.1 refund" is about the first call of the second answer of the model, whose step is
// "tool 2.1 refund". That is the key for client.Approve, for fftest.Approve and for the command: flowfabric approve ID
// 'approve 2.1 refund'. The wait is called "approve TURN". With [Config].Name both begin with that name. The run goes
// on when all are answered or over. The worker needs token keys, as for every wait.
//
// The choices are approve, reject, and always if the decision offers it. A call that is approved runs with the
// arguments that people saw, or with those to which they changed them (suspend.Answer): those are checked against the
// schema, where they are sent and again in the run, and the function of Needs may still refuse them. The result says
// what ran and who changed it ([Edited]). After a rejection the model gets a failed result that says who rejected and
// their comment.
func Needs[In any](decide func(in In) Decision) ToolOption {
	return func(d *definition) {
		d.asks = reflect.TypeFor[In]()
		d.decide = nil
		if decide == nil {
			return
		}
		d.decide = func(arguments []byte) (Decision, error) {
			var in In
			if err := json.Unmarshal(integer.Numbers(arguments), &in); err != nil {
				return Decision{}, err
			}
			return decide(in), nil
		}
	}
}

// Edited is what a person has changed in a call before it ran.
type Edited struct {
	By        string          `json:"by,omitempty"` // who, if that is known
	Arguments json.RawMessage `json:"arguments"`    // that the tool ran with
}

// decided is what a call's tool decides about it. What does not fit the schema is refused where it would run.
func (r *run) decided(j *job) error {
	if j.tool == nil || j.tool.decide == nil || j.bad() != nil {
		return nil
	}
	d, err := j.tool.decide(j.Arguments)
	if err != nil {
		return fmt.Errorf("agent: decide about %s: %w", j.named("tool"), err)
	}
	j.decision = d
	switch {
	case d.Refuse != "":
		j.denied = d.Refuse
	case d.Ask:
		j.ask = !d.Always || !r.always[j.Name]
	}
	return nil
}

// approve asks about all calls that somebody is to decide about.
func (r *run) approve(ctx context.Context, jobs []*job) error {
	var questions []suspend.Question
	for _, j := range jobs {
		q, err := j.question()
		if err != nil {
			return err
		}
		q.Key = r.cfg.prefixed(j.named("approve"))
		questions = append(questions, q)
	}
	if questions == nil {
		return nil
	}
	turn, _, _ := strings.Cut(jobs[0].number, ".")
	asking := tasks.Asking{Name: r.cfg.prefixed("approve " + turn), Questions: questions, Quit: func(open []int) bool {
		var rest []*job
		for _, i := range open {
			rest = append(rest, jobs[i])
		}
		return r.halt() != nil || r.noneMade(ctx, rest)
	}}
	if r.cfg.WhileBusy == Interrupt {
		asking.Mailbox = r.cfg.Mailbox
	}
	if r.skipped(ctx, asking.Name, jobs) {
		return nil
	}
	first := r.task.AttemptType() == flowfabric.AttemptResumed &&
		strings.HasPrefix(r.halts.turn.Unasked()+" ", asking.Name+" ") // the last of several waits
	answers, err := r.halts.turn.Ask(ctx, asking)
	if errors.Is(err, flowfabric.ErrInvalidInput) {
		return handler.Permanent(fmt.Errorf("agent: Needs: %w", err))
	}
	if err != nil {
		return err
	}
	for i, a := range answers {
		if err := r.heed(jobs[i], a); err != nil {
			return err
		}
		if a.Cause == suspend.CauseMessage {
			r.halts.cut = errInterrupted
		}
	}
	quit := r.halts.cut != nil || first && slices.ContainsFunc(answers, func(a suspend.Answer) bool {
		return a.Cause == suspend.CauseOperator
	})
	for _, j := range jobs {
		j.quit = quit
	}
	return nil
}

// heed does with a call what a person has decided, or what follows when nobody has.
func (r *run) heed(j *job, a suspend.Answer) error {
	by := cmp.Or(a.By, "a person")
	switch {
	case a.Cause == suspend.CauseTimeout && j.decision.Over == OverRun:
		return nil
	case a.Cause == suspend.CauseTimeout && j.decision.Over == OverEnd:
		return handler.Category(categoryUnapproved, handler.Permanent(fmt.Errorf("agent: %s: %w within %v",
			j.named("tool"), errUnapproved, j.decision.Within)))
	case a.Cause == suspend.CauseTimeout:
		j.denied = fmt.Sprintf("the call was not made: nobody approved it within %v", j.decision.Within)
	case a.Cause == suspend.CauseMessage:
		j.leave(errInterrupted)
	case a.Cause == suspend.CauseOperator && r.halt() != nil:
		j.leave(r.halt())
	case a.Cause == suspend.CauseOperator: // somebody let the execution go on without an answer
		j.denied = "the call was not made: it was not approved"
	case a.Choice == choiceApprove, a.Choice == choiceAlways && j.decision.Always:
		if a.Choice == choiceAlways {
			r.allowed = append(r.allowed, j.Name)
		}
		return j.edit(a)
	default:
		j.reject, j.denied = true, "the call was not made: rejected by "+by
		if a.Comment != "" {
			j.denied += ": " + a.Comment
		}
	}
	return nil
}

const (
	choiceApprove = "approve"
	choiceAlways  = "always"
	choiceReject  = "reject"
)

// edit changes the arguments of a call to those of an answer, if they may be, and fit.
func (j *job) edit(a suspend.Answer) error {
	if a.Arguments == nil {
		return nil
	}
	changed, ok := edit.Changed(j.Arguments, a.Arguments)
	if !ok {
		return nil
	}
	by := cmp.Or(a.By, "a person")
	not := func(why string) error {
		j.denied = fmt.Sprintf("the call was not made: %s changed the arguments, and %s", by, why)
		return nil
	}
	switch bad := j.tool.check(changed); {
	case j.decision.Fixed:
		return not("they may not be changed")
	case encodedText(string(changed)) > 2*limits.MaxEdit:
		return not(fmt.Sprintf("they have %d bytes, more than %d", len(changed), limits.MaxEdit))
	case bad != nil:
		return not(bad.Error())
	}
	d, err := j.tool.decide(changed)
	if err != nil {
		return fmt.Errorf("agent: decide about %s: %w", j.named("tool"), err)
	}
	if d.Refuse != "" {
		return not("that is refused: " + d.Refuse)
	}
	j.Arguments, j.edited = changed, &Edited{By: a.By, Arguments: changed}
	return nil
}

// note tells the model what ran instead of what it wrote.
func (e *Edited) note() Part {
	return Part{Type: PartText, Text: fmt.Sprintf("%s changed the arguments. The call was made with %s\n", cmp.Or(e.By,
		"A person"), e.Arguments)}
}

// question is what people are asked about a call, within the bounds of a question whatever the arguments are.
func (j *job) question() (suspend.Question, error) {
	d := j.decision
	if d.Over != "" && d.Over != OverRun && d.Over != OverEnd {
		return suspend.Question{}, invalid("tool %s: Decision.Over is %.40q, want OverRun, OverEnd or nothing", j.Name,
			string(d.Over))
	}
	shown := edit.Plain(j.Arguments)
	title := visible(cmp.Or(d.Title, brief(j.Name, j.Arguments)))
	title = strings.Join(strings.Fields(title), " ")
	q := suspend.Question{Title: cut(cmp.Or(title, j.Name), limits.MaxQuestionTitle, 2*limits.MaxQuestionTitle),
		Text:     cut(visible(cmp.Or(d.Text, readable(shown))), limits.MaxQuestionText, maxQuestionEncoded),
		Assignee: d.Assignee, Within: d.Within, Choices: []suspend.Choice{{Name: choiceApprove, Label: "Approve"}}}
	if d.Always {
		q.Choices = append(q.Choices, suspend.Choice{Name: choiceAlways, Label: "Always in this run"})
	}
	q.Choices = append(q.Choices, suspend.Choice{Name: choiceReject, Label: "Reject"})
	if d.Fixed {
		return q, nil
	}
	schema, err := json.Marshal(j.tool.spec.Schema)
	if err != nil {
		return q, fmt.Errorf("agent: the schema of tool %s: %w", j.Name, err)
	}
	var arguments bytes.Buffer
	if json.Compact(&arguments, shown) == nil &&
		encodedText(q.Text)+2*len(q.Title)+arguments.Len()+len(schema) <= maxQuestionEncoded {
		q.Arguments, q.Schema = arguments.Bytes(), schema
	}
	return q, nil
}

// brief is a call in one line: "refund: cents 5, reason late".
func brief(name string, arguments []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return name
	}
	var words []string
	for size := 0; decoder.More() && size < limits.MaxQuestionTitle; {
		var value json.RawMessage
		key, err := decoder.Token()
		if err != nil || decoder.Decode(&value) != nil {
			break
		}
		text := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil && value[0] == '"' {
			text = plain
		}
		words = append(words, fmt.Sprintf("%v %s", key, text))
		size += len(words[len(words)-1])
	}
	if words == nil {
		return name
	}
	return name + ": " + strings.Join(words, ", ")
}

// readable is JSON with one member a line.
func readable(arguments []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, arguments, "", "  "); err != nil {
		return string(arguments)
	}
	return b.String()
}
