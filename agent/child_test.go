package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Kinds of children: an agent, and one that is none.
var (
	helper = handler.Define[query, agent.Result]("helper", flowfabric.Retries(0))
	price  = handler.Define[amount, int]("price", flowfabric.Retries(0))
)

var (
	help = agent.Child("help", "asks a helper", helper,
		agent.ChildOptions(flow.Share(map[string]int64{"tokens": 100})))
	rate = agent.Child("rate", "says what it costs", price)
)

// helping is an agent below another one: a search, a refund that is approved, and an answer.
func helping(fx *fftest.Effects) func(context.Context, *handler.Task, query) (agent.Result, error) {
	model := &script{
		answers: []agent.Response{wants("search", `{"text":"a"}`, "refund", `{"cents":5}`), says("it is done")},
		called:  func(turn int, _ agent.Request) { fx.Did(fmt.Sprint("sub model ", turn)) },
	}
	return fftest.Answered(func(ctx context.Context, t *handler.Task, in query) (agent.Result, error) {
		return agent.Run(ctx, t, agent.Config{Name: "sub", Model: model, Tools: noted(fx), Prompt: in.Text})
	}, fftest.Approve("sub approve 1.2 refund", suspend.Answer{Choice: "approve"}, flowfabric.By("anna")))
}

// Wherever the worker dies around an agent that has two children in one turn, one of which is an agent with a tool and
// a question, no recorded call of a model or a tool is made again, no child is made twice, and what all of them spent
// lies between what was recorded and what was done.
func TestCrashesOfChildren(t *testing.T) {
	purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1000}}}
	var mu sync.Mutex
	var fx *fftest.Effects
	made := map[flowfabric.ExecutionID]string{}
	note := func(t *handler.Task) {
		mu.Lock()
		defer mu.Unlock()
		made[t.ID()] = t.Node()
	}
	crashes := fftest.Crashes(t, chat,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			fx = next
			mu.Unlock()
			model := &script{
				answers: []agent.Response{wants("help", `{"text":"pay"}`, "search", `{"text":"b"}`, "rate",
					`{"cents":7}`, "rate", `{"cents":"no"}`), says("all done now")},
				called: func(turn int, _ agent.Request) { next.Did(fmt.Sprint("model ", turn)) },
			}
			return running(agent.Config{Model: model, Tools: append(noted(next), help, rate)})
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Err != nil || r.Result.Usage.Total() != 20 {
				t.Errorf("%s: %+v, %v", r.Crash, r.Result, r.Err)
				return
			}
			wantTalk(t, r.Result.Messages, "user: hello",
				`assistant:  help{"text":"pay"} search{"text":"b"} rate{"cents":7} rate{"cents":"no"}`,
				"tool help c1: it is done", "tool search c2: about b", "tool rate c3: 14",
				"failed tool rate c4: "+r.Result.Messages[5].Text(), "assistant: all done now")
			calls := int64(0)
			for _, step := range []string{"model 1", "model 2", "sub model 1", "sub model 2"} {
				calls += int64(fx.Count(step))
			}
			if used := r.Used["purse"]["tokens"]; used < 40 || used > 10*calls {
				t.Errorf("%s: %d tokens are used, 40 recorded, and models were called %d times", r.Crash, used, calls)
			}
		}, fftest.Gates(purse), fftest.Also(func(fx *fftest.Effects) []handler.Binding {
			helps := helping(fx)
			return []handler.Binding{
				handler.Bind(helper, func(ctx context.Context, t *handler.Task, in query) (agent.Result, error) {
					note(t)
					return helps(ctx, t, in)
				}),
				handler.Bind(price, func(ctx context.Context, t *handler.Task, in amount) (int, error) {
					note(t)
					return handler.Step(ctx, t, "price", func(context.Context) (int, error) {
						fx.Did("price")
						return 2 * in.Cents, nil
					})
				}),
			}
		}))
	if crashes < 60 {
		t.Errorf("%d crashes", crashes)
	}
	if names := slices.Sorted(maps.Values(made)); !slices.Equal(names, []string{"help 1.1", "rate 1.3"}) {
		t.Errorf("children %q in all runs", names)
	}
}

// family runs an agent that calls tools in one turn, with handlers for what they make.
func family(t *testing.T, cfg agent.Config, calls []string, kin ...handler.Binding) *fftest.Report[agent.Result] {
	t.Helper()
	cfg.Model = &script{answers: []agent.Response{wants(calls...), says("end")}}
	return fftest.Run(t, chat, running(cfg), "hello",
		fftest.Also(func(*fftest.Effects) []handler.Binding { return kin }))
}

// pricing prices by a function.
func pricing(fn func(context.Context, *handler.Task, amount) (int, error)) handler.Binding {
	return handler.Bind(price, fn)
}

// However a child ends, the model is told in words, or the run ends if the tool says so.
func TestEndsOfChildren(t *testing.T) {
	broken := handler.Category("broken", errors.New("no coins"))
	for want, tc := range map[string]struct {
		opts []agent.ToolOption
		kin  []handler.Binding
	}{
		"8": {kin: []handler.Binding{pricing(func(_ context.Context, _ *handler.Task, in amount) (int, error) {
			return 2 * in.Cents, nil
		})}},
		"the call failed (broken): no coins": {
			kin: []handler.Binding{pricing(func(context.Context, *handler.Task, amount) (int, error) {
				return 0, broken
			})}},
		"the call was cancelled: not today": {
			kin: []handler.Binding{pricing(func(context.Context, *handler.Task, amount) (int, error) {
				return 0, handler.Cancel("not today")
			})}},
		// a kind that nobody serves
		"the call expired (execution_deadline)": {
			opts: []agent.ToolOption{agent.ChildOptions(flowfabric.Deadline(48 * time.Hour))}},
	} {
		r := family(t, agent.Config{Tools: []agent.Tool{agent.Child("rate", "", price, tc.opts...)}},
			[]string{"rate", `{"cents":4}`}, tc.kin...)
		if m := result(t, r); m.Text() != want || m.Failed != (want != "8") || m.Call != "c1" {
			t.Errorf("%+v, want %s", m, want)
		}
		r.Want(fftest.Want{Steps: []string{"model 1", "streamed: children 1", "tool 1.1 rate", "model 2"}})
	}
	r := family(t, agent.Config{Tools: []agent.Tool{agent.Child("rate", "", price, agent.EndsRun())}},
		[]string{"rate", `{"cents":4}`}, pricing(func(context.Context, *handler.Task, amount) (int, error) {
			return 0, broken
		}))
	if r.State != flowfabric.Failed || r.Snapshot.Failure.Category != "child_failed" || len(r.Attempts) != 1 {
		t.Errorf("%v, %+v", r.State, r.Snapshot.Failure)
	}
}

// The arguments are checked as those of functions; an input that is no object is a member of one, and what the child
// returns is what a function would.
func TestInputsOfChildren(t *testing.T) {
	shout := handler.Define[string, []agent.Part]("shout", flowfabric.Retries(0))
	asked := map[string]bool{}
	tool := agent.Child("shout", "", shout, agent.Needs(func(text string) agent.Decision {
		asked[text] = true
		return agent.Decision{Ask: true, Title: "Shout " + text + "?"}
	}))
	r := fftest.Run(t, chat, fftest.Answered(running(agent.Config{Tools: []agent.Tool{tool, rate}, Model: &script{
		answers: []agent.Response{wants("shout", `{"input":"ho"}`, "shout", `"ho"`, "rate", `{"cents":"x"}`, "shout",
			`{"input":"no"}`), says("end")}}}),
		fftest.Approve("approve 1.1 shout", suspend.Answer{Choice: "approve"}),
		fftest.Approve("approve 1.4 shout", suspend.Answer{Choice: "reject", By: "anna"})), "hello",
		fftest.Also(func(*fftest.Effects) []handler.Binding {
			return []handler.Binding{handler.Bind(shout,
				func(_ context.Context, _ *handler.Task, in string) ([]agent.Part, error) {
					return agent.Text(strings.ToUpper(in)), nil
				})}
		}))
	if m := result(t, r); m.Text() != "HO" || m.Failed {
		t.Errorf("%+v", m)
	}
	for i, want := range []string{"do not fit the schema", "do not fit the schema", "rejected by anna"} {
		if m := r.Result.Messages[3+i]; !m.Failed || !strings.Contains(m.Text(), want) {
			t.Errorf("%+v, want %s", m, want)
		}
	}
	r.Want(fftest.Want{Waits: []string{"approve 1", "children 1"}})
	if !asked["ho"] || !asked["no"] || len(asked) != 2 {
		t.Errorf("asked about %v", asked)
	}
}

// A child's namespace, creator and gates are its parent's, its deadline no later; limits of keys and tags are its own,
// and options win.
func TestWhatChildrenInherit(t *testing.T) {
	gates := []admission.Gate{{Name: "own"}, {Name: "purse"}, {Name: "other"}}
	kind := handler.Define[amount, int]("priced", flowfabric.Retries(0), flowfabric.Gates("own"))
	for name, opts := range map[string][]flow.NodeOption{"default": nil, "options": {flowfabric.Gates("other"),
		flowfabric.Lane("slow"), flowfabric.Tags(map[string]string{"app.team": "x"}),
		flowfabric.Deadline(time.Minute)}} {
		synctest.Test(t, func(t *testing.T) {
			var made flowfabric.ExecutionID
			var tags map[string]string
			model := &script{answers: []agent.Response{wants("rate", `{"cents":1}`), says("end")}}
			tool := agent.Child("rate", "", kind, agent.ChildOptions(opts...))
			w := fftest.New(t, runtime.Config{Namespace: "acme", Lanes: []string{"default", "slow"}},
				handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{tool}})),
				handler.Bind(kind, func(_ context.Context, task *handler.Task, in amount) (int, error) {
					made, tags = task.ID(), task.Tags()
					return in.Cents, nil
				}))
			for _, g := range gates {
				fftest.Submit(w, lone, 0, fftest.Gates(g), flowfabric.Delay(1000*time.Hour))
			}
			x := fftest.Submit(w, chat, "hello", flowfabric.Gates("purse"), flowfabric.Deadline(time.Hour),
				flowfabric.Tags(map[string]string{"app.of": "parent"}),
				flowfabric.LimitKey("k", flowfabric.Limit{Concurrency: 1}))
			r := x.Wait()
			if r.Err != nil || made.IsZero() {
				t.Fatalf("%v %+v", r.Err, r.Result)
			}
			s, err := w.Client().Execution(made).Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want, deadline := []string{"own", "purse"}, r.Snapshot.DeadlineAt
			if name == "options" {
				want, deadline = []string{"other"}, s.CreatedAt.Add(time.Minute)
				if tags["app.team"] != "x" || len(tags) != 1 || s.Lane != "slow" {
					t.Errorf("tags %v, %+v", tags, s.Route)
				}
			} else if len(tags) > 0 {
				t.Errorf("tags %v", tags)
			}
			if s.Namespace != "acme" || s.Creator != x.ID().String() || !slices.Equal(s.GateNames, want) ||
				!s.DeadlineAt.Equal(deadline) || s.Tags["flowfabric.depth"] != "1" || s.Node != "rate 1.1" {
				t.Errorf("%s: %+v, want gates %v, deadline %v", name, s, want, deadline)
			}
		})
	}
}

var lone = handler.Define[int, int]("lone")

// Agents nest as deep as the configuration says, also through handlers that are no agents, and make as many children.
func TestLimitsOfChildren(t *testing.T) {
	var deepest int
	var told []string
	nest := handler.Define[query, agent.Result]("nest", flowfabric.Retries(0))
	between := handler.Define[query, string]("between", flowfabric.Retries(0))
	deeper := agent.Child("deeper", "", between)
	agents := func(ctx context.Context, task *handler.Task, in query) (agent.Result, error) {
		deepest = max(deepest, len(in.Text))
		model := &script{answers: []agent.Response{wants("deeper", fmt.Sprintf(`{"text":"%sx"}`, in.Text)),
			says("end")}}
		r, err := agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{deeper}, Prompt: "go",
			MaxDepth: 3})
		if err == nil {
			told = append(told, r.Messages[2].Text())
		}
		return r, err
	}
	r := family(t, agent.Config{Tools: []agent.Tool{agent.Child("deeper", "", nest)}, MaxDepth: 3},
		[]string{"deeper", `{"text":"x"}`}, handler.Bind(nest, agents),
		handler.Bind(between, func(ctx context.Context, task *handler.Task, in query) (string, error) {
			set := flow.Children("next")
			child := flow.Child(set, "next", nest, in)
			if err := task.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			below, err := handler.ChildResult(ctx, task, child)
			return below.Text, err
		}))
	if m := result(t, r); m.Text() != "end" || deepest != 3 || len(told) != 3 ||
		!strings.Contains(told[0], "agents nested 3 deep, see Config.MaxDepth") {
		t.Errorf("%+v, %d deep, %q", m, deepest, told)
	}

	counted := pricing(func(_ context.Context, _ *handler.Task, in amount) (int, error) { return in.Cents, nil })
	calls := []string{"rate", `{"cents":1}`, "rate", `{"cents":2}`, "rate", `{"cents":3}`}
	r = family(t, agent.Config{Tools: []agent.Tool{rate}, MaxChildren: 2}, calls, counted)
	result(t, r)
	for i, want := range []string{"1", "2", "the call was not made: the agent has reached a limit: 2 children, see " +
		"Config.MaxChildren"} {
		if m := r.Result.Messages[2+i]; m.Text() != want || m.Failed != (i == 2) {
			t.Errorf("%+v, want %s", m, want)
		}
	}
	r = family(t, agent.Config{Tools: []agent.Tool{agent.Child("rate", "", price, agent.EndsRun())}, MaxChildren: 2},
		calls, counted)
	if r.State != flowfabric.Failed || r.Snapshot.Failure.Category != "agent_limit" {
		t.Errorf("%v, %+v", r.State, r.Snapshot.Failure)
	}
}

// Who cancels an agent cancels its children and theirs.
func TestCancelReachesChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		made := map[string]flowfabric.ExecutionID{}
		note := func(task *handler.Task) {
			mu.Lock()
			defer mu.Unlock()
			made[task.Kind()] = task.ID()
		}
		started := make(chan struct{})
		model := func(calls ...string) agent.Model { return &script{answers: []agent.Response{wants(calls...)}} }
		w := fftest.New(t, runtime.Config{},
			handler.Bind(chat, running(agent.Config{Model: model("help", `{"text":"x"}`), Tools: []agent.Tool{help}})),
			handler.Bind(helper, func(ctx context.Context, task *handler.Task, in query) (agent.Result, error) {
				note(task)
				return agent.Run(ctx, task, agent.Config{Model: model("rate", `{"cents":1}`), Prompt: in.Text,
					Tools: []agent.Tool{rate}})
			}),
			pricing(func(ctx context.Context, task *handler.Task, _ amount) (int, error) {
				note(task)
				close(started)
				<-ctx.Done()
				return 0, context.Cause(ctx)
			}))
		x := fftest.Submit(w, chat, "hello")
		<-started
		x.Cancel()
		if r := x.Wait(); r.State != flowfabric.Cancelled {
			t.Errorf("%v", r.State)
		}
		w.Sleep(time.Minute)
		for kind, id := range made {
			s, err := w.Client().Execution(id).Get(t.Context())
			if err != nil || s.State.Public != flowfabric.Cancelled {
				t.Errorf("%s: %v, %v", kind, s.State, err)
			}
		}
		if len(made) != 2 {
			t.Errorf("%v", made)
		}
	})
}

// An operator who lets an agent go on ends what its children were doing, and the model is told; messages that came
// meanwhile are heard after that.
func TestResumedWithoutChildren(t *testing.T) {
	model := &script{answers: []agent.Response{wants("rate", `{"cents":1}`), says("end"), says("fine")}}
	r := fftest.Run(t, chat, fftest.Answered(running(agent.Config{Model: model, Tools: []agent.Tool{rate},
		Mailbox: "user"}), fftest.Send("user", "hurry").After(time.Hour), fftest.Resume().After(2*time.Hour)), "hello")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  rate{"cents":1}`,
		"failed tool rate c1: the call had not ended when an operator let the run go on; it was cancelled",
		"user fftest: hurry", "assistant: end")
}

// picky is a codec that takes no odd numbers.
type picky struct{ handler.Codec }

func (p picky) Encode(v any) ([]byte, error) {
	if in, ok := v.(amount); ok && in.Cents%2 == 1 {
		return nil, errors.New("odd cents")
	}
	return p.Codec.Encode(v)
}

// An input that the definition cannot encode is the model's mistake; the other children of the turn are made.
func TestInputsThatDoNotEncode(t *testing.T) {
	kind := handler.Define[amount, int]("picky", flowfabric.Retries(0), handler.WithCodec(picky{handler.JSON}))
	r := family(t, agent.Config{Tools: []agent.Tool{agent.Child("rate", "", kind)}},
		[]string{"rate", `{"cents":1}`, "rate", `{"cents":2}`, "rate", `{"cents":3}`},
		handler.Bind(kind, func(_ context.Context, _ *handler.Task, in amount) (int, error) { return in.Cents, nil }))
	result(t, r)
	for i, want := range []string{"odd cents", "2", "odd cents"} {
		if m := r.Result.Messages[2+i]; !strings.HasSuffix(m.Text(), want) || m.Failed != (i != 1) {
			t.Errorf("%+v, want %s", m, want)
		}
	}
}

// A child uses its share of the parent's budget and no more, and what it leaves is free again. Without room for the
// share the child is not made.
func TestShareOfChildren(t *testing.T) {
	purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 50}}}
	for share, tc := range map[int64]struct {
		told string
		used int64
	}{
		30: {"it is done", 40},
		15: {"the call failed (budget_exceeded): ", 30},
		41: {"the call was not made: the share of child help 1.1: ", 20},
	} {
		tool := agent.Child("help", "", helper, agent.ChildOptions(flow.Share(map[string]int64{"tokens": share})))
		r := fftest.Run(t, chat, running(agent.Config{Tools: []agent.Tool{tool},
			Model: &script{answers: []agent.Response{wants("help", `{"text":"pay"}`), says("end")}}}), "hello",
			fftest.Gates(purse), fftest.Also(func(fx *fftest.Effects) []handler.Binding {
				return []handler.Binding{handler.Bind(helper, helping(fx))}
			}))
		if r.Err != nil || r.Used["purse"]["tokens"] != tc.used {
			t.Errorf("share of %d: %v, %v used, want %d", share, r.Err, r.Used, tc.used)
			continue
		}
		if told := r.Result.Messages[2]; !strings.HasPrefix(told.Text(), tc.told) || told.Failed != (share != 30) {
			t.Errorf("share of %d: %+v, want %q", share, told, tc.told)
		}
	}
}

// What is wrong with a tool is found before anything runs.
func TestMistakesInChildren(t *testing.T) {
	for want, tool := range map[string]agent.Tool{
		"the definition is nil":       agent.Child[query, int]("x", "", nil),
		"the name is not valid":       agent.Child("x y", "", price),
		"MaySuspend is for functions": agent.Child("x", "", price, agent.MaySuspend()),
		"Priority":                    agent.Child("x", "", price, agent.ChildOptions(flowfabric.Priority(-1))),
		"option Needs is about": agent.Child("x", "", price,
			agent.Needs(func(string) agent.Decision { return agent.Decision{} })),
		"want printable ASCII": agent.Child("x", "", handler.Define[amount, int]("{")),
		"the option ChildOptions is for Child": agent.NewTool("x", "",
			func(context.Context, amount) (int, error) { return 0, nil },
			agent.ChildOptions(flowfabric.Priority(1))),
	} {
		r := run(t, agent.Config{Model: &script{}, Tools: []agent.Tool{tool}})
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%v, want %s", r.Err, want)
		}
	}
	for _, cfg := range []agent.Config{{MaxChildren: 501}, {MaxChildren: -1}, {MaxDepth: 17}, {MaxDepth: -1}} {
		cfg.Model = &script{}
		if r := run(t, cfg); r.Err == nil || !strings.Contains(r.Err.Error(), "want 1..") {
			t.Errorf("%+v: %v", cfg, r.Err)
		}
	}
}
