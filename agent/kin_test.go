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
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Two agents of one handler have children of their own, though their turns and tools have the same names.
func TestTwoAgentsWithChildrenInOneHandler(t *testing.T) {
	var mu sync.Mutex
	made := map[flowfabric.ExecutionID]int{}
	both := func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
		var all agent.Result
		for i, name := range []string{"", "b"} {
			model := &script{answers: []agent.Response{wants("rate", fmt.Sprintf(`{"cents":%d}`, i+1)), says("end")}}
			r, err := agent.Run(ctx, task, agent.Config{Name: name, Model: model, Tools: []agent.Tool{rate},
				Prompt: "hello"})
			if err != nil {
				return r, err
			}
			all.Messages = append(all.Messages, r.Messages...)
		}
		return all, nil
	}
	r := fftest.Run(t, chat, both, "", fftest.Also(func(*fftest.Effects) []handler.Binding {
		return []handler.Binding{pricing(func(_ context.Context, task *handler.Task, in amount) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			made[task.ID()]++
			return 10 * in.Cents, nil
		})}
	}))
	result(t, r)
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  rate{"cents":1}`, "tool rate c1: 10",
		"assistant: end", "user: hello", `assistant:  rate{"cents":2}`, "tool rate c1: 20", "assistant: end")
	if len(made) != 2 {
		t.Errorf("%v were made", made)
	}
}

// talked is what a conversation goes on with.
type talked struct {
	Messages []agent.Message `json:"messages"`
	Round    int             `json:"round"`
}

// A conversation that answers each message alone, asks children in each turn, and goes on with a new input after three
// calls of its model: no message is lost or heard twice, and no child is made twice.
func TestAConversationWithChildrenThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		made := map[flowfabric.ExecutionID]int{}
		var heard []string
		dialogue := handler.Define[talked, string]("dialogue")
		model := agent.ModelFunc(func(_ context.Context, req agent.Request,
			_ func(agent.Delta) error) (agent.Response, error) {
			last := req.Messages[len(req.Messages)-1]
			if last.Role == agent.User {
				return wants("rate", fmt.Sprintf(`{"cents":%s}`, strings.TrimPrefix(last.Text(), "m"))), nil
			}
			return says("it costs " + last.Text()), nil
		})
		w := fftest.New(t, runtime.Config{}, handler.Bind(dialogue,
			func(ctx context.Context, task *handler.Task, in talked) (string, error) {
				r, err := agent.Run(ctx, task, agent.Config{Model: model, Tools: []agent.Tool{rate},
					Messages: in.Messages, Mailbox: "user", Conversation: true, OneByOne: true, MaxTurns: 3,
					Idle: time.Hour, Prompt: map[bool]string{true: "m1"}[in.Round == 0],
					Continue: func(r agent.Result) error {
						return handler.Continue(talked{Messages: r.Messages, Round: in.Round + 1})
					}})
				if err == nil {
					heard = talk(r.Messages)
				}
				return fmt.Sprint(in.Round), err
			}),
			pricing(func(_ context.Context, task *handler.Task, in amount) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				made[task.ID()]++
				return 10 * in.Cents, nil
			}))
		x := fftest.Submit(w, dialogue, talked{})
		for i := 2; i <= 6; i++ {
			x.Answer(fftest.Send("user", fmt.Sprintf("m%d", i)))
		}
		r := x.Wait()
		if r.Err != nil || r.Result != "4" && r.Result != "3" {
			t.Errorf("%v, %q", r.Err, r.Result)
		}
		var want []string
		for i := 1; i <= 6; i++ {
			from := "user: m1"
			if i > 1 {
				from = fmt.Sprintf("user fftest: m%d", i)
			}
			want = append(want, from, fmt.Sprintf(`assistant:  rate{"cents":%d}`, i),
				fmt.Sprintf("tool rate c1: %d0", i), fmt.Sprintf("assistant: it costs %d0", i))
		}
		if !slices.Equal(heard, want) {
			t.Errorf("heard\n%q\nwant\n%q", heard, want)
		}
		for id, n := range made {
			if n != 1 || len(made) != 6 {
				t.Errorf("%s ran %d times, of %d", id, n, len(made))
			}
		}
	})
}

// What a child with a share gives to a child of its own is a part of its share, whatever room there is in the gate,
// and no more than that.
func TestAShareOfAShare(t *testing.T) {
	for limit, want := range map[int64]struct{ part, used int64 }{60: {55, 12}, 1000: {56, 5}} {
		purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
			Limits: map[string]admission.Limit{"tokens": {Hard: limit}}}
		below := handler.Define[amount, int]("below", flowfabric.Retries(0))
		middle := handler.Define[amount, int]("middle", flowfabric.Retries(0))
		r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
			set := flow.Children("one")
			flow.Child(set, "it", middle, amount{}, flow.Share(map[string]int64{"tokens": 60}))
			return agent.Result{}, task.WaitChildren(ctx, set)
		}, "", fftest.Gates(purse), fftest.Also(func(*fftest.Effects) []handler.Binding {
			return []handler.Binding{
				handler.Bind(middle, func(ctx context.Context, task *handler.Task, _ amount) (int, error) {
					if _, err := handler.Step(ctx, task, "own", func(ctx context.Context) (int, error) {
						return 0, task.Spend(ctx, "tokens", 5)
					}); err != nil {
						return 0, err
					}
					set := flow.Children("two")
					flow.Child(set, "it", below, amount{}, flow.Share(map[string]int64{"tokens": want.part}))
					return 0, task.WaitChildren(ctx, set)
				}),
				handler.Bind(below, func(ctx context.Context, task *handler.Task, _ amount) (int, error) {
					return 0, task.Spend(ctx, "tokens", 7)
				})}
		}))
		if got := r.Used["purse"]["tokens"]; r.Err != nil || got != want.used {
			t.Errorf("a part of %d: %v, %d used, want %d", want.part, r.Err, got, want.used)
		}
	}
}

// Shares hold in several gates at once: one above another, one that only warns, and one that is strict about what it
// counts. The child fails. Afterwards all count what it used, and no more.
func TestSharesOfSeveralGates(t *testing.T) {
	limit := func(dim string) map[string]admission.Limit { return map[string]admission.Limit{dim: {Hard: 50}} }
	gates := []admission.Gate{{Name: "org", Limits: limit("tokens")}, {Name: "team", Parent: "org",
		Limits: limit("tokens")}, {Name: "strict", Limits: limit("cents"), StrictDimensions: true},
		{Name: "warns", Limits: limit("tokens"), Warn: true}}
	for _, use := range []int64{7, 40, 41} {
		r := fftest.Run(t, chat, func(ctx context.Context, task *handler.Task, _ string) (agent.Result, error) {
			set := flow.Children("one")
			flow.Child(set, "it", price, amount{}, flow.Share(map[string]int64{"tokens": 40, "cents": 5}))
			return agent.Result{}, task.WaitChildren(ctx, set)
		}, "", fftest.Gates(gates...), fftest.Also(func(*fftest.Effects) []handler.Binding {
			return []handler.Binding{pricing(func(ctx context.Context, task *handler.Task, _ amount) (int, error) {
				if err := task.Spend(ctx, "tokens", use); err != nil {
					return 0, err
				}
				return 0, errors.Join(task.Spend(ctx, "cents", 5), handler.Permanent(errors.New("it fails")))
			})}
		}))
		tokens, cents := use, int64(5)
		if use > 40 {
			tokens, cents = 0, 0
		}
		want := map[string]map[string]int64{"team": {"tokens": tokens, "cents": cents},
			"warns": {"tokens": tokens, "cents": cents}, "strict": {"cents": cents, "tokens": 0}}
		for gate, by := range want {
			for dim, n := range by {
				if got := r.Used[gate][dim]; got != n || r.Err != nil {
					t.Errorf("%d: %s counts %d %s, want %d; %v", use, gate, got, dim, n, r.Err)
				}
			}
		}
	}
}
