package runtime

import (
	"context"
	"log/slog"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/session"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/times"
	"github.com/flowfabric/flowfabric-go/internal/tracing"
	"github.com/flowfabric/flowfabric-go/internal/waits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// jobs is what all jobs of a run share: the goroutines that they run on, and what they need of the worker.
type jobs struct {
	// of handlers and of the calls that settle; outlives the wish to stop until the drain is over
	ctx      context.Context
	store    jobStore
	session  *session.Session
	slots    *slots
	watch    *watch
	seeds    *tokenkeys.Seeds
	kinds    map[string]*served
	instance string
	log      *slog.Logger
	metrics  *metrics
	tracer   *tracing.Tracer
	times    *times.Recorder
	box      *sealed.Box  // nil: nothing is encrypted
	worker   tasks.Worker // what batch handlers are given of it

	// of metrics, bound once for all jobs
	onReservation func(tasks.Reservation)
	onCall        func(tasks.Call)

	done *completer
	pool goroutinePool // handlers, each with a slot, and what is left to settle
}

// jobStore is what jobs ask of the server: what their handlers write and read, and what settles them.
type jobStore interface {
	framelog.Appender
	framelog.SummaryReader
	tasks.StepRecorder
	tasks.ProgressRecorder
	tasks.FrameReader
	tasks.ResultReader
	waits.Opener
	settler
	spender
	AppendLog(ctx context.Context, f flowfabric.Fence, first uint64, lines []stream.LogLine) error
}

// completed records the answers to completions. What was refused, or not answered, is settled alone: the server knows
// if it was done.
func (js *jobs) completed(batch []completion, answers []engine.Settled, err error) {
	done, now := make([]*keeper.Held, 0, len(batch)), time.Now()
	for i, c := range batch {
		refused := err
		if err == nil {
			refused = answers[i].Err
		}
		switch {
		case c.answer != nil: // somebody waits for it
			c.answer <- refused
		case refused != nil:
			c.job.outcome = &handler.Outcome{Kind: codes.OutcomeComplete, Result: c.item.Result}
			js.pool.do(c.job)
		default:
			c.job.kind.completed().Inc()
			js.measure(c.job, times.Completed, now)
			done = append(done, c.job.held)
		}
	}
	js.session.Keeper.Release(done...)
	js.slots.settled(len(done))
}

// measure records how long a settled attempt had waited, also for a slot here, and how long it ran.
func (js *jobs) measure(j *job, how times.Outcome, now time.Time) {
	claim, ran, slot := j.held.Claim(), time.Duration(0), time.Duration(0)
	if !j.began.IsZero() {
		ran = now.Sub(j.began)
		if !j.since.IsZero() {
			slot = j.began.Sub(j.since)
		}
	}
	waited := times.Waited(claim)
	if waited >= 0 {
		waited += slot
	}
	js.times.Add(claim.Fence.Execution.Partition(), times.Attempt{Namespace: j.route.Namespace, Kind: j.route.Kind,
		Outcome: how, Waited: waited, Ran: ran, At: claim.ClaimedAt.Add(slot + ran)})
}

// ended is what an outcome of the metrics is to those who ask how long attempts took.
func ended(outcome string) times.Outcome {
	switch outcome {
	case "complete":
		return times.Completed
	case "fail":
		return times.Failed
	case "retry":
		return times.Retried
	}
	return times.Other
}

// giveBack returns executions that waited for a slot.
func (js *jobs) giveBack(jobs []*job) {
	for _, j := range jobs {
		js.session.HandBack(j.held)
	}
}
