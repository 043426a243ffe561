package handler

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// Handler makes one run of a task. [Binding.Run] is one.
type Handler func(ctx context.Context, t *Task) Outcome

// Middleware wraps every run of every kind. It may observe, change the context, or answer itself; whether a write
// counts is decided by its fence at the server, never here. A middleware that bounds the context with a timeout of
// its own causes an ordinary failure of category attempt_timeout.
type Middleware func(next Handler) Handler

// Recover turns a panic below it into a failure of category handler_panic, which the policy may retry, and logs it
// with its stack. [Binding.Run] has it built in; use it outermost when other middleware may panic.
func Recover() Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Task) Outcome { return recovered(next, ctx, t) }
	}
}

// recovered calls a handler, and makes a panic its failure.
func recovered(next Handler, ctx context.Context, t *Task) (out Outcome) {
	defer t.rescue(ctx, &out)
	return next(ctx, t)
}

// rescue makes a panic of the function that defers it the outcome.
func (t *Task) rescue(ctx context.Context, out *Outcome) {
	value := recover()
	if value == nil {
		return
	}
	t.Logger().ErrorContext(ctx, "flowfabric: handler panicked", "panic", fmt.Sprint(value), "stack",
		string(debug.Stack()))
	if lost := t.lost(ctx); lost != nil {
		*out = Outcome{Kind: codes.OutcomeAbandon, Err: lost}
		return
	}
	err, ok := value.(error)
	if ok {
		err = fmt.Errorf("panic: %w", err)
	} else {
		err = fmt.Errorf("panic: %v", value)
	}
	*out = plainFailure(causes.Panic, err)
}

// Logging logs the start of every run (debug) and its end: failures as warnings, everything else as info, with
// outcome, category, error and elapsed time. A nil logger means the task's own.
func Logging(logger *slog.Logger) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, t *Task) Outcome {
			log := t.Logger()
			if logger != nil {
				log = logger.With("execution", t.ID().String(), "attempt", t.Attempt(), "kind", t.Kind(), "lane",
					t.Lane())
			}
			log.DebugContext(ctx, "flowfabric: handler started", "type", string(t.AttemptType()), "retries",
				t.Retries())
			started := time.Now()
			out := next(ctx, t)
			level, attrs := slog.LevelInfo, []slog.Attr{
				slog.String("outcome", out.Kind), slog.Duration("elapsed", time.Since(started)),
			}
			if out.Kind == codes.OutcomeFail {
				level = slog.LevelWarn
				attrs = append(attrs, slog.String("category", string(out.Failure.Category)),
					slog.Bool("permanent", out.Failure.Permanent))
			}
			if out.Err != nil {
				attrs = append(attrs, slog.String("error", errorText(out.Err)))
			}
			log.LogAttrs(ctx, level, "flowfabric: handler ended", attrs...)
			return out
		}
	}
}
