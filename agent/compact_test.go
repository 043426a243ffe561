package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const sumUp = "sum it up"

// digger is a model that searches for 1, 2, 3 … most, then ends, and sums up when it is asked to. It goes by the last
// message alone, and reports a token for every four bytes.
type digger struct {
	most  int
	asked func(what string, req agent.Request, u agent.Usage) // may be nil

	mu sync.Mutex
}

func (d *digger) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	last := req.Messages[len(req.Messages)-1].Text()
	if last == sumUp {
		r := says(fmt.Sprintf("%d messages, the first is %.20s", len(req.Messages)-1, req.Messages[0].Text()))
		return d.weighed("summary", req, r), delta(agent.Delta{Text: r.Message.Text()})
	}
	next := 1
	if _, err := fmt.Sscanf(last, "found %d", &next); err == nil {
		next++
	}
	r := says("all found")
	if next <= d.most {
		r = wants("search", fmt.Sprintf(`{"text":"%d"}`, next))
	}
	return d.weighed(fmt.Sprint("model ", next), req, r), context.Cause(ctx)
}

func (d *digger) weighed(what string, req agent.Request, r agent.Response) agent.Response {
	data, _ := json.Marshal(req.Messages)
	r.Usage = agent.Usage{Input: int64(len(data)) / 4, Output: 10}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked != nil {
		d.asked(what, req, r.Usage)
	}
	return r
}

// finds is a tool whose results have 400 bytes or so.
var finds = agent.NewTool("search", "looks things up", func(_ context.Context, q query) (string, error) {
	return "found " + q.Text + strings.Repeat(" and more", 45), nil
})

// valid says what is wrong with a conversation that a model is asked to go on with.
func valid(messages []agent.Message) error {
	open := map[string]bool{}
	for i, m := range messages {
		switch {
		case i == 0 && m.Role != agent.User:
			return fmt.Errorf("it begins with %s", m.Role)
		case m.Role == agent.ToolRole && !open[m.Call]:
			return fmt.Errorf("%d answers no call", i)
		case m.Role != agent.ToolRole && len(open) > 0:
			return fmt.Errorf("calls are not answered before %d", i)
		}
		delete(open, m.Call)
		for _, c := range m.Calls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 || messages[len(messages)-1].Role == agent.Assistant {
		return errors.New("it ends too early")
	}
	return nil
}

// A long run is compacted at the stated share of the window, again and again. What the model is asked is valid, and
// begins with the request before until the next summary; the result and the transcript are whole; every call counts.
func TestCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before []agent.Message
		var used agent.Usage
		var summaries, largest, after int64
		model := &digger{most: 30, asked: func(what string, req agent.Request, u agent.Usage) {
			if err := valid(req.Messages); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			begins := req.Messages[:len(req.Messages)-1] // without what asks for the summary
			if what != "summary" {
				begins, largest = req.Messages, max(largest, u.Input)
			} else {
				summaries, after = summaries+1, 0
			}
			if n := min(len(before), len(begins)); n > 0 && after != 1 && !reflect.DeepEqual(before[:n], begins[:n]) {
				t.Errorf("%s begins otherwise than the request before", what)
			}
			before, used = begins, agent.Usage{Input: used.Input + u.Input, Output: used.Output + u.Output}
			after++
			if what != "summary" && summaries > 0 && !strings.Contains(req.Messages[0].Text(), " messages, the") {
				t.Errorf("%s does not begin with the summary", what)
			}
		}}
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Model: model,
			Tools: []agent.Tool{finds}, Compact: agent.Compact{Window: 1500, Keep: 6, Instructions: sumUp}})))
		x := fftest.Submit(w, chat, "hello")
		r := x.Wait()
		if r.Err != nil || r.Result.Text != "all found" || r.Result.Turns != 31 {
			t.Fatalf("%v, %+v", r.Err, r.Result)
		}
		if summaries < 3 || summaries > 8 || largest > 1500 {
			t.Errorf("%d summaries, the largest request has %d tokens", summaries, largest)
		}
		if r.Result.Usage != used {
			t.Errorf("%+v is counted, %+v was used", r.Result.Usage, used)
		}
		shown := r.Kept("summary")
		if int64(len(shown)) != summaries || len(r.Kept("message")) != len(r.Result.Messages) ||
			len(r.Kept("token")) != 0 {
			t.Errorf("readers see %d summaries and %d messages", len(shown), len(r.Kept("message")))
		}
		for _, text := range shown {
			var s struct {
				Messages      int
				Before, After int64
				Text          string
			}
			must.No(t, json.Unmarshal([]byte(text), &s))
			if s.Before < 1200 || s.After > s.Before*2/3 || s.Messages == 0 || s.Text == "" {
				t.Errorf("%+v", s)
			}
		}
		// The prompt, 30 calls and results, the end.
		all := talk(r.Result.Messages)
		if len(all) != 62 || !strings.HasPrefix(all[60], "tool search c1: found 30") {
			t.Errorf("%q", all)
		}
		read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
		if err != nil || !reflect.DeepEqual(read, r.Result) {
			t.Errorf("%v, read\n%+v\nreturned\n%+v", err, read, r.Result)
		}
	})
}

// Wherever the worker dies in a run with two summaries, nothing that was recorded is asked for again, the transcript is
// the same, readers see each summary once, and what is spent lies between what was recorded and what was done.
func TestCrashesWithSummaries(t *testing.T) {
	purse := admission.Gate{Name: "purse", OnHard: admission.HardFail,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000}}}
	var mu sync.Mutex
	var made, extra int64
	var shown, said []string
	repeated := 0
	crashes := fftest.Crashes(t, chat,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (agent.Result, error) {
			mu.Lock()
			made, extra = 0, 0
			mu.Unlock()
			after := ""
			model := &digger{most: 5, asked: func(what string, req agent.Request, u agent.Usage) {
				if err := valid(req.Messages); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if what == "summary" {
					what += after
				} else {
					after = strings.TrimPrefix(what, "model")
				}
				mu.Lock()
				defer mu.Unlock()
				made += u.Total()
				if fx.Count(what) > 0 {
					extra++
				}
				fx.Did(what)
			}}
			return running(agent.Config{Model: model, Tools: []agent.Tool{finds},
				Compact: agent.Compact{Window: 600, Share: 70, Keep: 1, Instructions: sumUp}})
		}, "hello", func(r *fftest.Report[agent.Result]) {
			mu.Lock()
			defer mu.Unlock()
			if r.Err != nil || r.Result.Turns != 6 {
				t.Errorf("%s: %v, %+v", r.Crash, r.Err, r.Result)
			}
			kept := slices.Concat(r.Kept("message"), r.Kept("summary"))
			if shown == nil {
				shown, said = kept, talk(r.Result.Messages)
			}
			if !slices.Equal(kept, shown) {
				t.Errorf("%s: readers see\n%q\nundisturbed\n%q", r.Crash, kept, shown)
			}
			wantTalk(t, r.Result.Messages, said...)
			spent := r.Spent["purse"]["tokens"]
			if recorded := r.Result.Usage.Total(); spent < recorded || spent > made || extra > 1 {
				t.Errorf("%s: %d tokens recorded, %d spent, %d used; %d calls were repeated", r.Crash, recorded, spent,
					made, extra)
			}
			if extra > 0 {
				repeated++
			}
		}, fftest.Gates(purse))
	if crashes < 60 || repeated == 0 || len(shown) != 12+2 {
		t.Errorf("%d crashes, %d repeated a call, readers see %d frames: %q", crashes, repeated, len(shown), shown)
	}
}

// earlier is a long conversation.
func earlier(parts ...agent.Part) []agent.Message {
	var all []agent.Message
	for i := range 4 {
		all = append(all, agent.Message{Role: agent.User, Parts: agent.Text(fmt.Sprint("question ", i))},
			agent.Message{Role: agent.Assistant, Parts: agent.Text(strings.Repeat("answer ", 100))})
	}
	all[0].Parts = append(all[0].Parts, parts...)
	return all
}

// What a run begins with may be too long already. A model of its own writes the summary, sees images as they are, and
// a text that is too long is cut. One that is none fails the attempt.
func TestSummaries(t *testing.T) {
	retried := handler.Define[string, agent.Result]("retried", handler.Retry(5, time.Second, time.Minute))
	image := agent.Part{Type: agent.PartImage, Media: "image/png", Data: make([]byte, 5000)}
	spans := &traces{}
	refused := says("I must not")
	refused.Stop = agent.StopRefusal
	answers := []agent.Response{says(""), refused, wants("search", `{}`), says(strings.Repeat("long ", 1000))}
	calls := 0
	writer := agent.ModelFunc(func(_ context.Context, req agent.Request, _ func(agent.Delta) error) (agent.Response,
		error) {
		if got := req.Messages[0].Parts; len(got) != 2 || len(got[1].Data) != 5000 || len(req.Tools) != 1 {
			t.Errorf("%+v", req)
		}
		calls++
		return answers[calls-1], nil
	})
	var asked agent.Request
	model := &script{answers: []agent.Response{says(""), says("end")},
		called: func(_ int, req agent.Request) { asked = req }}
	r := fftest.Run(t, retried, running(agent.Config{Messages: earlier(image), Model: model,
		Tools: []agent.Tool{search(nil)}, Edit: func(req *agent.Request) { req.System += "edited" },
		Blobs: blob.Folder(t.TempDir()), Tracer: spans,
		Compact: agent.Compact{Window: 1000, Share: 70, Keep: 2, Model: described{writer}}}), "hello")
	if r.Err != nil || calls != 4 || len(r.Attempts) != 4 || r.Attempts[0].Category != "model_protocol" {
		t.Fatalf("%v, %d calls, %+v", r.Err, calls, r.Attempts)
	}
	r.Want(fftest.Want{Steps: []string{"summary 0", "model 1"}})
	lines := talk(asked.Messages)
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "user summary: The conversation so far was too long.") ||
		len(lines[0]) > 1200 || !strings.HasSuffix(lines[0], "(cut: 5000 bytes)") || lines[2] != "user: hello" ||
		asked.System != "edited" {
		t.Errorf("%q", lines)
	}
	if len(r.Result.Messages) != 10 || r.Result.Usage.Total() != 20 {
		t.Errorf("%+v", r.Result)
	}
	made := map[string]int{}
	for _, s := range spans.spans {
		made[s.name] += s.ended
	}
	if made["chat acme-1"] != 4 || made["chat"] != 1 {
		t.Errorf("spans: %v", made)
	}
}

// A summary waits for its turn at the gate of the service, and counts there.
func TestASummaryIsGoverned(t *testing.T) {
	model := &script{answers: []agent.Response{says(""), says("end")}}
	writer := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		return says("in short"), nil
	})
	r, end := governed(t, admission.Service{PerMinute: map[string]int64{"tokens": 1_000_000}},
		agent.Config{Messages: earlier(), Model: model, Compact: agent.Compact{Window: 700, Keep: 2, Model: writer}})
	if r.Err != nil || r.Result.Usage.Total() != 20 || end.Room["tokens"] != 25_000-20 {
		t.Errorf("%v, %+v, %+v", r.Err, r.Result.Usage, end)
	}
}

// With Continue the next input begins with the summary, and readers see nothing twice.
func TestContinueCompacted(t *testing.T) {
	endless := handler.Define[talked, agent.Result]("endless")
	inner := &digger{most: 8}
	r := fftest.Run(t, endless, func(ctx context.Context, task *handler.Task, in talked) (agent.Result, error) {
		prompt := ""
		if in.Round == 0 {
			prompt = "hello"
		}
		return agent.Run(ctx, task, agent.Config{Model: inner, Tools: []agent.Tool{finds}, Messages: in.Messages,
			Prompt: prompt, MaxTurns: 6, Compact: agent.Compact{Window: 700, Keep: 4, Instructions: sumUp},
			Continue: func(r agent.Result) error {
				return handler.Continue(talked{Messages: r.Messages, Round: in.Round + 1})
			}})
	}, talked{})
	if r.Err != nil || r.Result.Text != "all found" {
		t.Fatalf("%v, %+v", r.Err, r.Result)
	}
	if m := r.Result.Messages; m[0].From != "summary" || len(m) > 14 || valid(m[:len(m)-1]) != nil {
		t.Errorf("%q", talk(m))
	}
}

// Whoever turns summaries on or off in the middle of a run pays for no summary of the past, and loses none.
func TestCompactIsChangedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var compact agent.Compact
		var seen []string
		summaries := 0
		model := agent.ModelFunc(func(_ context.Context, req agent.Request,
			_ func(agent.Delta) error) (agent.Response, error) {
			last := req.Messages[len(req.Messages)-1].Text()
			if last == sumUp {
				summaries++
				return says("in short"), nil
			}
			seen = talk(req.Messages)
			return says(strings.Repeat("answer ", 100) + last), nil
		})
		w := fftest.New(t, runtime.Config{}, handler.Bind(chat,
			func(ctx context.Context, task *handler.Task, prompt string) (agent.Result, error) {
				mu.Lock()
				defer mu.Unlock()
				return agent.Run(ctx, task, agent.Config{Model: model, Prompt: prompt, Mailbox: "user",
					Conversation: true, Compact: compact})
			}))
		x := fftest.Submit(w, chat, "m1")
		say := func(text string) {
			x.AwaitSuspension()
			x.Answer(fftest.Send("user", text))
			x.AwaitSuspension()
		}
		for _, text := range []string{"m2", "m3", "m4"} {
			say(text)
		}
		mu.Lock()
		compact = agent.Compact{Window: 10, Keep: 1, Instructions: sumUp}
		mu.Unlock()
		say("m5")
		if summaries != 1 || len(seen) != 3 || !strings.HasSuffix(seen[0], "in short") {
			t.Errorf("%d summaries; the model was asked %q", summaries, seen)
		}
		mu.Lock()
		compact = agent.Compact{}
		mu.Unlock()
		say("m6")
		if summaries != 1 || len(seen) != 5 || !strings.HasSuffix(seen[0], "in short") {
			t.Errorf("%d summaries; the model was asked %q", summaries, seen)
		}
		read, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
		if err != nil || len(read.Messages) != 12 || read.Usage.Total() != 70 {
			t.Errorf("%v, %+v", err, read)
		}
	})
}

// A request whose instructions alone are too long is not compacted again and again.
func TestCompactingDoesNotHelp(t *testing.T) {
	summaries := 0
	inner := &digger{most: 10, asked: func(what string, _ agent.Request, _ agent.Usage) {
		if what == "summary" {
			summaries++
		}
	}}
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		r, err := inner.Generate(ctx, req, delta)
		r.Usage.Input += 5000
		return r, err
	})
	r := run(t, agent.Config{Model: model, Tools: []agent.Tool{finds},
		Compact: agent.Compact{Window: 5000, Instructions: sumUp}})
	if r.Err != nil || summaries > 2 {
		t.Errorf("%v, %d summaries", r.Err, summaries)
	}
}

// A limit that a summary reaches ends the run before the next model call.
func TestASummaryReachesALimit(t *testing.T) {
	model := &script{answers: []agent.Response{says("")}, called: func(int, agent.Request) { t.Error("called") }}
	writer := agent.ModelFunc(func(context.Context, agent.Request, func(agent.Delta) error) (agent.Response, error) {
		return says("in short"), nil
	})
	r := run(t, agent.Config{Messages: earlier(), Model: model, MaxTokens: 10,
		Compact: agent.Compact{Window: 100, Model: writer}})
	r.Want(fftest.Want{Failure: flowfabric.Category("agent_limit"), Steps: []string{"summary 0"}})
}

// A stop breaks a summary off, and what that has cost is the cost of the answer in its place. A message that interrupts
// lets it end: it is needed before the message can be answered.
func TestStopOfASummary(t *testing.T) {
	for _, tell := range []fftest.Answer{fftest.Stop(), fftest.Send("talk", "wait")} {
		inner := &digger{most: 30}
		model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
			delta func(agent.Delta) error) (agent.Response, error) {
			if last := req.Messages[len(req.Messages)-1].Text(); last == "wait" {
				return says("I wait"), nil
			} else if last == sumUp {
				fftest.Tell(ctx, tell)
				select {
				case <-ctx.Done():
					return agent.Response{}, context.Cause(ctx)
				case <-time.After(time.Minute): // a summary takes so long
				}
			}
			return inner.Generate(ctx, req, delta)
		})
		purse := admission.Gate{Name: "purse", Limits: map[string]admission.Limit{"tokens": {Hard: 100000}}}
		r := fftest.Run(t, chat, running(agent.Config{Model: model, Tools: []agent.Tool{finds}, MaxTurns: 40,
			Mailbox: "talk", WhileBusy: agent.Interrupt, Compact: agent.Compact{Window: 1000, Instructions: sumUp}}),
			"hello", fftest.Gates(purse))
		u := r.Result.Usage
		if r.Err != nil || r.Spent["purse"]["tokens"] != u.Total() {
			t.Errorf("%v, %+v, spent %v", r.Err, u, r.Spent)
		}
		stopped := r.Result.Stop == agent.StopStopped
		if stopped != (len(r.Kept(agent.FrameSummary)) == 0) || stopped != (r.Result.Text == "") {
			t.Errorf("%s %q", r.Result.Stop, r.Result.Text)
		}
		if e := eventsOf(t, r); len(e) != 1 || stopped && e[0].Estimated < 500 || e[0].Tokens != e[0].Estimated ||
			e[0].Tokens != u.Estimated {
			t.Errorf("%+v, %+v", e, u)
		}
	}
}
