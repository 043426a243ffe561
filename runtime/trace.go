package runtime

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// runHandler runs the handler once, inside a span that is linked to the signals that let it go on, and measures it.
func (j *job) runHandler(ctx context.Context, handle handler.Handler, task *handler.Task,
	resume *suspend.Result) (out handler.Outcome) {
	started, returned := time.Now(), false
	if j.began.IsZero() {
		j.began = started
	}
	ctx, span := j.span(ctx, resume)
	j.jobs.watch.enter(ctx, j, started)
	defer func() {
		j.jobs.watch.leave(j)
		j.kind.ran(time.Since(started))
		if span == nil {
			return
		}
		switch {
		case !returned: // runtime.Goexit
			span.End(causes.Panic, "the handler ended its goroutine")
		case out.Kind == codes.OutcomeFail:
			span.Set("flowfabric.outcome", out.Kind)
			span.End(string(out.Failure.Category), out.Failure.Reason)
		default:
			span.Set("flowfabric.outcome", out.Kind)
			span.End("", "")
		}
	}()
	out = handle(ctx, task)
	returned = true
	return out
}

// span begins the span of a run; nil when tracing is off.
func (j *job) span(ctx context.Context, resume *suspend.Result) (context.Context, *tracing.Span) {
	if !j.jobs.tracer.On() {
		return ctx, nil
	}
	claim := j.held.Claim()
	work := tracing.Work{
		Namespace: j.route.Namespace, Lane: j.route.Lane, Kind: j.route.Kind, Execution: claim.Fence.Execution,
		Attempt: claim.Fence.Attempt, AttemptType: claim.Type, Worker: j.jobs.instance,
	}
	if resume != nil {
		for _, s := range resume.Signals {
			if s.Trace != "" {
				work.Links = append(work.Links, s.Trace)
			}
		}
	}
	return j.jobs.tracer.Process(ctx, claim.Tags, work)
}

// batch measures the call of a batch handler, inside a span that is linked to those of its items.
func (js *jobs) batch(ctx context.Context, route engine.Route, of []context.Context,
	waited time.Duration) (context.Context, func(err error)) {
	kind := js.kinds[route.Kind]
	kind.batched().Observe(float64(len(of)))
	kind.gathered().Observe(waited.Seconds())
	var span *tracing.Span
	if js.tracer.On() {
		work := tracing.Work{Namespace: route.Namespace, Lane: route.Lane, Kind: route.Kind, Worker: js.instance,
			Count: len(of)}
		for _, item := range of {
			work.Links = append(work.Links, tracing.Traceparent(item))
		}
		ctx, span = js.tracer.Batch(ctx, work)
	}
	return ctx, func(err error) { span.Ended(err) }
}
