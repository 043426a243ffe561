package fftest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// A batch handler runs here as it does in production: nothing is lost when its worker dies in the middle of a call.
func TestBatchHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		slow := func(ctx context.Context, items []*handler.Item[string, string]) error {
			calls = append(calls, len(items))
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
			for _, item := range items {
				item.Complete("hello " + item.In)
			}
			return nil
		}
		w := fftest.New(t, runtime.Config{}, handler.BindBatch(greet, slow, handler.Batch{Size: 3, Wait: time.Second}))
		var all []*fftest.Execution[string]
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, fftest.Submit(w, greet, name))
		}
		time.Sleep(5 * time.Second)
		w.Kill()
		for i, x := range all {
			r := x.Wait()
			r.WantResult("hello " + []string{"a", "b", "c"}[i])
			if len(r.Attempts) != 2 {
				t.Errorf("%d attempts, want two: the first died with its worker", len(r.Attempts))
			}
		}
		if !slices.Equal(calls, []int{3, 3}) {
			t.Errorf("calls with %v items, want 3 and 3", calls)
		}
	})
}

// Submits under one key run as one, with the latest input, when none has come for the time of the key.
func TestDebounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		w := fftest.New(t, runtime.Config{},
			handler.Bind(greet, func(_ context.Context, _ *handler.Task, in string) (string, error) {
				ran = append(ran, in)
				return in, nil
			}))
		key := flowfabric.Key{Text: "k", Debounce: time.Hour, DebounceMax: 3 * time.Hour}
		began := time.Now()
		var last *fftest.Execution[string]
		for _, in := range []string{"one", "two", "three"} {
			last = fftest.Submit(w, greet, in, key)
			w.Sleep(30 * time.Minute)
		}
		last.Wait().WantResult("three")
		if !slices.Equal(ran, []string{"three"}) || time.Since(began) < 2*time.Hour ||
			time.Since(began) > 2*time.Hour+time.Minute {
			t.Errorf("ran %q after %s, want three after two hours", ran, time.Since(began))
		}
		fftest.Submit(w, greet, "next", key).Wait().WantResult("next")
	})
}
