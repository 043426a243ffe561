package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func (w *env) mail(id flowfabric.ExecutionID, mailbox, payload string) {
	w.Helper()
	if _, err := w.engine.SendMessage(w.ctx, id,
		engine.Message{Mailbox: mailbox, By: "ann", Encoding: "json", Payload: []byte(payload)}); err != nil {
		w.Fatal(err)
	}
}

// A conversation: messages that came before, during and after waits, a retry in between, and a last word that never
// comes.
func TestReceive(t *testing.T) {
	servers(t, func(w *env) {
		failed := false
		w.start(signing(), handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			var said []string
			for {
				word, err := handler.Receive[string](ctx, task, "user", suspend.Within(time.Hour))
				if err != nil {
					return "", err
				}
				if said = append(said, word); word == "bye" {
					break
				}
				if word == "approve" {
					ok, err := handler.Await[string](ctx, task, "approval")
					if err != nil {
						return "", err
					}
					said = append(said, ok)
				}
				if word == "fail" && !failed {
					failed = true
					return "", errors.New("once")
				}
			}
			more, err := task.Drain(ctx, "user")
			if err != nil {
				return "", err
			}
			for _, m := range more {
				said = append(said, "and "+string(m.Payload)+" of "+m.By)
			}
			last, err := handler.Receive[string](ctx, task, "last", suspend.Within(20*time.Millisecond),
				suspend.OnTimeout(suspend.Resume))
			if !errors.Is(err, flowfabric.ErrWaitTimeout) {
				return last, err
			}
			return strings.Join(said, " "), nil
		}))
		id := w.submit("x", func(x *engine.NewExecution) {
			x.Delay = flowfabric.Millis(200 * time.Millisecond)
			x.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: 1, Initial: time.Millisecond}
		})
		w.mail(id, "user", `"hello"`) // before it runs
		asks := func(name string) {
			w.Helper()
			w.eventually("it waits for "+name, func() bool {
				return w.suspension(id).Name == name && w.suspension(id).ClosedAt.IsZero()
			})
		}
		asks("user·2")
		w.mail(id, "user", `"approve"`)
		asks("approval")
		w.mail(id, "user", `"fail"`) // while it waits for something else
		w.signalled(id, "approval", `"yes"`, "resume_condition_satisfied")
		asks("user·4")
		w.mail(id, "user", `"bye"`)
		w.mail(id, "user", `1`)
		w.mail(id, "user", `{"a":2}`)
		s := w.reach(id, codes.Completed)
		got := w.result(id, s.Attempts)
		if !strings.Contains(got, "hello approve yes fail bye") || s.Attempts != 2 {
			t.Errorf("%s after %d attempts", got, s.Attempts)
		}
		m, err := w.engine.ReadMessages(w.ctx, id, 0, 100)
		if err != nil || m.Total != 6 || m.Waiting+strings.Count(got, "and") != 2 {
			t.Errorf("%+v after %s, %v", m, got, err)
		}
	})
}
