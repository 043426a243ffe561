package fftest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// A report tells which frames are repeated: by a run that goes on after a delay, and by another attempt.
func TestReportTellsWhatIsRepeated(t *testing.T) {
	runs := 0
	say := func(ctx context.Context, task *handler.Task, step string, words ...string) error {
		_, err := handler.Step(ctx, task, step, func(ctx context.Context) (int, error) {
			for i, word := range words {
				if i == 1 {
					switch runs {
					case 1:
						return 0, handler.Delay(time.Hour)
					case 2:
						return 0, errors.New("again")
					}
				}
				if err := task.Frame(ctx, "token", word); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		return err
	}
	def := handler.Define[string, int]("says", handler.Retry(3, time.Second, time.Second))
	r := fftest.Run(t, def, func(ctx context.Context, task *handler.Task, _ string) (int, error) {
		runs++
		return runs, errors.Join(say(ctx, task, "one", "a"), say(ctx, task, "two", "b", "c"))
	}, "x")
	r.WantResult(3)
	r.Want(fftest.Want{Frames: map[string][]string{"token": {"a", "b", "b", "b", "c"}}})
	if kept := r.Kept("token"); !slices.Equal(kept, []string{"a", "b", "c"}) {
		t.Errorf("kept %q, want a b c", kept)
	}
	if len(r.Resumed) != 1 || r.Resumed[0].Attempt != 1 || r.Resumed[0].Resumed.Reason != "delayed" ||
		r.Resumed[0].Resumed.Recorded != 1 {
		t.Errorf("resumed %+v, want one, delayed, with frame 1 recorded", r.Resumed)
	}
}
