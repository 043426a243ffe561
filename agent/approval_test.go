package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// refund is a tool about which d decides.
func refund(d agent.Decision) agent.Tool {
	return agent.NewTool("refund", "pays back", func(_ context.Context, in amount) (string, error) {
		return "paid", nil
	}, agent.Needs(func(amount) agent.Decision { return d }))
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
	ask := agent.Decision{Ask: true}
	within := agent.Decision{Ask: true, Within: 48 * time.Hour}
	run := within
	run.Over = agent.OverRun
	for want, tc := range map[string]struct {
		decision agent.Decision
		answer   []fftest.Answer
	}{
		"paid": {ask, []fftest.Answer{approved}},
		"the call was not made: rejected by anna: no": {ask, []fftest.Answer{fftest.Approve("approve 1.1 refund",
			suspend.Answer{Choice: "reject", Comment: "no"}, flowfabric.By("anna"))}},
		"the call was not made: it was not approved":               {ask, []fftest.Answer{fftest.Resume()}},
		"the call was not made: nobody approved it within 48h0m0s": {within, nil},
		"too much": {agent.Decision{Refuse: "too much", Ask: true}, nil},
	} {
		r := asks(t, refund(tc.decision), `{"cents":5}`, tc.answer...)
		if m := result(t, r); m.Text() != want || m.Failed != (want != "paid") || m.Call != "c1" {
			t.Errorf("%+v, want %s", m, want)
		}
		waits := []string{"approve 1"}
		if tc.decision.Refuse != "" {
			waits = []string{}
		}
		r.Want(fftest.Want{Waits: waits, Steps: []string{"model 1", "tool 1.1 refund", "model 2"}})
	}
	for _, d := range []agent.Decision{run, {}} {
		if m := result(t, asks(t, refund(d), `{"cents":5}`)); m.Text() != "paid" {
			t.Errorf("%+v: %+v", d, m)
		}
	}
	end := within
	end.Over = agent.OverEnd
	r := asks(t, refund(end), `{"cents":5}`)
	r.Want(fftest.Want{Failure: "agent_unapproved"})
	for _, bad := range []agent.Decision{{Ask: true, Over: "x"}, {Ask: true, Assignee: strings.Repeat("x", 129)},
		{Ask: true, Within: -1}} {
		if r := asks(t, refund(bad), `{"cents":5}`); r.Err == nil || len(r.Attempts) != 1 {
			t.Errorf("%+v: %v after %d attempts", bad, r.Err, len(r.Attempts))
		}
	}
}

// Nobody is asked about arguments that the schema refuses.
func TestNobodyIsAskedAboutBadArguments(t *testing.T) {
	r := asks(t, refund(agent.Decision{Ask: true}), `{"cents":"all"}`)
	if m := result(t, r); !m.Failed || !strings.Contains(m.Text(), "do not fit the schema") {
		t.Errorf("%+v", m)
	}
	r.Want(fftest.Want{Waits: []string{}})
}

// Tools that need no approval are done before anybody is asked, all questions are open at once, and nothing that needs
// approval runs before the last answer.
func TestQuestionsOfATurnAreOpenAtOnce(t *testing.T) {
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
			}, agent.Needs(func(in amount) agent.Decision {
				return agent.Decision{Ask: true, Assignee: fmt.Sprint("desk ", in.Cents)}
			}))}
		model := &script{answers: []agent.Response{wants("refund", `{"cents":1}`, "search", `{"text":"x"}`, "refund",
			`{"cents":2}`), says("end")}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model, Tools: tools})))
		x := fftest.Submit(w, chat, "hello")
		asked := x.AwaitSuspension()
		if asked.Name != "approve 1" || asked.Reason != string(suspend.ReasonApproval) || len(asked.Waitpoints) != 2 ||
			asked.Question == nil || asked.Question.Title != "refund: cents 1" {
			t.Errorf("%+v, %+v", asked, asked.Question)
		}
		for _, p := range asked.Waitpoints {
			cents := map[string]int{"approve 1.1 refund": 1, "approve 1.3 refund": 2}[p.Key]
			if p.Question == nil || p.Question.Title != fmt.Sprint("refund: cents ", cents) || !p.Open() ||
				p.Question.Assignee != fmt.Sprint("desk ", cents) ||
				p.Question.Text != fmt.Sprintf("{\n  \"cents\": %d\n}", cents) ||
				string(p.Question.Arguments) != fmt.Sprintf(`{"cents":%d}`, cents) {
				t.Errorf("%s asks %+v", p.Key, p.Question)
			}
		}
		if !slices.Equal(did, []string{"x"}) {
			t.Errorf("before: %q", did)
		}
		d := x.Answer(fftest.Approve("approve 1.3 refund", suspend.Answer{Choice: "approve"}))
		if d.Open || !slices.Equal(did, []string{"x"}) {
			t.Errorf("%+v, %q", d, did)
		}
		_, err := w.Client().Execution(x.ID()).Approve(t.Context(), "approve 1.3 refund",
			suspend.Answer{Choice: "reject"}, flowfabric.By("ben"))
		if !errors.Is(err, flowfabric.ErrWaitpointClosed) {
			t.Errorf("the second answer: %v", err)
		}
		left := x.AwaitSuspension()
		if left.ID != asked.ID || left.Question == nil || left.Question.Title != "refund: cents 1" {
			t.Errorf("%+v", left)
		}
		x.Answer(fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "reject"}))
		r := x.Wait()
		if r.Err != nil || !slices.Equal(did, []string{"x", "refund"}) {
			t.Errorf("%v, %q", r.Err, did)
		}
	})
}

// Of several people who answer one question at once one wins, and the others are told that it is closed.
func TestOneOfSeveralAnswersWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &script{answers: []agent.Response{wants("refund", `{"cents":1}`, "refund", `{"cents":2}`),
			says("end")}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model,
			Tools: []agent.Tool{refund(agent.Decision{Ask: true})}})))
		x := fftest.Submit(w, chat, "hello")
		x.AwaitSuspension()
		for _, key := range []string{"approve 1.2 refund", "approve 1.1 refund"} {
			refused := make(chan error, 8)
			for i := range cap(refused) {
				go func() {
					_, err := w.Client().Execution(x.ID()).Approve(t.Context(), key,
						suspend.Answer{Choice: []string{"approve", "reject"}[i%2]}, flowfabric.By(fmt.Sprint("p", i)))
					refused <- err
				}()
			}
			won := 0
			for range cap(refused) {
				switch err := <-refused; {
				case err == nil:
					won++
				case !errors.Is(err, flowfabric.ErrWaitpointClosed) && !errors.Is(err, flowfabric.ErrTerminal):
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%s: %d answers won", key, won)
			}
		}
		x.Wait()
	})
}

// A question whose time is over ends alone. The others go on, and what was answered counts.
func TestATimeLimitEndsItsOwnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool := agent.NewTool("refund", "", func(_ context.Context, in amount) (string, error) {
			return fmt.Sprint("paid ", in.Cents), nil
		}, agent.Needs(func(in amount) agent.Decision {
			return agent.Decision{Ask: true, Within: time.Duration(in.Cents) * time.Hour}
		}))
		model := &script{answers: []agent.Response{wants("refund", `{"cents":1}`, "refund", `{"cents":9}`, "refund",
			`{"cents":2}`, "refund", `{"cents":5}`), says("end")}}
		w := fftest.New(t, runtime.Config{},
			handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{tool}})))
		x := fftest.Submit(w, chat, "hello")
		first := x.AwaitSuspension()
		open := func(want ...string) {
			t.Helper()
			var keys []string
			s := x.AwaitSuspension()
			for _, p := range s.Waitpoints {
				if p.Open() && p.Question != nil {
					keys = append(keys, strings.Fields(p.Key)[1])
				}
			}
			slices.Sort(keys)
			if !slices.Equal(keys, want) || s.ID != first.ID {
				t.Errorf("open: %q, want %q", keys, want)
			}
		}
		open("1.1", "1.2", "1.3", "1.4")
		x.Answer(fftest.Approve("approve 1.4 refund", suspend.Answer{Choice: "approve"}))
		w.Sleep(time.Hour + time.Minute)
		open("1.2", "1.3")
		w.Sleep(time.Hour)
		open("1.2")
		_, err := w.Client().Execution(x.ID()).Approve(t.Context(), "approve 1.1 refund",
			suspend.Answer{Choice: "approve"}, flowfabric.By("ben"))
		if !errors.Is(err, flowfabric.ErrWaitpointClosed) {
			t.Errorf("an answer that is too late: %v", err)
		}
		r := x.Wait() // the last one times out, too
		if r.Err != nil || r.Elapsed < 9*time.Hour {
			t.Fatal(r.Err, r.Elapsed)
		}
		wantTalk(t, r.Result.Messages[2:6],
			"failed tool refund c1: the call was not made: nobody approved it within 1h0m0s",
			"failed tool refund c2: the call was not made: nobody approved it within 9h0m0s",
			"failed tool refund c3: the call was not made: nobody approved it within 2h0m0s",
			"tool refund c4: paid 5")
	})
}

// An operator who lets the run go on ends the open questions; what was answered counts.
func TestAnOperatorEndsOpenQuestions(t *testing.T) {
	cfg := agent.Config{Model: &script{answers: []agent.Response{wants("refund", `{"cents":1}`, "refund",
		`{"cents":2}`), says("end")}}, Tools: []agent.Tool{refund(agent.Decision{Ask: true})}}
	r := fftest.Run(t, chat, fftest.Answered(running(cfg),
		fftest.Approve("approve 1.2 refund", suspend.Answer{Choice: "approve"}), fftest.Resume()), "hello")
	wantTalk(t, r.Result.Messages[2:4], "failed tool refund c1: the call was not made: it was not approved",
		"tool refund c2: paid")
}

// More questions than one suspension can ask follow in others.
func TestMoreQuestionsThanOneSuspensionHolds(t *testing.T) {
	var calls []string
	var answers []fftest.Answer
	for i := range 18 {
		calls = append(calls, "refund", fmt.Sprintf(`{"cents":%d}`, i))
		answers = append(answers, fftest.Approve(fmt.Sprintf("approve 1.%d refund", i+1),
			suspend.Answer{Choice: "approve"}))
	}
	cfg := agent.Config{Model: &script{answers: []agent.Response{wants(calls...), says("end")}},
		Tools: []agent.Tool{refund(agent.Decision{Ask: true})}}
	r := fftest.Run(t, chat, fftest.Answered(running(cfg), answers...), "hello")
	r.Want(fftest.Want{Waits: []string{"approve 1", "approve 1 2"}})
	if r.Err != nil || len(r.Result.Messages) != 21 {
		t.Errorf("%v, %d messages", r.Err, len(r.Result.Messages))
	}
}

// The title says what is asked, in one line; tools may word it otherwise. Whatever they say, and whatever the model
// wrote, fits into a question, and says so when it is cut.
func TestTitlesOfQuestions(t *testing.T) {
	long := strings.Repeat("a", 300)
	for name, tc := range map[string]struct {
		decision          agent.Decision
		arguments         string
		title, text, args string
	}{
		"plain": {arguments: `{"text":"hi","n":5}`, title: "mail: text hi, n 5",
			text: "{\n  \"text\": \"hi\",\n  \"n\": 5\n}", args: `{"text":"hi","n":5}`},
		"objects": {arguments: `{"text":"a","more":{"b":[1, "c"]}}`, title: `mail: text a, more {"b":[1,"c"]}`,
			text: "{\n  \"text\": \"a\",\n  \"more\": {\n    \"b\": [\n      1,\n      \"c\"\n    ]\n  }\n}",
			args: `{"text":"a","more":{"b":[1,"c"]}}`},
		"controls": {arguments: `{"text":"a\u202eb\u0000\nc"}`, title: `mail: text a\u202eb\u0000 c`,
			text: "{\n  \"text\": \"a\\u202eb\\u0000\\nc\"\n}", args: `{"text":"a\u202eb\u0000\nc"}`},
		"worded": {decision: agent.Decision{Title: "Send\nit?", Text: "Dear Anna\r", Fixed: true},
			arguments: `{"text":"hi"}`, title: "Send it?", text: `Dear Anna\u000d`},
		"long": {decision: agent.Decision{Title: long}, arguments: `{"text":"hi"}`,
			title: strings.Repeat("a", 152) + "… (cut: 300 bytes)", text: "{\n  \"text\": \"hi\"\n}",
			args: `{"text":"hi"}`},
		"empty": {arguments: `{}`, title: "mail", text: "{}", args: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.decision.Ask = true
				tool := agent.NewTool("mail", "", func(context.Context, map[string]any) (string, error) {
					return "sent", nil
				}, agent.Needs(func(map[string]any) agent.Decision { return tc.decision }))
				model := &script{answers: []agent.Response{wants("mail", tc.arguments), says("end")}}
				w := fftest.New(t, runtime.Config{},
					handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{tool}})))
				x := fftest.Submit(w, chat, "hello")
				q := x.AwaitSuspension().Question
				if q.Title != tc.title || q.Text != tc.text || string(q.Arguments) != tc.args ||
					(q.Schema != nil) != (tc.args != "") {
					t.Errorf("asked %q %q %s, want %q %q %s", q.Title, q.Text, q.Arguments, tc.title, tc.text, tc.args)
				}
				x.Answer(fftest.Approve("approve 1.1 mail", suspend.Answer{Choice: "approve"}))
				x.Wait()
			})
		})
	}
}

// Whatever the model wrote fits into a question, or what people see says that it is cut; arguments that do not fit
// cannot be changed.
func TestQuestions(t *testing.T) {
	type letter struct {
		Text string `json:"text"`
	}
	for arguments, want := range map[string]string{
		`{"text":"dear"}`:                                      "send dear?",
		`{"text":"a\u202eb\u0000c\rd\u2028e"}`:                 `send a\u202eb\u0000c\u000dd\u2028e?`,
		`{"text":"` + strings.Repeat(`\"`, 20_000) + `"}`:      `(cut: 20006 bytes)`,
		`{"text":"` + strings.Repeat(`é`, 20_000) + `"}`:       `(cut: 40006 bytes)`,
		`{"text":"` + strings.Repeat(`<`, 20_000) + `"}`:       `(cut: 20006 bytes)`,
		`{"text":"` + strings.Repeat(`\u0001`, 5_000) + `"}`:   `(cut: 30006 bytes)`,
		`{"text":"` + strings.Repeat("\xff", 5_000) + `"}`:     "send \ufffd?",
		`{"text":"` + strings.Repeat(`\ud83d`, 20_000) + `"}`:  `(cut: 60006 bytes)`,
		`{"text":"` + strings.Repeat("\u202e", 20_000) + `"}`:  `(cut: 120006 bytes)`,
		`{"text":"` + strings.Repeat("a", 4096-7) + "b" + `"}`: `aaab?`,
		`{"text":"` + strings.Repeat("a", 4096-6) + "b" + `"}`: `(cut: 4097 bytes)`,
	} {
		synctest.Test(t, func(t *testing.T) {
			model := &script{answers: []agent.Response{wants("refund", arguments), says("end")}}
			tool := agent.NewTool("refund", "", func(context.Context, letter) (string, error) { return "sent", nil },
				agent.Needs(func(l letter) agent.Decision {
					return agent.Decision{Ask: true, Assignee: strings.Repeat(`"`, 128), Text: "send " + l.Text + "?"}
				}))
			w := fftest.New(t, runtime.Config{},
				handler.Bind(chat, running(agent.Config{Model: model, Tools: []agent.Tool{tool}})))
			x := fftest.Submit(w, chat, "hello")
			q := x.AwaitSuspension().Question
			if !strings.HasSuffix(q.Text, want) || len(q.Text) > 4096 || len(q.Title) > 200 {
				t.Errorf("%.60s: asked %d bytes that end with %q, want %q", arguments, len(q.Text),
					q.Text[max(0, len(q.Text)-40):], want)
			}
			if n := len(arguments); n < 100 && q.Arguments == nil || n > 20_000 && q.Arguments != nil {
				t.Errorf("%.60s: %d bytes may be changed", arguments, len(q.Arguments))
			}
			x.Answer(fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "approve"}))
			if r := x.Wait(); r.Err != nil || r.Result.Messages[2].Text() != "sent" {
				t.Errorf("%v %+v", r.Err, r.Result)
			}
		})
	}
}

// Changed arguments that do not fit are refused where they are sent, with the field, and nothing is written.
func TestHostileEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := &script{answers: []agent.Response{wants("refund", `{"cents":5}`), says("end")}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model,
			Tools: []agent.Tool{refund(agent.Decision{Ask: true})}})))
		x := fftest.Submit(w, chat, "hello")
		x.AwaitSuspension()
		for payload, want := range map[string]string{
			`{"choice":"approve","arguments":{"cents":"all"}}`:                                      "cents",
			`{"choice":"approve","arguments":{}}`:                                                   "cents",
			`{"choice":"approve","arguments":{"cents":1,"to":"me"}}`:                                "to",
			`{"choice":"approve","arguments":[1]}`:                                                  "object",
			`{"choice":"approve","arguments":"{"}`:                                                  "object",
			`{"choice":"approve","arguments":{"cents":1.5}}`:                                        "cents",
			`{"choice":"approve","arguments":{"cents":` + strings.Repeat(" ", 20_000) + `1}}`:       "bytes",
			`{"choice":"approve","arguments":{"cents":1,"x":"` + strings.Repeat("x", 2<<20) + `"}}`: "65536",
			`{"choice":"approve","Arguments":{"cents":"` + strings.Repeat("x", 2000) + `"}}`:        "cents",
		} {
			_, err := w.Client().Execution(x.ID()).Approve(t.Context(), "approve 1.1 refund",
				json.RawMessage(payload), flowfabric.By("eve"))
			if !errors.Is(err, flowfabric.ErrInvalidInput) && !errors.Is(err, flowfabric.ErrPayloadTooLarge) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%.60s: %v, want %s", payload, err, want)
			}
		}
		if s := x.AwaitSuspension(); s.Signals != 0 {
			t.Errorf("%d signals", s.Signals)
		}
		x.Answer(fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "reject"}))
		x.Wait()
	})
}

// What passes the door, the run checks again: an edit that it does not take is a rejection with the reason.
func TestEditsAreCheckedAgain(t *testing.T) {
	const not = "failed tool refund c1: the call was not made: eve changed the arguments, and "
	for edited, want := range map[string]string{
		`{"cents":2000}`: not + "that is refused: too much",
		`{"cents":1e99}`: not + "the arguments do not decode: json: cannot unmarshal number 1e99 into Go struct " +
			"field amount.cents of type int",
		`{ "cents": 5.0 }`: "tool refund c1: paid 5",
		`{ "cents": 6.0 }`: `tool refund c1: eve changed the arguments. The call was made with {"cents":6}` +
			"\npaid 6",
	} {
		tool := agent.NewTool("refund", "", func(_ context.Context, in amount) (string, error) {
			return fmt.Sprint("paid ", in.Cents), nil
		}, agent.Needs(func(in amount) agent.Decision {
			if in.Cents > 1000 {
				return agent.Decision{Refuse: "too much"}
			}
			return agent.Decision{Ask: true}
		}))
		r := asks(t, tool, `{"cents":5}`, fftest.Approve("approve 1.1 refund",
			suspend.Answer{Choice: "approve", Arguments: json.RawMessage(edited)}, flowfabric.By("eve")))
		wantTalk(t, r.Result.Messages[2:3], want)
	}
}

// three is a turn with three approvals, of which one is changed and one is chosen for always, and a turn in which
// nobody is asked but about what always does not cover.
func three(t *testing.T, fx *fftest.Effects) agent.Config {
	var mu sync.Mutex
	keys := map[string]string{}
	tool := func(name string) agent.Tool {
		return agent.NewTool(name, "pays", func(ctx context.Context, in amount) (string, error) {
			call, _ := agent.CallFrom(ctx)
			fx.Did(call.Step)
			mu.Lock()
			defer mu.Unlock()
			if keys[call.Step] != "" && keys[call.Step] != call.Key {
				t.Errorf("%s has keys %s and %s", call.Step, keys[call.Step], call.Key)
			}
			keys[call.Step] = call.Key
			return fmt.Sprint("paid ", in.Cents), nil
		}, agent.Needs(func(in amount) agent.Decision {
			return agent.Decision{Ask: true, Always: in.Cents < 50, Within: 48 * time.Hour}
		}))
	}
	return agent.Config{Tools: []agent.Tool{tool("refund"), tool("order")}, Model: &script{answers: []agent.Response{
		wants("refund", `{"cents":1}`, "refund", `{"cents":2}`, "order", `{"cents":3}`),
		wants("refund", `{"cents":4}`, "order", `{"cents":5}`, "refund", `{"cents":60}`), says("done")},
		called: func(turn int, _ agent.Request) { fx.Did(fmt.Sprint("model ", turn)) }}}
}

// Wherever the worker dies, each approved call runs with the arguments that were approved, nothing recorded is
// repeated, and who was not asked once is not asked in any later run.
func TestCrashesOfSeveralApprovals(t *testing.T) {
	anna := flowfabric.By("anna")
	var mu sync.Mutex
	var fx *fftest.Effects
	crashes := fftest.Crashes(t, chat,
		func(next *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			fx = next
			mu.Unlock()
			return fftest.Answered(running(three(t, next)),
				fftest.Approve("approve 1.3 order", suspend.Answer{Choice: "reject", Comment: "no"}, anna),
				fftest.Approve("approve 1.1 refund",
					suspend.Answer{Choice: "approve", Arguments: json.RawMessage(`{"cents": 7}`)}, anna),
				fftest.Approve("approve 1.2 refund", suspend.Answer{Choice: "always"}, anna),
				fftest.Approve("approve 2.3 refund", suspend.Answer{Choice: "approve"}, anna))
		}, "hello", func(r *fftest.Report[agent.Result]) {
			if r.Err != nil {
				t.Errorf("%s: %v", r.Crash, r.Err)
				return
			}
			wantTalk(t, r.Result.Messages, "user: hello",
				`assistant:  refund{"cents":1} refund{"cents":2} order{"cents":3}`,
				`tool refund c1: anna changed the arguments. The call was made with {"cents":7}`+"\npaid 7",
				"tool refund c2: paid 2", "failed tool order c3: the call was not made: rejected by anna: no",
				`assistant:  refund{"cents":4} order{"cents":5} refund{"cents":60}`, "tool refund c1: paid 4",
				"failed tool order c2: the call was not made: nobody approved it within 48h0m0s",
				"tool refund c3: paid 60", "assistant: done")
			if e := r.Result.Messages[2].Edited; e == nil || e.By != "anna" || string(e.Arguments) != `{"cents":7}` {
				t.Errorf("%s: %+v", r.Crash, e)
			}
			for step, want := range map[string]int{"tool 1.1 refund": 1, "tool 1.2 refund": 1, "tool 1.3 order": 0,
				"tool 2.1 refund": 1, "tool 2.2 order": 0, "tool 2.3 refund": 1} {
				if n := fx.Count(step); n < want || n > 2*want {
					t.Errorf("%s: %s was done %d times", r.Crash, step, n)
				}
			}
			r.Want(fftest.Want{Waits: []string{"approve 1", "approve 2"}})
		})
	if crashes < 40 {
		t.Errorf("%d crashes", crashes)
	}
}
