package fftest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// effective is a handler of greet that tells fx what it does.
type effective func(ctx context.Context, task *handler.Task, fx *fftest.Effects) error

func (e effective) setup(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
	return func(ctx context.Context, task *handler.Task, in string) (string, error) { return in, e(ctx, task, fx) }
}

// mark records a step and reports whether this run was the one to run it.
func mark(ctx context.Context, task *handler.Task) (fresh bool, err error) {
	_, err = handler.Step(ctx, task, "mark", func(context.Context) (bool, error) {
		fresh = true
		return true, nil
	})
	return fresh, err
}

// Handlers that lose an effect, and yet end with the result and the steps that they should have.
func TestCrashesFindsLostEffects(t *testing.T) {
	for name, c := range map[string]struct {
		handle effective
		place  string // the write after which a worker that dies never mails
	}{
		"first attempt only": {func(_ context.Context, task *handler.Task, fx *fftest.Effects) error {
			if task.Fence().Attempt == 1 {
				fx.Did("mail")
			}
			return nil
		}, "ff_claim_next"},
		"fresh step only": {func(ctx context.Context, task *handler.Task, fx *fftest.Effects) error {
			fresh, err := mark(ctx, task)
			if err == nil && fresh {
				fx.Did("mail")
			}
			return err
		}, "ff_record_step"},
		// The dead worker's handler goes on and mails, which a process that is dead does not.
		"fresh step only, errors ignored": {func(ctx context.Context, task *handler.Task, fx *fftest.Effects) error {
			if fresh, _ := mark(ctx, task); fresh {
				fx.Did("mail")
			}
			return nil
		}, "ff_record_step"},
	} {
		t.Run(name, func(t *testing.T) {
			want := " of " + c.place + `: effect "mail" never happened`
			const again = `effect "mail" was done again`
			goesOn := strings.Contains(name, "errors ignored")
			found := crashes(t, greet, c.handle.setup, "x")
			told := func(text string) bool {
				return strings.Contains(text, want) || goesOn && strings.Contains(text, again)
			}
			// Where the dead worker's handler goes on, a busy machine may let it mail while the next one runs, which
			// looks like that one's mail, or behind it, which is one too many.
			for range 50 {
				if slices.ContainsFunc(found.all, told) {
					break
				}
				found = crashes(t, greet, c.handle.setup, "x")
			}
			if !slices.ContainsFunc(found.all, told) {
				found.mention(t, want)
			}
			for _, text := range found.all {
				// a claim that finds no work may come at the same time, and is as bad a moment
				// by the dead one, once the next one ran
				late := goesOn && strings.Contains(text, again)
				if !late && (!strings.HasPrefix(text, "worker died ") ||
					!strings.HasSuffix(text, `: effect "mail" never happened`)) {
					t.Errorf("unexpected complaint: %s", text)
				}
			}
		})
	}
}

// What failing runs did outside of steps, their retries are meant to do again.
func TestCrashesAllowsEffectsOfRetries(t *testing.T) {
	var all []*fftest.Effects
	n := fftest.Crashes(t, greet,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
			all = append(all, fx)
			return effective(func(_ context.Context, task *handler.Task, fx *fftest.Effects) error {
				fx.Did("probe")
				if task.Retries() < 2 {
					return errors.New("not yet")
				}
				return nil
			}).setup(fx)
		}, "x", func(r *fftest.Report[string]) {
			r.Want(fftest.Want{State: flowfabric.Completed})
			if r.Snapshot.Retries != 2 {
				t.Errorf("%d retries, want 2", r.Snapshot.Retries)
			}
		})
	if n < 12 || len(all) <= n { // claims and ends of three runs, before and after each
		t.Errorf("%d crashes in %d runs", n, len(all))
	}
	for i, fx := range all {
		if got := fx.Count("probe"); got < 3 {
			t.Errorf("run %d probed %d times, want 3 or more", i, got)
		}
	}
}

// Effects that are done again after a record, without any crash: a delay is one, and so is a step of a run that fails.
func TestCrashesFindsRepeatsAcrossPasses(t *testing.T) {
	for name, c := range map[string]struct {
		handle effective
		want   string
	}{
		"delay": {func(_ context.Context, task *handler.Task, fx *fftest.Effects) error {
			fx.Did("probe")
			if wait := time.Until(task.CreatedAt().Add(time.Hour)); wait > 0 {
				return handler.Delay(wait)
			}
			return nil
		}, `effect "probe" was done again after the end of a run had been recorded`},
		"step, then failure": {func(ctx context.Context, task *handler.Task, fx *fftest.Effects) error {
			fx.Did("probe")
			if _, err := mark(ctx, task); err != nil {
				return err
			}
			if task.Retries() < 1 {
				return errors.New("not yet")
			}
			return nil
		}, `effect "probe" was done again after step mark had been recorded`},
	} {
		t.Run(name, func(t *testing.T) {
			found := crashes(t, greet, c.handle.setup, "x")
			if !slices.ContainsFunc(found.all, func(text string) bool { return strings.HasPrefix(text, "effect ") }) {
				t.Errorf("the undisturbed run is not complained of: %q", found.all)
			}
			for _, text := range found.all {
				if !strings.Contains(text, c.want) {
					t.Errorf("unexpected complaint: %s", text)
				}
			}
		})
	}
}
