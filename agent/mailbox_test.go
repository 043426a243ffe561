package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// A message that comes while the agent works is heard before the next model call, one that comes during the last
// answer makes it go on, and whatever form it has, its text is what the user says.
func TestMessagesWhileItRuns(t *testing.T) {
	send := func(ctx context.Context, payload any, by string) {
		fftest.Tell(ctx, fftest.Send("talk", payload, flowfabric.By(by)))
	}
	inner := &script{answers: []agent.Response{wants("search", `{"text":"x"}`), says("first"), says("second")}}
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		r, err := inner.Generate(ctx, req, delta)
		if r.Message.Text() == "first" {
			send(ctx, map[string]any{"text": "one more", "kind": "chat"}, "anna")
			send(ctx, map[string]any{"other": 1}, "ben")
			send(ctx, json.RawMessage(`[1]`), "ben")
			send(ctx, []byte("plain \xff"), "ben")
		}
		return r, err
	})
	tool := agent.NewTool("search", "", func(ctx context.Context, _ query) (string, error) {
		send(ctx, "hurry", "anna")
		return "found", nil
	})
	r := run(t, agent.Config{Model: model, Tools: []agent.Tool{tool}, Mailbox: "talk"})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"x"}`, "tool search c1: found",
		"user anna: hurry", "assistant: first", "user anna: one more",
		`user ben: {"other":1}`, "user ben: [1]", "user ben: plain \ufffd", "assistant: second")
	if kept := r.Kept("message"); len(kept) != len(r.Result.Messages) {
		t.Errorf("%d message frames for %d messages", len(kept), len(r.Result.Messages))
	}
}

// A conversation waits between answers, holds nothing meanwhile, and ends when nobody has written for long enough.
func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &script{answers: []agent.Response{says("hello"), says("fine"), says("bye")}}
		w := fftest.New(t, runtime.Config{},
			handler.Bind(chat, func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
				return agent.Run(ctx, task, agent.Config{Model: model, Mailbox: "talk", Conversation: true,
					Idle: 24 * time.Hour, MaxTime: time.Minute})
			}))
		x := fftest.Submit(w, chat, "")
		for i, text := range []string{"hi", "how are you?", "good night"} {
			if asked := x.AwaitSuspension(); asked.Reason != string(suspend.ReasonSignal) {
				t.Errorf("%+v", asked)
			}
			w.Sleep(23 * time.Hour)
			if _, err := w.Client().Execution(x.ID()).Send(t.Context(), "talk", text,
				flowfabric.By("anna")); err != nil {
				t.Fatal(err)
			}
			w.Sleep(time.Second)
			read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
			if err != nil || read.Turns != i+1 || len(read.Messages) != 2*(i+1) || read.Messages[2*i].Text() != text {
				t.Errorf("after %q: %+v, %v", text, read, err)
			}
		}
		r := x.Wait()
		if r.Err != nil || r.Result.Text != "bye" || r.Result.Turns != 3 || len(r.Attempts) != 1 ||
			r.Elapsed < 93*time.Hour {
			t.Errorf("%v, %+v, %v", r.Err, r.Result, r.Elapsed)
		}
		wantTalk(t, r.Result.Messages, "user anna: hi", "assistant: hello", "user anna: how are you?",
			"assistant: fine", "user anna: good night", "assistant: bye")
	})
}

// Two messages that come while the agent talks get one answer together or, with OneByOne, one each, in their order,
// wherever the worker dies.
func TestCrashesOfMessagesThatComeTogether(t *testing.T) {
	together := []string{"user: hello", `assistant:  search{"text":"a"}`, "tool search c1: about a",
		"assistant: first", "user anna: one", "user ben: two", "assistant: second"}
	each := []string{"user: hello", `assistant:  search{"text":"a"}`, "tool search c1: about a", "assistant: first",
		"user anna: one", "assistant: second", "user ben: two", "assistant: third"}
	for name, tc := range map[string]struct {
		cfg  agent.Config
		want []string
	}{
		"together":              {agent.Config{}, together},
		"conversation together": {agent.Config{Conversation: true, Idle: time.Hour}, together},
		"each":                  {agent.Config{OneByOne: true}, each},
		"conversation each":     {agent.Config{OneByOne: true, Conversation: true, Idle: time.Hour}, each},
	} {
		t.Run(name, func(t *testing.T) {
			crashes := fftest.Crashes(t, chat,
				func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
					inner := &script{answers: []agent.Response{wants("search", `{"text":"a"}`), says("first"),
						says("second"), says("third")}}
					var once sync.Once
					cfg := tc.cfg
					cfg.Mailbox, cfg.Tools = "talk", noted(fx)
					cfg.Model = agent.ModelFunc(func(ctx context.Context, req agent.Request,
						delta func(agent.Delta) error) (agent.Response, error) {
						r, err := inner.Generate(ctx, req, delta)
						if r.Message.Text() == "first" {
							once.Do(func() {
								fftest.Tell(ctx, fftest.Send("talk", "one", flowfabric.By("anna")),
									fftest.Send("talk", "two", flowfabric.By("ben")))
							})
						}
						return r, err
					})
					return running(cfg)
				}, "hello", func(r *fftest.Report[agent.Result]) {
					if r.Err != nil {
						t.Errorf("%s: %v", r.Crash, r.Err)
					}
					wantTalk(t, r.Result.Messages, tc.want...)
					if kept := r.Kept("message"); len(kept) != len(tc.want) {
						t.Errorf("%s: readers see %d messages", r.Crash, len(kept))
					}
				})
			if crashes < 20 {
				t.Errorf("%d crashes", crashes)
			}
		})
	}
}

// A conversation that nobody begins, or that an operator ends, is no error.
func TestConversationsThatEnd(t *testing.T) {
	silent := func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
		return agent.Run(ctx, task, agent.Config{Model: &script{}, Mailbox: "talk", Idle: time.Hour})
	}
	for name, fn := range map[string]func(context.Context, *handler.Task, string) (agent.Result, error){
		"idle": silent, "resumed": fftest.Answered(silent, fftest.Resume()),
	} {
		r := fftest.Run(t, chat, fn, "")
		if r.Err != nil || r.Result.Turns != 0 || len(r.Result.Messages) != 0 ||
			(r.Elapsed < time.Hour) != (name == "resumed") {
			t.Errorf("%s: %v, %+v after %v", name, r.Err, r.Result, r.Elapsed)
		}
	}
}

// A conversation that has reached a limit ends at once: nobody writes what would not be answered.
func TestConversationsWithALimit(t *testing.T) {
	r := run(t, agent.Config{Model: &script{answers: []agent.Response{says("x")}}, Mailbox: "talk", Conversation: true,
		MaxTurns: 1})
	r.Want(fftest.Want{Failure: "agent_limit", Waits: []string{}})
}

// Wherever the worker dies, a message between and one after is heard once, in the same place, and nothing recorded is
// repeated.
func TestCrashesAroundMessages(t *testing.T) {
	var mu sync.Mutex
	var fx *fftest.Effects
	var shown []string
	crashes := fftest.Crashes(t, chat,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			fx = next
			mu.Unlock()
			model := &script{answers: []agent.Response{wants("search", `{"text":"a"}`, "search", `{"text":"b"}`),
				says("first"), says("second")},
				called: func(turn int, _ agent.Request) { next.Did(fmt.Sprint("model ", turn)) }}
			cfg := agent.Config{Model: model, Tools: noted(next), Mailbox: "talk", Conversation: true, Idle: time.Hour}
			return fftest.Answered(running(cfg),
				fftest.Send("talk", "and then?", flowfabric.By("anna")).After(time.Minute))
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Err != nil {
				t.Errorf("%s: %v", r.Crash, r.Err)
			}
			wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"a"} search{"text":"b"}`,
				"tool search c1: about a", "tool search c2: about b", "assistant: first", "user anna: and then?",
				"assistant: second")
			kept := slices.Concat(r.Kept("message"), r.Kept("token"))
			if shown == nil {
				shown = kept
			}
			if !slices.Equal(kept, shown) || len(shown) != 7+2 {
				t.Errorf("%s: readers see\n%q\nundisturbed\n%q", r.Crash, kept, shown)
			}
			for i := range 3 {
				if n := fx.Count(fmt.Sprint("model ", i+1)); n < 1 || n > 2 {
					t.Errorf("%s: model %d was called %d times", r.Crash, i+1, n)
				}
			}
		})
	if crashes < 30 {
		t.Errorf("%d crashes", crashes)
	}
}

// dialogue is what a conversation that goes on for ever is given.
type dialogue struct{ Messages []agent.Message }

var dialogues = handler.Define[dialogue, agent.Result]("dialogue", handler.Retry(5, time.Second, time.Minute))

// A conversation that would pass its turns goes on with its messages: no message is lost, none is heard or shown
// twice, and tools are called once a link, whenever a worker dies.
func TestCrashesOfConversationsThatContinue(t *testing.T) {
	var shown []string
	crashes := fftest.Crashes(t, dialogues,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, dialogue) (agent.Result, error) {
			return fftest.Answered(func(ctx context.Context, task *handler.Task, in dialogue) (agent.Result, error) {
				model := agent.ModelFunc(func(_ context.Context, req agent.Request,
					_ func(agent.Delta) error) (agent.Response, error) {
					last := req.Messages[len(req.Messages)-1]
					if last.Text() == "look" {
						return wants("search", `{"text":"x"}`), nil
					}
					return says("about " + last.Text()), nil
				})
				return agent.Run(ctx, task, agent.Config{Model: model, Tools: noted(fx), Messages: in.Messages,
					Mailbox: "talk", Conversation: true, Idle: time.Hour, MaxTurns: 2,
					Continue: func(r agent.Result) error { return handler.Continue(dialogue{r.Messages}) }})
			}, fftest.Send("talk", "a"), fftest.Send("talk", "look").After(10*time.Minute),
				fftest.Send("talk", "b").After(10*time.Minute), fftest.Send("talk", "c").After(10*time.Minute))
		}, dialogue{}, func(r *fftest.Report[agent.Result]) {
			if r.Err != nil {
				t.Errorf("%s: %v", r.Crash, r.Err)
				return
			}
			var heard []string
			for _, m := range r.Result.Messages {
				if m.Role == agent.User {
					heard = append(heard, m.Text())
				}
			}
			if !slices.Equal(heard, []string{"a", "look", "b", "c"}) ||
				r.Result.Messages[len(r.Result.Messages)-1].Role != agent.Assistant {
				t.Errorf("%s: heard %q", r.Crash, heard)
			}
			kept := r.Kept("message")
			if shown == nil {
				shown = kept
			}
			if len(kept) != len(shown) {
				t.Errorf("%s: readers see %d messages, undisturbed %d", r.Crash, len(kept), len(shown))
			}
		})
	if crashes < 20 {
		t.Errorf("%d crashes", crashes)
	}
}

func TestRecent(t *testing.T) {
	var all []agent.Message
	for _, role := range []agent.Role{agent.User, agent.Assistant, agent.ToolRole, agent.Assistant, agent.User,
		agent.Assistant} {
		all = append(all, agent.Message{Role: role})
	}
	for n, want := range map[int]int{1: 2, 2: 2, 3: 2, 5: 2, 6: 6, 100: 6} {
		if got := agent.Recent(all, n); len(got) != want || got[0].Role != agent.User {
			t.Errorf("the last %d are %d: %v", n, len(got), got)
		}
	}
	if got := agent.Recent(nil, 3); len(got) != 0 {
		t.Error(got)
	}
}
