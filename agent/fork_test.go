package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// long is an agent of 50 answers, each of which but the last calls a tool. Calls are counted by execution.
type long struct {
	mu      sync.Mutex
	answers map[flowfabric.ExecutionID][]int
	tools   map[flowfabric.ExecutionID]int
	keys    map[string]bool
}

func (l *long) handle(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
	count := func(turn int, _ agent.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answers[task.ID()] = append(l.answers[task.ID()], turn)
	}
	model := &script{called: count}
	for i := range 49 {
		model.answers = append(model.answers, wants("look", fmt.Sprintf(`{"text":"%d"}`, i+1)))
		model.answers[i].Message.Parts = agent.Text(fmt.Sprintf("<%d of %s> ", i+1, task.AttemptType()))
	}
	model.answers = append(model.answers, says("end"))
	look := agent.NewTool("look", "looks", func(ctx context.Context, q query) (string, error) {
		call, _ := agent.CallFrom(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.tools[task.ID()]++
		l.keys[call.Key] = true
		return q.Text, nil
	})
	return agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{look}, Prompt: prompt, MaxTurns: 60})
}

// said is the text of the tokens that a reader has, read in one piece, and in two from every tenth position on.
func said(t *testing.T, x *client.Execution[agent.Result]) string {
	t.Helper()
	text := func(of *stream.Transcript) string {
		var b strings.Builder
		for _, f := range of.Frames() {
			if f.Type == agent.FrameToken {
				b.Write(f.Payload)
			}
		}
		return b.String()
	}
	n := 0
	whole, err := x.Transcript(t.Context())
	must.No(t, err)
	pieces := &stream.Transcript{}
	for e, err := range x.Tail(t.Context(), client.Stored()) {
		must.No(t, err)
		if pieces.Add(e); n%10 == 0 {
			both := &stream.Transcript{}
			for e, err := range x.Tail(t.Context(), client.Stored()) {
				must.No(t, err)
				if both.Add(e); both.Position() == pieces.Position() {
					break
				}
			}
			for e, err := range x.Tail(t.Context(), client.Stored(), client.From(both.Position())) {
				must.No(t, err)
				both.Add(e)
			}
			if text(both) != text(whole) {
				t.Errorf("from %s: %q, whole %q", both.Position(), text(both), text(whole))
			}
		}
		n++
	}
	if whole.Lost() > 0 {
		t.Errorf("%d frames are lost", whole.Lost())
	}
	return text(whole)
}

// A fork of a run of 50 answers at the 41st calls the model for the last ten alone, and pays for no more. Its readers
// see all 50, also once the run is purged.
func TestFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &long{answers: map[flowfabric.ExecutionID][]int{}, tools: map[flowfabric.ExecutionID]int{},
			keys: map[string]bool{}}
		purse := admission.Gate{Name: "purse", Limits: map[string]admission.Limit{"tokens": {Hard: 10_000}}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, l.handle))
		parent := fftest.Submit(w, chat, "go", fftest.Gates(purse))
		whole := parent.Wait()
		spent := whole.Used["purse"]["tokens"]
		ops := admin.New(w.Client())
		x := client.Attach(w.Client(), chat, parent.ID())
		ctx := t.Context()
		made, err := x.Fork(ctx, client.Fork{Step: "model 41"}, flowfabric.Reason("a cheaper hotel"))
		must.No(t, err)
		// answers and tools of 40 turns, and what the run left behind: 41 to 50, and their tools
		if made.Steps != 80 || len(made.Left) != 19 || made.Already {
			t.Errorf("%+v", made)
		}
		fork := client.Attach(w.Client(), chat, made.ID)
		r, err := fork.Result(t.Context())
		must.No(t, err)
		if r.Turns != 50 || r.Text != "end" || r.Usage.Total() != 500 || len(r.Messages) != len(whole.Result.Messages) {
			t.Errorf("%d turns, %q, %+v, %d messages", r.Turns, r.Text, r.Usage, len(r.Messages))
		}
		if got := fmt.Sprint(l.answers[made.ID]); got != "[41 42 43 44 45 46 47 48 49 50]" || l.tools[made.ID] != 9 {
			t.Errorf("the fork asked for %s and called %d tools", got, l.tools[made.ID])
		}
		if len(l.keys) != 49+9 {
			t.Errorf("%d keys of calls, those of the fork are others", len(l.keys))
		}
		gate, err := ops.GetGate(t.Context(), "purse")
		must.No(t, err)
		if now := gate.Used["tokens"]; spent != 500 || now != 600 {
			t.Errorf("the run spent %d, with the fork it is %d", spent, now)
		}
		var want strings.Builder
		for i := range 49 {
			kind := "initial"
			if i >= 40 {
				kind = "replay"
			}
			fmt.Fprintf(&want, "<%d of %s> ", i+1, kind)
		}
		want.WriteString("end")
		if got := said(t, fork); got != want.String() {
			t.Errorf("readers of the fork see\n%s\nwant\n%s", got, &want)
		}
		snapshot, err := fork.Get(t.Context())
		must.No(t, err)
		if snapshot.ForkOf.ID != parent.ID() || snapshot.ForkOf.Step != "model 41" || snapshot.Attempts != 2 {
			t.Errorf("%+v, %d attempts", snapshot.ForkOf, snapshot.Attempts)
		}
		must.No(t, ops.Purge(t.Context(), parent.ID(), 0))
		if _, err := x.Get(t.Context()); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Error(err)
		}
		if got := said(t, fork); got != want.String() {
			t.Errorf("after the purge they see\n%s", got)
		}
		talked, err := agent.ReadTranscript(t.Context(), w.Client(), made.ID, agent.TranscriptOptions{})
		must.No(t, err)
		if talked.Turns != 50 {
			t.Errorf("%d turns are read back", talked.Turns)
		}
	})
}

// forked is an agent with a tool, and one that people approve, and a fork of it that is made when it comes to a point.
type forked struct {
	point string
	once  sync.Once
	there chan struct{} // closed at the point
	done  chan struct{} // closed when the fork is made

	mu     sync.Mutex
	parent flowfabric.ExecutionID
	calls  map[string]int // of the fork
	result agent.Result
}

// gates are its channels, made where time is that of the run.
func (f *forked) gates() (there, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.there == nil {
		f.there, f.done = make(chan struct{}), make(chan struct{})
	}
	return f.there, f.done
}

// at is a point of the run: it goes on once the fork is made.
func (f *forked) at(ctx context.Context, task *handler.Task, point string) {
	f.mu.Lock()
	own := task.ID() == f.parent
	if !own {
		f.calls[point]++
	}
	f.mu.Unlock()
	if own && point == f.point {
		there, done := f.gates()
		f.once.Do(func() { close(there) })
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

// asks is whether the point needs a tool that people approve. Runs are many, so others go without.
func (f *forked) asks() bool { return f.point == "asked" || f.point == "tool 1.2 refund" }

func (f *forked) handle(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
	f.mu.Lock()
	if f.parent.IsZero() {
		f.parent = task.ID()
	}
	f.mu.Unlock()
	f.at(ctx, task, "before")
	did := func(ctx context.Context) {
		call, _ := agent.CallFrom(ctx)
		f.at(ctx, task, call.Step)
	}
	first := wants("search", `{"text":"a"}`)
	if f.asks() {
		first = wants("search", `{"text":"a"}`, "refund", `{"cents":5}`)
	}
	model := &script{answers: []agent.Response{first, says("done")}, called: func(turn int, _ agent.Request) {
		f.at(ctx, task, fmt.Sprint("model ", turn))
	}}
	tools := []agent.Tool{
		agent.NewTool("search", "looks things up", func(ctx context.Context, q query) (string, error) {
			did(ctx)
			return "about " + q.Text, nil
		}),
		agent.NewTool("refund", "pays back", func(ctx context.Context, in amount) (string, error) {
			did(ctx)
			return fmt.Sprintf("paid %d", in.Cents), nil
		}, agent.Needs(func(amount) agent.Decision { return agent.Decision{Ask: true} }))}
	r, err := agent.Run(ctx, task, agent.Config{Model: model, Tools: tools, Prompt: prompt})
	if err == nil {
		f.at(ctx, task, "end")
	}
	return r, err
}

// beside makes the fork, and waits for its end.
func (f *forked) beside(t *testing.T) func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
	return func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
		x := client.Attach(c, chat, id)
		there, done := f.gates()
		if f.point == "asked" {
			f.asked(ctx, x)
		}
		select {
		case <-there:
		case <-ctx.Done():
			return
		}
		made, err := x.Fork(ctx, client.Fork{Request: flowfabric.UUID{1}})
		if err != nil {
			t.Error(err)
		}
		close(done)
		r, err := client.Attach(c, chat, made.ID).Result(ctx)
		if err != nil {
			t.Errorf("%s: the fork: %v", f.point, err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.result = r
	}
}

// asked waits until people are asked.
func (f *forked) asked(ctx context.Context, x *client.Execution[agent.Result]) {
	for e, err := range x.Tail(ctx) {
		if err != nil || e.Kind == stream.TailSuspended {
			f.once.Do(func() { close(f.there) })
			return
		}
	}
}

// Wherever a run is when it is forked, and wherever the worker dies, the run ends as if there were no fork, and the
// fork ends right, without what was recorded when it was made being done again.
func TestForkCrashes(t *testing.T) {
	for point, has := range map[string][]string{ // what is recorded there for sure
		"before":          {},
		"model 1":         {},
		"tool 1.1 search": {"model 1"},
		"asked":           {"model 1", "tool 1.1 search"},
		"tool 1.2 refund": {"model 1", "tool 1.1 search"},
		"model 2":         {"model 1", "tool 1.1 search"},
		"end":             {"model 1", "tool 1.1 search", "model 2"},
	} {
		t.Run(point, func(t *testing.T) {
			var mu sync.Mutex
			var f *forked
			fftest.Crashes(t, chat,
				func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
					own := &forked{point: point, calls: map[string]int{}}
					fx.Beside = own.beside(t)
					mu.Lock()
					f = own
					mu.Unlock()
					if !own.asks() {
						return own.handle
					}
					wait := time.Duration(0)
					if point == "asked" {
						wait = 3 * time.Second
					}
					answer := fftest.Approve("approve 1.2 refund", suspend.Answer{Choice: "approve"}).After(wait)
					return fftest.Answered(own.handle, answer)
				}, "hello", func(r *fftest.Report[agent.Result]) {
					want := []string{"user: hello", `assistant:  search{"text":"a"}`, "tool search c1: about a",
						"assistant: done"}
					if f.asks() {
						want = []string{"user: hello", `assistant:  search{"text":"a"} refund{"cents":5}`,
							"tool search c1: about a", "tool refund c2: paid 5", "assistant: done"}
					}
					wantTalk(t, r.Result.Messages, want...)
					f.mu.Lock()
					defer f.mu.Unlock()
					wantTalk(t, f.result.Messages, want...)
					for _, step := range has {
						if f.calls[step] > 0 {
							t.Errorf("%s: the fork does %s again", r.Crash, step)
						}
					}
				})
		})
	}
}

var (
	half   = handler.Define[int, int]("half")
	halved = handler.Define[int, string]("halved")
)

// A child whose outcome is recorded is not made again by a fork, which reads its result where it is. One that the run
// waits for is made again, as a child of the fork.
func TestForkOfAParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		halves := 0
		slow := time.Duration(0)
		w := fftest.New(t, runtime.Config{}, handler.Bind(half, func(ctx context.Context, task *handler.Task,
			n int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			halves++
			return n / 2, nil
		}), handler.Bind(halved, func(ctx context.Context, task *handler.Task, n int) (string, error) {
			set := flow.Children("both")
			child := flow.Child(set, "one", half, n, flow.Streamed(), flowfabric.Delay(slow))
			if err := task.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			m, err := handler.ChildResult(ctx, task, child)
			if err != nil {
				return "", err
			}
			return handler.Step(ctx, task, "tell", func(context.Context) (string, error) { return fmt.Sprint(m), nil })
		}))
		ctx := t.Context()
		parent := fftest.Submit(w, halved, 8)
		parent.Wait()
		for _, step := range []string{"", "tell"} {
			made, err := client.Attach(w.Client(), halved, parent.ID()).Fork(ctx, client.Fork{Step: step})
			must.No(t, err)
			text, err := client.Attach(w.Client(), halved, made.ID).Result(ctx)
			if err != nil || text != "4" || halves != 1 {
				t.Errorf("before %q: %q, %v, %d children ran", step, text, err, halves)
			}
		}
		slow = time.Minute
		waits := fftest.Submit(w, halved, 20)
		waits.AwaitSuspension()
		made, err := client.Attach(w.Client(), halved, waits.ID()).Fork(ctx, client.Fork{})
		must.No(t, err)
		text, err := client.Attach(w.Client(), halved, made.ID).Result(ctx)
		if r := waits.Wait(); err != nil || text != "10" || r.Result != "10" || halves != 3 {
			t.Errorf("%q, %v, the run %q, %d children ran", text, err, r.Result, halves)
		}
		if len(made.Left) != 1 || made.Left[0] != "streamed: both" {
			t.Errorf("left behind: %q", made.Left)
		}
	})
}
