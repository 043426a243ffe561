package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

type order struct{ Item string }
type receipt struct {
	Charge string
	Mailed int
}

var sell = handler.Define[order, receipt]("sell")

// shop sells in two steps with three frames. careless makes it charge outside of a step.
type shop struct {
	fx       *fftest.Effects
	careless bool
}

func (s *shop) charge(item string) (string, error) {
	s.fx.Did("charge")
	return "paid " + item, nil
}

func (s *shop) Handle(ctx context.Context, task *handler.Task, in order) (receipt, error) {
	var r receipt
	var err error
	if s.careless {
		r.Charge, err = s.charge(in.Item)
	} else {
		r.Charge, err = handler.Step(ctx, task, "charge", func(ctx context.Context) (string, error) {
			if err := task.Frame(ctx, "log", "charging"); err != nil {
				return "", err
			}
			return s.charge(in.Item)
		})
	}
	if err != nil {
		return receipt{}, err
	}
	r.Mailed, err = handler.Step(ctx, task, "mail", func(ctx context.Context) (int, error) {
		s.fx.Did("mail")
		return 1, errors.Join(task.Frame(ctx, "log", "mailing"), task.Frame(ctx, "log", "mailed"))
	})
	return r, err
}

// Two steps, three frames and a result come out the same wherever the worker dies.
func TestCrashes(t *testing.T) {
	var places, died []string
	most := map[string]int{}
	n := fftest.Crashes(t, sell, func(fx *fftest.Effects) func(context.Context, *handler.Task, order) (receipt, error) {
		t.Cleanup(func() {
			for _, name := range []string{"charge", "mail"} {
				most[name] = max(most[name], fx.Count(name))
			}
		})
		return (&shop{fx: fx}).Handle
	}, order{"pen"}, func(r *fftest.Report[receipt]) {
		r.WantResult(receipt{"paid pen", 1})
		r.Want(fftest.Want{Steps: []string{"charge", "mail"}})
		if kept := r.Kept("log"); !slices.Equal(kept, []string{"charging", "mailing", "mailed"}) {
			t.Errorf("%s: kept %q of %q", r.Crash, kept, r.Payloads("log"))
		}
		died = append(died, r.Crash)
		places = append(places, fmt.Sprintf("%d attempts, %d frames", len(r.Attempts), len(r.Frames)))
	})
	// Claims (two of them at least: the first learns the routes), two appends, two steps, one completion; each before
	// and after.
	if n < 14 || len(places) <= n {
		t.Errorf("%d crashes, %d reports: %q", n, len(places), places)
	}
	slices.Sort(died)
	if distinct := slices.Compact(slices.Clone(died)); len(distinct) != n+1 {
		t.Errorf("%d crashes, not each at its own place: %q", n, died)
	}
	for _, write := range []string{"1 of ff_claim_next", "1 of ff_append_frames", "2 of ff_append_frames",
		"1 of ff_record_step", "2 of ff_record_step", "1 of ff_complete_execution"} {
		if !slices.Contains(died, "died before call "+write) || !slices.Contains(died, "died after call "+write) {
			t.Errorf("no worker died before, or none after, call %s: %q", write, died)
		}
	}
	reclaimed := strings.Count(strings.Join(places, "\n"), "2 attempts")
	if reclaimed < 9 {
		t.Errorf("only %d of %d crashes led to a second attempt: %q", reclaimed, n, places)
	}
	t.Cleanup(func() {
		for name, n := range most { // at least once, and again only when the crash came before the record
			if n != 2 {
				t.Errorf("%s was done at most %d times, want 2 in the run that crashed before its record", name, n)
			}
		}
	})
}

// complaints stands in for a test that is expected to fail.
type complaints struct {
	testing.TB
	mu  sync.Mutex
	all []string
}

func (c *complaints) Helper() {}
func (c *complaints) Error(args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprint(args...))
}
func (c *complaints) Errorf(format string, args ...any) { c.Error(fmt.Sprintf(format, args...)) }

func (c *complaints) mention(t *testing.T, texts ...string) {
	t.Helper()
	all := strings.Join(c.all, "\n")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("no %q among the complaints:\n%s", text, all)
		}
	}
}

// crashes runs Crashes as a test that may fail, and returns its complaints.
func crashes[In, Out any](t *testing.T, def *handler.Definition[In, Out],
	setup func(fx *fftest.Effects) func(context.Context, *handler.Task, In) (Out, error), in In) (c *complaints) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c = &complaints{TB: t}
		if n := fftest.Crashes(c, def, setup, in, nil); n == 0 {
			t.Error("nothing crashed")
		}
	})
	return c
}

// An effect outside a step is repeated by the next attempt: the bug that Crashes is for.
func TestCrashesFindsEffectsOutsideSteps(t *testing.T) {
	c := crashes(t, sell, func(fx *fftest.Effects) func(context.Context, *handler.Task, order) (receipt, error) {
		return (&shop{fx, true}).Handle
	}, order{"pen"})
	c.mention(t, `effect "charge" was done again after step mail had been recorded`)
	for _, text := range c.all {
		if !strings.Contains(text, `effect "charge"`) || !strings.HasPrefix(text, "worker died ") {
			t.Errorf("unexpected complaint: %s", text)
		}
	}
}

// The same without any Effects: the result gives it away.
func TestCrashesFindsUnstableResults(t *testing.T) {
	c := crashes(t, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		runs := 0
		return func(context.Context, *handler.Task, string) (string, error) {
			runs++
			return fmt.Sprint("run ", runs), nil
		}
	}, "")
	c.mention(t, "worker died before call 1 of ff_complete_execution: result run 2; undisturbed run 1")
}

// Handlers that end otherwise when they find themselves in a second attempt.
func TestCrashesFindsOtherEnds(t *testing.T) {
	fails := func(category string) error {
		return handler.Permanent(handler.Category(flowfabric.Category(category), errors.New("no")))
	}
	for name, c := range map[string]struct {
		first, second error
		want          []string
	}{
		"state": {nil, handler.Cancel("been here before"),
			[]string{"ended: ", "been here before; undisturbed: completed"}},
		"category": {fails("rain"), fails("confused"), []string{"(confused): no; undisturbed: ", "(rain): no"}},
	} {
		t.Run(name, func(t *testing.T) {
			crashes(t, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
				return func(_ context.Context, task *handler.Task, _ string) (string, error) {
					if task.Attempt() > 1 {
						return "fine", c.second
					}
					return "fine", c.first
				}
			}, "").mention(t, c.want...)
		})
	}
}

// Frames and steps that depend on the attempt.
func TestCrashesFindsLostFramesAndOtherSteps(t *testing.T) {
	c := crashes(t, greet, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if task.Attempt() > 1 {
				return "", nil
			}
			_, err := handler.Step(ctx, task, "only-first", func(ctx context.Context) (int, error) { return 1, nil })
			return "", errors.Join(err, task.Frame(ctx, "token", "only first"))
		}
	}, "")
	c.mention(t, `steps []; undisturbed [{"only-first" "1"}]`, `token frame "only first" is missing`)
}

// What WantResult and Want say when they are not met.
func TestWantComplains(t *testing.T) {
	var c *complaints
	synctest.Test(t, func(t *testing.T) {
		c = &complaints{TB: t}
		r := fftest.Run(c, greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			return "yes", task.Frame(ctx, "token", "a")
		}, "")
		r.WantResult("yes")
		r.Want(fftest.Want{Frames: map[string][]string{"token": {"a"}}})
		if len(c.all) > 0 {
			t.Errorf("complaints %q", c.all)
		}
		r.WantResult("no")
		r.Want(fftest.Want{
			State:    flowfabric.Failed,
			Failure:  "weather",
			Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry},
			Steps:    []string{"a"},
			Least:    time.Hour,
			Most:     2 * time.Hour,
			Frames:   map[string][]string{"token": {"b"}},
		})
		r.Want(fftest.Want{})
		r.Want(fftest.Want{Frames: map[string][]string{}})
		bad := fftest.Run(c, greet, func(context.Context, *handler.Task, string) (string, error) {
			time.Sleep(time.Second)
			return "", handler.Permanent(errors.New("rain"))
		}, "")
		bad.WantResult("yes")
		bad.Want(fftest.Want{Failure: "weather", Most: time.Millisecond})
	})
	want := []string{"result yes, want no", "state completed (completed), want failed",
		"completed, want a failure of category weather",
		"attempts [initial], want [initial retry]", `steps [], want ["a"]`, `token frames ["a"], want ["b"]`,
		"want at least 1h0m0s", "Want demands nothing", "Want demands nothing",
		"no result: ", "failure of category handler_error (rain), want weather", "took 1s, want at most 1ms"}
	if len(c.all) != len(want) {
		t.Errorf("%d complaints, want %d: %q", len(c.all), len(want), c.all)
	}
	c.mention(t, want...)
}

// What a crash may do to best-effort frames and deltas is no loss; the document is the same wherever the worker dies.
func TestCrashesWithModes(t *testing.T) {
	def := handler.Define[string, string]("modes")
	n := fftest.Crashes(t, def, func(*fftest.Effects) func(context.Context, *handler.Task, string) (string, error) {
		return func(ctx context.Context, task *handler.Task, in string) (string, error) {
			for i := range 3 {
				patch := map[string]int{"done": i, "of": 3}
				if err := errors.Join(task.Summary(ctx, patch), task.Live(ctx, "ticker", "tick", time.Second),
					task.Flush(ctx)); err != nil {
					return "", err
				}
			}
			return in, task.Frame(ctx, "log", "done")
		}
	}, "in", func(r *fftest.Report[string]) {
		if string(r.Summary.Document) != `{"done":2,"of":3}` || r.Summary.Version != 3 {
			t.Errorf("%s: version %d of the summary is %s", r.Crash, r.Summary.Version, r.Summary.Document)
		}
	})
	if n < 8 {
		t.Errorf("%d crashes", n)
	}
}
