package handler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// outcomes is a step that keeps how one child ended.
func outcomes(id flowfabric.ExecutionID, node string) []byte {
	return []byte(ids.UUID(id).String() + ",s,2," + node)
}

// untilEnded is the suspension that ends with the children.
var untilEnded = &waitwords.Wanted{Name: "w", Reason: "waiting_for_children", Behaviour: "fail",
	Condition: waitwords.ChildrenCondition}

// What the error of a wait for children makes of a run, also beside what else a handler can ask for.
func TestChildrenOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		also func(error) error
		want string
	}{
		"alone":     {func(err error) error { return err }, codes.OutcomeChildren},
		"wrapped":   {func(err error) error { return fmt.Errorf("ask: %w", err) }, codes.OutcomeChildren},
		"joined":    {func(err error) error { return errors.Join(err, io.EOF) }, codes.OutcomeChildren},
		"permanent": {handler.Permanent, codes.OutcomeFail},
		"cancel": {func(err error) error { return errors.Join(err, handler.Cancel("enough")) },
			codes.OutcomeCancel},
		"text only": {func(err error) error { return errors.New(err.Error()) }, codes.OutcomeFail},
		"nothing":   {func(error) error { return nil }, codes.OutcomeFail},
	} {
		t.Run(name, func(t *testing.T) {
			out, waits := waitsOn(t, engine.Claim{}, nil, func(_ context.Context, task *handler.Task) (string, error) {
				err := handler.ChildrenOf(task).Want(engine.ChildWait{Name: "w", Mode: engine.WaitFirst},
					untilEnded)
				if !handler.IsWait(fmt.Errorf("x: %w", err)) || handler.IsWait(io.EOF) {
					t.Error("IsChildWait")
				}
				return "", c.also(err)
			})
			if out.Kind != c.want {
				t.Errorf("%s: %+v", out.Kind, out)
			}
			switch name {
			case "alone":
				if q := waits.Children(); q == nil || q.Name != "w" || q.Mode != engine.WaitFirst ||
					out.Kind != "wait_children" {
					t.Errorf("%+v", out)
				}
			case "nothing":
				if out.Failure.Category != causes.AwaitIgnored || !out.Failure.Permanent {
					t.Errorf("%+v", out.Failure)
				}
			case "text only":
				if !strings.Contains(out.Failure.Reason, "children w had asked to suspend") {
					t.Error(out.Failure.Reason)
				}
			}
		})
	}
}

// A claim's steps answer waits; those that a handler did not ask for are told by name, as steps are, and not as steps.
func TestChildrenAnswers(t *testing.T) {
	id, child := mint.ID(3), mint.ID(3)
	claim := engine.Claim{Fence: flowfabric.Fence{Execution: id}, Steps: map[string][]byte{
		engine.StepChildren + "a": outcomes(child, "x"), engine.StepChildren + "b": nil,
		engine.StepChildren + "bad": []byte("?"), "step": []byte(`1`),
	}}
	out := runOn(t, claim, nil, func(ctx context.Context, task *handler.Task) (string, error) {
		got, answered, err := handler.ChildrenOf(task).Ask(ctx, "a")
		if err != nil || !answered || len(got) != 1 ||
			got[0] != (engine.ChildOutcome{ID: child, Node: "x", Outcome: flowfabric.Completed, Attempt: 2}) {
			t.Errorf("%+v, %v, %v", got, answered, err)
		}
		if _, answered, err := handler.ChildrenOf(task).Ask(ctx, "new"); answered || err != nil {
			t.Error(answered, err)
		}
		if _, _, err := handler.ChildrenOf(task).Ask(ctx, "bad"); !errors.Is(err, flowfabric.ErrCorrupt) {
			t.Error(err)
		}
		for _, name := range []string{"a", "", strings.Repeat("x", 129), "a\n"} {
			if _, _, err := handler.ChildrenOf(task).Ask(ctx, name); !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if unused := task.UnusedSteps(); !slices.Equal(unused, []string{"children b", "step"}) {
			t.Errorf("unused %q", unused)
		}
		handler.ChildrenOf(task).Answered("new", got)
		return "", nil
	})
	if out.Kind != codes.OutcomeComplete {
		t.Errorf("%+v", out)
	}
}

// After the handler has returned nothing can be waited for; the next run may use the names again, and knows what was
// answered.
func TestChildrenOfPasses(t *testing.T) {
	logger, log := quiet()
	task := newTask(tasks.Config{Claim: &engine.Claim{Input: []byte(`"x"`)}, Logger: logger})
	n := 0
	bound := handler.Bind(handler.Define[string, string]("k"),
		func(ctx context.Context, t *handler.Task, _ string) (string, error) {
			n++
			_, answered, err := handler.ChildrenOf(t).Ask(ctx, "w")
			if err != nil || answered {
				return fmt.Sprint(answered), err
			}
			return "", handler.ChildrenOf(t).Want(engine.ChildWait{Name: "w"}, untilEnded)
		})
	if out := bound.Run(context.Background(), task); out.Kind != codes.OutcomeChildren {
		t.Errorf("%+v", out)
	}
	if _, _, err := handler.ChildrenOf(task).Ask(context.Background(), "w"); !errors.Is(err, denied.TaskConsumed) {
		t.Error(err)
	}
	handler.ChildrenOf(task).Answered("w", nil)
	if out := bound.Run(context.Background(), task); string(out.Result) != `"true"` || n != 2 {
		t.Errorf("%+v", out)
	}
	if text := log.String(); strings.Contains(text, "not used") {
		t.Error(text)
	}
}

func in(name string) flow.Input[[]byte] { return flow.Input[[]byte]{Name: name} }

// A member of a flow knows where it is and what it was given; others are in no flow.
func TestMember(t *testing.T) {
	alone := newTask(tasks.Config{})
	if _, ok, _ := handler.Given(alone, in("a")); ok || !alone.Flow().IsZero() || alone.Node() != "" ||
		len(alone.Inputs()) != 0 {
		t.Error("a task in no flow says it is in one")
	}
	id := flowfabric.FlowID(mint.ID(1))
	task := newTask(tasks.Config{Claim: &engine.Claim{Flow: id, Node: "n",
		Inputs: map[string][]byte{"b": []byte("1"), "a": nil},
		Tags:   map[string]string{limits.TraceTags + "traceparent": "x", "team.name": "y"}}})
	a, aok, _ := handler.Given(task, in("a"))
	b, bok, _ := handler.Given(task, in("b"))
	if task.Flow() != id || task.Node() != "n" || !slices.Equal(task.Inputs(), []string{"a", "b"}) || !aok || !bok ||
		a != nil || string(b) != "1" {
		t.Errorf("%v %q %q %q", task.Flow(), task.Inputs(), a, b)
	}
	own := map[string]string{"own.tag": "z"}
	if got := handler.ChildrenOf(task).Inherits(own); fmt.Sprint(got) != "map[otel.traceparent:x own.tag:z]" ||
		len(own) != 1 {
		t.Errorf("%v, %v", got, own)
	}
	if got := handler.ChildrenOf(task).Inherits(nil); fmt.Sprint(got) != "map[otel.traceparent:x]" {
		t.Error(got)
	}
	if got := handler.ChildrenOf(alone).Inherits(nil); got != nil {
		t.Error(got)
	}
	if _, err := handler.ChildrenOf(task).Read(t.Context(), mint.ID(1), 0); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
}
