package agent_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// A call that a lost worker had begun is not told as one that was not made, with people's word before it and without.
func TestStopOfACallThatALostWorkerHadBegun(t *testing.T) {
	for name, asks := range map[string]bool{"alone": false, "approved": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := make(chan struct{}, 9)
				lost := agent.NewTool("slow", "", func(ctx context.Context, _ query) (string, error) {
					started <- struct{}{}
					<-ctx.Done()
					return "", context.Cause(ctx)
				}, agent.Needs(func(query) agent.Decision { return agent.Decision{Ask: asks} }))
				w := fftest.New(t, runtime.Config{}, handler.Bind(chat, running(agent.Config{Tools: []agent.Tool{lost},
					Model: &script{answers: []agent.Response{wants("slow", `{"text":"x"}`)}}})))
				x := fftest.Submit(w, chat, "hello")
				if asks {
					x.Answer(fftest.Approve("approve 1.1 slow", suspend.Answer{Choice: "approve"}))
				}
				<-started
				w.Kill()
				_, err := agent.Stop(t.Context(), w.Client(), x.ID(), agent.TranscriptOptions{})
				must.No(t, err)
				r := x.Wait()
				said := "the call may have been made, and is not repeated: the answer was stopped"
				wantTalk(t, r.Result.Messages, "user: hello", `assistant:  slow{"text":"x"}`,
					"failed tool slow c1: "+said)
				if all := eventsOf(t, r); len(all) != 1 || len(all[0].Done)+len(all[0].NotMade) > 0 ||
					!slices.Equal(all[0].Unknown, []string{"tool 1.1 slow"}) {
					t.Errorf("%+v", all)
				}
				done, err := agent.Regenerate(t.Context(), w.Client(), x.ID(), agent.Place{})
				if err != nil || len(done.Effects) != 1 || done.Effects[0].Recorded || done.Effects[0].Result != said {
					t.Errorf("%+v, %v", done.Effects, err)
				}
				x.Cancel()
				x.Wait()
			})
		})
	}
}
