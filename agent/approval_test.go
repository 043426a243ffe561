package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
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

// refund is a tool that asks first.
func refund(a agent.Approval, opts ...agent.ToolOption) agent.Tool {
	return agent.NewTool("refund", "pays back", func(_ context.Context, in amount) (string, error) {
		return "paid", nil
	},
		append(opts, agent.NeedsApproval(a))...)
}

// asks runs an agent that wants a refund, with people who answer.
func asks(t *testing.T, tool agent.Tool, arguments string, answers ...fftest.Answer) *fftest.Report[agent.Result] {
	t.Helper()
	cfg := agent.Config{Model: &script{answers: []agent.Response{wants("refund", arguments), says("end")}},
		Tools: []agent.Tool{tool}}
	return fftest.Run(t, chat, fftest.Answered(running(cfg), answers...), "hello")
}

// What a person decides, or does not decide, is what the model is told.
func TestApproval(t *testing.T) {
	approved := fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "approve"})
	for want, tc := range map[string]struct {
		within time.Duration
		answer []fftest.Answer
	}{
		"paid": {answer: []fftest.Answer{approved}},
		"the call was not made: rejected by anna: no": {
			answer: []fftest.Answer{fftest.Approve("approve 1.1 refund",
				suspend.Answer{Choice: "reject", Comment: "no"}, flowfabric.By("anna"))}},
		"the call was not made: it was not approved":               {answer: []fftest.Answer{fftest.Resume()}},
		"the call was not made: nobody approved it within 48h0m0s": {within: 48 * time.Hour},
	} {
		r := asks(t, refund(agent.Approval{Within: tc.within}), `{"cents":5}`, tc.answer...)
		if m := result(t, r); m.Text() != want || m.Failed != (want != "paid") || m.Call != "c1" {
			t.Errorf("%+v, want %s", m, want)
		}
		r.Want(fftest.Want{
			Waits: []string{"approve 1.1 refund"},
			Steps: []string{"model 1", "tool 1.1 refund", "model 2"},
		})
	}
}

// Nobody is asked about arguments that the schema refuses.
func TestNobodyIsAskedAboutBadArguments(t *testing.T) {
	r := asks(t, refund(agent.Approval{}), `{"cents":"all"}`)
	if m := result(t, r); !m.Failed || !strings.Contains(m.Text(), "do not fit the schema") {
		t.Errorf("%+v", m)
	}
	r.Want(fftest.Want{Waits: []string{}})
}

// Tools that need no approval are done before anybody is asked, one question comes after the other, and nothing that
// needs approval runs before the last answer.
func TestOrderOfApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []string
		var mu sync.Mutex // approved calls run together
		do := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, what)
		}
		tools := []agent.Tool{search(do),
			agent.NewTool("refund", "", func(context.Context, amount) (string, error) {
				do("refund")
				return "paid", nil
			}, agent.NeedsApproval(agent.Approval{Assignee: "support"}))}
		model := &script{answers: []agent.Response{wants("refund", `{"cents":1}`, "search", `{"text":"x"}`, "refund",
			`{"cents":2}`), says("end")}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model, Tools: tools})))
		x := fftest.Submit(w, chat, "hello")
		for _, name := range []string{"approve 1.1 refund", "approve 1.3 refund"} {
			asked := x.AwaitSuspension()
			if asked.Name != name || asked.Question.Title != "Run the tool refund?" ||
				asked.Question.Assignee != "support" || asked.Reason != string(suspend.ReasonApproval) {
				t.Errorf("%+v, %+v", asked, asked.Question)
			}
			if want := map[string]string{"approve 1.1 refund": "{\n  \"cents\": 1\n}",
				"approve 1.3 refund": "{\n  \"cents\": 2\n}"}[name]; asked.Question.Text != want {
				t.Errorf("asked about %q, want %q", asked.Question.Text, want)
			}
			if !slices.Equal(did, []string{"x"}) {
				t.Errorf("before %s: %q", name, did)
			}
			x.Answer(fftest.Approve(name, suspend.Answer{Choice: "approve"}))
		}
		r := x.Wait()
		if r.Err != nil || !slices.Equal(did, []string{"x", "refund", "refund"}) {
			t.Errorf("%v, %q", r.Err, did)
		}
	})
}

// The title is that of the approval, or the first line of what the tool says, or names the tool.
func TestTitlesOfQuestions(t *testing.T) {
	type letter struct {
		Text string `json:"text"`
	}
	worded := []agent.ToolOption{agent.Question(func(l letter) string { return l.Text })}
	long := strings.Repeat("a", 300)
	for name, tc := range map[string]struct {
		approval    agent.Approval
		says        []agent.ToolOption
		text        string
		title, want string
	}{
		"plain": {text: "hi", title: "Run the tool mail?", want: "{\n  \"text\": \"hi\"\n}"},
		"fixed": {agent.Approval{Title: "Send a letter?"}, nil, "hi", "Send a letter?",
			"{\n  \"text\": \"hi\"\n}"},
		"worded":           {agent.Approval{}, worded, "Send it?", "Send it?", "Send it?"},
		"several lines":    {agent.Approval{}, worded, "Send it?\n\nDear Anna", "Send it?", "Send it?\n\nDear Anna"},
		"fixed and worded": {agent.Approval{Title: "A letter"}, worded, "Send it?", "A letter", "Send it?"},
		"nothing":          {agent.Approval{}, worded, "", "Run the tool mail?", ""},
		"tabs":             {agent.Approval{}, worded, "\n a\tb \n", "a b", "\n a\tb \n"},
		"long":             {agent.Approval{}, worded, long, strings.Repeat("a", 152) + "… (cut: 300 bytes)", long},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tool := agent.NewTool("mail", "", func(context.Context, letter) (string, error) { return "sent", nil },
					append(tc.says, agent.NeedsApproval(tc.approval))...)
				arguments, _ := json.Marshal(letter{tc.text})
				model := &script{answers: []agent.Response{wants("mail", string(arguments)), says("end")}}
				w := fftest.New(t, runtime.Config{},
					handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{tool}})))
				x := fftest.Submit(w, chat, "hello")
				if q := x.AwaitSuspension().Question; q.Title != tc.title || q.Text != tc.want {
					t.Errorf("asked %q %q, want %q %q", q.Title, q.Text, tc.title, tc.want)
				}
				x.Answer(fftest.Approve("approve 1.1 mail", suspend.Answer{Choice: "approve"}))
				x.Wait()
			})
		})
	}
}

// A tool may word its question. Whatever it says, and whatever the model wrote, fits into a question, and says so
// when it is cut.
func TestQuestions(t *testing.T) {
	type letter struct {
		Text string `json:"text"`
	}
	mail := func(opts ...agent.ToolOption) agent.Tool {
		return agent.NewTool("refund", "", func(context.Context, letter) (string, error) { return "sent", nil },
			append(opts, agent.NeedsApproval(agent.Approval{Assignee: strings.Repeat(`"`, 128)}))...)
	}
	for arguments, want := range map[string]string{
		`{"text":"dear"}`:                                      "send dear?",
		`{"text":"a\u202eb\u0000c\rd\u2028e"}`:                 `send a\u202eb\u0000c\u000dd\u2028e?`,
		`{"text":"` + strings.Repeat(`\"`, 20_000) + `"}`:      `(cut: 20006 bytes)`,
		`{"text":"` + strings.Repeat(`\"`, 4_000) + `"}`:       `(cut: 4006 bytes)`,
		`{"text":"` + strings.Repeat(`é`, 20_000) + `"}`:       `(cut: 40006 bytes)`,
		`{"text":"` + strings.Repeat(`<`, 20_000) + `"}`:       `(cut: 20006 bytes)`,
		`{"text":"` + strings.Repeat(`\u0001`, 5_000) + `"}`:   `(cut: 30006 bytes)`,
		`{"text":"` + strings.Repeat("\xff", 5_000) + `"}`:     "send \ufffd?",
		`{"text":"` + strings.Repeat(`\ud83d`, 20_000) + `"}`:  `(cut: 60006 bytes)`,
		`{"text":"` + strings.Repeat("\u202e", 20_000) + `"}`:  `(cut: 120006 bytes)`,
		`{"text":"` + strings.Repeat(`\u007f`, 20_000) + `"}`:  `(cut: 120006 bytes)`,
		`{"text":"` + strings.Repeat(`\n\t\\`, 20_000) + `"}`:  `(cut: 60006 bytes)`,
		`{"text":"` + strings.Repeat("a", 4096-7) + "b" + `"}`: `aaab?`,
		`{"text":"` + strings.Repeat("a", 4096-6) + "b" + `"}`: `(cut: 4097 bytes)`,
	} {
		synctest.Test(t, func(t *testing.T) {
			model := &script{answers: []agent.Response{wants("refund", arguments), says("end")}}
			tool := mail(agent.Question(func(l letter) string { return "send " + l.Text + "?" }))
			w := fftest.New(t, runtime.Config{},
				handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{tool}})))
			x := fftest.Submit(w, chat, "hello")
			q := x.AwaitSuspension().Question
			if !strings.HasSuffix(q.Text, want) || len(q.Text) > 4096 {
				t.Errorf("%.60s: asked %d bytes that end with %q, want %q", arguments, len(q.Text),
					q.Text[max(0, len(q.Text)-40):], want)
			}
			x.Answer(fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "approve"}))
			if r := x.Wait(); r.Err != nil || r.Result.Messages[2].Text() != "sent" {
				t.Errorf("%v %+v", r.Err, r.Result)
			}
		})
	}
}
