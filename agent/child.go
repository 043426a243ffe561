package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/integer"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// maxChildWord is how much of a tool's name the name of a child has, in bytes: behind it comes the number of the call,
// and of an answer that was made again the take.
const maxChildWord = limits.MaxName - len(" 500.64 t2000")

// Child makes a tool of a kind of work: each call is a child execution of def, for example another agent. In is what
// the model is told, as with [NewTool]; if it is no struct and no map, a string for example, the arguments are an
// object with the member input. What the child returns is the tool's result: a string as it is, a []Part, the text of
// a [Result], everything else as JSON.
//
// All such calls of a turn run at once, and the run waits for them together, suspended under the name "children TURN":
// after the tools that run here, and after people have approved what [Needs] asks about. A child is named by
// its tool and its call, "research 1.2", and its id follows from that, so that no run of the handler makes it twice.
// One of an answer that was made again after a replay or [Regenerate] has the take in its name, "research 1.2 t1".
// How it ended is recorded as the step "tool 1.2 research", like that of any tool. Messages that come meanwhile are
// heard after the turn. [Config].MaxTime does not count the time.
//
// A child that failed, was cancelled or expired is a failed result, which tells the model the category and the message.
// With [EndsRun] the run returns a *flow.ChildError instead, which fails the handler for good. A child whose
// kind nobody serves waits for a worker; give such tools a flowfabric.Deadline.
//
// A child is in the namespace of its parent, and asks the parent's gates, which are budgets too, beside those of its
// definition; limits of keys are not passed on. Its creator is the parent's execution, and its deadline no later than
// the parent's. [ChildOptions] say otherwise. If the parent is cancelled or expires, its children are cancelled; so are
// those that are open when an operator resumes the parent, which are told to the model as not ended. A parent that is a
// node of a flow needs flow.Growing, as with handler.Task.WaitChildren.
//
// Followers of the parent see the child's output among the parent's (stream.TailEvent.Child), see flow.Streamed.
//
// [Config].MaxChildren and MaxDepth bound how many children there are. The option [MaySuspend] is refused. What is
// wrong with the definition or the options is reported by [Run].
func Child[In, Out any](name, description string, def *handler.Definition[In, Out], opts ...ToolOption) Tool {
	d := &definition{spec: ToolSpec{Name: name, Description: description}}
	for _, opt := range opts {
		opt(d)
	}
	d.child = func(set *flow.ChildSet, node string, arguments []byte, kin tasks.Kin) (offspring, error) {
		in, err := childInput[In](arguments)
		if err == nil {
			_, _, err = def.Encode(in)
		}
		if err != nil {
			return offspring{}, err
		}
		return bear(set, node, def, in, d.options(def.Info(), kin)), nil
	}
	switch {
	case def == nil:
		d.bad = errors.New("the definition is nil")
	case def.Err() != nil:
		d.bad = def.Err()
	case d.suspends:
		d.bad = errors.New("the option MaySuspend is for functions")
	case !bare[In]():
		d.wrap(reflect.TypeFor[In](), reflect.TypeFor[wrapped[In]]())
		d.bad = define[wrapped[In]](d, false)
	default:
		d.bad = define[In](d, false)
	}
	if d.bad == nil {
		d.bad = d.checkOptions(def.Info())
	}
	if d.bad != nil {
		d.bad = fmt.Errorf("tool %.80q: %w", name, d.bad)
	}
	return Tool{d}
}

// ChildOptions are options of flow.Child for the children of a tool: flowfabric.Lane, Priority, Retries, Timeout,
// Deadline, Delay, Tags and others. flowfabric.Gates replaces the gates of the parent. With flow.Share each call sets
// so much of the parent's budget aside for its child; without room for those of all calls of a turn no child of it is
// made, and the model is told. For [Child] only.
func ChildOptions(opts ...flow.NodeOption) ToolOption {
	return func(d *definition) { d.starts = append(d.starts, opts...) }
}

// wrapped are the arguments of a tool whose input is no object.
type wrapped[In any] struct {
	Input In `json:"input"`
}

// bare tells whether an input is an object as it is.
func bare[In any]() bool {
	kind := reflect.TypeFor[In]().Kind()
	return kind == reflect.Struct || kind == reflect.Map
}

// wrap has the option Needs see the input alone.
func (d *definition) wrap(in, whole reflect.Type) {
	if d.asks != in {
		return
	}
	decide := d.decide
	if d.asks = whole; decide == nil {
		return
	}
	d.decide = func(arguments []byte) (Decision, error) {
		var w wrapped[json.RawMessage]
		if err := json.Unmarshal(arguments, &w); err != nil {
			return Decision{}, err
		}
		return decide(w.Input)
	}
}

// childInput is the input of a call, whose arguments were checked.
func childInput[In any](arguments []byte) (In, error) {
	arguments = integer.Numbers(arguments)
	if bare[In]() {
		var in In
		err := json.Unmarshal(arguments, &in)
		return in, err
	}
	var w wrapped[In]
	err := json.Unmarshal(arguments, &w)
	return w.Input, err
}

// offspring is a child in its set: what it left once the wait is over.
type offspring struct {
	result func(ctx context.Context, t *handler.Task) ([]Part, error)
}

// bear adds a child to a set.
func bear[In, Out any](set *flow.ChildSet, node string, def *handler.Definition[In, Out], in In,
	opts []flow.NodeOption) offspring {
	child := flow.Child(set, node, def, in, opts...)
	return offspring{
		result: func(ctx context.Context, t *handler.Task) ([]Part, error) {
			out, err := handler.ChildResult(ctx, t, child)
			if err != nil {
				return nil, err
			}
			return partsOf(out)
		},
	}
}

// said is an option of a child that package flow does not have.
type said func(s *flowfabric.Start)

// NodeOption implements [flow.NodeOption].
func (said) NodeOption() {}

// Set is how options say what they say.
func (f said) Set(s *flowfabric.Start) { f(s) }

// options are those of a child, between what it inherits and what nobody may change.
func (d *definition) options(of flowfabric.Start, kin tasks.Kin) []flow.NodeOption {
	gates := said(func(s *flowfabric.Start) {
		s.Names = slices.Clone(of.Names)
		for _, name := range kin.Gates {
			if !slices.Contains(s.Names, name) {
				s.Names = append(s.Names, name)
			}
		}
	})
	depth := said(func(s *flowfabric.Start) {
		s.Tags = maps.Clone(s.Tags)
		if s.Tags == nil {
			s.Tags = map[string]string{}
		}
		s.Tags[limits.DepthTag] = strconv.Itoa(kin.Depth + 1)
	})
	return slices.Concat([]flow.NodeOption{gates, flow.Streamed()}, d.starts, []flow.NodeOption{depth})
}

// nothing is an input that encodes always.
type nothing struct{ flowfabric.Start }

func (nothing) Err() error                         { return nil }
func (n nothing) Info() flowfabric.Start           { return n.Start }
func (nothing) Encode(any) ([]byte, string, error) { return nil, "", nil }
func (nothing) Decode([]byte) (struct{}, error)    { return struct{}{}, nil }

// checkOptions finds what is wrong with the options of a child whatever its input is.
func (d *definition) checkOptions(of flowfabric.Start) error {
	set := flow.Children("options")
	flow.Child[any, struct{}](set, "child", nothing{of}, nil, d.options(of, tasks.Kin{})...)
	return unfit(set, flowplan.Parent{Execution: mint.ID(0), Namespace: limits.DefaultNamespace})
}

// unfit is what is wrong with a set.
func unfit(set *flow.ChildSet, parent flowplan.Parent) error {
	_, err := set.Plan(parent).Request()
	return err
}

// children makes the child executions of a turn, waits for them, and records what they came to. Those that cannot be
// made are told to the model first.
func (r *run) children(ctx context.Context, jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	if r.skipped(ctx, r.childrenWait(), jobs) {
		return r.atOnce(ctx, jobs)
	}
	r.steps += 2 // that they are shown, and the outcomes of the wait
	set, kin := flow.Children(r.childrenWait(), flow.CancelRemaining()), r.task.Kin()
	var made, refused []*job
	for _, j := range jobs {
		r.made++
		err := r.bear(set, j, kin)
		switch {
		case err == nil:
			made = append(made, j)
		case j.tool.endsRun || !tellable(err):
			return err
		default:
			j.denied = "the call was not made: " + err.Error()
			refused = append(refused, j)
		}
	}
	if len(refused) > 0 {
		if err := r.atOnce(ctx, refused); err != nil {
			return err
		}
	}
	if len(made) == 0 {
		return nil
	}
	without, err := r.setAside(ctx, set, kin)
	if err != nil {
		return err
	}
	if without != "" {
		for _, j := range made {
			j.denied = "the call was not made: " + without
		}
		return r.atOnce(ctx, made)
	}
	// With an operator's word the run goes on, and the model is told which children had not ended.
	if err := r.task.WaitChildren(ctx, set); err != nil && !errors.Is(err, flowfabric.ErrNoSignal) {
		return err
	}
	return r.atOnce(ctx, made)
}

// childrenWait is the name of the wait for the children of a turn.
func (r *run) childrenWait() string { return r.cfg.prefixed("children " + strconv.Itoa(r.done.Turns)) }

// setAside sets the shares of the children of a turn aside, if there are any. What it is refused is recorded: nothing
// was made, and the model goes on.
func (r *run) setAside(ctx context.Context, set *flow.ChildSet, kin tasks.Kin) (refused string, err error) {
	plan := set.Plan(r.parent())
	q, err := plan.Request()
	if err != nil {
		return "", handler.Permanent(err)
	}
	if !slices.ContainsFunc(q.Children, func(m engine.FlowMember) bool { return len(m.Share) > 0 }) {
		return "", nil
	}
	r.steps++
	name := r.cfg.prefixed("shares " + strconv.Itoa(r.done.Turns))
	return handler.Step(ctx, r.task, name, func(ctx context.Context) (string, error) {
		err := kin.SetAside(ctx, plan)
		if errors.Is(err, flowfabric.ErrOverBudget) {
			return err.Error(), nil
		}
		return "", err
	})
}

func (r *run) parent() flowplan.Parent {
	return flowplan.Parent{Execution: r.task.ID(), Continues: r.task.Continues(), Namespace: r.task.Namespace()}
}

// bear adds the child of a call to the set of its turn.
func (r *run) bear(set *flow.ChildSet, j *job, kin tasks.Kin) error {
	var over *LimitError
	switch {
	case kin.Depth >= r.cfg.MaxDepth:
		over = &LimitError{limitDepth, int64(r.cfg.MaxDepth)}
	case r.made > r.cfg.MaxChildren:
		over = &LimitError{limitChildren, int64(r.cfg.MaxChildren)}
	}
	if over != nil {
		return handler.Category(categoryLimit, handler.Permanent(over))
	}
	word := stepWord(j.Name)
	node := word[:min(len(word), maxChildWord)] + " " + j.number
	if j.take > 0 {
		node += " " + taken(j.take)
	}
	alone := flow.Children(r.childrenWait())
	if _, err := j.tool.child(alone, node, j.Arguments, kin); err != nil {
		return unencoded{err}
	}
	if err := unfit(alone, r.parent()); err != nil {
		return handler.Permanent(err)
	}
	child, err := j.tool.child(set, node, j.Arguments, kin)
	j.child = &child
	return err
}

// unencoded is the error of an input that no child can have, which is the model's doing.
type unencoded struct{ error }

func (u unencoded) Unwrap() error { return u.error }

// tellable says of an error of a call's child that the model may do better.
func tellable(err error) bool {
	_, own := errors.AsType[unencoded](err)
	_, over := errors.AsType[*LimitError](err)
	return own || over || errors.Is(err, flowfabric.ErrPayloadTooLarge)
}

// came is what a child came to, for the model.
func (r *run) came(ctx context.Context, j *job) (parts []Part, failed bool, err error) {
	parts, err = j.child.result(ctx, r.task)
	e, ended := errors.AsType[*flow.ChildError](err)
	switch {
	case err == nil:
		return r.found(ctx, j, parts)
	case !ended || j.tool.endsRun:
		return nil, false, err
	}
	text, err := r.fate(ctx, j, e)
	return failure(text), true, err
}

// fate says in words how a child ended without a result.
func (r *run) fate(ctx context.Context, j *job, e *flow.ChildError) (string, error) {
	switch {
	case errors.Is(e, flowfabric.ErrResultPurged):
		return "the call was made, but its result is not kept any more", nil
	case e.State == "" && r.halt() != nil:
		return "the call had not ended when the answer was stopped; it was cancelled", nil
	case e.State == "":
		return "the call had not ended when an operator let the run go on; it was cancelled", nil
	}
	text := "the call was " + string(e.State) // cancelled or skipped
	if e.State == flowfabric.Failed || e.State == flowfabric.Expired {
		text = "the call " + string(e.State)
	}
	read := r.task.Kin().Read
	if read == nil {
		return text, nil
	}
	s, err := read(ctx, e.ID)
	switch {
	case errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrResultPurged):
		return text, nil
	case err != nil:
		return "", err
	case s.State.Public != e.State: // somebody has replayed it since
		return text, nil
	case e.State == flowfabric.Cancelled && s.CancelReason != "":
		text += ": " + s.CancelReason
	case e.State != flowfabric.Cancelled && s.Failure.Category != "":
		text += fmt.Sprintf(" (%s)", s.Failure.Category)
		if s.Failure.Message != "" {
			text += ": " + s.Failure.Message
		}
	}
	return text, nil
}
