package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/mcp"
)

var talk = handler.Define[string, string]("talk", flowfabric.Retries(0))

// talker answers each message with it, but hangs in the middle of its answer to "slow".
func talker(hangs chan<- string) handler.Binding {
	model := agent.ModelFunc(func(ctx context.Context, q agent.Request,
		delta func(agent.Delta) error) (agent.Response, error) {
		said := q.Messages[len(q.Messages)-1].Text()
		if err := delta(agent.Delta{Text: "You say "}); err != nil {
			return agent.Response{}, err
		}
		if said == "slow" {
			hangs <- said
			<-ctx.Done()
			return agent.Response{}, context.Cause(ctx)
		}
		return agent.Response{Stop: agent.StopEnd, Usage: agent.Usage{Input: 1, Output: 1},
			Message: agent.Message{Parts: agent.Text("You say " + said)}}, nil
	})
	return handler.Bind(talk, func(ctx context.Context, t *handler.Task, in string) (string, error) {
		r, err := agent.Run(ctx, t, agent.Config{Model: model, Prompt: in, Mailbox: "user", Conversation: true})
		return r.Text, err
	})
}

// A client of MCP stops the answer of its task's agent, has it made again, edits what was said, and forks the task.
func TestTurns(t *testing.T) {
	hangs := make(chan string, 1)
	e := start(t, talker(hangs))
	server := e.server(t, mcp.Config{Authorize: authorize}, append(kinds(), mcp.Tool(talk, "Talks.",
		mcp.Turns(agent.Place{})))...)
	w := &wire{e: e, url: e.serve(t, server), token: "pat"}
	act := func(tool string, arguments map[string]any) map[string]any {
		t.Helper()
		r := w.call(t, "tools/call", map[string]any{"name": tool, "arguments": arguments})
		if r["isError"] == true {
			return r
		}
		out, _ := r["structuredContent"].(map[string]any)
		if out == nil {
			t.Fatalf("%s: %v", tool, r)
		}
		return out
	}
	says := func(task, want string) {
		t.Helper()
		execution, _, _ := strings.Cut(task, ".")
		id, err := flowfabric.ParseExecutionID(execution)
		must.No(t, err)
		e.until(t, "the agent says "+want, func() bool {
			r, err := agent.ReadTranscript(e.ctx, e.client, id, agent.TranscriptOptions{})
			must.No(t, err)
			x, err := e.client.Execution(id).Get(e.ctx)
			must.No(t, err)
			return r.Text == want && x.State.Public == flowfabric.Suspended
		})
	}

	task := w.task(t, "talk", map[string]any{"input": "slow"})
	<-hangs
	if out := act("stop_turn", map[string]any{"task": task}); out["task"] != task || out["already"] != nil {
		t.Errorf("stopped: %v", out)
	}
	says(task, "You say ")
	if out := act("stop_turn", map[string]any{"task": task}); out["isError"] != true ||
		!strings.Contains(fmt.Sprint(out), "nothing_to_stop") {
		t.Errorf("stopped twice: %v", out)
	}
	out := act("edit_turn", map[string]any{"task": task, "message": "hello"})
	if !strings.Contains(fmt.Sprint(out), "model 1") {
		t.Errorf("edited: %v", out)
	}
	says(task, "You say hello")
	out = act("regenerate_turn", map[string]any{"task": task, "turn": 1})
	if !strings.Contains(fmt.Sprint(out), "model 1") {
		t.Errorf("regenerated: %v", out)
	}
	says(task, "You say hello")
	fork := act("fork_turn", map[string]any{"task": task})
	if other, _ := fork["task"].(string); other == task || other == "" {
		t.Errorf("forked: %v", fork)
	} else {
		says(other, "You say hello")
		act("edit_turn", map[string]any{"task": other, "turn": 1, "message": "goodbye"})
		says(other, "You say goodbye")
		says(task, "You say hello")
	}
	if out := act("regenerate_turn", map[string]any{"task": task, "turn": 7}); out["isError"] != true {
		t.Errorf("an answer that there is not: %v", out)
	}

	refuses := func(task, want string) {
		t.Helper()
		_, m := w.post(t, "tools/call", map[string]any{"name": "stop_turn", "arguments": map[string]any{"task": task}})
		if !strings.Contains(fmt.Sprint(m), want) {
			t.Errorf("%v, want %s", m, want)
		}
	}
	written := w.task(t, "write-article", Topic{Topic: "tides"})
	refuses(written, "have no turns")
	w.token = "grace" // who has not made the task
	refuses(task, "task not found")
}

// A tool that has the name of one for turns is refused; the server of the page is none.
func TestNamesOfTurns(t *testing.T) {
	e := start(t)
	_, err := Talking(e.client)
	must.No(t, err)
	_, err = mcp.New(e.client, mcp.Config{Logger: quiet}, mcp.Tool(talk, "Talks.", mcp.Turns(agent.Place{})),
		mcp.Tool(shout, "Shouts.", mcp.Name("stop_turn")))
	if err == nil || !strings.Contains(err.Error(), "stop_turn") {
		t.Errorf("%v", err)
	}
}
