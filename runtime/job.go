package runtime

import (
	"context"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

// job is one claimed execution on its way through its handler. It owns the claim, and a slot until its handler has
// returned.
type job struct {
	jobs  *jobs // it is one of
	held  *keeper.Held
	route engine.Route
	kind  *served   // nil: there is no handler
	logs  jobLog    // of its logger
	since time.Time // when it began to wait for a slot; zero if it did not
	deep  bool      // its partition had more than was claimed
	left  bool      // its slot is another's
	wakes uint64    // of its route, when it was claimed
	began time.Time // when its handler was called first; zero if it was not

	frames  frames           // that its handler appends
	reads   reads            // that its handler makes
	lines   logs             // that its handler logs
	slog    slog.Logger      // with what identifies the execution
	outcome *handler.Outcome // what is left to settle, after the batched completion failed
	atWork  atWork           // of the watch, while its handler is at work
	full    fullness
}

func newJob(js *jobs, held *keeper.Held, route engine.Route) *job {
	j := &job{jobs: js, held: held, route: route, kind: js.kinds[route.Kind]}
	j.logs = jobLog{js.log.Handler(), j}
	j.slog = *slog.New(&j.logs)
	j.frames.job, j.lines.job = j, j
	return j
}

// work runs one claim from start to settlement, or hands it to the completer, which gives the claim back. The slot is
// given up before that.
func (j *job) work() {
	handed := false
	defer func() {
		if !handed {
			j.leave(false)
			j.jobs.slots.settled(1)
		}
	}()
	if j.outcome != nil { // the batched completion failed
		j.settle(*j.outcome)
		return
	}
	j.jobs.metrics.inFlight.Inc()
	held, route := j.held, j.route
	switch {
	case !j.since.IsZero() && held.Check() != nil: // taken from us while it waited: no handler has seen it
		j.lost(held.Check(), "none")
		return
	case j.kind == nil: // its route would not be in our subscription
		j.settle(hopeless(causes.NoHandler, "no handler for kind "+route.Kind))
		return
	case held.Claim().InputLost:
		j.settle(hopeless(causes.Decode, "the stored input is gone: its key was deleted"))
		return
	}
	ctx, cancel := j.context()
	defer cancel()
	claim := held.Claim()
	j.wakes = claim.Wakes
	settled := false
	defer func() {
		if !settled {
			// runtime.Goexit: a handler that ends its goroutine, as a test's FailNow does, must not keep the hold
			j.settle(handler.Outcome{Kind: codes.OutcomeFail, Failure: handler.Failure{
				Category: causes.Panic, Reason: "the handler ended its goroutine (runtime.Goexit)"}})
		}
	}()
	j.reads = reads{j.jobs.store, held}
	task, waits := handler.NewTask(tasks.Config{
		Claim: claim, Route: route, Frames: &j.frames, Reader: &j.reads, Steps: j, Progress: j,
		Spender: j, Ledger: j.jobs.store, OnReservation: j.jobs.onReservation,
		Services: j.jobs.store, OnCall: j.jobs.onCall,
		Lease: held, Keyring: j.jobs.seeds.Keyring, Waitpoints: j, Results: &j.reads,
		Cancel: j.refused, Logger: j.taskLogger(), Box: j.jobs.box,
		Worker: &j.jobs.worker,
	})
	j.kind.began(route.Kind, claim)
	for resume := claim.Resume; ; {
		outcome := j.runHandler(ctx, j.kind.handle, task, resume)
		if outcome.Kind == codes.OutcomeSuspend && j.suspend(&outcome, waits, &resume) {
			continue
		}
		if outcome.Kind == codes.OutcomeChildren && j.children(&outcome, waits, &resume) {
			continue
		}
		settled = true
		kept := j.leave(outcome.Kind == codes.OutcomeComplete && j.member())
		if handed = j.completes(outcome); handed {
			j.jobs.done.complete(completion{job: j, item: j.completion(outcome.Result), dependants: j.member(),
				kept: kept})
			return
		}
		if kept {
			j.jobs.slots.put(1)
		}
		j.settle(outcome)
		return
	}
}

// leave gives the job's slot up: its handler has returned, and will not be called again. The next job gets it at
// once. With keep and no such job it stays reserved, which kept tells.
func (j *job) leave(keep bool) (kept bool) {
	if j.left {
		return false
	}
	j.left = true
	j.jobs.metrics.inFlight.Dec()
	next, kept := j.jobs.slots.leave(time.Now(), keep)
	if next != nil {
		j.jobs.pool.do(next)
	}
	return kept
}

// member tells whether the execution is in a flow, so that its end may make others claimable.
func (j *job) member() bool { return !j.held.Claim().Flow.IsZero() }

// hopeless is the outcome of an execution that no further attempt can help.
func hopeless(category flowfabric.Category, reason string) handler.Outcome {
	return handler.Outcome{Kind: codes.OutcomeFail,
		Failure: handler.Failure{Category: category, Reason: reason, Permanent: true}}
}

// context bounds the handler by what the server will enforce anyway; see [keeper.Held.Bounded].
func (j *job) context() (context.Context, context.CancelFunc) {
	waited := time.Duration(0)
	if !j.since.IsZero() {
		waited = time.Since(j.since)
	}
	return j.held.Bounded(waited)
}

// RecordTurn implements [tasks.StepRecorder] under the hold. The step's effect has happened, so its record is sent
// until it is answered: neither a failover nor a frozen partition may repeat the effect or cost a retry.
func (j *job) RecordTurn(ctx context.Context, fence flowfabric.Fence, s engine.Step) (r engine.Recorded, err error) {
	err = j.held.Persist(ctx, func(ctx context.Context) (err error) {
		r, err = j.jobs.store.RecordTurn(ctx, fence, s)
		return err
	})
	if err == nil && !r.Already {
		j.recorded(s.Name, len(s.Value))
	}
	return r, err
}

// UpdateProgress implements [tasks.ProgressRecorder] under the hold.
func (j *job) UpdateProgress(ctx context.Context, fence flowfabric.Fence, percent int, message string) error {
	if err := j.held.Check(); err != nil {
		return err
	}
	err := j.jobs.store.UpdateProgress(ctx, fence, percent, message)
	j.held.Refused(err)
	if flowfabric.Retryable(err) && ctx.Err() == nil {
		j.logger().Debug("flowfabric: the worker could not store the progress", "error", err)
		return nil // progress is a hint: a server that is away, frozen or full must not cost an attempt
	}
	return err
}

// refused ends the handler's context after its frames, a step or progress were refused for good. A refusal that
// outran the notice of a cancellation or a deadline ends it as the notice would have: who streams hears of it in this
// way as a rule.
func (j *job) refused(cause error) {
	j.held.Refused(cause)
	if ended := endedAs(cause); ended != nil {
		cause = ended
	}
	j.held.Cancel(cause)
}
