package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// another is a person who changes their mind, once in a run: about the answer of the only agent.
type another struct {
	edit bool

	mu    sync.Mutex
	ready chan struct{}
	ctx   context.Context
	c     *client.Client
	id    flowfabric.ExecutionID
	did   bool
	told  agent.Rewound
	err   error
}

// here is closed once the person knows of the execution. It is made in the bubble.
func (a *another) here() chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ready == nil {
		a.ready = make(chan struct{})
	}
	return a.ready
}

func (a *another) comes(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
	a.ctx, a.c, a.id = ctx, c, id
	close(a.here())
}

// changes has the answer made again, unless that was done, and tells whether it is now.
func (a *another) changes() (now bool) {
	<-a.here()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.did {
		return false
	}
	a.did = true
	if a.edit {
		a.told, a.err = agent.Edit(a.ctx, a.c, a.id, agent.Place{}, "no, hi", flowfabric.By("anna"))
	} else {
		a.told, a.err = agent.Regenerate(a.ctx, a.c, a.id, agent.Place{}, flowfabric.By("anna"))
	}
	return a.err == nil
}

// points are where the person may be quick: before the first answer is there, in the second call of the model, between
// two tools, in a tool, in an approval, and when all is over.
var points = []string{"before", "model", "between", "tool", "approval", "end"}

// all are the answers of a model that wants two tools, which run one after the other, then a refund that is approved,
// and then says something. What it says has the take in it.
func all(take int) []agent.Response {
	return []agent.Response{wants("search", fmt.Sprintf(`{"text":"a%d"}`, take), "search", `{"text":"b"}`),
		wants("refund", `{"cents":5}`), says(fmt.Sprint("take ", take))}
}

// few are those of them that a point needs: where runs are many, each is short.
func few(point string) func(take int) []agent.Response {
	return func(take int) []agent.Response {
		whole := all(take)
		switch point {
		case "approval":
			return whole[1:]
		case "tool", "between":
			return []agent.Response{whole[0], whole[2]}
		default:
			return []agent.Response{wants("search", fmt.Sprintf(`{"text":"a%d"}`, take)), whole[2]}
		}
	}
}

// fickle is an agent whose model answers so.
func fickle(a *another, point string, answers func(take int) []agent.Response, fx *fftest.Effects) func(context.Context,
	*handler.Task, string) (agent.Result, error) {
	return func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
		take := task.Takes()
		at := func(now string) (changed bool) { return now == point && take == 0 && a.changes() }
		did := func(what string) {
			if fx != nil {
				fx.Did(fmt.Sprint(what, " take ", take))
			}
		}
		model := &script{
			answers: answers(take),
			called: func(turn int, _ agent.Request) {
				did(fmt.Sprint("model ", turn))
				at(map[int]string{1: "before", 2: "model"}[turn])
			},
		}
		tools := []agent.Tool{
			agent.NewTool("search", "", func(ctx context.Context, q query) (string, error) {
				call, _ := agent.CallFrom(ctx)
				did(call.Step)
				if at(map[string]string{"tool 1.1 search": "tool", "tool 1.2 search": "between"}[call.Step]) {
					<-ctx.Done() // else what this worker does before it hears of it depends on the machine
				}
				return "about " + q.Text, nil
			}),
			agent.NewTool("refund", "", func(context.Context, amount) (string, error) {
				did("refund")
				return "paid", nil
			}, agent.Needs(func(amount) agent.Decision { return agent.Decision{Ask: true} })),
		}
		return agent.Run(ctx, task, agent.Config{Model: model, Tools: tools, Parallel: 1, Prompt: prompt})
	}
}

// beside does what the person does from outside.
func (a *another) beside(point string) func(context.Context, *client.Client, flowfabric.ExecutionID) {
	return func(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) {
		a.comes(ctx, c, id)
		switch point {
		case "approval":
			if _, err := c.Execution(id).AwaitSuspension(ctx); err == nil {
				a.changes()
			}
		case "end":
			_, _ = c.Execution(id).Result(ctx)
			a.changes()
		}
		_, _ = c.Execution(id).Result(ctx)
	}
}

// Whatever an agent does when a person wants another answer, and wherever its worker dies around that, it goes on with
// another answer, readers see that alone, nothing of it is done twice, and what was paid stays paid.
func TestCrashesAroundARewind(t *testing.T) {
	purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1000}}}
	for _, point := range points {
		for _, edit := range []bool{false, true} {
			t.Run(fmt.Sprint(point, " edit ", edit), func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				var a *another
				var answers []fftest.Answer
				take, said := 1, "user: hello"
				if point == "before" {
					take = 0
				} else if edit {
					said = "user anna: no, hi"
				}
				want := []string{said, fmt.Sprintf(`assistant:  search{"text":"a%d"}`, take),
					fmt.Sprint("tool search c1: about a", take)}
				switch point {
				case "approval":
					answers = append(answers, fftest.Approve("approve 1.1 refund",
						suspend.Answer{Choice: "approve"}).After(time.Second))
					want = []string{said, `assistant:  refund{"cents":5}`, "tool refund c1: paid"}
				case "tool", "between":
					want[1] += ` search{"text":"b"}`
					want = append(want, "tool search c2: about b")
				}
				want = append(want, fmt.Sprint("assistant: take ", take))
				crashes := fftest.Crashes(t, chat,
					func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
						next := &another{edit: edit}
						fx.Beside = next.beside(point)
						mu.Lock()
						a = next
						mu.Unlock()
						return fftest.Answered(fickle(next, point, few(point), fx), answers...)
					}, "hello", func(r *fftest.Report[agent.Result]) {
						wantTalk(t, r.Result.Messages, want...)
						if point == "before" {
							if !errors.Is(a.err, flowfabric.ErrNotFound) {
								t.Errorf("%s: %+v, %v", r.Crash, a.told, a.err)
							}
							return
						}
						if a.err != nil || a.told.Turn != 1 || len(a.told.Answers) == 0 {
							t.Errorf("%s: %+v, %v", r.Crash, a.told, a.err)
						}
						if kept := r.Kept("token"); strings.Join(kept, "") != "take 1" ||
							len(r.Kept("message")) != len(want) {
							t.Errorf("%s: readers see %q and %d messages", r.Crash, kept, len(r.Kept("message")))
						}
						gone := a.told.Usage.Total()
						if spent := r.Spent["purse"]["tokens"]; spent < 20+gone || gone < 10 {
							t.Errorf("%s: %d tokens are spent, 20 for what stays, and %d were dropped", r.Crash, spent,
								gone)
						}
					}, fftest.Gates(purse))
				if crashes < 20 {
					t.Errorf("%d crashes", crashes)
				}
			})
		}
	}
}

// readBoth is what a reader sees who follows from the beginning, and one who comes when all is over: they must see the
// same.
func readBoth(t *testing.T, c *client.Client, id flowfabric.ExecutionID) func() {
	var live stream.Transcript
	var done sync.WaitGroup
	done.Go(func() {
		for {
			var end bool
			for e, err := range c.Execution(id).Tail(t.Context(), client.From(live.Position())) {
				if err != nil {
					t.Error(err)
					return
				}
				live.Add(e)
				end = e.Kind == stream.TailEnd
			}
			if end {
				return
			}
		}
	})
	return func() {
		t.Helper()
		done.Wait()
		var late stream.Transcript
		for e, err := range c.Execution(id).Tail(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			late.Add(e)
		}
		if a, b := shown(&live), shown(&late); !slices.Equal(a, b) {
			t.Errorf("who follows sees\n%q\nwho comes late\n%q", a, b)
		}
	}
}

func shown(tr *stream.Transcript) (all []string) {
	for _, f := range tr.Frames() {
		all = append(all, f.Type+" "+string(f.Payload))
	}
	return all
}

// What is dropped is told: texts, tokens, and calls, those that had ended and those that may have had their effect. Who
// saw the attempt before is refused, and the transcript has the new answers alone.
func TestRegenerateTellsWhatItDrops(t *testing.T) {
	for point, want := range map[string]string{
		"model":   "10 [] tool 1.1 search true about a0, tool 1.2 search true about b",
		"between": "10 [] tool 1.1 search true about a0, tool 1.2 search false ",
		"tool":    "10 [] tool 1.1 search false , tool 1.2 search false ",
		"approval": "20 [ ] tool 1.1 search true about a0, tool 1.2 search true about b, " +
			"tool 2.1 refund false ",
	} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &another{}
				w := fftest.New(t, runtime.Config{}, handler.Bind(chat, fickle(a, point, all, nil)))
				x := fftest.Submit(w, chat, "hello")
				read := readBoth(t, w.Client(), x.ID())
				a.comes(t.Context(), w.Client(), x.ID())
				if point == "approval" {
					x.AwaitSuspension()
					a.changes()
				}
				x.Answer(fftest.Approve("approve 2.1 refund", suspend.Answer{Choice: "approve"}))
				r := x.Wait()
				read()
				var calls []string
				for _, e := range a.told.Effects {
					calls = append(calls, fmt.Sprint(e.Step, " ", e.Recorded, " ", e.Result))
				}
				got := fmt.Sprint(a.told.Usage.Total(), " ", a.told.Answers, " ", strings.Join(calls, ", "))
				if got != want || a.err != nil || a.told.Attempt != 2 {
					t.Errorf("%v: %+v\n%s\nwant\n%s", a.err, a.told, got, want)
				}
				read1, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
				if err != nil || !slices.Equal(talk(read1.Messages), talk(r.Result.Messages)) {
					t.Errorf("%v: %q", err, talk(read1.Messages))
				}
				if len(r.Attempts) != 2 || r.Attempts[0].State != "rewound" {
					t.Errorf("%+v", r.Attempts)
				}
			})
		})
	}
}

// Two people want another answer of the same one: one gets it, the other is told.
func TestTwoRegenerateAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &another{}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, fickle(a, "", all, nil)))
		x := fftest.Submit(w, chat, "hello")
		x.AwaitSuspension()
		var done sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			done.Go(func() {
				_, errs[i] = agent.Regenerate(t.Context(), w.Client(), x.ID(), agent.Place{})
			})
		}
		done.Wait()
		lost := errors.Join(errs...)
		if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(lost, flowfabric.ErrConflict) &&
			!errors.Is(lost, flowfabric.ErrNotFound) {
			t.Errorf("%v", errs)
		}
		x.Answer(fftest.Approve("approve 2.1 refund", suspend.Answer{Choice: "approve"}))
		if r := x.Wait(); r.Result.Text != "take 1" {
			t.Errorf("%+v, %v", r.Result, r.Err)
		}
	})
}

// An answer that is made again has children of its own, whose parent's wait the old ones no longer end, and its calls
// have other keys.
func TestChildrenAndKeysOfAnotherTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &another{}
		var mu sync.Mutex
		var made []flowfabric.ExecutionID
		keys := map[string]bool{}
		model := &script{answers: []agent.Response{wants("search", `{"text":"a"}`, "rate", `{"cents":1}`), says("end")}}
		find := agent.NewTool("search", "", func(ctx context.Context, _ query) (string, error) {
			call, _ := agent.CallFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			keys[call.Key] = true
			return "found", nil
		})
		w := fftest.New(t, runtime.Config{Concurrency: 4},
			handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{find, rate}})),
			pricing(func(ctx context.Context, task *handler.Task, in amount) (int, error) {
				mu.Lock()
				made = append(made, task.ID())
				first := len(made) == 1
				mu.Unlock()
				if first {
					a.changes()
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				return 10 * in.Cents, nil
			}))
		x := fftest.Submit(w, chat, "hello")
		read := readBoth(t, w.Client(), x.ID())
		a.comes(t.Context(), w.Client(), x.ID())
		r := x.Wait()
		read()
		wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"a"} rate{"cents":1}`,
			"tool search c1: found", "tool rate c2: 10", "assistant: end")
		if len(made) != 2 || made[0] == made[1] || len(keys) != 2 || a.err != nil {
			t.Fatalf("children %v, keys %v, %v", made, keys, a.err)
		}
		for i, want := range []flowfabric.PublicState{flowfabric.Cancelled, flowfabric.Completed} {
			s, err := w.Client().Execution(made[i]).Get(t.Context())
			if err != nil || s.State.Public != want || s.Node != []string{"rate 1.2", "rate 1.2 t1"}[i] {
				t.Errorf("child %d: %s %q, %v", i, s.State.Public, s.Node, err)
			}
		}
	})
}

// The words of an edit are heard in the place of what was received, alone or among several, and by later takes, too.
func TestEditOfAReceivedMessage(t *testing.T) {
	for _, oneByOne := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			model := agent.ModelFunc(func(_ context.Context, req agent.Request,
				_ func(agent.Delta) error) (agent.Response, error) {
				return says("re " + req.Messages[len(req.Messages)-1].Text()), nil
			})
			w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model, Mailbox: "user",
				Conversation: true, OneByOne: oneByOne, Idle: time.Hour})))
			x := fftest.Submit(w, chat, "hello")
			read := readBoth(t, w.Client(), x.ID())
			x.AwaitSuspension()
			x.Answer(fftest.Send("user", "two"))
			w.Sleep(time.Minute)
			x.AwaitSuspension()
			done, err := agent.Edit(t.Context(), w.Client(), x.ID(), agent.Place{}, "zwei", flowfabric.By("anna"))
			if err != nil || done.Turn != 2 || fmt.Sprint(done.Answers) != "[re two]" {
				t.Errorf("%+v, %v", done, err)
			}
			w.Sleep(time.Minute)
			done, err = agent.Regenerate(t.Context(), w.Client(), x.ID(), agent.Place{Turn: 2})
			if err != nil || fmt.Sprint(done.Answers) != "[re zwei]" {
				t.Errorf("%+v, %v", done, err)
			}
			w.Sleep(time.Minute)
			x.Answer(fftest.Send("user", "three"))
			r := x.Wait()
			read()
			wantTalk(t, r.Result.Messages, "user: hello", "assistant: re hello", "user anna: zwei",
				"assistant: re zwei", "user fftest: three", "assistant: re three")
		})
	}
}

// An answer that did not fit was complained about by nobody whom an edit could mean: the prompt is edited.
func TestEditBeforeAnAnswerThatDidNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agent.ModelFunc(func(_ context.Context, req agent.Request,
			_ func(agent.Delta) error) (agent.Response, error) {
			if len(req.Messages) == 1 && req.Messages[0].Text() == "hello" {
				return says("no idea"), nil
			}
			return wants("final_answer", `{"text":"x"}`), nil
		})
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, func(ctx context.Context, task *handler.Task,
			prompt string) (agent.Result, error) {
			_, r, err := agent.RunAs[query](ctx, task, agent.Config{Model: model, Prompt: prompt})
			return r, err
		}))
		x := fftest.Submit(w, chat, "hello")
		x.Wait()
		done, err := agent.Edit(t.Context(), w.Client(), x.ID(), agent.Place{}, "hi")
		if err != nil || done.Turn != 1 || len(done.Answers) != 2 {
			t.Errorf("%+v, %v", done, err)
		}
		wantTalk(t, x.Wait().Result.Messages, "user: hi", `assistant:  final_answer{"text":"x"}`,
			"tool final_answer c1: accepted")
	})
}

// What a tool records on the way to its result is not its result.
func TestStopOfAToolWithStepsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := agent.NewTool("long", "", func(ctx context.Context, _ query) (string, error) {
			call, _ := agent.CallFrom(ctx)
			_, err := handler.Step(ctx, call.Task, call.Step+" start",
				func(context.Context) (int, error) { return 7, nil })
			if err == nil {
				_, err = call.Task.Wait(ctx, call.Step+" wait", suspend.Operator())
			}
			return "late", err
		}, agent.MaySuspend())
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Tools: []agent.Tool{long},
			Model: &script{answers: []agent.Response{wants("long", `{"text":"x"}`)}}})))
		x := fftest.Submit(w, chat, "hello")
		x.AwaitSuspension()
		seen, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
		if err != nil || len(seen.Messages) != 2 {
			t.Errorf("%q, %v", talk(seen.Messages), err)
		}
		s, err := agent.Stop(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
		if err != nil || len(s.Done) != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		wantTalk(t, x.Wait().Result.Messages, "user: hello", `assistant:  long{"text":"x"}`, "tool long c1: late")
	})
}
