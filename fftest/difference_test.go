package fftest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// One word that differs in long steps, frames and results is told once for each of them, with the word and what is
// around it, however many runs have it.
func TestCrashesTellsTheFirstDifferenceOnce(t *testing.T) {
	runs := 0
	c := crashes(t, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		runs++
		word := fmt.Sprint("sun", runs)
		return func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			var all strings.Builder
			for i := range 4 {
				text, err := handler.Step(ctx, task, fmt.Sprint("step", i), func(context.Context) (string, error) {
					text := strings.Repeat("The tides rise. ", 100)
					if i == 2 {
						text += word
					}
					return text + strings.Repeat(" The tides fall.", 100), nil
				})
				if err == nil {
					err = task.Frame(ctx, "text", text)
				}
				if err != nil {
					return "", err
				}
				all.WriteString(text)
			}
			return all.String(), nil
		}
	}, "")
	if len(c.all) != 3 || len(strings.Join(c.all, "")) > 2500 {
		t.Errorf("%d complaints of %d bytes: %q", len(c.all), len(strings.Join(c.all, "")), c.all)
	}
	for i, about := range []string{"result The tides rise.", `steps {"step2"`, "text frame "} {
		if i < len(c.all) && (!strings.Contains(c.all[i], ": "+about) || !strings.Contains(c.all[i], "rise. sun1") ||
			!strings.Contains(c.all[i], "rise. sun2")) {
			t.Errorf("complaint %d, want one about %s with both words: %s", i, about, c.all[i])
		}
	}
}

// What a check wants in vain is told once, too.
func TestCrashesChecksOnce(t *testing.T) {
	var c *complaints
	synctest.Test(t, func(t *testing.T) {
		c = &complaints{TB: t}
		fftest.Crashes(c, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			return func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				return "yes", task.Frame(ctx, "token", "a")
			}
		}, "", func(r *fftest.Report[string]) {
			r.WantResult("no")
			r.Want(fftest.Want{
				Steps:  []string{"one"},
				State:  flowfabric.Failed,
				Frames: map[string][]string{"token": {"b"}},
			})
		})
	})
	if len(c.all) != 4 {
		t.Errorf("%q", c.all)
	}
}

// A handler that uses its id, or one of its children, finds the same in every run.
func TestCrashesKeepsIDs(t *testing.T) {
	var id flowfabric.ExecutionID
	fftest.Crashes(t, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			name, err := handler.Step(ctx, task, "name", func(context.Context) (string, error) {
				return "file of " + task.ID().String(), nil
			})
			if err != nil {
				return "", err
			}
			return name, task.Frame(ctx, "id", task.ID().Child("wait", "child").String())
		}
	}, "", func(r *fftest.Report[string]) {
		if id.IsZero() {
			id = r.ID
		}
		if r.ID != id {
			t.Errorf("%s: id %s, want %s", r.Crash, r.ID, id)
		}
		r.WantResult("file of " + id.String())
	})
	synctest.Test(t, func(t *testing.T) { // several of one environment differ
		nothing := func(context.Context, *handler.Task, string) (string, error) { return "", nil }
		w := fftest.New(t, runtime.Config{}, handler.Bind(greet, nothing))
		if a, b := fftest.Submit(w, greet, ""), fftest.Submit(w, greet, ""); a.ID() == b.ID() || a.ID() != id {
			t.Errorf("%s and %s, want %s first", a.ID(), b.ID(), id)
		}
	})
}
