package waits_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/waits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// task is a task, and what it knows of its waits.
type task struct {
	*handler.Task
	id  flowfabric.ExecutionID
	run *waits.Run
}

// newTask makes a task of one run with a key k1 and, behind it, k2.
func newTask(t *testing.T, cfg tasks.Config) task {
	t.Helper()
	if cfg.Claim == nil {
		cfg.Claim = &engine.Claim{}
	}
	if cfg.Claim.Fence.Execution.IsZero() {
		cfg.Claim.Fence.Execution = mint.ID(1)
	}
	if cfg.Keyring == nil {
		cfg.Keyring = keyring(t, "k1:"+secretA+",k2:"+secretB)
	}
	made, w := handler.NewTask(cfg)
	return task{made, cfg.Claim.Fence.Execution, w.Run()}
}

// told is a resumption as the server tells of it (lua/lib/suspension.lua).
func told(name, cause string, signals ...string) []byte {
	parts := []string{name, cause, uuid.NewString(), "1000", "", "", "", "", strconv.Itoa(len(signals))}
	for i, payload := range signals {
		s := strings.Join([]string{uuid.NewString(), uuid.NewString(), "approve", "go", "", "", "", "", "", "", "1000",
			"json", string(waitwords.EffectSatisfied), "", strconv.Itoa(i + 1), payload}, "\x1f")
		parts = append(parts, strconv.Itoa(len(s))+":"+s)
	}
	return []byte(strings.Join(parts, "\x1f"))
}

func answered(t *testing.T, name, cause string, signals ...string) *suspend.Result {
	t.Helper()
	r, err := engine.DecodeResume(told(name, cause, signals...))
	must.No(t, err)
	return &r
}

func TestAwaitAsksThenAnswers(t *testing.T) {
	x := newTask(t, tasks.Config{})
	value, err := handler.Await[bool](t.Context(), x.Task, "approve")
	w, ok := errors.AsType[*waitwords.Wanted](err)
	if value || !ok || w.Name != "approve" || x.run.Wanted() != "approve" || !handler.IsWait(err) {
		t.Fatalf("%t, %v, wanted %q", value, err, x.run.Wanted())
	}
	q, err := x.run.Suspension(w)
	if err != nil || q.Name != "approve" || len(q.Bindings) != 1 || q.Bindings[0].Key != "approve" ||
		q.Bindings[0].Pending || q.Bindings[0].Kid != "k1" || q.Behaviour != "fail" ||
		q.Reason != "waiting_for_signal" || q.Timeout != 0 || q.ID.IsZero() {
		t.Errorf("%+v, %v", q, err)
	}
	x = newTask(t, tasks.Config{Claim: &engine.Claim{Resume: answered(t, "approve", "signal", "true")}})
	if value, err = handler.Await[bool](t.Context(), x.Task, "approve"); err != nil || !value || x.run.Wanted() != "" {
		t.Errorf("%t, %v", value, err)
	}
}

// What the error of a wait is wrapped in does not matter; that it was lost does.
func TestAWaitWhoseErrorIsLost(t *testing.T) {
	x := newTask(t, tasks.Config{})
	_, _ = handler.Await[bool](t.Context(), x.Task, "approve")
	if x.run.Wanted() != "approve" {
		t.Error("nobody would notice")
	}
	x.run.Begin()
	if x.run.Wanted() != "" {
		t.Error("the next run begins with the wait of the one before")
	}
}

// Answers of earlier runs are kept as steps; the last one comes with the claim.
func TestAnswersOfEarlierPasses(t *testing.T) {
	x := newTask(t, tasks.Config{Claim: &engine.Claim{
		Steps: map[string][]byte{engine.StepAwait + "first": told("first", "signal", "1"), "mine": []byte("x"),
			engine.StepAwait + "torn": []byte("?")},
		Resume: answered(t, "second", "signal", "2"),
	}})
	for i, name := range []string{"first", "second"} {
		if n, err := handler.Await[int](t.Context(), x.Task, name); err != nil || n != i+1 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if _, err := handler.Await[int](t.Context(), x.Task, "torn"); !errors.Is(err, denied.Reply) {
		t.Errorf("an answer that cannot be read: %v", err)
	}
	if _, err := handler.Await[int](t.Context(), x.Task, "third"); !handler.IsWait(err) {
		t.Errorf("the next one: %v", err)
	}
	if got := x.run.Unused(); len(got) != 0 {
		t.Errorf("unused: %v", got)
	}
}

// When signals had come early, the next run runs under the same hold: it must know this answer and those before.
func TestAnswersUnderTheSameHold(t *testing.T) {
	x := newTask(t, tasks.Config{Claim: &engine.Claim{Resume: answered(t, "a", "signal", "1")}})
	for i, name := range []string{"b", "c"} {
		x.run.Resumed(*answered(t, name, "already_satisfied", strconv.Itoa(i+2)))
	}
	x.run.Begin()
	for i, name := range []string{"a", "b", "c"} {
		if n, err := handler.Await[int](t.Context(), x.Task, name); err != nil || n != i+1 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestNamesAreUsedOnceInAPass(t *testing.T) {
	x := newTask(t, tasks.Config{Claim: &engine.Claim{Resume: answered(t, "a", "signal", "true")}})
	for run := range 2 {
		if _, err := handler.Await[bool](t.Context(), x.Task, "a"); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		if _, err := handler.Await[bool](t.Context(), x.Task, "a"); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), "wait a was already used in this run") {
			t.Errorf("run %d, again: %v", run, err)
		}
		x.run.Begin()
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	x := newTask(t, tasks.Config{})
	for _, name := range []string{"", strings.Repeat("n", 129), "é", "a\nb", "a\x7f"} {
		if _, err := handler.Await[bool](t.Context(), x.Task, name); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			handler.IsWait(err) {
			t.Errorf("Await(%q): %v", name, err)
		}
		if _, err := x.Pending(t.Context(), name, time.Hour); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("Pending(%q): %v", name, err)
		}
	}
	for _, life := range []time.Duration{0, -1, time.Second - 1, limits.MaxWaitpointLife + 1} {
		if _, err := x.Pending(t.Context(), "a", life); !errors.Is(err, flowfabric.ErrInvalidInput) ||
			!strings.Contains(err.Error(), "want 1s..168h0m0s") {
			t.Errorf("Pending for %v: %v", life, err)
		}
	}
	if _, err := handler.Await[bool](t.Context(), x.Task, "bad options", suspend.Within(-1)); !errors.Is(err,
		flowfabric.ErrInvalidInput) || x.run.Wanted() != "" {
		t.Errorf("%v; wanted %q", err, x.run.Wanted())
	}
}

func TestWaitsInsideAStep(t *testing.T) {
	x := newTask(t, tasks.Config{Claim: &engine.Claim{Resume: answered(t, "a", "signal", "true")}})
	var wait, pending error
	_, err := handler.Step(t.Context(), x.Task, "send", func(ctx context.Context) (bool, error) {
		_, wait = handler.Await[bool](ctx, x.Task, "a")
		_, pending = x.Pending(ctx, "b", time.Hour)
		return true, nil
	})
	must.No(t, err)
	for what, err := range map[string]error{"wait a": wait, "waitpoint b": pending} {
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), what+" is inside step send") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWaitsAfterTheHandlerReturned(t *testing.T) {
	x := newTask(t, tasks.Config{})
	x.run.End()
	_, wait := handler.Await[bool](t.Context(), x.Task, "a")
	_, pending := x.Pending(t.Context(), "b", time.Hour)
	if !errors.Is(wait, denied.TaskConsumed) || !errors.Is(pending, denied.TaskConsumed) {
		t.Errorf("%v, %v", wait, pending)
	}
	x.run.Begin()
	if _, err := handler.Await[bool](t.Context(), x.Task, "a"); !handler.IsWait(err) {
		t.Errorf("in the next run: %v", err)
	}
}

// A context that has ended must not suspend what is being cancelled; an answer that is there may still be read.
func TestWaitsOfAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(flowfabric.ErrDraining)
	x := newTask(t, tasks.Config{Claim: &engine.Claim{Resume: answered(t, "a", "signal", "true")}})
	if ok, err := handler.Await[bool](ctx, x.Task, "a"); err != nil || !ok {
		t.Errorf("%t, %v", ok, err)
	}
	if _, err := handler.Await[bool](ctx, x.Task, "b"); !errors.Is(err, flowfabric.ErrDraining) {
		t.Error(err)
	}
	if _, err := x.Pending(ctx, "c", time.Hour); !errors.Is(err, flowfabric.ErrDraining) {
		t.Error(err)
	}
}

// What else may end a wait.
func TestAnswersWithoutASignal(t *testing.T) {
	resumed := func(cause string, signals ...string) task {
		r := answered(t, "a", cause, signals...)
		r.By, r.Reason = "anna", "waited long enough"
		return newTask(t, tasks.Config{Claim: &engine.Claim{Resume: r}})
	}
	if _, err := handler.Await[bool](t.Context(), resumed("operator").Task, "a"); !errors.Is(err,
		flowfabric.ErrNoSignal) ||
		!strings.Contains(err.Error(), `by anna: waited long enough`) {
		t.Errorf("operator: %v", err)
	}
	if r, err := resumed("operator").Wait(t.Context(), "a", suspend.Operator()); err != nil ||
		r.By != "anna" || r.Cause != "operator" {
		t.Errorf("operator: %+v, %v", r, err)
	}
	if _, err := handler.Await[bool](t.Context(), resumed("timeout").Task, "a"); !errors.Is(err,
		flowfabric.ErrWaitTimeout) || errors.Is(err, flowfabric.ErrNoSignal) {
		t.Errorf("timeout: %v", err)
	}
	if r, ok := resumed("timeout").Resumed(); !ok || r.Cause != "timeout" {
		t.Errorf("timeout, told: %+v, %t", r, ok)
	}
	if _, ok := newTask(t, tasks.Config{}).Resumed(); ok {
		t.Error("it was never suspended")
	}
	if _, err := handler.Await[bool](t.Context(), resumed("signal", `"yes"`).Task, "a"); !errors.Is(err,
		flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "does not decode into bool") {
		t.Errorf("another type: %v", err)
	}
}

// opener stores pending waitpoints as a server would, and answers from replies first.
type opener struct {
	replies []error
	asked   []engine.Minted
	kept    []suspend.Waitpoint // what the store knows
	reads   int
	lost    error // of a read
	closes  []flowfabric.UUID

	expected []engine.Expectation
}

func (o *opener) ReadSuspension(context.Context, flowfabric.ExecutionID) (suspend.Record, error) {
	o.reads++
	return suspend.Record{Waitpoints: o.kept}, o.lost
}

func (o *opener) CreatePendingWaitpoint(_ context.Context, _ flowfabric.Fence, name string, m engine.Minted,
	life time.Duration) (engine.Opened, error) {
	o.asked = append(o.asked, m)
	if len(o.replies) > 0 {
		err := o.replies[0]
		o.replies = o.replies[1:]
		if err != nil {
			return engine.Opened{}, err
		}
	}
	w := engine.Opened{ID: m.ID, Key: m.Key, Kid: m.Kid, Nonce: m.Nonce}
	if m.Event.Text != "" {
		w.Event, w.Wanted = subjectID(m.Event.Text), true
	}
	return w, nil
}

func TestPendingIsOpenedOnce(t *testing.T) {
	o := &opener{}
	x := newTask(t, tasks.Config{Waitpoints: o})
	one, err := x.Pending(t.Context(), "approve", time.Hour)
	if err != nil || one.Execution() != x.id || one.Digest() != o.asked[0].Digest {
		t.Fatalf("%v, %v", one, err)
	}
	for range 2 {
		if two, err := x.Pending(t.Context(), "approve", time.Hour); err != nil || two != one {
			t.Errorf("again: %v, %v", two, err)
		}
		x.run.Begin()
	}
	if other, err := x.Pending(t.Context(), "other", time.Hour); err != nil || other == one ||
		len(o.asked) != 2 {
		t.Errorf("another key: %v, %v, %d calls", other, err, len(o.asked))
	}
	_, err = handler.Await[bool](t.Context(), x.Task, "approve")
	w, _ := errors.AsType[*waitwords.Wanted](err)
	q, err := x.run.Suspension(w)
	if err != nil || len(q.Bindings) != 1 || !q.Bindings[0].Pending || q.Bindings[0].ID != one.Waitpoint() ||
		q.Bindings[0].Digest != "" {
		t.Errorf("the wait does not use it: %+v, %v", q.Bindings, err)
	}
}

// The next process finds the waitpoint in the steps of its claim and makes the same token.
func TestPendingIsKeptAcrossAttempts(t *testing.T) {
	o := &opener{}
	first := newTask(t, tasks.Config{Waitpoints: o})
	one, err := first.Pending(t.Context(), "approve", time.Hour)
	must.No(t, err)
	w := o.asked[0]
	kept := strings.Join([]string{w.ID.String(), w.Kid, w.Nonce, "1000", "approve"}, " ")
	o = &opener{}
	claim := &engine.Claim{Fence: flowfabric.Fence{Execution: first.id},
		Steps: map[string][]byte{engine.StepWaitpoint + "approve": []byte(kept)}}
	second := newTask(t, tasks.Config{Waitpoints: o, Claim: claim})
	if got := second.run.Unused(); !slices.Equal(got, []string{"waitpoint approve"}) {
		t.Errorf("unused: %v", got)
	}
	two, err := second.Pending(t.Context(), "approve", time.Hour)
	if err != nil || two != one || len(o.asked) != 0 || len(second.run.Unused()) != 0 {
		t.Errorf("%v, %v; asked %v, unused %v", two, err, o.asked, second.run.Unused())
	}
	third := newTask(t, tasks.Config{Claim: claim, Keyring: keyring(t, "k9:"+secretB)})
	if _, err := third.Pending(t.Context(), "approve", time.Hour); !errors.Is(err,
		flowfabric.ErrNoTokenKeys) || !strings.Contains(err.Error(), `signed with kid "k1"`) {
		t.Errorf("without its key: %v", err)
	}
	claim.Steps[engine.StepWaitpoint+"approve"] = []byte("torn")
	if _, err := newTask(t, tasks.Config{Waitpoints: o, Claim: claim}).Pending(t.Context(), "approve",
		time.Hour); err != nil || len(o.asked) != 1 {
		t.Errorf("a record that cannot be read: %v; the server decides, asked %d times", err, len(o.asked))
	}
}

// The partition says which key is in use; it may be rotated again while a waitpoint is made.
func TestPendingLearnsTheKeyInUse(t *testing.T) {
	stale := func(kid string) error { return denied.New("fake", "kid_not_current", kid) }
	for what, x := range map[string]struct {
		replies []error
		want    error
		kids    string
	}{
		"first try":     {nil, nil, "k1"},
		"second try":    {[]error{stale("k2")}, nil, "k1 k2"},
		"changes again": {[]error{stale("k2"), stale("k1")}, nil, "k1 k2 k1"},
		"for ever": {[]error{stale("k2"), stale("k1"), stale("k2"), stale("k1")}, denied.KidNotCurrent,
			"k1 k2 k1 k2"},
		"a key not ours":  {[]error{stale("k9")}, denied.KidNotCurrent, "k1"},
		"another refusal": {[]error{denied.New("fake", "waitpoint_limit_exceeded")}, denied.WaitpointLimit, "k1"},
		"another holder":  {[]error{flowfabric.ErrLeaseLost}, flowfabric.ErrLeaseLost, "k1"},
		"no connection":   {[]error{flowfabric.ErrTransport}, flowfabric.ErrTransport, "k1"},
	} {
		o := &opener{replies: x.replies}
		var told error
		task := newTask(t, tasks.Config{Waitpoints: o, Cancel: func(cause error) { told = cause }})
		token, err := task.Pending(t.Context(), "approve", time.Hour)
		var kids []string
		for _, m := range o.asked {
			kids = append(kids, m.Kid)
		}
		if !errors.Is(err, x.want) || strings.Join(kids, " ") != x.kids || (err == nil) == token.IsZero() {
			t.Errorf("%s: %v, %v, signed with %v", what, token, err, kids)
		}
		if errors.Is(err, flowfabric.ErrLeaseLost) != (told != nil) {
			t.Errorf("%s: the handler was told %v of %v", what, told, err)
		}
	}
}

func TestRemint(t *testing.T) {
	ring := keyring(t, "k1:"+secretA+",k2:"+secretB)
	x := newTask(t, tasks.Config{Waitpoints: &opener{}, Keyring: ring})
	if _, err := x.Pending(t.Context(), "early", time.Hour); err != nil {
		t.Fatal(err)
	}
	_, err := x.Wait(t.Context(), "both", suspend.AllOf(suspend.Signal("early"), suspend.Signal("late")))
	w, _ := errors.AsType[*waitwords.Wanted](err)
	q, err := x.run.Suspension(w)
	must.No(t, err)
	before := slices.Clone(q.Bindings)
	ring.Use(x.id.Partition(), "k2")
	must.No(t, x.run.Remint(&q))
	if q.Bindings[0] != before[0] || q.Bindings[1].Kid != "k2" || q.Bindings[1].Digest == before[1].Digest ||
		q.Bindings[1].Key != "late" {
		t.Errorf("%+v, then %+v", before, q.Bindings)
	}
}

// A handler that changed between two runs leaves answers that nobody asks for.
func TestUnused(t *testing.T) {
	x := newTask(t, tasks.Config{Claim: &engine.Claim{
		Steps: map[string][]byte{engine.StepAwait + "old": told("old", "signal", "1"),
			engine.StepAwait + "older": told("older", "signal", "1")},
		Resume: answered(t, "new", "signal", "1"),
	}})
	if got := x.run.Unused(); !slices.Equal(got, []string{"wait new", "wait old", "wait older"}) {
		t.Errorf("%v", got)
	}
	_, _ = handler.Await[int](t.Context(), x.Task, "old")
	_, _ = handler.Await[int](t.Context(), x.Task, "new")
	if got := x.run.Unused(); !slices.Equal(got, []string{"wait older"}) {
		t.Errorf("%v", got)
	}
}

// Without a key a handler can still wait for an operator, but for no signal.
func TestWaitsWithoutKeys(t *testing.T) {
	_, made := handler.NewTask(tasks.Config{})
	run := made.Run()
	if _, err := run.Suspension(handler.On(suspend.Operator()).(*waitwords.Wanted)); err != nil {
		t.Error(err)
	}
	if _, err := run.Suspension(handler.On(suspend.Signal("a")).(*waitwords.Wanted)); !errors.Is(err,
		flowfabric.ErrNoTokenKeys) {
		t.Error(err)
	}
}

// Named narrows Await; anywhere else it would be ignored.
func TestNamedIsForAwait(t *testing.T) {
	if _, err := newTask(t, tasks.Config{}).Wait(t.Context(), "a", suspend.Signal("a"),
		suspend.Named("go")); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if err := handler.On(suspend.Signal("a"), suspend.Named("go")); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	_, err := handler.Await[bool](t.Context(), newTask(t, tasks.Config{}).Task, "a", suspend.Named("go"))
	if w, ok := errors.AsType[*waitwords.Wanted](err); !ok || w.Condition != "L\x1f1\x1f1\x1fgo" {
		t.Errorf("%v", err)
	}
}

// The token of a waitpoint that is closed is needed no more, so its key may be gone, whatever the wait that closed it
// was called; as long as it is open it may not, whatever was answered.
func TestPendingWithoutItsKey(t *testing.T) {
	kept := func(id flowfabric.UUID, key string) []byte {
		return []byte(id.String() + " gone " + strings.Repeat("0", 32) + " 9000000000000 " + key)
	}
	open, closed, forgotten := mint.UUID(), mint.UUID(), mint.UUID()
	o := &opener{kept: []suspend.Waitpoint{{ID: open, State: "active"}, {ID: closed, State: "closed"}}}
	claim := &engine.Claim{Steps: map[string][]byte{
		engine.StepWaitpoint + "open": kept(open, "open"), engine.StepWaitpoint + "closed": kept(closed, "closed"),
		engine.StepWaitpoint + "forgotten": kept(forgotten, "forgotten"),
		engine.StepAwait + "open":          told("open", "signal", "true"), // a wait of that name, on another waitpoint
	}}
	x := newTask(t, tasks.Config{Claim: claim, Waitpoints: o})
	o.lost = flowfabric.ErrTransport
	if token, err := x.Pending(t.Context(), "closed", time.Hour); !errors.Is(err, flowfabric.ErrTransport) ||
		!token.IsZero() {
		t.Errorf("nobody knows whether it is open: %v, %v", token, err)
	}
	o.lost, o.reads = nil, 0
	for _, key := range []string{"closed", "forgotten"} {
		if token, err := x.Pending(t.Context(), key, time.Hour); err != nil || !token.IsZero() {
			t.Errorf("%s: %v, %v", key, token, err)
		}
	}
	if o.reads != 1 {
		t.Errorf("the store was asked %d times, want once for all that is closed", o.reads)
	}
	if token, err := x.Pending(t.Context(), "open", time.Hour); !errors.Is(err, flowfabric.ErrNoTokenKeys) ||
		!token.IsZero() {
		t.Errorf("open: %v, %v", token, err)
	}
	if _, err := newTask(t, tasks.Config{Claim: claim}).Pending(t.Context(), "open", time.Hour); !errors.Is(err,
		flowfabric.ErrNoTokenKeys) {
		t.Errorf("without a store: %v", err)
	}
}

func TestAskAsksThenAnswers(t *testing.T) {
	q := suspend.Question{Title: "Ship it?", Choices: []suspend.Choice{{Name: "go"}, {Name: "stop", Label: "Stop"}}}
	x := newTask(t, tasks.Config{})
	_, err := x.Ask(t.Context(), "ship", q)
	w, ok := errors.AsType[*waitwords.Wanted](err)
	if !ok || w.Reason != "waiting_for_approval" || w.Condition != "L\x1f1\x1f1\x1fgo\x1fstop" {
		t.Fatalf("%v %+v", err, w)
	}
	sent, err := x.run.Suspension(w)
	if err != nil || sent.Question != `{"title":"Ship it?","choices":[{"name":"go"},{"name":"stop","label":"Stop"}]}` ||
		sent.Bindings[0].Key != "ship" {
		t.Errorf("%+v, %v", sent, err)
	}
	for payload, want := range map[string]suspend.Answer{
		// the name of the signal decides
		`{"choice":"stop","comment":"later","by":"ann"}`: {Choice: "go", Comment: "later", By: "ann"},
		`null`: {Choice: "go"}, `[1]`: {Choice: "go"},
	} {
		r := answered(t, "ship", "signal", payload)
		r.Signals[0].Name = "go"
		x := newTask(t, tasks.Config{Claim: &engine.Claim{Resume: r}})
		if a, err := x.Ask(t.Context(), "ship", q); err != nil || a.Choice != want.Choice ||
			a.Comment != want.Comment || want.By != "" && a.By != want.By {
			t.Errorf("%s: %+v, %v", payload, a, err)
		}
	}
	resumed := newTask(t, tasks.Config{Claim: &engine.Claim{Resume: answered(t, "ship", "operator")}})
	if _, err := resumed.Ask(t.Context(), "ship", q); !errors.Is(err, flowfabric.ErrNoSignal) {
		t.Errorf("%v", err)
	}
	for _, bad := range []func() error{
		func() error {
			_, err := newTask(t, tasks.Config{}).Ask(t.Context(), "a", suspend.Question{})
			return err
		},
		func() error {
			_, err := newTask(t, tasks.Config{}).Ask(t.Context(), "a", q, suspend.Named("x"))
			return err
		},
	} {
		if err := bad(); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%v", err)
		}
	}
}

// A waitpoint is closed once, and later runs know by its step that it was.
func TestClose(t *testing.T) {
	o := &opener{}
	x := newTask(t, tasks.Config{Waitpoints: o})
	if err := x.CloseWaitpoint(t.Context(), "a"); !errors.Is(err, flowfabric.ErrInvalidInput) || len(o.closes) != 0 {
		t.Errorf("before it was opened: %v", err)
	}
	if _, err := x.Pending(t.Context(), "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	o.lost = errors.New("away")
	if err := x.CloseWaitpoint(t.Context(), "a"); !errors.Is(err, o.lost) {
		t.Errorf("refused: %v", err)
	}
	o.lost = nil
	for range 2 {
		if err := x.CloseWaitpoint(t.Context(), "a"); err != nil || len(o.closes) != 2 || o.closes[1] != o.asked[0].ID {
			t.Errorf("%v, closed %v of %v", err, o.closes, o.asked)
		}
		x.run.Begin()
	}
	step := []byte(o.asked[0].ID.String() + " k nonce 0 a")
	later := newTask(t, tasks.Config{Waitpoints: o,
		Claim: &engine.Claim{Steps: map[string][]byte{engine.StepWaitpoint + "a": step}}})
	if err := later.CloseWaitpoint(t.Context(), "a"); err != nil || len(o.closes) != 2 {
		t.Errorf("in a later run: %v, closed %v", err, o.closes)
	}
}
