package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// kindTalk is what tests talk to.
var kindTalk = handler.Define[Conversation, agent.Result]("talk")

// echo is a model that repeats what the user said last, and tells how much it was told.
func echo(_ context.Context, req agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
	said, text := 0, ""
	for _, m := range req.Messages {
		if m.Role == agent.User {
			said++
			text = m.Text()
		}
	}
	text = fmt.Sprintf("%d: %s", said, text)
	for word := range strings.SplitAfterSeq(text, " ") {
		if err := delta(agent.Delta{Text: word}); err != nil {
			return agent.Response{}, err
		}
	}
	return agent.Response{Message: agent.Message{Parts: agent.Text(text)}, Stop: agent.StopEnd,
		Usage: agent.Usage{Input: 7, Output: 3}}, nil
}

func talking(cfg agent.Config) func(context.Context, *handler.Task, Conversation) (agent.Result, error) {
	return func(ctx context.Context, t *handler.Task, in Conversation) (agent.Result, error) {
		return Run(ctx, t, in, cfg)
	}
}

// lines is a conversation for comparison.
func lines(messages []agent.Message) (out []string) {
	for _, m := range messages {
		line := fmt.Sprintf("%s %s: %s", m.Role, m.ID, m.Text())
		for _, c := range m.Calls {
			line += " " + c.ID
		}
		out = append(out, line+m.Call)
	}
	return out
}

// A conversation has no end: after a number of answers it continues in another link, which has the messages so far.
func TestLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(kindTalk, talking(agent.Config{
			Model: agent.ModelFunc(echo), MaxTurns: 2, Idle: time.Hour})))
		x := fftest.Submit(w, kindTalk, Conversation{Messages: []agent.Message{{Role: agent.User,
			Parts: agent.Text("begin")}}, Data: []byte(`{"a":1}`)})
		talk := w.Client().Execution(x.ID())
		for n := range 6 {
			x.AwaitSuspension()
			if _, err := talk.Send(t.Context(), mailbox, map[string]any{"id": fmt.Sprint("u", n),
				"text": fmt.Sprint("hi ", n)}); err != nil {
				t.Fatal(err)
			}
			w.Sleep(time.Second)
		}
		s, err := talk.Get(t.Context())
		if err != nil || s.Continues != 3 {
			t.Errorf("%d links before, %v", s.Continues, err)
		}
		r := x.Wait()
		want := []string{"user p1: begin", "assistant : 1: begin"}
		for n := range 6 {
			want = append(want, fmt.Sprintf("user u%d: hi %d", n, n), fmt.Sprintf("assistant : %d: hi %d", n+2, n))
		}
		if got := lines(r.Result.Messages); r.Err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n%q\nwant\n%q", r.Err, got, want)
		}
	})
}

// What has no room in the next link goes with whole turns, from the beginning, and never a part of a call.
func TestFitting(t *testing.T) {
	user := func(id string) agent.Message {
		return agent.Message{Role: agent.User, ID: id, Parts: agent.Text(strings.Repeat("x", 1000))}
	}
	says := agent.Message{Role: agent.Assistant, Parts: agent.Text(strings.Repeat("y", 1000))}
	calls := agent.Message{Role: agent.Assistant, Calls: []agent.ToolCall{{ID: "c", Name: "t"}}}
	result := agent.Message{Role: agent.ToolRole, Call: "c", Parts: agent.Text(strings.Repeat("z", 1000))}
	summary := agent.Message{Role: agent.User, From: fromSummary, Parts: agent.Text("before")}
	limit := agent.Message{Role: agent.User, From: "limit of tokens", Parts: agent.Text("soon")}
	of := func(messages ...agent.Message) (out string) {
		for _, m := range messages {
			switch {
			case m.From != "":
				out += m.From[:1]
			case m.Role == agent.User:
				out += m.ID
			case len(m.Calls) > 0:
				out += "("
			case m.Role == agent.ToolRole:
				out += ")"
			default:
				out += "a"
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		messages []agent.Message
		room     int
		want     string
	}{
		"all":                  {[]agent.Message{user("1"), says, user("2"), says}, 1 << 20, "1a2a"},
		"a turn":               {[]agent.Message{user("1"), says, user("2"), says}, 3000, "2a"},
		"a turn with a call":   {[]agent.Message{user("1"), calls, result, says, user("2"), says}, 3000, "2a"},
		"a limit begins none":  {[]agent.Message{user("1"), calls, result, limit, says, user("2"), says}, 3500, "2a"},
		"the last stays":       {[]agent.Message{user("1"), says, user("2")}, 10, "2"},
		"answers of one":       {[]agent.Message{user("1"), calls, result, calls, result, says}, 2500, "1a"},
		"the newest call":      {[]agent.Message{user("1"), calls, result, calls, result}, 2500, "1()"},
		"a summary":            {[]agent.Message{summary, user("1"), says, user("2"), says}, 3000, "s2a"},
		"a summary and answer": {[]agent.Message{summary, says, user("1"), says}, 2600, "s1a"},
		"nothing":              {nil, 10, ""},
	} {
		if got := of(fitting(tc.messages, tc.room)...); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
