package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// roomsOf are rooms of a test's executions.
func roomsOf(t *testing.T, w *fftest.Env) *rooms {
	h := &Handler{client: w.Client(), codec: handler.JSON}
	r := newRooms(roomsConfig{client: w.Client(), begin: h.begin})
	t.Cleanup(r.close)
	return r
}

// told reads events from now on, until the execution or ctx ends, as a reader that forgets void events.
type listener struct {
	mu     sync.Mutex
	events []event // that stand
	all    []event
	err    error
}

func (l *listener) listen(ctx context.Context, f *follower) {
	for {
		events, err := f.next(ctx)
		l.mu.Lock()
		for _, e := range events {
			l.all = append(l.all, e.event)
			if e.kind == kindDropped {
				n := slices.IndexFunc(l.events, func(o event) bool { return o.message == e.message })
				if n >= 0 {
					l.events = l.events[:n]
				}
				continue
			}
			l.events = append(l.events, e.event)
		}
		if err != nil {
			l.err = err
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// line is an event for comparison; "" for what does not last.
func line(e event) string {
	switch e.kind {
	case kindSaid:
		return "said " + e.message + ": " + e.said.Text()
	case kindBegan:
		return "began " + e.message
	case kindStep:
		return fmt.Sprint("step ", e.step)
	case kindText:
		return fmt.Sprintf("text %s: %s", e.part, e.text)
	case kindThought:
		return fmt.Sprintf("thought %s: %s", e.part, e.text)
	case kindCalled:
		return fmt.Sprintf("called %d.%d %s %s%s", e.step, e.number, e.call.ID, e.call.Name, e.call.Arguments)
	case kindResult:
		how := ""
		if e.preliminary {
			how = "so far "
		}
		if e.said.Denied {
			how = "denied "
		} else if e.said.Failed {
			how = "failed "
		}
		return "result " + how + e.call.ID + ": " + e.said.Text()
	case kindAsked:
		return "asked " + e.call.ID + " " + e.ask.Key
	case kindQuestion:
		return "question " + e.ask.Key
	case kindAnswered:
		return "answered " + e.ask.Key
	case kindAnswer:
		return fmt.Sprintf("answer %d: %s %d", e.step, e.stop, e.total.Total())
	case kindStopped:
		return "stopped " + e.halt.Act + " " + e.halt.By
	case kindDropped:
		return "dropped " + e.message
	case kindIdle:
		return "idle"
	case kindEnded:
		return "ended " + string(e.state)
	case kindData:
		return "data " + e.name + " " + string(e.value)
	case kindSource:
		return "source " + string(e.value)
	case kindState:
		return "state " + string(e.value)
	case kindNotice:
		return "notice " + e.name
	case kindFile:
		return "file " + e.file.Media
	}
	return ""
}

func script(events []event) (lines []string) {
	for _, e := range compact(events) {
		if l := line(e); l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

func wantScript(t *testing.T, what string, events []event, want ...string) {
	t.Helper()
	if got := script(events); !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// histories are what front ends are shown of a conversation, as JSON.
func historyOf(t *testing.T, m *room) string {
	t.Helper()
	list := chunker{link: inline}.history(m.snapshot().messages)
	for i := range list {
		list[i].Metadata = nil // what answers of earlier links cost is not kept
	}
	data, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// alike compares what a reader heard with what the room and a new one of another process show.
func alike(t *testing.T, w *fftest.Env, id flowfabric.ExecutionID, m *room, l *listener) {
	t.Helper()
	other, err := roomsOf(t, w).enter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer other.leave()
	if a, b := historyOf(t, m), historyOf(t, other); a != b {
		t.Errorf("the room shows\n%s\na new one\n%s", a, b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var heard, stands []event
	for _, e := range compact(l.events) {
		if e.counts(true) {
			heard = append(heard, e)
		}
	}
	for _, one := range m.snapshot().messages {
		for _, e := range compact(one.events) {
			if e.counts(true) {
				stands = append(stands, e)
			}
		}
	}
	if a, b := script(heard), script(stands); !slices.Equal(a, b) {
		t.Errorf("a reader heard\n  %s\nand the room has\n  %s", strings.Join(a, "\n  "), strings.Join(b, "\n  "))
	}
}

// answers is a model that answers by how many answers there are.
type answers []agent.Response

func (a answers) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	n := 0
	for _, m := range req.Messages {
		if m.Role == agent.Assistant {
			n++
		}
	}
	if n >= len(a) {
		return agent.Response{}, handler.Permanent(fmt.Errorf("there is no answer %d", n+1))
	}
	for _, p := range a[n].Message.Parts {
		for word := range strings.SplitAfterSeq(p.Text, " ") {
			d := agent.Delta{Text: word}
			if p.Type == agent.PartReasoning {
				d = agent.Delta{Reasoning: word}
			}
			if err := delta(d); err != nil {
				return agent.Response{}, err
			}
		}
	}
	return a[n], context.Cause(ctx)
}

func saying(text string) agent.Response {
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd,
		Usage: agent.Usage{Input: 7, Output: 3}, Model: "m"}
}

func calling(name string, arguments ...string) agent.Response {
	r := saying("")
	r.Stop = agent.StopTools
	for i, a := range arguments {
		r.Message.Calls = append(r.Message.Calls, agent.ToolCall{ID: fmt.Sprint("c", i+1), Name: name,
			Arguments: json.RawMessage(a)})
	}
	return r
}

type look struct {
	Text string `json:"text"`
}

var search = agent.NewTool("search", "", func(_ context.Context, in look) (string, error) {
	if in.Text == "bad" {
		return "", errors.New("nothing is there")
	}
	return "about " + in.Text, nil
})

var refund = agent.NewTool("refund", "", func(_ context.Context, in look) (string, error) {
	return "paid " + in.Text, nil
}, agent.Needs(func(in look) agent.Decision { return agent.Decision{Ask: in.Text != "free"} }))

// heardOf runs a conversation in a bubble: acts says what people do.
func heardOf(t *testing.T, cfg agent.Config, in Conversation,
	acts func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener)) {
	cfg.Parallel = 1 // results are told as each ends
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(cfg)))
		x := fftest.Submit(w, kindTalk, in)
		r := roomsOf(t, w)
		m, err := r.enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer m.leave()
		ctx, stop := context.WithCancel(t.Context())
		var l listener
		var group conc.WaitGroup
		f := m.follow(place{now: true})
		for _, one := range m.snapshot().messages {
			l.events = append(l.events, one.events...)
		}
		group.Go(func() { l.listen(ctx, f) })
		acts(t, w, x, &l)
		w.Sleep(5 * time.Second)
		synctest.Wait()
		alike(t, w, x.ID(), m, &l)
		stop()
		group.Wait()
	})
}

func sends(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], id, text string) {
	t.Helper()
	if _, err := w.Client().Execution(x.ID()).Send(t.Context(), mailbox, map[string]any{"id": id, "text": text},
		flowfabric.IdempotencyKey(id)); err != nil {
		t.Fatal(err)
	}
}

func (l *listener) stands() []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// A conversation with what a model thinks, tools that work and fail, and two messages.
func TestEventsOfAConversation(t *testing.T) {
	thinking := saying("it is")
	thinking.Message.Parts = append([]agent.Part{{Type: agent.PartReasoning, Text: "well then"}},
		thinking.Message.Parts...)
	model := answers{calling("search", `{"text":"a"}`, `{"text":"bad"}`), thinking, saying("bye now")}
	heardOf(t, agent.Config{Model: model, Tools: []agent.Tool{search}}, Conversation{Messages: []agent.Message{
		{Role: agent.User, ID: "u1", Parts: agent.Text("hello")}}},
		func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
			x.AwaitSuspension()
			sends(t, w, x, "u2", "and?")
			w.Sleep(5 * time.Second)
			wantScript(t, "events", l.stands(), "said u1: hello", "began re-u1", "step 1",
				`called 1.1 c1 search{"text":"a"}`, `called 1.2 c2 search{"text":"bad"}`, "answer 1: tools 10",
				"result c1: about a", "result failed c2: nothing is there", "step 2", "thought 1: well then",
				"text 2: it is", "answer 2: end 20", "idle", "said u2: and?", "began re-u2", "step 3",
				"text 1: bye now", "answer 3: end 10", "idle")
		})
}

// behind are the events behind the last one of a kind.
func behind(events []event, k kind) []event {
	for i, e := range slices.Backward(events) {
		if e.kind == k {
			return events[i+1:]
		}
	}
	return nil
}

// People are asked about calls, and approve, change and reject them.
func TestEventsOfApprovals(t *testing.T) {
	model := answers{calling("refund", `{"text":"1"}`, `{"text":"2"}`, `{"text":"3"}`, `{"text":"free"}`),
		saying("done")}
	heardOf(t, agent.Config{Model: model, Tools: []agent.Tool{refund}}, Conversation{Messages: []agent.Message{
		{Role: agent.User, ID: "u1", Parts: agent.Text("pay")}}},
		func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
			x.AwaitSuspension()
			w.Sleep(5 * time.Second)
			wantScript(t, "before", l.stands(), "said u1: pay", "began re-u1", "step 1",
				`called 1.1 c1 refund{"text":"1"}`, `called 1.2 c2 refund{"text":"2"}`,
				`called 1.3 c3 refund{"text":"3"}`, `called 1.4 c4 refund{"text":"free"}`, "answer 1: tools 10",
				"result c4: paid free", "asked c1 approve 1.1 refund", "asked c2 approve 1.2 refund",
				"asked c3 approve 1.3 refund")
			for i, a := range []suspend.Answer{{Choice: "approve", By: "anna"}, {Choice: "reject", By: "anna",
				Comment: "no"}, {Choice: "approve", By: "anna", Arguments: json.RawMessage(`{"text":"9"}`)}} {
				x.Answer(fftest.Approve(fmt.Sprintf("approve 1.%d refund", i+1), a))
			}
			w.Sleep(5 * time.Second)
			wantScript(t, "after", behind(l.stands(), kindAsked), "answered approve 1.1 refund",
				"answered approve 1.2 refund", "answered approve 1.3 refund", "result c1: paid 1",
				"result denied c2: the call was not made: rejected by anna: no",
				"result c3: anna changed the arguments. The call was made with {\"text\":\"9\"}\npaid 9",
				"step 2", "text 1: done", "answer 2: end 20", "idle")
		})
}

// What was told of an answer is void when its worker is lost in the middle of it, and when it is made again.
func TestEventsAreDropped(t *testing.T) {
	var takes int
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		takes++
		if err := delta(agent.Delta{Text: fmt.Sprint("take ", takes)}); err != nil {
			return agent.Response{}, err
		}
		if takes == 2 {
			select {
			case <-ctx.Done():
				return agent.Response{}, context.Cause(ctx)
			case <-time.After(time.Hour):
			}
		}
		return saying(fmt.Sprint("take ", takes)), nil
	})
	heardOf(t, agent.Config{Model: model}, Conversation{Messages: []agent.Message{
		{Role: agent.User, ID: "u1", Parts: agent.Text("hello")}}},
		func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
			x.AwaitSuspension()
			sends(t, w, x, "u2", "more")
			w.Sleep(5 * time.Second)
			wantScript(t, "before", l.stands(), "said u1: hello", "began re-u1", "step 1", "text 1: take 1",
				"answer 1: end 10", "idle", "said u2: more", "began re-u2", "step 2", "text 1: take 2")
			w.Kill()
			x.AwaitSuspension()
			w.Sleep(5 * time.Second)
			wantScript(t, "killed", l.stands(), "said u1: hello", "began re-u1", "step 1", "text 1: take 1",
				"answer 1: end 10", "idle", "said u2: more", "began re-u2", "step 2", "text 1: take 3",
				"answer 2: end 10", "idle")
			if _, err := agent.Edit(t.Context(), w.Client(), x.ID(), agent.Place{Turn: 1},
				map[string]any{"id": "u1", "text": "hi"}); err != nil {
				t.Fatal(err)
			}
			w.Sleep(5 * time.Second)
			wantScript(t, "edited", l.stands(), "said u1: hi", "began re-u1", "step 1", "text 1: take 4",
				"answer 1: end 10", "idle")
			var dropped []string
			for _, e := range l.all {
				if e.kind == kindDropped {
					dropped = append(dropped, e.message)
				}
			}
			if !slices.Equal(dropped, []string{"u2", "u1"}) {
				t.Errorf("dropped %q", dropped)
			}
		})
}

// Readers see one conversation when it continues in other links, and also when frames are missing.
func TestEventsOfLinks(t *testing.T) {
	for name, cfg := range map[string]agent.Config{"links": {MaxTurns: 1}, "whole": {}} {
		t.Run(name, func(t *testing.T) {
			cfg.Model = answers{calling("search", `{"text":"a"}`), saying("one two three"), saying("four five"),
				saying("six"), saying("seven")}
			cfg.Tools = []agent.Tool{search}
			heardOf(t, cfg, Conversation{}, func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result],
				l *listener) {
				for i := range 4 {
					x.AwaitSuspension()
					sends(t, w, x, fmt.Sprint("u", i+1), fmt.Sprint("hello ", i+1))
				}
				w.Sleep(10 * time.Second)
				var said []string
				for _, s := range script(l.stands()) {
					if strings.HasPrefix(s, "said") || strings.HasPrefix(s, "text") || strings.HasPrefix(s, "result") {
						said = append(said, s)
					}
				}
				if want := []string{"said u1: hello 1", "result c1: about a", "text 1: one two three",
					"said u2: hello 2", "text 1: four five", "said u3: hello 3", "text 1: six", "said u4: hello 4",
					"text 1: seven"}; !slices.Equal(said, want) {
					t.Errorf("%q\nwant\n%q", said, want)
				}
				for _, e := range l.all {
					if e.kind == kindDropped {
						t.Errorf("%s was dropped", e.message)
					}
				}
			})
		})
	}
}

// A slow reader and a late one read the same as early ones, and a thousand share the encoded events.
func TestManyFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := strings.Repeat("word ", 50)
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(agent.Config{
			Model: answers{saying(words)}})))
		x := fftest.Submit(w, kindTalk, Conversation{})
		r := roomsOf(t, w)
		m, err := r.enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		const readers = 1000
		var made sync.Map
		texts := make([]string, readers)
		var group conc.WaitGroup
		read := func(i int, f *follower) {
			for {
				events, err := f.next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range events {
					texts[i] += string(e.text("a", func(e event) []byte {
						if _, again := made.LoadOrStore(fmt.Sprint(e.at, e.kind), true); again {
							t.Errorf("%s was written twice", line(e))
						}
						return []byte(line(e) + "\n")
					}))
					if e.kind == kindIdle {
						return
					}
				}
				if i == 0 {
					time.Sleep(time.Second) // slow
				}
			}
		}
		for i := range readers / 2 {
			f := m.follow(place{answerTo: "u1"})
			group.Go(func() { read(i, f) })
		}
		x.AwaitSuspension()
		sends(t, w, x, "u1", "go")
		w.Sleep(time.Minute)
		for i := readers / 2; i < readers; i++ {
			f := m.follow(place{answerTo: "u1"})
			group.Go(func() { read(i, f) })
		}
		group.Wait()
		for i := range texts {
			if texts[i] != texts[1] {
				t.Fatalf("reader %d read\n%s\nwant\n%s", i, texts[i], texts[1])
			}
		}
		if f := m.follow(place{}); f != nil {
			t.Error("something is being answered")
		}
		m.leave()
	})
}

// A room closes a while after the last one has left, and ends what follows when all close.
func TestRoomsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(agent.Config{Model: answers{}})))
		x := fftest.Submit(w, kindTalk, Conversation{})
		r := roomsOf(t, w)
		m, err := r.enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		m.leave()
		w.Sleep(linger / 2)
		again, err := r.enter(t.Context(), x.ID())
		if err != nil || again != m {
			t.Fatalf("another room, %v", err)
		}
		again.leave()
		w.Sleep(2 * linger)
		r.mu.Lock()
		left := len(r.all)
		r.mu.Unlock()
		if left != 0 || !m.isOver() {
			t.Error("the room is open")
		}
		if m, err = r.enter(t.Context(), x.ID()); err != nil || m == again {
			t.Fatalf("the same room, %v", err)
		}
		f := m.follow(place{now: true})
		var group conc.WaitGroup
		group.Go(func() {
			for {
				if _, err := f.next(t.Context()); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
			}
		})
		synctest.Wait()
		r.close()
		group.Wait()
		if _, err := r.enter(t.Context(), x.ID()); err == nil {
			t.Error("rooms that are closed open")
		}
	})
}

// Frames that are gone leave no hole in what was said: recorded steps have it.
func TestEventsBehindAGap(t *testing.T) {
	kindShort := handler.Define[Conversation, agent.Result]("short", handler.StreamFrames(30))
	synctest.Test(t, func(t *testing.T) {
		long := strings.TrimSpace(strings.Repeat("word ", 20))
		model := answers{calling("search", `{"text":"a"}`, `{"text":"b"}`), saying("1 " + long), saying("2 " + long),
			saying("3 " + long), calling("search", `{"text":"c"}`), saying("4 " + long)}
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindShort, talking(agent.Config{Model: model,
			Tools: []agent.Tool{search}})))
		x := fftest.Submit(w, kindShort, Conversation{Messages: []agent.Message{
			{Role: agent.User, ID: "u1", Parts: agent.Text("hello")}}})
		live, err := roomsOf(t, w).enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer live.leave()
		for n := range 4 {
			x.AwaitSuspension()
			if n > 0 {
				sends(t, w, x, fmt.Sprint("u", n+1), "more")
			}
			w.Sleep(10 * time.Second)
			m, err := roomsOf(t, w).enter(t.Context(), x.ID())
			if err != nil {
				t.Fatal(err)
			}
			if a, b := historyOf(t, live), historyOf(t, m); a != b || !strings.Contains(b, fmt.Sprint(n+1, " word")) {
				t.Errorf("after %d messages the one that was there shows\n%s\nand one behind the gap\n%s", n+1, a, b)
			}
			m.leave()
		}
		m, err := roomsOf(t, w).enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer m.leave()
		f := m.follow(place{now: true})
		sends(t, w, x, "u5", "no more") // the script ends here
		var last []event
		for {
			events, err := f.next(t.Context())
			if err != nil {
				break
			}
			for _, e := range events {
				last = append(last, e.event)
			}
		}
		wantScript(t, "the end", last, "said u5: no more", "ended failed")
	})
}

// Calls show while the model writes them, and those of an answer that was broken off have an end.
func TestEventsOfCallsAsTheyCome(t *testing.T) {
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == agent.ToolRole {
			return saying("found"), nil
		}
		for _, d := range []agent.Delta{{Text: "wait "}, {Call: &agent.CallDelta{ID: "c1", Name: "search"}},
			{Call: &agent.CallDelta{ID: "c1", Arguments: `{"te`}}, {Call: &agent.CallDelta{ID: "c1",
				Arguments: `xt":"a"}`}}} {
			if err := delta(d); err != nil {
				return agent.Response{}, err
			}
		}
		if last.Text() == "stop" {
			<-ctx.Done()
			return agent.Response{}, context.Cause(ctx)
		}
		r := calling("search", `{"text":"a"}`)
		r.Message.Parts = agent.Text("wait ")
		return r, nil
	})
	heardOf(t, agent.Config{Model: model, Tools: []agent.Tool{search}}, Conversation{},
		func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
			x.AwaitSuspension()
			sends(t, w, x, "u1", "go")
			w.Sleep(5 * time.Second)
			var kinds []string
			for _, e := range l.stands() {
				if e.kind == kindCalling || e.kind == kindArguments || e.kind == kindCalled {
					kinds = append(kinds, fmt.Sprint(e.kind, " ", e.call.ID, e.text))
				}
			}
			if want := []string{fmt.Sprint(kindCalling, " c1"), fmt.Sprint(kindArguments, ` c1{"te`),
				fmt.Sprint(kindArguments, ` c1xt":"a"}`), fmt.Sprint(kindCalled, " c1")}; !slices.Equal(kinds, want) {
				t.Errorf("%q, want %q", kinds, want)
			}
			sends(t, w, x, "u2", "stop")
			w.Sleep(5 * time.Second)
			if _, err := w.Client().Execution(x.ID()).Stop(t.Context(), flowfabric.By("ben")); err != nil {
				t.Fatal(err)
			}
			w.Sleep(5 * time.Second)
			wantScript(t, "stopped", behind(l.stands(), kindSaid), "began re-u2", "step 3", "text 1: wait ",
				"stopped stop ben", "result failed c1: "+brokenOff, "answer 3: stopped "+
					fmt.Sprint(l.stands()[len(l.stands())-1].total.Total()), "idle")
		})
}

// What an application shows beside: data, sources, a summary document. Other frames are not for people.
func TestEventsOfTheApplication(t *testing.T) {
	tool := agent.NewTool("search", "", func(ctx context.Context, in look) (string, error) {
		return "about " + in.Text, nil
	})
	model := answers{calling("search", `{"text":"a"}`), saying("done")}
	kindOwn := handler.Define[Conversation, agent.Result]("own")
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindOwn, func(ctx context.Context, task *handler.Task,
			in Conversation) (agent.Result, error) {
			shows := func(ctx context.Context, req agent.Request,
				delta func(agent.Delta) error) (agent.Response, error) {
				r, err := model.Generate(ctx, req, delta)
				return r, errors.Join(err, task.Frame(ctx, "log", "secret"),
					task.Frame(ctx, "data-weather", `{"c":20}`), task.Frame(ctx, frameSource,
						`{"url":"https://a.example","title":"A"}`), task.Summary(ctx, json.RawMessage(`{"n":1}`)))
			}
			return Run(ctx, task, in, agent.Config{Model: agent.ModelFunc(shows), Tools: []agent.Tool{tool}})
		}))
		x := fftest.Submit(w, kindOwn, Conversation{})
		m, err := roomsOf(t, w).enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer m.leave()
		f := m.follow(place{answerTo: "u1"})
		x.AwaitSuspension()
		sends(t, w, x, "u1", "go")
		var all []event
		for n := len(all); n == 0 || all[n-1].kind != kindIdle; n = len(all) {
			events, err := f.next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				all = append(all, e.event)
			}
		}
		wantScript(t, "events", all, "began re-u1", `data weather {"c":20}`,
			`source {"url":"https://a.example","title":"A"}`, `state {"n":1}`, "step 1",
			`called 1.1 c1 search{"text":"a"}`,
			"answer 1: tools 10", "result c1: about a", "step 2", "text 1: done", `data weather {"c":20}`,
			`source {"url":"https://a.example","title":"A"}`, `state {"n":1}`, "answer 2: end 20", "idle")
		if s := m.snapshot(); string(s.document) != `{"n":1}` || s.doing != doingIdle {
			t.Errorf("%s, %s", s.document, s.doing)
		}
	})
}

// Wherever the worker dies, early readers, late readers and the records agree, character by character.
func TestEventsWhereverTheWorkerDies(t *testing.T) {
	for kill := range 8 {
		t.Run(fmt.Sprint(kill), func(t *testing.T) {
			inner := answers{calling("search", `{"text":"a"}`, `{"text":"b"}`), saying("one two three"),
				saying("four five six")}
			slow := agent.ModelFunc(func(ctx context.Context, req agent.Request,
				delta func(agent.Delta) error) (agent.Response, error) {
				return inner.Generate(ctx, req, func(d agent.Delta) error {
					time.Sleep(time.Second)
					return delta(d)
				})
			})
			heardOf(t, agent.Config{Model: slow, Tools: []agent.Tool{search}}, Conversation{Messages: []agent.Message{
				{Role: agent.User, ID: "u1", Parts: agent.Text("hello")}}},
				func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
					sends(t, w, x, "u2", "more")
					w.Sleep(time.Duration(kill)*time.Second + 500*time.Millisecond)
					w.Kill()
					x.AwaitSuspension()
					w.Sleep(10 * time.Second)
					r, err := agent.ReadTranscript(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
					if err != nil {
						t.Fatal(err)
					}
					var recorded, told []string
					for _, m := range r.Messages {
						if m.Text() != "" {
							recorded = append(recorded, m.Text())
						}
					}
					for _, e := range compact(l.stands()) {
						if e.kind == kindText || e.kind == kindSaid || e.kind == kindResult {
							told = append(told, e.text+e.said.Text())
						}
					}
					if !slices.Equal(recorded, told) {
						t.Errorf("told %q, recorded %q", told, recorded)
					}
				})
		})
	}
}

// An answer in the middle of a conversation is made again, while people are asked and when all is over.
func TestEventsOfAnswersThatAreMadeAgain(t *testing.T) {
	takes := 0
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case last.Role == agent.ToolRole:
			takes++
			return saying(fmt.Sprint(last.Text(), " ", takes)), nil
		case last.Text() == "pay":
			return calling("refund", `{"text":"1"}`), nil
		}
		return saying("hello"), nil
	})
	heardOf(t, agent.Config{Model: model, Tools: []agent.Tool{refund}}, Conversation{Messages: []agent.Message{
		{Role: agent.User, ID: "u1", Parts: agent.Text("hi")}}},
		func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
			hello := []string{"said u1: hi", "began re-u1", "step 1", "text 1: hello", "answer 1: end 10", "idle"}
			paid := []string{"said u2: pay", "began re-u2", "step 2", `called 2.1 c1 refund{"text":"1"}`,
				"answer 2: tools 10", "asked c1 approve 2.1 refund"}
			x.AwaitSuspension()
			sends(t, w, x, "u2", "pay")
			for take := range 2 { // the second one while people are asked
				w.Sleep(5 * time.Second)
				wantScript(t, fmt.Sprint("asked ", take), l.stands(), append(slices.Clone(hello), paid...)...)
				if _, err := agent.Regenerate(t.Context(), w.Client(), x.ID(), agent.Place{Turn: 2}); err != nil {
					t.Fatal(err)
				}
			}
			w.Sleep(5 * time.Second)
			x.Answer(fftest.Approve("approve 2.1 refund", suspend.Answer{Choice: "approve"}))
			w.Sleep(5 * time.Second)
			for take := 1; ; take++ {
				over := append(append(slices.Clone(hello), paid...), "answered approve 2.1 refund", "result c1: paid 1",
					"step 3", fmt.Sprint("text 1: paid 1 ", take), "answer 3: end 20", "idle")
				wantScript(t, fmt.Sprint("paid ", take), l.stands(), over...)
				if take == 3 {
					return
				}
				if _, err := agent.Regenerate(t.Context(), w.Client(), x.ID(), agent.Place{Turn: 3}); err != nil {
					t.Fatal(err)
				}
				w.Sleep(5 * time.Second)
			}
		})
}

// A message during an answer interrupts it, and gets an answer of its own.
func TestEventsOfInterrupts(t *testing.T) {
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		last := req.Messages[len(req.Messages)-1].Text()
		if err := delta(agent.Delta{Text: "about " + last}); err != nil {
			return agent.Response{}, err
		}
		if last == "slow" {
			<-ctx.Done()
			return agent.Response{}, context.Cause(ctx)
		}
		return saying("about " + last), nil
	})
	heardOf(t, agent.Config{Model: model, WhileBusy: agent.Interrupt}, Conversation{},
		func(t *testing.T, w *fftest.Env, x *fftest.Execution[agent.Result], l *listener) {
			x.AwaitSuspension()
			sends(t, w, x, "u1", "slow")
			w.Sleep(5 * time.Second)
			sends(t, w, x, "u2", "fast")
			w.Sleep(5 * time.Second)
			var got []string
			for _, s := range script(l.stands()) {
				if !strings.HasPrefix(s, "answer") && s != "idle" {
					got = append(got, s)
				}
			}
			if want := []string{"said u1: slow", "began re-u1", "step 1", "text 1: about slow", "stopped interrupt ",
				"said u2: fast", "began re-u2", "step 2", "text 1: about fast"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
}

// What a sub-agent has said shows as what its call has come to so far.
func TestEventsOfSubAgents(t *testing.T) {
	sub := handler.Define[look, agent.Result]("sub")
	tool := agent.Child("ask", "", sub)
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(agent.Config{Tools: []agent.Tool{tool},
			Model: answers{calling("ask", `{"text":"a"}`), saying("done")}})),
			handler.Bind(sub, func(ctx context.Context, task *handler.Task, in look) (agent.Result, error) {
				return agent.Run(ctx, task, agent.Config{Prompt: in.Text, Tools: []agent.Tool{search}, Model: answers{
					calling("search", `{"text":"a"}`), saying("it is a")}})
			}))
		x := fftest.Submit(w, kindTalk, Conversation{})
		m, err := roomsOf(t, w).enter(t.Context(), x.ID())
		if err != nil {
			t.Fatal(err)
		}
		defer m.leave()
		f := m.follow(place{answerTo: "u1"})
		x.AwaitSuspension()
		sends(t, w, x, "u1", "go")
		var all []event
		for n := len(all); n == 0 || all[n-1].kind != kindIdle; n = len(all) {
			events, err := f.next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				all = append(all, e.event)
			}
		}
		wantScript(t, "events", all, "began re-u1", "step 1", `called 1.1 c1 ask{"text":"a"}`, "answer 1: tools 10",
			"result so far c1: it is a", "result c1: it is a", "step 2", "text 1: done", "answer 2: end 20", "idle")
	})
}

// What the agent says to its model in the place of the user is something to know, and no message.
func TestNotices(t *testing.T) {
	var tell teller
	said := func(from, text string) {
		tell.add(item{what: itemSaid, at: "a1", said: agent.Message{Role: agent.User, From: from,
			Parts: agent.Text(text)}})
	}
	said("", "hello")
	said("limit of turns", "1 is left")
	tell.add(item{what: itemFrame, typ: agent.FrameToken, payload: []byte("x"), at: "a2"})
	said("form", "no")
	tell.add(item{what: itemFrame, typ: agent.FrameSummary, payload: []byte("{}"), at: "a3"})
	tell.add(item{what: itemFrame, typ: agent.FrameMessage, payload: []byte(`{"role":"assistant"}`), at: "a4"})
	wantScript(t, "events", tell.take(), "said p1: hello", "began re-p1", "notice limit", "step 1", "text 1: x",
		"notice form", "notice summary")
}
