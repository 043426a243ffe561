package fftest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// A conversation that ends with the word "bye": what was received is received once and in order, and no answer is
// given twice, wherever the worker dies and whenever the messages come.
func TestCrashesWithMessages(t *testing.T) {
	var died []string
	n := fftest.Crashes(t, greet,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			return fftest.Answered(func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				var said []string
				for i := 0; ; i++ {
					m, err := handler.Receive[suspend.Message](ctx, task, "user")
					if err != nil {
						return "", err
					}
					word, err := suspend.Decode[string](m)
					if err != nil {
						return "", err
					}
					name := fmt.Sprintf("answer-%d", i)
					if _, err := handler.Step(ctx, task, name, func(context.Context) (string, error) {
						fx.Did(name)
						return word, task.Frame(ctx, "log", word)
					}); err != nil {
						return "", err
					}
					said = append(said, word)
					if word == "approve" {
						if _, err := handler.Await[bool](ctx, task, "approval"); err != nil {
							return "", err
						}
					}
					if word == "bye" {
						return strings.Join(said, " "), nil
					}
				}
			}, fftest.Send("user", "hello"), fftest.Send("user", "approve"), fftest.Approve("approval", true),
				fftest.Send("user", "one"), fftest.Send("user", "bye"))
		}, "", func(r *fftest.Report[string]) {
			r.WantResult("hello approve one bye")
			r.Want(fftest.Want{Steps: []string{"answer-0", "answer-1", "answer-2", "answer-3"}})
			if len(r.Messages) != 4 {
				t.Errorf("%d messages", len(r.Messages))
			}
			died = append(died, r.Crash)
		})
	t.Logf("%d crashes", n)
	for _, place := range []string{"1 of ff_receive_messages", "4 of ff_receive_messages", "4 of ff_send_message",
		"1 of ff_suspend_execution"} {
		for _, side := range []string{"before", "after"} {
			found := false
			for _, d := range died {
				found = found || strings.Contains(d, side) && strings.HasSuffix(d, place)
			}
			if !found {
				t.Errorf("no worker died %s call %s: %q", side, place, died)
			}
		}
	}
}
