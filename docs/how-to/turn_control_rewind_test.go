package howto_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// again has the last answer made again, and says what its tools had done already.
func again(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, w io.Writer) error {
	dropped, err := agent.Regenerate(ctx, c, id, agent.Place{}, flowfabric.By("anna"))
	for _, e := range dropped.Effects {
		fmt.Fprintf(w, "%s %s: done %v\n", e.Tool, e.Arguments, e.Recorded)
	}
	return err
}

// instead has the first answer made again, to something else that was said.
func instead(ctx context.Context, c *client.Client, id flowfabric.ExecutionID, text string) error {
	_, err := agent.Edit(ctx, c, id, agent.Place{Turn: 1}, text, flowfabric.By("anna"))
	return err
}

func TestRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talker := handler.Define[string, agent.Result]("talker")
		model := agent.ModelFunc(func(_ context.Context, req agent.Request,
			_ func(agent.Delta) error) (agent.Response, error) {
			return agent.Response{Message: agent.Message{Parts: agent.Text("re " + req.Messages[0].Text())}}, nil
		})
		w := fftest.New(t, runtime.Config{}, handler.Bind(talker, (&Talker{Model: model}).Handle))
		x := fftest.Submit(w, talker, "hello")
		x.AwaitSuspension()
		if err := again(t.Context(), w.Client(), x.ID(), io.Discard); err != nil {
			t.Error(err)
		}
		w.Sleep(time.Minute)
		if err := instead(t.Context(), w.Client(), x.ID(), "bye"); err != nil {
			t.Error(err)
		}
		w.Sleep(time.Minute)
		if r := x.Wait(); r.Err != nil || r.Result.Text != "re bye" || r.Snapshot.Attempts != 3 {
			t.Errorf("%+v, %v", r.Result, r.Err)
		}
	})
}
