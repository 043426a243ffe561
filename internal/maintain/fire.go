package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	recurrence "github.com/flowfabric/flowfabric-go/schedule"
)

const (
	fireConcurrency = 2   // partitions whose schedules are fired at once, beside the ticks
	firePages       = 10  // pages of due schedules in one go, before others have their turn
	fireSteps       = 100 // steps of one schedule in one go
	maxComplaints   = 1000
)

// Firer is what firing schedules needs of the engine. Each of the calls may be repeated.
type Firer interface {
	// Schedules reads the schedules of a partition, here those that are due, and the flow of one of them.
	Schedules(ctx context.Context, partition uint16, q engine.ScheduleQuery) (engine.SchedulePage, error)
	// FireSchedule makes one step of a schedule, unless somebody else has made it.
	FireSchedule(ctx context.Context, f engine.Firing) (engine.Fired, error)
	// CreateFlow and StageFlow put together a flow that FireSchedule then releases.
	CreateFlow(ctx context.Context, q engine.NewFlow) (engine.FlowCreated, error)
	StageFlow(ctx context.Context, id flowfabric.FlowID, revision *uint64,
		members []engine.FlowMember) (engine.FlowCreated, error)
}

// firing fires the schedules of the partitions whose ticks report some, beside the ticks, which go on meanwhile. Only
// run.loop touches the map; the workers see jobs and answers. An error pauses the schedules of that partition, with
// backoff, and nothing else; a tick that finds them due begins again.
type firing struct {
	cfg     Config
	jobs    chan uint16
	answers chan fired
	workers conc.WaitGroup
	state   map[uint16]*fires
}

// fires is what is remembered of one partition's schedules.
type fires struct {
	busy     bool
	failures int // in a row
	until    time.Time
	backoff  backoff.BackOff
	told     map[string]uint64 // schedules that were complained about, with their revision; only its worker touches it
}

// fired is the end of one go: moved tells that something was fired, so that the tick must look for the next due time.
type fired struct {
	partition uint16
	moved     bool
	err       error
}

func newFiring(cfg Config, partitions int) *firing {
	return &firing{cfg: cfg, jobs: make(chan uint16, partitions), answers: make(chan fired, partitions),
		state: map[uint16]*fires{}}
}

// start makes the workers.
func (f *firing) start(ctx context.Context, partitions map[uint16]*partition) {
	for id := range partitions {
		f.state[id] = &fires{told: map[string]uint64{},
			backoff: backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstBackoff),
				backoff.WithMaxInterval(maxBackoff), backoff.WithMaxElapsedTime(0))}
	}
	for range fireConcurrency {
		f.workers.Go(func() {
			for id := range f.jobs {
				moved, err := f.fire(ctx, id, f.state[id].told)
				f.answers <- fired{id, moved, err} // never blocks: one place for each partition
			}
		})
	}
}

// stop waits for the workers; what they did not get to is found due by the next tick.
func (f *firing) stop() {
	close(f.jobs)
	f.workers.Wait()
}

// want fires what is due in a partition soon, unless that is under way or has just failed.
func (f *firing) want(id uint16, now time.Time) {
	if p := f.state[id]; f.cfg.Schedules != nil && !p.busy && !now.Before(p.until) {
		p.busy = true
		f.jobs <- id // never blocks: one place for each partition
	}
}

// settle ends a go.
func (f *firing) settle(ctx context.Context, a fired) {
	p := f.state[a.partition]
	p.busy = false
	if a.err != nil {
		p.until = time.Now().Add(p.backoff.NextBackOff())
		if p.failures++; p.failures == 1 && ctx.Err() == nil {
			f.cfg.Logger.Warn("flowfabric: schedules could not fire; they are retried until they succeed", "partition",
				a.partition, "error", a.err)
		}
		return
	}
	if p.failures > 0 {
		f.cfg.Logger.Info("flowfabric: schedules fire again", "partition", a.partition, "failures", p.failures)
		p.failures, p.until = 0, time.Time{}
		p.backoff.Reset()
	}
}

// fire deals with what is due in one partition, page by page. Those it cannot deal with are passed over. A panic below
// counts as an error.
func (f *firing) fire(ctx context.Context, partition uint16, told map[string]uint64) (moved bool, err error) {
	caught := panics.Try(func() {
		passed := 0
		for range firePages {
			page, e := f.cfg.Schedules.Schedules(ctx, partition, engine.ScheduleQuery{Due: true, Skip: passed})
			if err = e; err != nil {
				return
			}
			for _, s := range page.Schedules {
				steps, e := f.advance(ctx, s, page.Now)
				moved = moved || steps > 0
				switch {
				case e == nil:
					if steps == 0 {
						passed++
					}
				case passing(e):
					passed++
					f.complain(told, s, e)
				default:
					err = fmt.Errorf("schedule %q: %w", s.Name, e)
					return
				}
			}
			if !page.More {
				return
			}
		}
	})
	if caught != nil {
		err = caught.AsError()
	}
	return moved, err
}

// passing tells errors that concern one schedule alone: what it says cannot be read, or not be done, by this process.
func passing(err error) bool {
	return errors.Is(err, calendar.ErrNewer) || errors.Is(err, denied.Input) || errors.Is(err, denied.Policy) ||
		errors.Is(err, denied.Capabilities) || errors.Is(err, denied.TagKey) ||
		errors.Is(err, denied.Script)
}

// complain logs once for each revision of a schedule.
func (f *firing) complain(told map[string]uint64, s engine.Schedule, err error) {
	if told[s.Name] == s.Revision {
		return
	}
	if len(told) >= maxComplaints {
		clear(told)
	}
	told[s.Name] = s.Revision
	level := slog.LevelError
	if errors.Is(err, calendar.ErrNewer) {
		level = slog.LevelWarn
	}
	f.cfg.Logger.Log(context.Background(), level, "flowfabric: a schedule is left to other processes", "schedule",
		s.Name, "partition", s.Partition, "due", s.Next, "error", err)
}

// advance makes the steps of one schedule that are due, and returns how many.
func (f *firing) advance(ctx context.Context, s engine.Schedule, now time.Time) (steps int, err error) {
	d, err := calendar.Decode(s.Definition)
	if err != nil {
		return 0, err
	}
	for steps < fireSteps {
		step, due := calendar.Plan(d, s.Next, s.ResumedAt, now)
		if !due {
			break
		}
		call := firingOf(s, d, step, now)
		answer, err := f.cfg.Schedules.FireSchedule(ctx, call)
		if err == nil && answer.Outcome == engine.FireWanted {
			call, answer, err = f.stage(ctx, s, d, call, now)
		}
		if errors.Is(err, denied.NoSchedule) || err == nil && answer.Already {
			return steps, nil // removed, changed, or fired by somebody else
		}
		if err != nil {
			return steps, err
		}
		f.cfg.OnFire(s.Partition, call, answer)
		s.Next = answer.Next
		steps++
	}
	return steps, nil
}

// firingOf is the call that makes a step.
func firingOf(s engine.Schedule, d recurrence.Definition, step calendar.Step, now time.Time) engine.Firing {
	x, call := d.Item, engine.Firing{Name: s.Name, Revision: s.Revision, Seen: s.Next, Next: step.Then,
		Missed: engine.MissedInstants(step.Missed), Limit: d.Runs, At: step.Fire,
		Solo: d.Overlap == recurrence.OverlapSkip}
	switch {
	case step.Fire.IsZero():
	case x.Nodes > 0:
		id := mint.Join(ids.ScheduledFlow(s.Partition, s.Name, s.Incarnation, s.Revision, step.Fire))
		// only asked about: what is not due any more need not be staged
		call.Flow = engine.StagedFlow{ID: flowfabric.FlowID(id), Members: x.Nodes}
	default:
		call.Item = engine.NewExecution{
			ID:    mint.Join(ids.Scheduled(s.Partition, s.Name, s.Incarnation, step.Fire)),
			Start: x.Start, Digest: x.Digest}
		call.Item.Tags = calendar.Labels(x.Tags, s.Name, step.Fire)
		waitOf(s, d, step.Fire, now).Apply(&call.Item, true)
	}
	return call
}

// waitOf is how long the work of an instant waits before it begins. A first run at the schedule's creation does not
// wait.
func waitOf(s engine.Schedule, d recurrence.Definition, instant, now time.Time) flowplan.Wait {
	if instant.Equal(s.CreatedAt) {
		return flowplan.Wait{}
	}
	begin := calendar.Start(d, s.Name, instant)
	return flowplan.Wait{Until: begin, For: begin.Sub(now)}
}

// stage puts together the flow of an instant and makes its step again: the call that releases the flow moves the
// schedule on, so neither happens without the other. A flow that the server refuses is counted as missed. One that is
// staged and never released, because the schedule was changed meanwhile, is given up by a tick a day later.
func (f *firing) stage(ctx context.Context, s engine.Schedule, d recurrence.Definition, call engine.Firing,
	now time.Time) (engine.Firing, engine.Fired, error) {
	page, err := f.cfg.Schedules.Schedules(ctx, s.Partition, engine.ScheduleQuery{Name: s.Name, Whole: true, Limit: 1})
	if err != nil {
		return call, engine.Fired{}, err
	}
	if len(page.Schedules) == 0 || page.Schedules[0].Revision != s.Revision {
		return call, engine.Fired{Already: true}, nil
	}
	template, err := flowplan.Decode(page.Schedules[0].Input)
	if err != nil {
		return call, engine.Fired{}, err
	}
	plan, err := template.Plan(call.Flow.ID, waitOf(s, d, call.At, now),
		func(own map[string]string) map[string]string { return calendar.Labels(own, s.Name, call.At) })
	if err != nil {
		return call, engine.Fired{}, err
	}
	call.Flow.Members, call.Flow.Edges, call.Flow.Mode = len(plan.Members), plan.Edges, plan.Mode
	refused := f.send(ctx, d.Item, call.Flow.ID, plan)
	code := flowfabric.CodeOf(refused)
	switch {
	case refused == nil:
		answer, err := f.cfg.Schedules.FireSchedule(ctx, call)
		if err == nil && answer.Outcome == engine.FireWanted {
			err = fmt.Errorf("flow %s was staged and is not there", call.Flow.ID)
		}
		return call, answer, err
	case !slices.Contains(refusals, code):
		return call, engine.Fired{}, refused
	}
	missed := call
	missed.Flow, missed.At = engine.StagedFlow{}, time.Time{}
	if missed.Missed.Count > 0 { // of another reason: what was missed before it comes first
		missed.Next = call.At
	} else {
		missed.Missed = engine.MissedInstants{From: call.At, To: call.At, Count: 1, Reason: code}
	}
	answer, err := f.cfg.Schedules.FireSchedule(ctx, missed)
	if missed.Missed.From.Equal(call.At) { // what is told is a refusal, as of an execution
		answer.Outcome, answer.Refusal, missed.Missed = engine.FireRefused, refused, engine.MissedInstants{}
	}
	return missed, answer, err
}

// refusals are the codes with which the server refuses a flow for what it is. The same flow would be refused again;
// the next instant may not.
var refusals = []string{"invalid_input", "invalid_policy", "invalid_capabilities", "invalid_tag_key",
	"payload_too_large", "input_does_not_fit", "too_many_routes", "lane_closed", "idempotency_conflict",
	"flow_conflict", "result_purged", "flow_already_terminal", "fan_in_too_large", "flow_too_large"}

// send stages a flow. Members that are there already are left alone.
func (f *firing) send(ctx context.Context, x recurrence.Item, id flowfabric.FlowID, plan flowplan.Plan) error {
	batches := engine.Batches(plan.Members)
	_, err := f.cfg.Schedules.CreateFlow(ctx,
		engine.NewFlow{ID: id, Namespace: x.Namespace, Kind: x.Kind, Creator: x.Creator, Digest: plan.Digest,
			Tags: plan.Tags, Members: batches[0]})
	for _, batch := range batches[1:] {
		if err != nil {
			break
		}
		_, err = f.cfg.Schedules.StageFlow(ctx, id, nil, batch)
	}
	return err
}
