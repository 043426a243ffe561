package howto_test

import (
	"context"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// enough ends what the agent says, and lists what its tools have done.
func enough(ctx context.Context, c *client.Client, id flowfabric.ExecutionID) ([]string, error) {
	stopped, err := agent.Stop(ctx, c, id, agent.TranscriptOptions{}, flowfabric.By("anna"))
	var done []string
	for _, effect := range stopped.Done {
		done = append(done, effect.Tool+" "+string(effect.Arguments)+": "+effect.Result)
	}
	return done, err
}

// Barge talks with somebody who may interrupt.
func (c *Talker) Barge(ctx context.Context, t *handler.Task, first string) (agent.Result, error) {
	return agent.Run(ctx, t, agent.Config{Model: c.Model, Prompt: first, Mailbox: "user", Conversation: true,
		Idle: time.Hour, WhileBusy: agent.Interrupt})
}

func TestStopping(t *testing.T) {
	asked := make(chan string)
	model := agent.ModelFunc(func(ctx context.Context, req agent.Request,
		_ func(agent.Delta) error) (agent.Response, error) {
		last := req.Messages[len(req.Messages)-1]
		select {
		case asked <- last.Text(): // one that is interrupted, or stopped
			<-ctx.Done()
			return agent.Response{}, context.Cause(ctx)
		case <-ctx.Done():
			return agent.Response{}, context.Cause(ctx)
		}
	})
	talk := handler.Define[string, agent.Result]("barge")
	ctx, c := start(t, runtime.Config{}, handler.Bind(talk, (&Talker{model}).Barge))
	exec, err := client.Submit(ctx, c, talk, "hello")
	must(t, err)
	heard := []string{<-asked}
	must(t, say(ctx, c, exec.ID(), "wait"))
	heard = append(heard, <-asked)
	done, err := enough(ctx, c, exec.ID())
	must(t, err)
	if !slices.Equal(heard, []string{"hello", "wait"}) || len(done) > 0 {
		t.Errorf("%q, done %q", heard, done)
	}
	_, err = exec.AwaitSuspension(ctx)
	must(t, err)
	transcript, err := agent.ReadTranscript(ctx, c, exec.ID(), agent.TranscriptOptions{})
	must(t, err)
	if transcript.Stop != agent.StopStopped {
		t.Errorf("%+v", transcript)
	}
	must(t, exec.Cancel(ctx))
}
