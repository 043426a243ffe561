package fftest_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
)

// round is what a link of a loop is given: how many there were, and what was heard so far.
type round struct {
	Link  int
	Heard []string
}

var endless = handler.Define[round, []string]("endless", handler.Retry(3, time.Second, time.Minute))

// links is how often the loop of the tests continues: 5 times, or 20 with FLOWFABRIC_SOAK.
var links = func() int {
	if os.Getenv("FLOWFABRIC_SOAK") != "" {
		return 20
	}
	return 5
}()

// listen hears one message in each link, does something, and continues; a message of the last link but one waits
// meanwhile.
func listen(fx *fftest.Effects) func(context.Context, *handler.Task, round) ([]string, error) {
	return func(ctx context.Context, t *handler.Task, in round) ([]string, error) {
		if t.Continues() != in.Link {
			return nil, handler.Permanent(fmt.Errorf("link %d has the input of %d", t.Continues(), in.Link))
		}
		if in.Link == links {
			return in.Heard, nil
		}
		text, err := handler.Receive[string](ctx, t, "user")
		if err != nil {
			return nil, err
		}
		if in.Link%3 == 0 {
			if _, err := handler.Step(ctx, t, "work", func(context.Context) (bool, error) {
				// the same name in several links
				fx.Did(fmt.Sprint("work ", in.Link))
				return true, nil
			}); err != nil {
				return nil, err
			}
		}
		return nil, handler.Continue(round{in.Link + 1, append(in.Heard, text)})
	}
}

// Wherever the worker dies, a loop that continues itself hears every message once and in order, and does the work of
// each link.
func TestCrashesOfAnEndlessLoop(t *testing.T) {
	var want []string
	var answers []fftest.Answer
	for i := range links {
		want = append(want, fmt.Sprint("message ", i))
		answers = append(answers, fftest.Send("user", want[i]))
	}
	var died []string
	crashes := fftest.Crashes(t, endless,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, round) ([]string, error) {
			return fftest.Answered(listen(fx), answers...)
		}, round{}, func(r *fftest.Report[[]string]) {
			if r.Err != nil || !slices.Equal(r.Result, want) {
				t.Errorf("%s: heard %q, %v", r.Crash, r.Result, r.Err)
			}
			r.Want(fftest.Want{Steps: []string{}})
			died = append(died, r.Crash)
		})
	for _, when := range []string{"before", "after"} {
		for i := 1; i <= links; i++ {
			if write := fmt.Sprintf("died %s call %d of ff_continue_execution", when, i); !slices.Contains(died,
				write) {
				t.Errorf("no worker %s", write)
			}
		}
	}
	if crashes < 5*links {
		t.Errorf("%d crashes", crashes)
	}
}

// A handler that continues with something else than its input fails for good, and says so.
func TestContinueWithAnotherType(t *testing.T) {
	r := fftest.Run(t, endless, func(context.Context, *handler.Task, round) ([]string, error) {
		return nil, handler.Continue("x")
	}, round{})
	r.Want(fftest.Want{Failure: causes.HandlerError})
	if len(r.Attempts) != 1 ||
		!strings.Contains(fmt.Sprint(r.Err), "the input is a string, which is not the definition's input type") {
		t.Errorf("%v after %d attempts", r.Err, len(r.Attempts))
	}
}
