package crash

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Job is one piece of the mix; its index decides what its handler does.
type Job struct{ Index int }

// Answer is the result of a job. Pass was made inside a step: "<worker>/<attempt>/<nanoseconds>".
type Answer struct {
	Index  int
	Worker string
	Pass   string
}

// Mode is what the handler of a job does.
type Mode int

// The modes, by falling share of the mix.
const (
	Quick  Mode = iota // returns at once
	Stream             // Tokens frames, with a step in the middle
	Flaky              // fails Failures times, a few frames each time, then succeeds
	Delays             // puts itself aside once
	Steps              // records a step
	Dead               // fails for good
)

// Tokens is how many frames a [Stream] job writes.
const Tokens = 16

// Mode of the job: 10 of 20 are quick, 3 stream, 2 each are flaky, delay and record, 1 is dead.
func (j Job) Mode() Mode {
	switch n := j.Index % 20; {
	case n < 10:
		return Quick
	case n < 13:
		return Stream
	case n < 15:
		return Flaky
	case n < 17:
		return Delays
	case n < 19:
		return Steps
	}
	return Dead
}

// Failures is how many retries the job must have consumed in the end.
func (j Job) Failures() int {
	if j.Mode() == Flaky {
		return 1 + j.Index/20%2
	}
	return 0
}

// Ends is the state the job must end in.
func (j Job) Ends() codes.Code {
	if j.Mode() == Dead {
		return codes.Failed
	}
	return codes.Completed
}

// Key is the job's idempotency key.
func (j Job) Key() string { return "k" + strconv.Itoa(j.Index) }

// Place is where a deployment with so many partitions keeps who has the key.
func (j Job) Place(partitions uint16) (uint16, uuid.UUID) {
	return ids.Keyed(partitions, limits.DefaultNamespace, Mix.Kind(), j.Key())
}

// Execution is the one that the key leads to; flowfabric.ErrNotFound if there is none.
func (j Job) Execution(ctx context.Context, e *engine.Engine) (flowfabric.ExecutionID, error) {
	partition, key := j.Place(e.Partitions())
	return e.KeyHolder(ctx, partition, key)
}

// Mix is the definition that all jobs share. Reclaims are not capped: how often a worker dies is up to the test.
var Mix = handler.Define[Job, Answer]("crash-mix", handler.Retry(3, 20*time.Millisecond, 100*time.Millisecond),
	handler.MaxReclaims(10_000))

// pace is the time between two frames, and aside how long a job of mode Delays stays aside.
const (
	pace  = 15 * time.Millisecond
	aside = 150 * time.Millisecond
)

// Bind makes the handler of the mix for the worker of that name.
func Bind(name string) handler.Binding {
	return handler.Bind(Mix, func(ctx context.Context, t *handler.Task, in Job) (Answer, error) {
		out := Answer{Index: in.Index, Worker: name}
		once := func() (err error) {
			out.Pass, err = handler.Step(ctx, t, "once", func(context.Context) (string, error) {
				return fmt.Sprintf("%s/%d/%d", name, t.Attempt(), time.Now().UnixNano()), nil
			})
			return err
		}
		switch in.Mode() {
		case Stream:
			if err := emit(ctx, t, 0, Tokens/2); err != nil {
				return out, err
			}
			if err := once(); err != nil {
				return out, err
			}
			return out, emit(ctx, t, Tokens/2, Tokens)
		case Flaky:
			if t.Retries() >= in.Failures() {
				return out, nil
			}
			if err := emit(ctx, t, 0, 3); err != nil {
				return out, err
			}
			return out, errors.New("not yet")
		case Delays:
			if err := once(); err != nil {
				return out, err
			}
			began, err := MadeAt(out.Pass)
			if err != nil {
				return out, handler.Permanent(err)
			}
			if left := aside - time.Since(began); left > 0 {
				return out, handler.Delay(left)
			}
		case Steps:
			return out, once()
		case Dead:
			return out, handler.Permanent(errors.New("dead on arrival"))
		}
		return out, nil
	})
}

// MadeAt is when the value of a step was made, from its text.
func MadeAt(pass string) (time.Time, error) {
	parts := strings.Split(pass, "/")
	if len(parts) != 3 {
		return time.Time{}, fmt.Errorf("step value %q", pass)
	}
	nanos, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("step value %q: %w", pass, err)
	}
	return time.Unix(0, nanos), nil
}

// emit writes the frames from…to, numbered.
func emit(ctx context.Context, t *handler.Task, from, to int) error {
	for i := from; i < to; i++ {
		if err := t.Frame(ctx, "token", strconv.Itoa(i)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pace):
		}
	}
	return nil
}
