package fftest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
)

func TestMain(m *testing.M) { os.Exit(check(m)) }

func check(m *testing.M) int {
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// greet is the kind of most tests: 3 retries after 1 s, 2 s, 4 s ± 20 %.
var greet = handler.Define[string, string]("greet", handler.Retry(3, time.Second, time.Minute))

func TestRunReports(t *testing.T) {
	r := fftest.Run(t, greet, func(ctx context.Context, task *handler.Task, name string) (string, error) {
		text, err := handler.Step(ctx, task, "compose", func(ctx context.Context) (string, error) {
			return "hello " + name, task.Frame(ctx, "token", "hel")
		})
		if err != nil {
			return "", err
		}
		if err := task.Frame(ctx, "token", "lo"); err != nil {
			return "", err
		}
		return text + task.Tags()["team.name"], task.Frame(ctx, "log", "done")
	}, "you", flowfabric.Tags(map[string]string{"team.name": "!"}))
	r.WantResult("hello you!")
	r.Want(fftest.Want{
		State:    flowfabric.Completed,
		Steps:    []string{"compose"},
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
		Most:     time.Second,
		Frames:   map[string][]string{"token": {"hel", "lo"}, "log": {"done"}},
	})
	if r.Err != nil || string(r.Steps[0].Value) != `"hello you"` || r.Snapshot.Creator != "" ||
		r.Frames[2].Sequence != 3 {
		t.Errorf("%+v", r)
	}
}

func TestRunDelays(t *testing.T) {
	runs := 0
	r := fftest.Run(t, greet, func(context.Context, *handler.Task, string) (string, error) {
		if runs++; runs <= 6 {
			return "", handler.Delay(4 * time.Hour)
		}
		return "at last", nil
	}, "")
	r.WantResult("at last")
	r.Want(fftest.Want{
		Least:    24 * time.Hour,
		Most:     24*time.Hour + time.Second,
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial}, // a delay goes on with the same attempt
	})
}

// Three retries after 1 s, 2 s, 4 s, each ± 20 %, and then a dead letter.
func TestRunRetries(t *testing.T) {
	var began []time.Time
	r := fftest.Run(t, greet, func(context.Context, *handler.Task, string) (string, error) {
		began = append(began, time.Now())
		return "", handler.Category("weather", errors.New("rain"))
	}, "")
	r.Want(fftest.Want{
		State:   flowfabric.Failed,
		Failure: "weather",
		Attempts: []flowfabric.AttemptType{
			flowfabric.AttemptInitial, flowfabric.AttemptRetry, flowfabric.AttemptRetry, flowfabric.AttemptRetry,
		},
	})
	if len(began) != 4 {
		t.Fatalf("%d runs", len(began))
	}
	pause := time.Second
	for i, at := range began[1:] {
		// On a busy machine time may be moved on before the worker has looked.
		if got := at.Sub(began[i]); got < pause*8/10 || got > pause*12/10+10*time.Second {
			t.Errorf("pause %d took %s, want %s - 20 %% or more", i+1, got, pause)
		}
		pause *= 2
	}
	if outcome, ok := errors.AsType[*client.OutcomeError](r.Err); !ok || outcome.Reason != "rain" || !errors.Is(r.Err,
		flowfabric.ErrFailed) {
		t.Errorf("error %v", r.Err)
	}
	if last := r.Attempts[3]; last.Category != "weather" || last.Index != 4 {
		t.Errorf("last attempt %+v", last)
	}
}

func TestRunTimesOut(t *testing.T) {
	slow := handler.Define[string, string]("slow", flowfabric.Timeout(2*time.Minute),
		handler.Retry(1, time.Hour, time.Hour))
	var causes []error
	r := fftest.Run(t, slow, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
		<-ctx.Done()
		causes = append(causes, context.Cause(ctx))
		return "", ctx.Err()
	}, "")
	r.Want(fftest.Want{
		Failure:  "attempt_timeout",
		Least:    52 * time.Minute,
		Most:     77 * time.Minute, // the pause is an hour ± 20 %
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry},
	})
	if len(causes) != 2 || !errors.Is(causes[0], flowfabric.ErrAttemptTimeout) ||
		!errors.Is(causes[1], flowfabric.ErrAttemptTimeout) {
		t.Errorf("causes %v", causes)
	}
}

func TestRunHitsDeadline(t *testing.T) {
	var cause error
	r := fftest.Run(t, greet, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return "", ctx.Err()
	}, "", flowfabric.Deadline(3*time.Minute))
	r.Want(fftest.Want{
		State: flowfabric.Expired,
		Least: 3 * time.Minute,
		Most:  3*time.Minute + 2*time.Second,
	})
	if !errors.Is(cause, flowfabric.ErrDeadline) {
		t.Errorf("cause %v", cause)
	}
}

// A deadline that comes while nothing runs is met, too, however far away.
func TestRunExpiresInADelay(t *testing.T) {
	r := fftest.Run(t, greet, func(context.Context, *handler.Task, string) (string, error) {
		return "", handler.Delay(1000 * time.Hour)
	}, "", flowfabric.Deadline(500*time.Hour))
	r.Want(fftest.Want{
		State: flowfabric.Expired,
		Least: 500 * time.Hour,
		Most:  500*time.Hour + 2*time.Second,
	})
}

func TestRunOtherEnds(t *testing.T) {
	fails := func(err error) func(context.Context, *handler.Task, string) (string, error) {
		return func(context.Context, *handler.Task, string) (string, error) { return "", err }
	}
	fftest.Run(t, greet, fails(handler.Cancel("enough")), "").Want(fftest.Want{State: flowfabric.Cancelled})
	r := fftest.Run(t, greet, fails(handler.Permanent(errors.New("no"))), "")
	r.Want(fftest.Want{
		Failure:  causes.HandlerError,
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
	})
	fftest.Run(t, greet, func(context.Context, *handler.Task, string) (string, error) { panic("boom") },
		"").Want(fftest.Want{Failure: causes.Panic})
}

// A definition's own lane and capabilities are served without being told.
func TestRunServesTheDefinition(t *testing.T) {
	special := handler.Define[[]byte, []byte]("special", flowfabric.Lane("fast"), flowfabric.Capabilities("gpu"))
	r := fftest.Run(t, special, handler.Plain(func(_ context.Context, in []byte) ([]byte, error) { return in, nil }),
		[]byte("\x00raw"))
	r.WantResult([]byte("\x00raw"))
}
