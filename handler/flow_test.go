package handler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

var (
	work  = handler.Define[int, string]("work")
	left  = flow.Input[string]{Name: "left"}
	right = flow.Input[string]{Name: "right"}
	bad   = handler.Define[int, string]("{bad}")
)

// locked is a cipher whose key may be missing.
type locked struct{ key bool }

func (l locked) Seal(plain []byte) ([]byte, error) { return append([]byte("#"), plain...), nil }
func (l locked) Open(data []byte) ([]byte, error) {
	if !l.key {
		return nil, errors.New("no key")
	}
	return data[1:], nil
}

// An input is decoded with the codec of the handler, or with its own; what does not decode fails for good, unless a
// key is missing.
func TestInputs(t *testing.T) {
	hidden, box := flow.Input[string]{Name: "hidden"}, sealed.New(locked{true})
	data, err := box.Seal([]byte(`"s"`))
	must.No(t, err)
	claim := &engine.Claim{Node: "n", Inputs: map[string][]byte{
		"left": []byte(`"l"`), "hidden": data, "empty": nil, "null": []byte("null")}}
	task := newTask(tasks.Config{Claim: claim, Box: box})
	if v, err := handler.Need(task, left); v != "l" || err != nil {
		t.Error(v, err)
	}
	if v, ok, err := handler.Given(task, hidden); v != "s" || !ok || err != nil {
		t.Error(v, ok, err)
	}
	for _, name := range []string{"empty", "null"} {
		if v, ok, err := handler.Given(task, (flow.Input[*string]{Name: name})); v != nil || !ok || err != nil {
			t.Error(name, v, ok, err)
		}
	}
	if v, ok, err := handler.Given(task, right); v != "" || ok || err != nil {
		t.Error(v, ok, err)
	}
	fails := func(err error, category string, permanent bool) {
		t.Helper()
		out := handler.Classify(t.Context(), task, err)
		if string(out.Failure.Category) != category || out.Failure.Permanent != permanent {
			t.Errorf("%v: %+v", err, out.Failure)
		}
	}
	_, err = handler.Need(task, right)
	fails(err, causes.HandlerError, true)
	_, _, err = handler.Given(task, flow.Input[int]{Name: "left"})
	fails(err, causes.Decode, true)
	if !strings.Contains(err.Error(), "input left: decode a result into int: ") {
		t.Error(err)
	}
	for _, box := range []*sealed.Box{sealed.New(locked{}), nil} {
		_, _, err = handler.Given(newTask(tasks.Config{Claim: claim, Box: box}), hidden)
		fails(err, causes.Decode, false)
	}
}

// results is what children left.
type results map[string]string

func (r results) Upstreams(context.Context, flowfabric.ExecutionID) ([]engine.UpstreamOutcome, error) {
	return nil, nil
}

func (r results) ReadExecution(context.Context, flowfabric.ExecutionID) (engine.Snapshot, error) {
	return engine.Snapshot{}, nil
}

func (r results) CheckOthers(_ context.Context, _ flowfabric.ExecutionID,
	ids []flowfabric.ExecutionID) ([]engine.ChildOutcome, error) {
	out := make([]engine.ChildOutcome, len(ids))
	for i, id := range ids {
		if r[id.String()] == "purged" {
			return nil, flowfabric.ErrResultPurged
		}
		out[i] = engine.ChildOutcome{ID: id}
	}
	return out, nil
}

func (r results) ReadResult(_ context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, bool, error) {
	text, ok := r[fmt.Sprint(ids.UUID(id), attempt)]
	if text == "cut" {
		return nil, false, flowfabric.ErrTransport
	}
	return []byte(text), ok, nil
}

// What a child's result can be: of the attempt that succeeded, empty, not readable now or ever, or of a child that
// was not waited for.
func TestChildResults(t *testing.T) {
	id := mint.ID(2)
	step, stored := []string{}, results{}
	for _, x := range []struct {
		name, outcome string
		attempt       int
		result        string
	}{
		{"good", "s", 3, `"yes"`}, {"empty", "s", 0, ""}, {"cut", "s", 0, "cut"}, {"odd", "s", 0, `1`},
		{"late", "l", 1, `"late"`},
		{"cancelled", "c", -1, ""}, {"expired", "e", 0, ""},
	} {
		child := id.Child("w", x.name)
		attempt := fmt.Sprint(x.attempt)
		if x.attempt < 0 {
			attempt = ""
		}
		step = append(step, strings.Join([]string{ids.UUID(child).String(), x.outcome, attempt, x.name}, ","))
		stored[fmt.Sprint(ids.UUID(child), x.attempt)] = x.result
	}
	task := newTask(tasks.Config{Results: stored,
		Claim: &engine.Claim{Fence: flowfabric.Fence{Execution: id}, Input: []byte(`""`),
			Steps: map[string][]byte{engine.StepChildren + "w": []byte(strings.Join(step, "\x1f"))}}})
	out := handler.Bind(handler.Define[string, string]("k"),
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			set := flow.Children("w", flow.All())
			get := map[string]*flow.ChildNode[string]{}
			for _, name := range []string{"good", "empty", "cut", "odd", "late", "cancelled", "expired", "new"} {
				get[name] = flow.Child(set, name, work, 1)
			}
			if _, err := handler.ChildResult(ctx, task, get["good"]); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("before the wait: %v", err)
			}
			if err := task.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			for name, want := range map[string]struct {
				value     string
				err       error
				category  string
				permanent bool
			}{
				"good": {value: "yes"}, "empty": {}, "late": {value: "late"},
				"cut":       {err: flowfabric.ErrTransport, category: causes.HandlerError},
				"odd":       {category: causes.Decode, permanent: true},
				"cancelled": {err: flowfabric.ErrCancelled, category: causes.Child, permanent: true},
				"expired":   {err: flowfabric.ErrExpired, category: causes.Child, permanent: true},
				"new":       {err: flowfabric.ErrInvalidInput, category: causes.HandlerError, permanent: true},
			} {
				v, err := handler.ChildResult(ctx, task, get[name])
				if v != want.value || (err == nil) != (want.category == "") ||
					want.err != nil && !errors.Is(err, want.err) {
					t.Errorf("%s: %q, %v", name, v, err)
					continue
				}
				if err != nil {
					if f := handler.Classify(ctx, task, fmt.Errorf("wrapped: %w", err)).Failure; f.Category !=
						flowfabric.Category(want.category) || f.Permanent != want.permanent {
						t.Errorf("%s: %+v", name, f)
					}
				}
			}
			if get["good"].ID(task) != id.Child("w", "good") || get["good"].Name() != "good" {
				t.Error("ID or Name")
			}
			return "", nil
		}).Run(t.Context(), task)
	if out.Kind != codes.OutcomeComplete {
		t.Errorf("%+v", out)
	}
}

// What a wait asks for: children in an order in which edges lead from earlier ones, with their ids, in the parent's
// namespace, and in its trace. Mistakes in the set fail for good.
func TestWaitAsks(t *testing.T) {
	id := mint.ID(2)
	run := func(fn func(ctx context.Context, task *handler.Task) error) (handler.Outcome, tasks.Waits) {
		task, waits := handler.NewTask(tasks.Config{Route: engine.Route{Namespace: "shop"},
			Claim: &engine.Claim{Fence: flowfabric.Fence{Execution: id},
				Input: []byte(`""`), Tags: map[string]string{limits.TraceTags + "traceparent": "x"}}})
		return handler.Bind(handler.Define[string, string]("k"),
			func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				return "", fn(ctx, task)
			}).Run(t.Context(), task), waits
	}
	out, waits := run(func(ctx context.Context, task *handler.Task) error {
		set := flow.Children("w", flow.FirstSuccess(), flow.Leave())
		a := flow.Child(set, "a", work, 1)
		flow.Child(set, "b", work, 2, left.From(a))
		err := task.WaitChildren(ctx, set)
		if !handler.IsWait(err) {
			t.Error(err)
		}
		return err
	})
	q := waits.Children()
	if out.Kind != codes.OutcomeChildren || q == nil || q.Name != "w" || q.Mode != engine.WaitFirstSuccess ||
		!q.Leave || q.Until == nil || q.Until.Condition != waitwords.ChildrenCondition || len(q.Children) != 2 {
		t.Fatalf("%+v", out)
	}
	b := q.Children[1]
	if b.ID != id.Child("w", "b") || b.Namespace != "shop" || b.Creator != id.String() ||
		b.Tags["otel.traceparent"] != "x" ||
		fmt.Sprint(b.Edges) != fmt.Sprint([]engine.FlowEdge{{From: id.Child("w", "a"), Input: "left"}}) {
		t.Errorf("%+v", b)
	}
	for text, fill := range map[string]func(set *flow.ChildSet){
		"children w: option 0 is nil": func(*flow.ChildSet) {},
		"children w: node c: invalid_input: a value is not valid: there is another": func(set *flow.ChildSet) {
			flow.Child(set, "c", work, 1)
			flow.Child(set, "c", work, 1)
		},
		"children w: node d: invalid_input": func(set *flow.ChildSet) { flow.Child(set, "d", work, 1, flow.Quorum(1)) },
		"children w: fan_in_too_large": func(set *flow.ChildSet) {
			for i := range 1001 {
				flow.Child(set, fmt.Sprint(i), work, 1)
			}
		},
		"children w: node e: definition of kind": func(set *flow.ChildSet) { flow.Child(set, "e", bad, 1) },
	} {
		out, _ := run(func(ctx context.Context, task *handler.Task) error {
			set := flow.Children("w", nil)
			fill(set)
			return task.WaitChildren(ctx, set)
		})
		if !out.Failure.Permanent || !strings.Contains(strings.ReplaceAll(out.Err.Error(),
			"invalid_input: a value is not valid: option", "option"), text) {
			t.Errorf("%q: %v", text, out.Err)
		}
	}
}
