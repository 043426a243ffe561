package fftest

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Execution is one submitted execution of a [Env].
type Execution[Out any] struct {
	env    *Env
	handle *client.Execution[Out]
}

// Submit submits an input. A refusal ends the test; to test for one use [Env.Client].
func Submit[In, Out any](w *Env, def *handler.Definition[In, Out], in In, opts ...client.SubmitOption) *Execution[Out] {
	w.t.Helper()
	if def.Info().Policy.Retention == (flowfabric.Retentions{}) {
		// time flies here, and a test looks at what ended long ago
		opts = append([]client.SubmitOption{flowfabric.Retention(limits.MaxDelay)}, opts...)
	}
	opts = append(w.makeGates(opts), numbered(w.submitted.Add(1)))
	handle, err := client.Submit(w.t.Context(), w.client, def, in, opts...)
	if err != nil {
		w.t.Fatalf("fftest: submit: %v", err)
	}
	return &Execution[Out]{w, handle}
}

// numbered is the option that lets the n-th execution of an [Env] have the same id in every run.
type numbered uint32

func (numbered) SubmitOption() {}

// ChosenID implements [option.Chosen].
func (n numbered) ChosenID() uuid.UUID {
	id := uuid.UUID{6: 0x70, 8: 0x80} // version 7
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

// ID names the execution. The n-th one that is submitted to an [Env] has the same id in every run of the test.
func (x *Execution[Out]) ID() flowfabric.ExecutionID { return x.handle.ID() }

// Snapshot reads everything about the execution as it is now.
func (x *Execution[Out]) Snapshot() flowfabric.Snapshot {
	x.env.t.Helper()
	s, err := x.handle.Get(x.env.t.Context())
	if err != nil {
		x.env.t.Fatalf("fftest: %v", err)
	}
	return s
}

// Cancel cancels the execution from outside; a handler that runs it sees its context end with
// [flowfabric.ErrCancelled]. An execution that has ended otherwise ends the test.
func (x *Execution[Out]) Cancel(opts ...flowfabric.ActOption) {
	x.env.t.Helper()
	if err := x.handle.Cancel(x.env.t.Context(), opts...); err != nil {
		x.env.t.Fatalf("fftest: %v", err)
	}
}

// Wait lets time pass until the execution has ended and reports. One that has not ended after Patience of its [Env]
// ends the test. Patience does not count the time until something is due, 30 s or more away, that moves an execution
// (a delay, a timeout, a deadline, a gate's window) or an answer. Time in which somebody would have to answer
// counts. Where there are schedules, something is always due: then only what moves this execution, or the children
// that it waits for, is not counted. An execution whose handler was run 1,000 times ends the test, too: it seems to
// delay itself for ever.
func (x *Execution[Out]) Wait() *Report[Out] {
	x.env.t.Helper()
	ctx := x.env.t.Context()
	x.env.ended(x.ID())
	r, err := x.report(ctx)
	if err != nil {
		x.env.t.Fatalf("fftest: report on %s: %v", x.ID(), err)
	}
	if len(x.env.left(x.ID())) > 0 {
		time.Sleep(settleTime) // who has just given the last one is about to note it
	}
	for _, a := range x.env.left(x.ID()) {
		r.errorf(a.words(), "%s was never given: the execution did not wait for it", a.words())
	}
	return r
}

// ended waits until an execution has ended.
func (w *Env) ended(id flowfabric.ExecutionID) {
	w.t.Helper()
	if err := w.await(w.t.Context(), id); err != nil {
		w.t.Fatalf("fftest: %v", err)
	}
}

// report collects what there is to know about an execution that has ended.
func (x *Execution[Out]) report(ctx context.Context) (*Report[Out], error) {
	r := &Report[Out]{ID: x.ID(), t: x.env.t, Crash: x.env.journal.crashedAt(), found: x.env.journal.found}
	var err error
	if r.Snapshot, err = x.handle.Get(ctx); err != nil {
		return nil, err
	}
	r.State = r.Snapshot.State.Public
	r.Elapsed = r.Snapshot.EndedAt.Sub(r.Snapshot.CreatedAt)
	r.Result, r.Err = x.handle.Result(ctx)
	r.Attempts = attempts(r.Snapshot)
	for event, err := range x.handle.Tail(ctx, client.WithoutChildren()) {
		if err != nil {
			return nil, err
		}
		switch event.Kind {
		case stream.TailAttempt:
			r.begun(event)
		case stream.TailResumed:
			r.repeated(event.Attempt, event.Resumed.Recorded)
			r.Resumed = append(r.Resumed, event)
		case stream.TailFrame:
			r.Frames = append(r.Frames, Frame{Attempt: event.Attempt, Frame: event.Frame})
		}
	}
	if r.Summary, err = x.handle.Summary(ctx); err != nil {
		return nil, err
	}
	stored, err := x.env.hash(ctx, keys.Of(x.ID().Partition()).Steps(ids.UUID(x.ID())))
	if err != nil {
		return nil, err
	}
	if r.Steps, err = x.env.steps(x.ID(), stored); err != nil {
		return nil, err
	}
	if r.Messages, err = x.received(stored); err != nil {
		return nil, err
	}
	if r.Waits, err = x.waited(ctx, r.Snapshot, stored); err != nil {
		return nil, err
	}
	return r, x.spent(ctx, r)
}

// attempts is the log with the last attempt, which is in it only if it failed.
func attempts(s flowfabric.Snapshot) []flowfabric.AttemptRecord {
	log := slices.Clone(s.AttemptLog)
	if n := s.Attempts; n > 0 &&
		!slices.ContainsFunc(log, func(a flowfabric.AttemptRecord) bool { return a.Index == n }) {
		log = append(log, flowfabric.AttemptRecord{
			Index: n, Type: s.AttemptType, State: string(s.State.Public), ClaimedAt: s.ClaimedAt,
			EndedAt: s.EndedAt,
			Worker:  s.Worker,
		})
	}
	slices.SortFunc(log, func(a, b flowfabric.AttemptRecord) int { return cmp.Compare(a.Index, b.Index) })
	return log
}

// steps picks the steps of the handler from what is recorded, in the order in which they were.
func (w *Env) steps(id flowfabric.ExecutionID, stored map[string]string) ([]Step, error) {
	stored = maps.Clone(stored)
	maps.DeleteFunc(stored, func(name, _ string) bool {
		return strings.HasPrefix(name, engine.StepAwait) || strings.HasPrefix(name, engine.StepWaitpoint) ||
			strings.HasPrefix(name, engine.StepChildren) || strings.HasPrefix(name, engine.StepReceipt)
	})
	var steps []Step
	take := func(name string) {
		if value, ok := stored[name]; ok {
			steps = append(steps, Step{name, w.client.Link().Engine.Box().Shown([]byte(value))})
			delete(stored, name)
		}
	}
	for _, e := range w.journal.history() {
		if e.kind == stepRecorded && e.execution == ids.UUID(id).String() {
			take(e.name)
		}
	}
	if len(stored) > 0 {
		return nil, fmt.Errorf("steps were recorded that no worker sent: %v", stored)
	}
	return steps, nil
}
