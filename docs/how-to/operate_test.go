package howto_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var Print = handler.Define[int, string]("print", flowfabric.Retries(0))

// replayFailed runs again what failed in the last hour for want of ink.
func replayFailed(ctx context.Context, a *admin.Admin, lane string) (n int, err error) {
	r, err := a.Bulk(ctx, admin.Filter{Lane: lane, ErrorText: "no ink", Since: time.Now().Add(-time.Hour)},
		admin.BulkAction{Replay: &admin.Replay{}}, admin.BulkOptions{},
		flowfabric.By("anna"), flowfabric.Reason("ink refilled"))
	return r.Done, err
}

// explain says in one sentence why an execution is where it is, and what moves it next.
func explain(ctx context.Context, a *admin.Admin, id flowfabric.ExecutionID) error {
	why, err := a.Why(ctx, id)
	if err != nil {
		return err
	}
	fmt.Println(why.Sentence)
	fmt.Println(why.Next)
	if why.Reason == "waiting_no_worker" { // Reason is a stable name for programs
		fmt.Println("start a worker")
	}
	return nil
}

// follow handles every end since recording began, and every one from now on.
func follow(ctx context.Context, a *admin.Admin, handle func(id flowfabric.ExecutionID, cursor string) error) error {
	events, err := a.Subscribe(ctx, admin.SubscribeOptions{Oldest: true})
	if err != nil {
		return err
	}
	for event, err := range events.Events(ctx) {
		if err != nil {
			return err
		}
		if err := handle(event.Execution, events.Cursor()); err != nil {
			// store the cursor, and go on with SubscribeOptions.From
			return err
		}
	}
	return nil
}

func TestOperate(t *testing.T) {
	empty := true
	ctx, c := start(t, runtime.Config{},
		handler.Bind(Print, func(ctx context.Context, t *handler.Task, pages int) (string, error) {
			if empty {
				return "", errors.New("no ink")
			}
			return fmt.Sprint(pages, " pages"), t.Progress(ctx, 100, "")
		}))
	a := admin.New(c)
	_, err := a.Subscribe(ctx, admin.SubscribeOptions{}) // recording begins
	must(t, err)
	exec, err := client.Submit(ctx, c, Print, 10)
	must(t, err)
	if _, err := exec.Result(ctx); !errors.Is(err, flowfabric.ErrFailed) {
		t.Fatal(err)
	}
	must(t, explain(ctx, a, exec.ID()))
	empty = false
	n, err := replayFailed(ctx, a, "default")
	must(t, err)
	if text, err := exec.Result(ctx); n != 1 || err != nil || text != "10 pages" {
		t.Errorf("%d replayed: %q, %v", n, text, err)
	}

	enough := errors.New("enough")
	err = follow(ctx, a, func(id flowfabric.ExecutionID, cursor string) error {
		if id != exec.ID() {
			t.Errorf("an end of %s", id)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}
