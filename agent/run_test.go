package agent_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
)

// The loop: the model asks for two tools, gets their results in the order of the calls, and ends.
func TestRun(t *testing.T) {
	model := &script{answers: []agent.Response{wants("search", `{"text":"tides"}`, "search", `{"text":"bad"}`),
		says("high and low")}}
	r := run(t, agent.Config{Model: model, System: "be brief", Tools: []agent.Tool{search(nil)}})
	slices.SortFunc(r.Steps, func(a, b fftest.Step) int { return strings.Compare(a.Name, b.Name) }) // tools run at once
	r.Want(fftest.Want{Steps: []string{"model 1", "model 2", "tool 1.1 search", "tool 1.2 search"}})
	want := agent.Result{Text: "high and low", Usage: agent.Usage{Input: 14, Output: 6}, Turns: 2, Stop: agent.StopEnd,
		Messages: r.Result.Messages}
	r.WantResult(want)
	wantTalk(t, r.Result.Messages, "user: hello", `assistant:  search{"text":"tides"} search{"text":"bad"}`,
		"tool search c1: about tides", "failed tool search c2: nothing is there", "assistant: high and low")
	r.Want(fftest.Want{Frames: map[string][]string{"token": {"high ", "and ", "low"}}})
}
