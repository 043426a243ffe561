package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// submitFlow makes a flow of at most 100 members and releases it.
func (w *env) submitFlow(f *flow.Flow) flowfabric.FlowID {
	w.Helper()
	id := flowfabric.FlowID(mint.ID(uint16(time.Now().UnixNano() % 4)))
	plan, err := f.Plan(flowplan.Request{Flow: id, Start: flowfabric.Start{Namespace: "default", Creator: "test"}})
	must.No(w, err)
	_, err = w.engine.CreateFlow(w.ctx,
		engine.NewFlow{ID: id, Namespace: "default", Kind: plan.Kind, Digest: plan.Digest, Tags: plan.Tags,
			Members: plan.Members, Mode: plan.Mode})
	must.No(w, err)
	return id
}

// flowEnds waits until a flow has ended.
func (w *env) flowEnds(id flowfabric.FlowID) (r engine.FlowRecord) {
	w.Helper()
	w.eventually("the flow ends", func() bool {
		var err error
		if r, err = w.engine.DescribeFlow(w.ctx, id); err != nil {
			w.Fatal(err)
		}
		return r.State.Terminal() && !r.EndedAt.IsZero()
	})
	return r
}

func (w *env) snapshot(id flowfabric.ExecutionID) engine.Snapshot {
	w.Helper()
	s, err := w.engine.ReadExecution(w.ctx, id)
	must.No(w, err)
	return s
}

// The kinds of these tests.
var (
	echo   = handler.Define[string, string]("echo")
	nobody = handler.Define[string, []byte]("nobody")
	broken = handler.Define[string, string]("broken", flowfabric.Retries(0))
	parent = handler.Define[string, string]("parent", flowfabric.Retries(0))

	left  = flow.Input[string]{Name: "left"}
	right = flow.Input[string]{Name: "right"}
	empty = flow.Input[[]byte]{Name: "empty"}
)

func echoes() []handler.Binding {
	return []handler.Binding{
		handler.Bind(echo, func(_ context.Context, _ *handler.Task, in string) (string, error) { return in, nil }),
		handler.Bind(nobody, func(context.Context, *handler.Task, string) ([]byte, error) { return nil, nil }),
		handler.Bind(broken, func(_ context.Context, _ *handler.Task, in string) (string, error) {
			return "", errors.New(in)
		}),
	}
}

// A diamond: the join runs once, after both sides, and gets their results with their types; an empty result is there.
func TestFlowDiamond(t *testing.T) {
	servers(t, func(w *env) {
		middle, join := handler.Define[string, string]("middle"), handler.Define[string, string]("join")
		w.start(runtime.Config{}, append(echoes(),
			handler.Bind(middle, func(_ context.Context, t *handler.Task, in string) (string, error) {
				from, err := handler.Need(t, left)
				return from + in, err
			}),
			handler.Bind(join, func(_ context.Context, t *handler.Task, _ string) (string, error) {
				l, lok, lerr := handler.Given(t, left)
				r, rok, rerr := handler.Given(t, right)
				e, eok, eerr := handler.Given(t, empty)
				_, other, oerr := handler.Given(t, flow.Input[string]{Name: "other"})
				if _, _, err := handler.Given(t, (flow.Input[int]{Name: "left"})); err == nil ||
					handler.Classify(context.Background(),
						t, err).Failure.Category != causes.Decode {
					return "", fmt.Errorf("a string decodes into an int: %w", err)
				}
				return fmt.Sprintf("%s %s %d %v %v %v %v %v %s %v", l, r, len(e), lok, rok, eok, other, t.Inputs(),
					t.Node(), t.Flow().IsZero()), errors.Join(lerr, rerr, eerr, oerr)
			}))...)
		f := flow.New("diamond", flowfabric.Tags(map[string]string{"test.name": "diamond"}))
		a := flow.Add(f, "a", echo, "a")
		b := flow.Add(f, "b", middle, "b", left.From(a))
		c := flow.Add(f, "c", middle, "c", left.From(a), flow.After(a))
		d := flow.Add(f, "d", join, "", left.From(b), right.From(c), empty.From(flow.Add(f, "e", nobody, "")))
		id := w.submitFlow(f)
		r := w.flowEnds(id)
		got, err := d.Decode([]byte(w.result(d.ID(id), 1)))
		if want := "ab ac 0 true true true false [empty left right] d false"; got != want || err != nil ||
			r.State != flowfabric.FlowCompleted {
			t.Errorf("flow %s, got %q, want %q, %v", r.State, got, want, err)
		}
		if r.Kind != "diamond" || r.Tags["test.name"] != "diamond" || w.snapshot(d.ID(id)).Creator != "test" {
			t.Errorf("%+v", r)
		}
	})
}

// A race: as soon as one provider has answered the others are cancelled, and their handlers hear of it.
func TestFlowRace(t *testing.T) {
	servers(t, func(w *env) {
		racer := handler.Define[string, string]("racer", flowfabric.Retries(0))
		join := handler.Define[string, string]("join")
		var mu sync.Mutex
		causes := map[string]error{}
		ready := make(chan struct{}, 3)
		go3 := make(chan struct{})
		w.start(runtime.Config{},
			handler.Bind(racer, func(ctx context.Context, t *handler.Task, in string) (string, error) {
				ready <- struct{}{}
				if in == "fast" {
					<-go3
					return in, nil
				}
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				causes[t.Node()] = context.Cause(ctx)
				return "", ctx.Err()
			}),
			handler.Bind(join, func(_ context.Context, t *handler.Task, _ string) (string, error) {
				var got []string
				for _, name := range t.Inputs() {
					v, err := handler.Need(t, flow.Input[string]{Name: name})
					if err != nil {
						return "", err
					}
					got = append(got, name+"="+v)
				}
				return strings.Join(got, " "), nil
			}))
		f := flow.New("race")
		x := flow.Add(f, "x", racer, "slow")
		y := flow.Add(f, "y", racer, "fast")
		z := flow.Add(f, "z", racer, "slow")
		in := func(n *flow.Node[string]) flow.NodeOption { return flow.Input[string]{Name: n.Name()}.From(n) }
		j := flow.Add(f, "join", join, "", in(x), in(y), in(z), flow.AnyOf(), flow.CancelRemaining())
		id := w.submitFlow(f)
		for range 3 {
			<-ready
		}
		close(go3)
		if r := w.flowEnds(id); r.State != flowfabric.FlowCompleted || r.Siblings.Cancelled != 2 {
			t.Errorf("flow %s, siblings %+v", r.State, r.Siblings)
		}
		if got := w.result(j.ID(id), 1); got != `"y=fast"` {
			t.Errorf("join got %s", got)
		}
		w.eventually("the losers hear of it", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(causes) == 2
		})
		mu.Lock()
		defer mu.Unlock()
		for node, cause := range causes {
			if !errors.Is(cause, flowfabric.ErrCancelled) {
				t.Errorf("%s was told %v", node, cause)
			}
		}
	})
}

// children runs a handler of kind parent in an environment with the kinds of these tests.
func (w *env) children(fn waiting) {
	w.Helper()
	w.start(runtime.Config{}, append(echoes(), handler.Bind(parent, fn))...)
}

// A handler in no flow waits for all its children, in two waits: two runs more, one attempt, and no call that asks
// again. It hears how each ended, the failed one too.
func TestChildrenAll(t *testing.T) {
	servers(t, func(w *env) {
		var runs, steps atomic.Int64
		var mu sync.Mutex
		calls := map[string]int{}
		cfg := runtime.Config{OnCall: func(function string, _ time.Duration, _ error) {
			mu.Lock()
			defer mu.Unlock()
			calls[function]++
		}}
		w.start(cfg, append(echoes(),
			handler.Bind(parent, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				runs.Add(1)
				if task.Flow().IsZero() != (runs.Load() == 1) {
					return "", fmt.Errorf("run %d: flow %q", runs.Load(), task.Flow())
				}
				first := flow.Children("first")
				a := flow.Child(first, "a", echo, in+"a")
				b := flow.Child(first, "b", echo, "b", flow.After(a))
				c := flow.Child(first, "c", broken, "oh")
				d := flow.Child(first, "d", echo, "d", left.From(c))
				e := flow.Child(first, "e", nobody, "e")
				if err := task.WaitChildren(ctx, first); err != nil {
					return "", fmt.Errorf("wrapped: %w", err)
				}
				if _, err := handler.Step(ctx, task, "step", func(context.Context) (int64, error) {
					return steps.Add(1), nil
				}); err != nil {
					return "", err
				}
				second := flow.Children("second")
				f := flow.Child(second, "a", echo, "f")
				if err := task.WaitChildren(ctx, second); err != nil {
					return "", err
				}
				if err := task.WaitChildren(ctx, flow.Children("none")); err != nil {
					return "", err
				}
				var out []string
				for _, x := range []*flow.ChildNode[string]{a, b, c, d, f} {
					v, err := handler.ChildResult(ctx, task, x)
					if ended, ok := errors.AsType[*flow.ChildError](err); ok {
						v = string(ended.State)
					} else if err != nil {
						return "", err
					}
					out = append(out, v)
				}
				nothing, err := handler.ChildResult(ctx, task, e)
				if _, failed := handler.ChildResult(ctx, task, c); !errors.Is(failed, flowfabric.ErrFailed) {
					return "", fmt.Errorf("failed: %w", failed)
				}
				if _, skipped := handler.ChildResult(ctx, task, d); !errors.Is(skipped, flowfabric.ErrSkipped) {
					return "", fmt.Errorf("skipped: %w", skipped)
				}
				return fmt.Sprintf("%s %d %s", strings.Join(out, " "), len(nothing), handler.ChildOutcome(task, c)), err
			}))...)
		id := w.submitKind("parent", "x")
		s := w.reach(id, codes.Completed, codes.Failed)
		if got := w.result(id, 1); got != `"xa b failed skipped f 0 failed"` {
			t.Errorf("got %s, %s %s", got, s.Failure.Category, s.Failure.Message)
		}
		if s.Attempts != 1 || runs.Load() != 3 || steps.Load() != 1 {
			t.Errorf("%d attempts, %d runs, %d steps", s.Attempts, runs.Load(), steps.Load())
		}
		child := w.snapshot(id.Child("first", "a"))
		if child.Creator != id.String() {
			t.Errorf("creator %q", child.Creator)
		}
		r := w.flowEnds(flowfabric.FlowID(id))
		if r.Kind != "parent" || r.Members != 7 || r.State != flowfabric.FlowCompleted {
			t.Errorf("%+v", r)
		}
		mu.Lock()
		defer mu.Unlock()
		// Where the children have ended before their parent waits, a further call asks how.
		if n := calls["ff_make_children"]; n < 2 || n > 4 {
			t.Errorf("%d calls, want one for each wait, or two", n)
		}
	})
}

// Waits for signals and for children take turns: each answer is kept, in whatever order they came.
func TestChildrenBetweenSignals(t *testing.T) {
	servers(t, func(w *env) {
		w.start(signing(), append(echoes(),
			handler.Bind(parent, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				var out []string
				for i := range 2 {
					word, err := handler.Await[string](ctx, task, fmt.Sprint("word-", i))
					if err != nil {
						return "", err
					}
					set := flow.Children(fmt.Sprint("echo-", i))
					child := flow.Child(set, "c", echo, word)
					if err := task.WaitChildren(ctx, set); err != nil {
						return "", err
					}
					echoed, err := handler.ChildResult(ctx, task, child)
					if err != nil {
						return "", err
					}
					out = append(out, echoed)
				}
				return strings.Join(out, " "), nil
			}))...)
		id := w.submitKind("parent", "")
		for i := range 2 {
			key := fmt.Sprint("word-", i)
			w.eventually("it waits for "+key, func() bool {
				s := w.suspension(id)
				return s.State == flowfabric.Suspended && s.Name == key
			})
			w.signalled(id, key, fmt.Sprintf(`"%d"`, i), waitwords.EffectSatisfied)
		}
		if s := w.reach(id, codes.Completed, codes.Failed); w.result(id, 1) != `"0 1"` || s.Attempts != 1 {
			t.Errorf("%s after %d attempts: %s %s", w.result(id, 1), s.Attempts, s.Failure.Category, s.Failure.Message)
		}
	})
}

// First and FirstSuccess go on when one child has ended, or has succeeded; what is open then has no result.
func TestChildrenFirst(t *testing.T) {
	servers(t, func(w *env) {
		never := handler.Define[string, string]("never")
		release := make(chan struct{})
		w.start(runtime.Config{}, append(echoes(),
			handler.Bind(never, func(ctx context.Context, _ *handler.Task, in string) (string, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return in, ctx.Err()
			}),
			handler.Bind(parent, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				options := map[string][]flow.ChildrenOption{"first": {flow.First()},
					"success": {flow.FirstSuccess(), flow.Leave()}}
				set := flow.Children("race", options[in]...)
				slow := flow.Child(set, "slow", never, "slow")
				bad := flow.Child(set, "bad", broken, "bad")
				var good *flow.ChildNode[string]
				if in == "success" {
					good = flow.Child(set, "good", echo, "fine")
				}
				if err := task.WaitChildren(ctx, set); err != nil {
					return "", err
				}
				if _, err := handler.ChildResult(ctx, task, slow); !errors.Is(err, denied.NotTerminal) ||
					handler.ChildOutcome(task, slow) != "" {
					return "", fmt.Errorf("an open child: %q, %w", handler.ChildOutcome(task, slow), err)
				}
				if in == "first" {
					return string(handler.ChildOutcome(task, bad)), nil
				}
				return handler.ChildResult(ctx, task, good)
			}))...)
		first, success := w.submitKind("parent", "first"), w.submitKind("parent", "success")
		w.reach(first, codes.Completed)
		w.reach(success, codes.Completed)
		if a, b := w.result(first, 1), w.result(success, 1); a != `"failed"` || b != `"fine"` {
			t.Errorf("%s, %s", a, b)
		}
		close(release)
		w.flowEnds(flowfabric.FlowID(first))
		w.flowEnds(flowfabric.FlowID(success))
	})
}

// Children join a flow that may grow; in a sealed one the handler fails for good, and says why. The failure of a
// child that a handler passes on is one for good too, until a replay: then the children are looked at anew.
func TestChildrenInAFlow(t *testing.T) {
	servers(t, func(w *env) {
		var repaired atomic.Bool
		flaky := handler.Define[string, string]("flaky", flowfabric.Retries(0))
		w.start(runtime.Config{},
			handler.Bind(flaky, func(_ context.Context, _ *handler.Task, in string) (string, error) {
				if !repaired.Load() {
					return "", errors.New("not yet")
				}
				return in, nil
			}),
			handler.Bind(handler.Define[string, string]("adult"),
				func(ctx context.Context, task *handler.Task, in string) (string, error) {
					set := flow.Children("w")
					child := flow.Child(set, "c", flaky, in)
					if err := task.WaitChildren(ctx, set); err != nil {
						return "", err
					}
					return handler.ChildResult(ctx, task, child)
				}))
		adult := handler.Define[string, string]("adult", handler.Retry(3, time.Millisecond, time.Millisecond))
		sealed, growing := flow.New("sealed"), flow.New("growing", flow.Growing())
		a := flow.Add(sealed, "a", adult, "a")
		b := flow.Add(growing, "b", adult, "b")
		one, two := w.submitFlow(sealed), w.submitFlow(growing)
		w.flowEnds(one)
		if s := w.snapshot(a.ID(one)); s.Failure.Category != causes.Suspend || s.Attempts != 1 ||
			!strings.Contains(s.Failure.Message, "flow.Growing") {
			t.Errorf("sealed: %s %s after %d", s.Failure.Category, s.Failure.Message, s.Attempts)
		}
		r := w.flowEnds(two)
		if s := w.snapshot(b.ID(two)); r.State != flowfabric.FlowFailed || r.Members != 2 ||
			s.Failure.Category != causes.Child || s.Attempts != 1 {
			t.Errorf("growing: %s, %s %s after %d", r.State, s.Failure.Category, s.Failure.Message, s.Attempts)
		}
		repaired.Store(true)
		child := b.ID(two).Child("w", "c")
		for _, id := range []flowfabric.ExecutionID{child, b.ID(two)} {
			w.eventually("nothing is left of the end", func() bool {
				_, err := w.engine.ReplayExecution(w.ctx, id, engine.Replay{})
				if err != nil && !errors.Is(err, denied.ResolutionPending) {
					t.Fatal(err)
				}
				return err == nil
			})
		}
		w.reach(b.ID(two), codes.Completed)
		if got := w.result(b.ID(two), 2); got != `"b"` || w.flowEnds(two).State != flowfabric.FlowCompleted {
			t.Errorf("replayed: %s", got)
		}
	})
}

// Children are refused for reasons that an operator may change: the attempt fails, and the policy decides about
// another. In a flow that was cancelled nobody waits, also those who may run to their end.
func TestChildrenRefused(t *testing.T) {
	servers(t, func(w *env) {
		closed := handler.Define[string, string]("closed", flowfabric.Lane("closed"))
		running, release := make(chan flowfabric.FlowID), make(chan struct{})
		adult := handler.Define[string, string]("adult", handler.Retry(20, time.Millisecond, time.Millisecond))
		lane := func(state flowfabric.LaneState) {
			t.Helper()
			for _, out := range w.engine.SetLane(w.ctx, wire.SetLane{Namespace: "default", Lane: "closed",
				State: string(state)}) {
				if out.Err != nil {
					t.Error(out.Err)
				}
			}
		}
		lane(flowfabric.LaneDisabled)
		w.start(runtime.Config{Lanes: []string{"default", "closed"}},
			handler.Bind(closed, func(context.Context, *handler.Task, string) (string, error) { return "open", nil }),
			handler.Bind(adult, func(ctx context.Context, task *handler.Task, in string) (string, error) {
				if in == "cancel" {
					running <- task.Flow()
					<-release
				} else if task.Attempt() == 3 {
					lane(flowfabric.LaneActive)
				}
				set := flow.Children("w")
				child := flow.Child(set, "c", closed, in)
				if err := task.WaitChildren(ctx, set); err != nil {
					return "", err
				}
				return handler.ChildResult(ctx, task, child)
			}))
		f := flow.New("f", flow.Growing())
		a := flow.Add(f, "a", adult, "a")
		id := w.submitFlow(f)
		r := w.flowEnds(id)
		if s := w.snapshot(a.ID(id)); r.State != flowfabric.FlowCompleted || s.Attempts != 3 || s.Retries != 2 ||
			s.AttemptLog[0].Category != causes.Suspend {
			t.Errorf("%s, %d attempts: %+v", r.State, s.Attempts, s.AttemptLog)
		}
		g := flow.New("g", flow.Growing())
		b := flow.Add(g, "b", adult, "cancel")
		w.submitFlow(g)
		id = <-running
		if _, err := w.engine.CancelFlow(w.ctx, id, flowfabric.CancelPending); err != nil {
			t.Fatal(err)
		}
		close(release)
		r = w.flowEnds(id)
		if s := w.snapshot(b.ID(id)); s.State.Public != flowfabric.Cancelled ||
			!strings.Contains(s.CancelReason, "the flow was cancelled") || r.Members != 1 {
			t.Errorf("%s %q, %d members", s.State.Public, s.CancelReason, r.Members)
		}
	})
}

// What a handler may do wrong with children is told: a name twice, a wait in a step, a result without it, its error
// thrown away, a mistake in the set, another input than in the run before.
func TestChildrenMisuse(t *testing.T) {
	w := newEnv(t)
	var n atomic.Int64
	w.children(func(ctx context.Context, task *handler.Task, in string) (string, error) {
		set := flow.Children("w")
		c := flow.Child(set, "c", echo, in)
		switch in {
		case "twice":
			_ = task.WaitChildren(ctx, set)
			return "", task.WaitChildren(ctx, flow.Children("w"))
		case "step":
			return handler.Step(ctx, task, "s", func(ctx context.Context) (string, error) {
				return "", task.WaitChildren(ctx, set)
			})
		case "early":
			return handler.ChildResult(ctx, task, c)
		case "ignored":
			_ = task.WaitChildren(ctx, set)
			return "done", nil
		case "mistake":
			flow.Child(set, "c", echo, "")
			flow.Child(set, "d", echo, "", flow.AnyOf())
			return "", task.WaitChildren(ctx, set)
		case "changed":
			set = flow.Children("w")
			flow.Child(set, "c", echo, fmt.Sprint(n.Add(1)))
			if task.Attempt() == 1 { // made, and then the attempt fails
				if _, err := w.engine.MakeChildren(ctx, task.Fence(),
					engine.ChildWait{Name: "w", Mode: engine.WaitAll, Children: []engine.FlowMember{{
						NewExecution: engine.NewExecution{ID: task.ID().Child("w", "c"),
							Start: flowfabric.Start{Namespace: "default",
								Lane: "default", Kind: "echo"}, Digest: "another", Payload: []byte(`"0"`)},
						Node: "c"}}}); err != nil {
					return "", err
				}
			}
			return "", task.WaitChildren(ctx, set)
		}
		return "", nil
	})
	for in, want := range map[string][2]string{
		"twice":   {causes.HandlerError, "already used in this run"},
		"step":    {causes.HandlerError, "inside step s"},
		"early":   {causes.HandlerError, "when the wait is over"},
		"ignored": {causes.AwaitIgnored, "children w had asked to suspend"},
		"mistake": {causes.HandlerError, "node d: invalid_input: a value is not valid: AnyOf without an edge"},
		"changed": {causes.Suspend, "compute them in a step"},
	} {
		s := w.reach(w.submitKind("parent", in), codes.Failed)
		if string(s.Failure.Category) != want[0] || !strings.Contains(s.Failure.Message, want[1]) {
			t.Errorf("%s: %s %s", in, s.Failure.Category, s.Failure.Message)
		}
	}
}
