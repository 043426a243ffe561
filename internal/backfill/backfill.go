// Package backfill submits the work of a schedule apart from its times: once now, or for instants that have passed.
// The schedule itself does not move: its counts, its next instant and a pause stay as they are.
//
// The execution of an instant has the id that the schedule would have given it. So an instant that was fired, or
// submitted by a range before, is answered with what exists, and a call that was cut short may be repeated.
package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/flowplan"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/prose"
	"github.com/flowfabric/flowfabric-go/schedule"
)

const (
	// Most is how many instants a range has at most.
	Most = 1000
	// MostNodes is how many nodes the flows of a range have at most in all.
	MostNodes = 10000
)

// Run is what became of an instant.
type Run = apiv1.ScheduleRun

// Source is a schedule of one revision with its input.
type Source struct {
	conn       *link.Connection
	stored     engine.Schedule
	definition schedule.Definition
	now        time.Time
}

// Read reads a schedule, which must have the revision that was judged. Errors: denied.NoSchedule,
// denied.ScheduleChanged; flowfabric.ErrInvalidInput for a definition of a newer version.
func Read(ctx context.Context, conn *link.Connection, name string, revision uint64) (*Source, error) {
	page, err := conn.Engine.Schedules(ctx, conn.Engine.SchedulePartition(name),
		engine.ScheduleQuery{Name: name, Whole: true, Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case len(page.Schedules) == 0:
		return nil, denied.NoSchedule
	case page.Schedules[0].Revision != revision:
		return nil, denied.ScheduleChanged
	}
	s := &Source{conn: conn, stored: page.Schedules[0], now: page.Now}
	s.definition, err = calendar.Decode(s.stored.Definition)
	return s, err
}

// Now is the time of the server when the schedule was read.
func (s *Source) Now() time.Time { return s.now }

// Input is what the schedule submits, still encrypted if this process has no key for it.
func (s *Source) Input() []byte { return s.stored.Input }

// Instants are those of the schedule from one time to another, both included. More than the limit are an error.
func (s *Source) Instants(from, to time.Time) (all []time.Time, err error) {
	most := Most
	if s.definition.Nodes > 0 {
		most = min(most, MostNodes/s.definition.Nodes)
	}
	next := func(t time.Time) time.Time { return calendar.Next(s.definition, t) }
	for at := next(from.Add(-time.Millisecond)); !at.IsZero() && !at.After(to); at = next(at) {
		if at.Before(from) {
			continue
		}
		if len(all) == most {
			return nil, fmt.Errorf("the range has more than %d instants (at most %d, and %d nodes of flows)", most,
				Most, MostNodes)
		}
		all = append(all, at)
	}
	return all, nil
}

// Once submits one run now, with an id of its own.
func (s *Source) Once(ctx context.Context) (Run, error) {
	at := s.now
	if s.definition.Nodes > 0 {
		run := Run{Due: at, Flow: flowfabric.FlowID(mint.ID(s.stored.Partition))}
		return run, s.flow(ctx, &run)
	}
	runs := []Run{{Due: at, Execution: mint.ID(s.stored.Partition)}}
	refused, err := s.executions(ctx, runs)
	return runs[0], cmp.Or(err, refused)
}

// Each submits a run for each instant, in their order. An error ends it; a refusal of one run is in that run.
func (s *Source) Each(ctx context.Context, instants []time.Time) ([]Run, error) {
	runs := make([]Run, len(instants))
	for i, at := range instants {
		if runs[i].Due = at; s.definition.Nodes > 0 {
			runs[i].Flow = flowfabric.FlowID(mint.Join(ids.ScheduledFlow(s.stored.Partition, s.stored.Name,
				s.stored.Incarnation, s.stored.Revision, at)))
			if err := s.flow(ctx, &runs[i]); err != nil {
				if link.Repeatable(err) || ctx.Err() != nil {
					return nil, err
				}
				runs[i].Error = prose.Message(err)
			}
			continue
		}
		runs[i].Execution = mint.Join(ids.Scheduled(s.stored.Partition, s.stored.Name, s.stored.Incarnation, at))
	}
	if s.definition.Nodes > 0 {
		return runs, nil
	}
	for rest := runs; len(rest) > 0; {
		n := min(len(rest), s.batch())
		if _, err := s.executions(ctx, rest[:n]); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return runs, nil
}

// batch is how many executions go into one call.
func (s *Source) batch() int {
	labels := len(calendar.Labels(s.definition.Tags, s.stored.Name, s.now))
	return max(1, min(limits.MaxBatch, limits.MaxCallTags/labels,
		limits.MaxCallBytes/max(1, len(s.stored.Input)+limits.MaxName)))
}

// executions submits those of one call. refused is why the last of those was not that were refused.
func (s *Source) executions(ctx context.Context, runs []Run) (refused, err error) {
	items := make([]engine.NewExecution, len(runs))
	for i, r := range runs {
		items[i] = engine.NewExecution{ID: r.Execution, Start: s.definition.Item.Start, Digest: s.definition.Digest,
			Payload: s.stored.Input}
		items[i].Tags = calendar.Labels(s.definition.Tags, s.stored.Name, r.Due)
	}
	made, err := link.Persist(ctx, s.conn.SubmitTimeout, func() ([]engine.Created, error) {
		return s.conn.Engine.CreateExecutions(ctx, s.stored.Partition, items)
	})
	if err != nil {
		return nil, err
	}
	for i, m := range made {
		switch {
		case m.Err == nil:
			runs[i].Existed = m.Duplicate
		case errors.Is(m.Err, denied.Idempotency): // of an input that the schedule had before
			runs[i].Existed = true
		default:
			refused, runs[i].Error = m.Err, prose.Message(m.Err)
		}
	}
	return refused, nil
}

// flow submits the flow of one run.
func (s *Source) flow(ctx context.Context, run *Run) error {
	template, err := flowplan.Decode(s.stored.Input)
	if err != nil {
		return err
	}
	plan, err := template.Plan(run.Flow, flowplan.Wait{}, func(own map[string]string) map[string]string {
		return calendar.Labels(own, s.stored.Name, run.Due)
	})
	if err != nil {
		return err
	}
	batches, item := engine.Batches(plan.Members), s.definition.Item
	first := engine.NewFlow{ID: run.Flow, Namespace: item.Namespace, Kind: item.Kind, Creator: item.Creator,
		Digest: plan.Digest, Tags: plan.Tags, Members: batches[0]}
	if len(batches) == 1 {
		first.Mode = plan.Mode
	}
	made, err := link.Persist(ctx, s.conn.SubmitTimeout, func() (engine.FlowCreated, error) {
		return s.conn.Engine.CreateFlow(ctx, first)
	})
	if err != nil {
		return err
	}
	more := made.More
	if run.Existed = made.Already && made.State != flowfabric.FlowStaging; made.State == flowfabric.FlowStaging {
		if more, err = s.release(ctx, run.Flow, plan, batches[1:]); err != nil {
			return err
		}
	}
	if more {
		link.Drain(ctx, s.conn.Engine, run.Flow.Partition())
	}
	return nil
}

// release stages what did not fit into the call that made a flow, and lets it run.
func (s *Source) release(ctx context.Context, id flowfabric.FlowID, plan flowplan.Plan,
	batches [][]engine.FlowMember) (more bool, err error) {
	for _, batch := range batches {
		if _, err := link.Persist(ctx, s.conn.SubmitTimeout, func() (engine.FlowCreated, error) {
			return s.conn.Engine.StageFlow(ctx, id, nil, batch)
		}); err != nil {
			return false, err
		}
	}
	return link.Persist(ctx, s.conn.SubmitTimeout, func() (bool, error) {
		_, more, err := s.conn.Engine.SealFlow(ctx, id, plan.Mode, len(plan.Members), plan.Edges)
		return more, err
	})
}
