package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// tell gives answers in the middle of an answer, and says what follows until the answer is broken off.
func tell(turn int, answers ...fftest.Answer) agent.ModelFunc {
	return func(ctx context.Context, req agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
		n := 1
		for _, m := range req.Messages {
			if m.Role == agent.Assistant {
				n++
			}
		}
		if n != turn {
			return says("whole " + req.Messages[len(req.Messages)-1].Text()), nil
		}
		for _, d := range []agent.Delta{{Reasoning: "hm"}, {Text: "half an "}, {Text: "answer"}} {
			if err := delta(d); err != nil {
				return agent.Response{}, err
			}
		}
		fftest.Tell(ctx, answers...)
		<-ctx.Done()
		return agent.Response{}, context.Cause(ctx)
	}
}

// event is what a frame of type turn says.
type event struct {
	Act, By, Reason   string
	Model             int
	Tokens, Estimated int64
	Done              []string
	NotMade           []string `json:"not_made"`
	Unknown           []string
}

func eventsOf(t testing.TB, r *fftest.Report[agent.Result]) (all []event) {
	t.Helper()
	for _, payload := range r.Kept(agent.FrameTurn) {
		var e event
		if err := json.Unmarshal([]byte(payload), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// A stop in the middle of an answer ends it there: what was said is the answer, its tokens are estimated and spent,
// and readers are told.
func TestStopInAnAnswer(t *testing.T) {
	purse := admission.Gate{Name: "purse", Limits: map[string]admission.Limit{"tokens": {Hard: 10000}}}
	r := fftest.Run(t, chat, running(agent.Config{Model: tell(1, fftest.Stop(flowfabric.By("anna"),
		flowfabric.Reason("wrong question")))}), "hello", fftest.Gates(purse))
	if r.Err != nil || r.Result.Stop != agent.StopStopped || r.Result.Text != "half an answer" || r.Result.Turns != 1 {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
	wantTalk(t, r.Result.Messages, "user: hello", "assistant: half an answer")
	if p := r.Result.Messages[1].Parts; len(p) != 2 || p[0].Type != agent.PartReasoning || p[0].Text != "hm" {
		t.Errorf("%+v", p)
	}
	u := r.Result.Usage
	if u.Output != 4 || u.Input < 30 || u.Estimated != u.Total() || r.Spent["purse"]["tokens"] != u.Total() {
		t.Errorf("%+v, spent %v", u, r.Spent)
	}
	want := event{Act: "stop", By: "anna", Reason: "wrong question", Model: 1, Tokens: u.Total(), Estimated: u.Total()}
	if all := eventsOf(t, r); len(all) != 1 || all[0].By != want.By || all[0].Reason != want.Reason ||
		all[0].Model != 1 || all[0].Tokens != want.Tokens || all[0].Estimated != want.Tokens ||
		all[0].Done == nil || all[0].NotMade == nil || len(all[0].Done) > 0 {
		t.Errorf("%+v", all)
	}
	if raw := r.Kept(agent.FrameTurn); !strings.Contains(raw[0], `"done":[],"not_made":[]`) {
		t.Errorf("%q", raw)
	}
	var types []string
	for _, f := range r.Frames {
		types = append(types, f.Type)
	}
	if !slices.Equal(types[len(types)-3:], []string{agent.FrameTurn, agent.FrameMessage, agent.FrameUsage}) {
		t.Errorf("frames %q", types)
	}
}

// What the adapter reports of an answer that was broken off is what it cost.
func TestStopKnowsWhatItCost(t *testing.T) {
	inner := tell(1, fftest.Stop())
	r := run(t, agent.Config{Model: agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		_, err := inner(ctx, req, delta)
		return agent.Response{Usage: agent.Usage{Input: 5, Output: 2}}, err
	})})
	if r.Result.Usage != (agent.Usage{Input: 5, Output: 2}) || r.Result.Text != "half an answer" {
		t.Errorf("%+v", r.Result)
	}
}

// A stop behind the last word of a complete answer comes before its record: the answer is whole, and stopped.
func TestStopAtTheLastWord(t *testing.T) {
	r := run(t, agent.Config{Model: agent.ModelFunc(func(ctx context.Context, _ agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		fftest.Tell(ctx, fftest.Stop())
		return says("all of it"), nil
	})})
	if r.Err != nil || r.Result.Stop != agent.StopStopped || r.Result.Text != "all of it" ||
		r.Result.Usage.Total() != 10 || r.Result.Usage.Estimated != 0 {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
	if all := eventsOf(t, r); len(all) != 1 || all[0].Act != "stop" || all[0].Tokens != 10 {
		t.Errorf("%+v", all)
	}
}

// A conversation that was stopped waits for the next message, which begins a turn of its own; an answer without a word
// is not shown to the model.
func TestStopOfAConversation(t *testing.T) {
	asked := make(chan []string, 9)
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		asked <- talk(req.Messages)
		if len(req.Messages) == 1 {
			fftest.Tell(ctx, fftest.Stop())
			<-ctx.Done()
			return agent.Response{}, context.Cause(ctx)
		}
		return says("fine"), nil
	})
	r := fftest.Run(t, chat, fftest.Answered(running(agent.Config{Model: model, Mailbox: "talk", Conversation: true,
		Idle: time.Hour}), fftest.Send("talk", "again", flowfabric.By("anna")).After(time.Minute)), "hello")
	wantTalk(t, r.Result.Messages, "user: hello", "assistant: ", "user anna: again", "assistant: fine")
	if r.Err != nil || r.Result.Stop != agent.StopEnd {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
	if first, second := <-asked, <-asked; len(first) != 1 ||
		!slices.Equal(second, []string{"user: hello", "user anna: again"}) {
		t.Errorf("asked %q and %q", first, second)
	}
}

// A stop while tools run lets those end, and keeps the others from being made; Stop tells which were.
func TestStopInATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, goOn := make(chan struct{}), make(chan struct{})
		slow := agent.NewTool("slow", "", func(context.Context, query) (string, error) {
			close(started)
			<-goOn
			return "slowly", nil
		})
		model := &script{answers: []agent.Response{wants("search", `{"text":"a"}`),
			wants("search", `{"text":"b"}`, "slow", `{"text":"x"}`, "search", `{"text":"c"}`, "refund", `{"cents":1}`)}}
		tools := append(noted(new(fftest.Effects))[1:], search(nil), slow)
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model, Tools: tools,
			Parallel: 1})))
		x := fftest.Submit(w, chat, "hello")
		<-started
		s, err := agent.Stop(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{}, flowfabric.By("anna"))
		if err != nil || s.Already || s.By != "anna" {
			t.Errorf("%+v, %v", s, err)
		}
		var did []string
		for _, e := range s.Done {
			did = append(did, e.Step+" "+string(e.Arguments)+" "+e.Result)
		}
		want := []string{`tool 1.1 search {"text":"a"} about a`, `tool 2.1 search {"text":"b"} about b`}
		if !slices.Equal(did, want) {
			t.Errorf("done %q", did)
		}
		other, err := w.Client().Execution(x.ID()).Stop(t.Context(), flowfabric.By("ben"))
		if err != nil || !other.Already || other.By != "anna" || !slices.Contains(other.Done, "tool 2.1 search") {
			t.Errorf("%+v, %v", other, err)
		}
		close(goOn)
		r := x.Wait()
		not := ": the call was not made: the answer was stopped"
		wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"a"}`, "tool search c1: about a",
			`assistant:  search{"text":"b"} slow{"text":"x"} search{"text":"c"} refund{"cents":1}`,
			"tool search c1: about b", "tool slow c2: slowly", "failed tool search c3"+not, "failed tool refund c4"+not)
		if r.Err != nil || r.Result.Stop != agent.StopStopped {
			t.Errorf("%v, %+v", r.Err, r.Result)
		}
		all := eventsOf(t, r)
		if len(all) != 1 || all[0].Act != "stop" || all[0].By != "anna" || all[0].Tokens != 0 ||
			!slices.Equal(all[0].Done, []string{"tool 1.1 search", "tool 2.1 search", "tool 2.2 slow"}) ||
			!slices.Equal(all[0].NotMade, []string{"tool 2.3 search", "tool 2.4 refund"}) {
			t.Errorf("%+v", all)
		}
		if _, err := w.Client().Execution(x.ID()).Stop(t.Context()); !errors.Is(err, flowfabric.ErrTerminal) {
			t.Errorf("an ended one: %v", err)
		}
	})
}

// Who waits for a message cannot be stopped, and says nothing wrong for it.
func TestStopOfAnIdleConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Mailbox: "talk",
			Conversation: true, Idle: time.Hour, Model: &script{answers: []agent.Response{says("hi")}}})))
		x := fftest.Submit(w, chat, "hello")
		x.AwaitSuspension()
		if _, err := w.Client().Execution(x.ID()).Stop(t.Context()); !errors.Is(err, denied.NothingToStop) {
			t.Errorf("%v", err)
		}
		if r := x.Wait(); r.Err != nil || r.Result.Stop != agent.StopEnd {
			t.Errorf("%+v, %v", r.Result, r.Err)
		}
	})
}

// A message that interrupts ends the answer, and is answered at once.
func TestInterrupt(t *testing.T) {
	r := run(t, agent.Config{Model: tell(1, fftest.Send("talk", "wait", flowfabric.By("anna"))), Mailbox: "talk",
		WhileBusy: agent.Interrupt})
	wantTalk(t, r.Result.Messages, "user: hello", "assistant: half an answer", "user anna: wait",
		"assistant: whole wait")
	if r.Err != nil || r.Result.Stop != agent.StopEnd || r.Result.Usage.Estimated == 0 {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
	if all := eventsOf(t, r); len(all) != 1 || all[0].Act != "interrupt" || all[0].Model != 1 {
		t.Errorf("%+v", all)
	}
}

// A message ends a wait for people: what they have not decided is not made, nor what they have.
func TestInterruptOfApprovals(t *testing.T) {
	fx := new(fftest.Effects)
	model := &script{answers: []agent.Response{wants("refund", `{"cents":1}`, "refund", `{"cents":2}`), says("well")}}
	r := fftest.Run(t, chat, fftest.Answered(running(agent.Config{Model: model, Tools: noted(fx), Mailbox: "talk",
		WhileBusy: agent.Interrupt}), fftest.Approve("approve 1.1 refund", suspend.Answer{Choice: "approve"}),
		fftest.Send("talk", "no", flowfabric.By("anna"))), "hello")
	not := ": the call was not made: a message came before"
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  refund{"cents":1} refund{"cents":2}`,
		"failed tool refund c1"+not, "failed tool refund c2"+not, "user anna: no", "assistant: well")
	if r.Err != nil {
		t.Error(r.Err)
	}
}

// A mailbox that is shut takes no message while the agent talks, and one when it has answered.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *fftest.Env
		var x *fftest.Execution[agent.Result]
		ready, refused := make(chan struct{}), make(chan error, 9)
		w = fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Mailbox: "talk", Conversation: true,
			Idle: time.Hour, WhileBusy: agent.Refuse, Model: agent.ModelFunc(func(ctx context.Context,
				req agent.Request, _ func(agent.Delta) error) (agent.Response, error) {
				<-ready
				_, err := w.Client().Execution(x.ID()).Send(ctx, "talk", "hey")
				refused <- err
				return says("to " + req.Messages[len(req.Messages)-1].Text()), nil
			})})))
		x = fftest.Submit(w, chat, "hello")
		close(ready)
		x.AwaitSuspension()
		x.Answer(fftest.Send("talk", "more"))
		r := x.Wait()
		wantTalk(t, r.Result.Messages, "user: hello", "assistant: to hello", "user fftest: more", "assistant: to more")
		for range 2 {
			if err := <-refused; !errors.Is(err, flowfabric.ErrState) || !strings.Contains(err.Error(), "talking") {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestWhileBusyIsChecked(t *testing.T) {
	for name, cfg := range map[string]agent.Config{
		"WhileBusy is":  {WhileBusy: "shout", Mailbox: "talk"},
		"needs Mailbox": {WhileBusy: agent.Refuse},
		"OneByOne has":  {WhileBusy: agent.Interrupt, OneByOne: true, Mailbox: "talk"},
	} {
		cfg.Model = &script{}
		if r := run(t, cfg); r.Err == nil || !strings.Contains(r.Err.Error(), name) {
			t.Errorf("%s: %v", name, r.Err)
		}
	}
}
