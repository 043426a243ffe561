package howto_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Companion talks for as long as somebody wants to, with a model that takes 200,000 tokens.
func (c *Talker) Companion(ctx context.Context, t *handler.Task, in Dialogue) (string, error) {
	result, err := agent.Run(ctx, t, agent.Config{
		Model:        c.Model,
		Messages:     in.Messages,
		Prompt:       in.Prompt,
		Mailbox:      "user",
		Conversation: true,
		Idle:         24 * time.Hour,
		Compact:      agent.Compact{Window: 200_000, Share: 70, Keep: 20},
		Continue: func(r agent.Result) error {
			return handler.Continue(Dialogue{Messages: r.Messages}) // they begin with the summary
		},
	})
	return result.Text, err
}

// The companion of the page is summarised, goes on, and remembers.
func TestLongConversations(t *testing.T) {
	summaries := 0
	model := agent.ModelFunc(func(_ context.Context, q agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		last := q.Messages[len(q.Messages)-1].Text()
		if strings.HasPrefix(last, "The conversation above is getting too long.") {
			summaries++
			return agent.Response{Message: agent.Message{Parts: agent.Text(fmt.Sprint("summary ", summaries))}}, nil
		}
		said := agent.Message{Parts: agent.Text(q.Messages[0].Text())}
		return agent.Response{Message: said, Usage: agent.Usage{Input: 140_000, Output: 100}}, nil
	})
	var answers []fftest.Answer
	for i := range 3 {
		answers = append(answers, fftest.Send("user", fmt.Sprint("and ", i)).After(time.Minute))
	}
	r := fftest.Run(t, Dialogues, fftest.Answered((&Talker{model}).Companion, answers...),
		Dialogue{Prompt: strings.Repeat("tell me more ", 10_000)})
	if r.Err != nil || summaries != 1 || !strings.HasSuffix(r.Result, "summary 1") {
		t.Errorf("%v, %d summaries, %.100q", r.Err, summaries, r.Result)
	}
}
