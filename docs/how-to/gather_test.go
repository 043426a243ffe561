package howto_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Shop is what is indexed.
type Shop struct{ ID, Name string }

var Reindex = handler.Define[Shop, string]("reindex")

// reindex makes sure that a shop is indexed once its owner has stopped typing, and at the latest after five minutes.
func reindex(ctx context.Context, c *client.Client, shop Shop) error {
	_, err := client.Submit(ctx, c, Reindex, shop,
		flowfabric.Key{Text: "shop-" + shop.ID, Debounce: 10 * time.Second, DebounceMax: 5 * time.Minute})
	return err
}

// Event is one row.
type Event struct{ Name string }

var Record = handler.Define[Event, int]("record")

// insert writes up to a hundred events with one statement.
func insert(ctx context.Context, items []*handler.Item[Event, int]) error {
	var rows []Event
	for _, item := range items {
		if item.In.Name == "" {
			item.Fail(handler.Permanent(errors.New("an event needs a name"))) // this one alone
			continue
		}
		rows = append(rows, item.In)
	}
	if err := write(ctx, rows); err != nil {
		return err // every item that has not ended is tried again, by its own policy
	}
	for _, item := range items {
		item.Complete(len(rows))
	}
	return nil
}

// table is the database of this test.
var table struct {
	sync.Mutex
	rows []Event
}

func write(_ context.Context, rows []Event) error {
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, rows...)
	return nil
}

// recording is an option of the application.
func recording() fx.Option {
	return runtime.HandleBatch(Record, insert, handler.Batch{Size: 100, Wait: 50 * time.Millisecond})
}

func TestGathering(t *testing.T) {
	if recording() == nil {
		t.Fatal("no option")
	}
	ctx, c := start(t, runtime.Config{Concurrency: 128},
		handler.BindBatch(Record, insert, handler.Batch{Size: 100, Wait: 50 * time.Millisecond}),
		handler.Bind(Reindex, func(_ context.Context, _ *handler.Task, shop Shop) (string, error) {
			return shop.Name, nil
		}))
	all, err := client.SubmitMany(ctx, c, Record, []Event{{"a"}, {}, {"b"}}, flowfabric.Retries(0))
	must(t, err)
	for i, x := range all {
		n, err := x.Result(ctx)
		if i == 1 && !errors.Is(err, flowfabric.ErrFailed) || i != 1 && (err != nil || n < 1) {
			t.Errorf("event %d: %d, %v", i, n, err)
		}
	}
	table.Lock()
	defer table.Unlock()
	if len(table.rows) != 2 {
		t.Errorf("%d rows", len(table.rows))
	}
	must(t, reindex(ctx, c, Shop{"7", "old"}))
	again, err := client.Submit(ctx, c, Reindex, Shop{"7", "new"},
		flowfabric.Key{Text: "shop-7", Debounce: time.Millisecond})
	must(t, err)
	if !again.Duplicate() || !again.Replaced() {
		t.Error("the second submission is another execution")
	}
	if name, err := again.Result(ctx); err != nil || name != "new" {
		t.Errorf("%q, %v", name, err)
	}
}
