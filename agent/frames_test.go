package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// named are the names of messages of the user, with what they say.
func named(messages []agent.Message) (all []string) {
	for _, m := range messages {
		if m.Role == agent.User || m.ID != "" {
			all = append(all, m.ID+"="+m.Text())
		}
	}
	return all
}

// shownMessages are the messages that readers see in the end.
func shownMessages(t *testing.T, r *fftest.Report[agent.Result]) (all []agent.Message) {
	t.Helper()
	for _, payload := range r.Kept("message") {
		var m agent.Message
		must.No(t, json.Unmarshal([]byte(payload), &m))
		all = append(all, m)
	}
	return all
}

// A message has the name that its sender gave it, else its number; result, transcript and readers have it, and it
// outlives a new input. A name that is none is passed over, and no answer has one.
func TestMessageIDs(t *testing.T) {
	type object = map[string]any
	long := strings.Repeat("é", 64)
	sent := []any{"one", object{"id": "u-2", "text": "two"}, object{"id": long, "parts": agent.Text("three")},
		object{"id": long + "x", "text": "four"}, object{"id": "a\nb", "text": "five"}, object{"id": 6, "text": "six"},
		object{"id": "", "text": "seven"}, object{"id": "u-8", "other": true}, agent.Text("nine"),
		agent.Message{ID: "u-10", Parts: agent.Text("ten")}}
	want := []string{"=hello", "m1=one", "u-2=two", long + "=three", "m4=four", "m5=five", "m6=six", "m7=seven",
		`m8={"id":"u-8","other":true}`, "m9=nine", "u-10=ten"}
	synctest.Test(t, func(t *testing.T) {
		model := agent.ModelFunc(func(_ context.Context, req agent.Request,
			_ func(agent.Delta) error) (agent.Response, error) {
			r := says("re " + req.Messages[len(req.Messages)-1].Text())
			r.Message.ID = "of a model"
			return r, nil
		})
		talks := handler.Define[[]agent.Message, agent.Result]("talks")
		w := fftest.New(t, runtime.Config{}, handler.Bind(talks, func(ctx context.Context, task *handler.Task,
			in []agent.Message) (agent.Result, error) {
			cfg := agent.Config{Model: model, Messages: in, Mailbox: "user", Conversation: true, OneByOne: true,
				MaxTurns: 3, Idle: time.Hour,
				Continue: func(r agent.Result) error { return handler.Continue(r.Messages) }}
			return agent.Run(ctx, task, cfg)
		}))
		x := fftest.Submit(w, talks, []agent.Message{{Role: agent.User, Parts: agent.Text("hello")}})
		for _, payload := range sent {
			x.AwaitSuspension()
			x.Answer(fftest.Send("user", payload))
		}
		r := x.Wait()
		must.No(t, r.Err)
		if got := named(r.Result.Messages); !slices.Equal(got, want) {
			t.Errorf("the result has\n%q\nwant\n%q", got, want)
		}
		if got := named(shownMessages(t, r)); !slices.Equal(got, want[6:]) { // since it last continued
			t.Errorf("readers have\n%q\nwant\n%q", got, want[6:])
		}
		read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
		if got := named(read.Messages); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: the transcript has\n%q\nwant\n%q", err, got, want)
		}
	})
}

// The message of an edit has the name that it says, else that of the message whose place it takes.
func TestMessageIDsOfEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Mailbox: "user",
			Conversation: true, Idle: time.Hour,
			Model: &script{answers: []agent.Response{says("first"), says("second")}}})))
		x := fftest.Submit(w, chat, "hello")
		x.AwaitSuspension()
		x.Answer(fftest.Send("user", map[string]any{"id": "u-1", "text": "one"}))
		w.Sleep(time.Minute)
		x.AwaitSuspension()
		for _, edit := range []struct {
			turn int
			say  any
		}{{0, "eins"}, {1, map[string]any{"id": "u-0", "text": "hallo"}}} {
			_, err := agent.Edit(t.Context(), w.Client(), x.ID(), agent.Place{Turn: edit.turn}, edit.say)
			must.No(t, err)
			w.Sleep(time.Minute)
			x.AwaitSuspension()
			read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
			want := map[int][]string{0: {"=hello", "u-1=eins"}, 1: {"u-0=hallo"}}[edit.turn]
			if got := named(read.Messages); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v: edited, the transcript has %q, want %q", err, got, want)
			}
		}
		x.Wait()
	})
}

// Of messages that are answered together, an edit that has the name of one takes the place of that one and of those
// behind it.
func TestEditsOfOneOfSeveralMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		say := func(id, text string) agent.Message {
			return agent.Message{ID: id, Role: agent.User, Parts: agent.Text(text)}
		}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, func(ctx context.Context, task *handler.Task,
			_ string) (agent.Result, error) {
			return agent.Run(ctx, task, agent.Config{Mailbox: "user", Conversation: true, Idle: time.Hour,
				Messages: []agent.Message{say("a", "one"), say("b", "two"), say("c", "three")},
				Model:    &script{answers: []agent.Response{says("first")}}})
		}))
		x := fftest.Submit(w, chat, "")
		for _, tc := range []struct {
			edit map[string]any
			want []string
		}{
			{map[string]any{"id": "c", "text": "drei"}, []string{"a=one", "b=two", "c=drei"}},
			{map[string]any{"id": "b", "text": "zwei"}, []string{"a=one", "b=zwei"}},
			{map[string]any{"id": "z", "text": "all"}, []string{"z=all"}},
		} {
			x.AwaitSuspension()
			_, err := agent.Edit(t.Context(), w.Client(), x.ID(), agent.Place{Turn: 1}, tc.edit)
			must.No(t, err)
			w.Sleep(time.Minute)
			read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
			if got := named(read.Messages); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%v: edited by %v, the transcript has %q, want %q", err, tc.edit, got, tc.want)
			}
		}
		x.Wait()
	})
}

// Names of messages that a run begins with are looked at.
func TestMessageIDsAreChecked(t *testing.T) {
	for _, id := range []string{strings.Repeat("x", 129), "a\x00", "\xff", "\u202e"} {
		r := run(t, agent.Config{Model: &script{answers: []agent.Response{says("hi")}},
			Messages: []agent.Message{{ID: id, Role: agent.User, Parts: agent.Text("x")}}})
		if r.Err == nil || !strings.Contains(r.Err.Error(), "Messages[0].ID") {
			t.Errorf("%q: %v", id, r.Err)
		}
	}
}

// Behind each answer readers are told what it cost, of one that was stopped, too.
func TestUsageFrames(t *testing.T) {
	r := run(t, agent.Config{Tools: []agent.Tool{search(nil)}, Model: agent.ModelFunc(func(_ context.Context,
		req agent.Request, _ func(agent.Delta) error) (agent.Response, error) {
		answer := wants("search", `{"text":"x"}`)
		if len(req.Messages) > 1 {
			answer = says("end")
		}
		answer.Model = "m-" + fmt.Sprint(len(req.Messages))
		return answer, nil
	})})
	stopped := run(t, agent.Config{Model: tell(1, fftest.Stop())})
	var got []string
	for _, f := range slices.Concat(r.Frames, stopped.Frames) {
		switch f.Type {
		case agent.FrameUsage:
			var u struct {
				Turn  int
				Model string
				Usage agent.Usage
				Stop  agent.StopReason
				Took  *int64 `json:"took_ms"`
			}
			if err := json.Unmarshal(f.Payload, &u); err != nil || u.Took == nil || *u.Took < 0 ||
				u.Stop == agent.StopStopped && u.Usage.Estimated == 0 {
				t.Errorf("%s: %v", f.Payload, err)
			}
			got = append(got, fmt.Sprint("usage ", u.Turn, " ", u.Model, " ", u.Stop, " ", u.Usage.Total() == 10))
		case agent.FrameMessage:
			var m agent.Message
			must.No(t, json.Unmarshal(f.Payload, &m))
			got = append(got, string(m.Role))
		}
	}
	want := []string{"user", "assistant", "usage 1 m-1 tools true", "tool", "assistant", "usage 2 m-3 end true",
		"user", "assistant", "usage 1  stopped false"}
	if !slices.Equal(got, want) {
		t.Errorf("frames %q, want %q", got, want)
	}
}

// A call is shown as the model writes it: calls that it writes at once, of ids of its own and of none, and arguments
// longer than a frame. What cannot be shown is not, and does no harm.
func TestCallFrames(t *testing.T) {
	long := `{"text":"` + strings.Repeat("é", 50_000) + `"}`
	begins := func(id, name, arguments string) agent.Delta {
		return agent.Delta{Call: &agent.CallDelta{ID: id, Name: name, Arguments: arguments}}
	}
	writes := [][]agent.Delta{
		{begins("a", "search", ""), begins("b", "search", `{"te`), begins("a", "", long), begins("b", "", "xt\xff"),
			begins("b", "", `":"b"}`)},
		{begins("", "search", `{"text"`), begins("", "", `:"c"}`), begins("", "search", ""), begins("", "", `{}`)},
		{begins("", "", "{}"), begins("x\x1fy", "search", "{}"), begins(strings.Repeat("x", 257), "search", "{}"),
			begins("\xff", "search", "{}"), begins("d", strings.Repeat("n", 300), ""), {Text: "end"}},
	}
	answers := []agent.Response{wants("search", long, "search", `{"text":"b"}`),
		wants("search", `{"text":"c"}`, "search", `{}`), says("end")}
	answers[0].Message.Calls[0].ID, answers[0].Message.Calls[1].ID = "a", "b"
	answers[1].Message.Calls[0].ID, answers[1].Message.Calls[1].ID = "", ""
	r := run(t, agent.Config{Tools: []agent.Tool{search(nil)}, Model: agent.ModelFunc(func(_ context.Context,
		req agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
		turn := len(req.Messages) / 3
		for _, d := range writes[turn] {
			if err := delta(d); err != nil {
				return agent.Response{}, err
			}
		}
		return answers[turn], nil
	})})
	must.No(t, r.Err)
	var begun, ids []string
	written := map[string]string{}
	for _, f := range r.Frames {
		switch f.Type {
		case agent.FrameCall:
			var c struct{ ID, Name string }
			must.No(t, json.Unmarshal(f.Payload, &c))
			begun = append(begun, c.ID+" "+c.Name)
		case agent.FrameArguments:
			if !utf8.Valid(f.Payload) || len(f.Payload) == 0 || len(f.Payload) > 64<<10 {
				t.Errorf("a piece of %d bytes", len(f.Payload))
			}
			written[f.Correlation] += string(f.Payload)
		}
	}
	for _, m := range r.Result.Messages {
		for _, c := range m.Calls {
			ids = append(ids, c.ID+" "+c.Name)
		}
	}
	cutName := "d " + strings.Repeat("n", 207) + "… (cut: 300 bytes)"
	if !slices.Equal(ids, []string{"a search", "b search", "call-2.1 search", "call-2.2 search"}) ||
		!slices.Equal(begun, append(slices.Clone(ids), cutName)) {
		t.Errorf("begun %q, called %q", begun, ids)
	}
	want := map[string]string{"a": long, "b": "{\"text\ufffd\":\"b\"}", "call-2.1": `{"text":"c"}`, "call-2.2": `{}`}
	if !maps.Equal(written, want) {
		t.Errorf("written %.300q", written)
	}
}

// An answer that is stopped while the model writes a call has none.
func TestCallFramesOfAStoppedAnswer(t *testing.T) {
	r := run(t, agent.Config{Tools: []agent.Tool{search(nil)}, Model: agent.ModelFunc(func(ctx context.Context,
		_ agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
		for _, d := range []agent.Delta{{Text: "I look."},
			{Call: &agent.CallDelta{ID: "a", Name: "search", Arguments: `{"te`}}} {
			if err := delta(d); err != nil {
				return agent.Response{}, err
			}
		}
		fftest.Tell(ctx, fftest.Stop())
		<-ctx.Done()
		return agent.Response{}, context.Cause(ctx)
	})})
	wantTalk(t, r.Result.Messages, "user: hello", "assistant: I look.")
	if kept := r.Kept(agent.FrameArguments); r.Err != nil || r.Result.Stop != agent.StopStopped ||
		!slices.Equal(kept, []string{`{"te`}) {
		t.Errorf("%v, %+v, shown %q", r.Err, r.Result, kept)
	}
}

// Of several tools readers see what came of each as soon as it ended, before the others end, and again as messages.
func TestResultFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		slow := agent.NewTool("slow", "", func(context.Context, query) (string, error) {
			<-goOn
			return "slowly", nil
		})
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{
			Tools: []agent.Tool{search(nil), slow, refund(agent.Decision{Ask: true})},
			Model: &script{answers: []agent.Response{wants("slow", `{"text":"x"}`, "search", `{"text":"bad"}`, "refund",
				`{"cents":1}`), wants("search", `{"text":"alone"}`), says("end")}}})))
		x := fftest.Submit(w, chat, "hello")
		early := func(seen []string) []string {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var got []string
			for e, err := range w.Client().Execution(x.ID()).Tail(ctx) {
				if must.No(t, err); e.Kind == stream.TailFrame && e.Frame.Type == agent.FrameResult {
					var m agent.Message
					must.No(t, json.Unmarshal(e.Frame.Payload, &m))
					if got = append(got, talk([]agent.Message{m})...); e.Frame.Mode != stream.ModeBestEffort {
						t.Errorf("mode %s", e.Frame.Mode)
					}
				}
				if slices.Equal(got, seen) || e.Kind == stream.TailEnd {
					break
				}
			}
			return got
		}
		first := []string{"failed tool search c2: nothing is there"}
		if got := early(first); !slices.Equal(got, first) {
			t.Errorf("readers see %q early", got)
		}
		close(goOn)
		second := append(first, "tool slow c1: slowly")
		if got := early(second); !slices.Equal(got, second) {
			t.Errorf("readers see %q early", got)
		}
		x.AwaitSuspension()
		x.Answer(fftest.Approve("approve 1.3 refund", suspend.Answer{Choice: "approve"}))
		r := x.Wait()
		must.No(t, r.Err)
		if kept := r.Kept(agent.FrameResult); len(kept) != 3 {
			t.Errorf("%d results came early, want 3", len(kept))
		}
		if m := shownMessages(t, r); !slices.Equal(talk(m), talk(r.Result.Messages)) {
			t.Errorf("readers see\n%q", talk(m))
		}
	})
}
