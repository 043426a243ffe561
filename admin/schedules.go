package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/prose"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// scheduler is the part of the engine behind the calls of this file. Each of them may be repeated.
type scheduler interface {
	SchedulePartition(name string) uint16
	PauseSchedule(ctx context.Context, name string, paused bool,
		expected *uint64) (since time.Time, already bool, err error)
	RemoveSchedule(ctx context.Context, name string, expected *uint64) (already bool, err error)
	Schedules(ctx context.Context, partition uint16, q engine.ScheduleQuery) (engine.SchedulePage, error)
}

// ScheduleInfo is a schedule as it was read.
type ScheduleInfo struct {
	Name        string `json:"name"`
	Partition   uint16 `json:"partition"`
	Revision    uint64 `json:"revision" jsonschema:"grows with every change of the definition"`
	Incarnation uint64 `json:"incarnation,omitempty" see:"operator" jsonschema:"the revision of its creation"`
	// what is submitted when; zero when Err is not nil
	schedule.Definition
	When string `json:"spec,omitempty" jsonschema:"its times in words"`
	// why the definition could not be decoded: a newer version wrote it, or flowfabric.ErrInvalidInput
	Err        error  `json:"-"`
	Error      string `json:"error,omitempty" jsonschema:"why it cannot be read"`
	InputBytes int    `json:"input_bytes"`
	// how often it may still submit; nil: without end
	RunsLeft *uint64 `json:"runs_left,omitempty" jsonschema:"runs left of max_runs"`
	// Ended is why the schedule has no next instant: "runs" (it has submitted as much as it may), "until" (its last
	// instant has passed) or "spec" (its spec has no further instant within 40 years). It is empty when there is a
	// next instant, or Err is not nil.
	Ended string `json:"ended,omitempty" jsonschema:"why it has no next run: runs, until, or spec, which has no further instant"`
	// the oldest instant that was neither fired nor missed; zero: there is none
	Next time.Time `json:"next_at,omitzero"`
	// what a door has asked [ScheduleInfo.NextRuns] for
	Upcoming []time.Time            `json:"next_runs,omitempty"`
	LastDue  time.Time              `json:"last_due_at,omitzero" jsonschema:"the last instant that was fired"`
	LastID   flowfabric.ExecutionID `json:"last_execution,omitzero"`
	// if that submitted a flow; then LastID is zero
	LastFlow   flowfabric.FlowID `json:"last_flow,omitzero"`
	Fired      uint64            `json:"fired"`
	Missed     uint64            `json:"missed" jsonschema:"instants that were not fired"`
	LastMissed schedule.Missed   `json:"last_missed,omitzero" jsonschema:"the last run of them"`
	Reasons    map[string]uint64 `json:"missed_reasons,omitempty" jsonschema:"all of them, by reason"`
	Paused     bool              `json:"paused"`
	PausedAt   time.Time         `json:"paused_at,omitzero" jsonschema:"the last time"`
	PausedBy   string            `json:"paused_by,omitempty"`
	ResumedAt  time.Time         `json:"resumed_at,omitzero" jsonschema:"when the last pause ended"`
	ResumedBy  string            `json:"resumed_by,omitempty"`
	CreatedAt  time.Time         `json:"created_at,omitzero"`
	UpdatedAt  time.Time         `json:"updated_at,omitzero"`
	By         string            `json:"updated_by,omitempty"`
	Now        time.Time         `json:"-"` // the server's, when it was read
}

// Schedules lists all schedules, by partition and name. The error sums up the partitions that could not be read; the
// list has the rest. Errors: flowfabric.ErrTransport, ErrPartitionFrozen; client.ErrClosed.
func (a *Admin) Schedules(ctx context.Context) ([]ScheduleInfo, error) {
	if a.closed() {
		return nil, fmt.Errorf("list schedules: %w", client.ErrClosed)
	}
	lists := make([][]ScheduleInfo, a.store.Partitions())
	errs := make([]error, len(lists))
	calls := pool.New().WithMaxGoroutines(maxListCalls)
	for p := range lists {
		calls.Go(func() { lists[p], errs[p] = a.schedulesOf(ctx, uint16(p)) })
	}
	calls.Wait()
	var failed partitionErrors
	var out []ScheduleInfo
	for p := range lists {
		out = append(out, lists[p]...)
		if errs[p] != nil {
			failed.add(uint16(p), errs[p])
		}
	}
	return out, failed.sum("list schedules", len(lists))
}

// maxListCalls is how many partitions are asked at once.
const maxListCalls = 16

func (a *Admin) schedulesOf(ctx context.Context, partition uint16) (out []ScheduleInfo, err error) {
	for after, more := "", true; more; {
		page, err := a.store.Schedules(ctx, partition, engine.ScheduleQuery{After: after})
		if err != nil {
			return out, err
		}
		for _, s := range page.Schedules {
			out = append(out, newScheduleInfo(s, page.Now))
			after = s.Name
		}
		more = page.More && len(page.Schedules) > 0
	}
	return out, nil
}

func newScheduleInfo(s engine.Schedule, now time.Time) ScheduleInfo {
	info := ScheduleInfo{Name: s.Name, Partition: s.Partition, Revision: s.Revision, Incarnation: s.Incarnation,
		InputBytes: s.InputBytes, Next: s.Next, LastDue: s.LastDue, LastID: s.LastID, LastFlow: s.LastFlow,
		Fired: s.Fired, Missed: s.Missed, LastMissed: schedule.Missed(s.LastMissed), Reasons: s.Reasons,
		Paused: s.Paused, PausedAt: s.PausedAt, PausedBy: s.PausedBy, ResumedAt: s.ResumedAt, ResumedBy: s.ResumedBy,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
		By: s.By, Now: now}
	if info.Definition, info.Err = calendar.Decode(s.Definition); info.Err != nil {
		info.Error = prose.Message(info.Err)
		return info
	}
	d := info.Definition
	info.When = d.Spec.String()
	if d.Runs > 0 {
		left := d.Runs - min(s.Fired, d.Runs)
		info.RunsLeft = &left
	}
	switch {
	case !s.Next.IsZero():
	case d.Runs > 0 && s.Fired >= d.Runs:
		info.Ended = "runs"
	case !d.Until.IsZero():
		info.Ended = "until"
	default:
		info.Ended = "spec"
	}
	return info
}

// GetSchedule reads one schedule. Errors: flowfabric.ErrNotFound, ErrInvalidInput for a name that none can have.
func (a *Admin) GetSchedule(ctx context.Context, name string) (ScheduleInfo, error) {
	if err := a.admitSchedule(name); err != nil {
		return ScheduleInfo{}, fmt.Errorf("get schedule %q: %w", name, err)
	}
	page, err := a.store.Schedules(ctx, a.store.SchedulePartition(name), engine.ScheduleQuery{Name: name, Limit: 1})
	if err == nil && len(page.Schedules) == 0 {
		err = denied.NoSchedule
	}
	if err != nil {
		return ScheduleInfo{}, fmt.Errorf("get schedule %q: %w", name, err)
	}
	return newScheduleInfo(page.Schedules[0], page.Now), nil
}

// NextRuns tells the next n instants of the schedule, at most 1000: those that are due and will be fired, and those
// to come, no more than it has runs left. Of a paused one, what would come if it were resumed now. It is empty when
// Err is not nil.
func (s ScheduleInfo) NextRuns(n int) []time.Time {
	if s.RunsLeft != nil {
		n = int(min(uint64(max(n, 0)), *s.RunsLeft))
	}
	if s.Err != nil || s.Next.IsZero() {
		return nil
	}
	if s.Paused {
		return calendar.Upcoming(s.Definition, s.Now, n)
	}
	var out []time.Time
	next := s.Next
	for len(out) < n && !next.After(s.Now) {
		step, due := calendar.Plan(s.Definition, next, s.ResumedAt, s.Now)
		if !due || step.Then.IsZero() {
			return out
		}
		if !step.Fire.IsZero() {
			out = append(out, step.Fire)
		}
		next = step.Then
	}
	if next.After(s.Now) && len(out) < n {
		out = append(out, next) // the first run may be none of the spec
	}
	return append(out, calendar.Upcoming(s.Definition, next, n-len(out))...)
}

// PauseSchedule keeps a schedule from firing until [Admin.ResumeSchedule]. What it submitted goes on. Pausing what is
// paused is no error. Errors: flowfabric.ErrNotFound; ErrConflict with flowfabric.IfRevision; ErrInvalidInput for a By
// of more than 64 bytes.
func (a *Admin) PauseSchedule(ctx context.Context, name string, opts ...flowfabric.ChangeOption) error {
	return a.setPaused(ctx, "pause", name, true, opts)
}

// ResumeSchedule ends a pause. Instants that fell into it are not fired; they count as missed (reason paused), as
// does one that was due and not fired when the pause began. Errors: those of [Admin.PauseSchedule].
func (a *Admin) ResumeSchedule(ctx context.Context, name string, opts ...flowfabric.ChangeOption) error {
	return a.setPaused(ctx, "resume", name, false, opts)
}

func (a *Admin) setPaused(ctx context.Context, verb, name string, paused bool,
	opts []flowfabric.ChangeOption) error {
	acts, expected := link.ChangeOf(opts)
	act, err := a.act(acts)
	if err = cmp.Or(a.admitSchedule(name), err); err == nil {
		_, _, err = a.store.PauseSchedule(act.Noted(ctx, verb, "schedule", name), name, paused, expected)
	}
	if err != nil {
		return fmt.Errorf("%s schedule %q: %w", verb, name, err)
	}
	return nil
}

// RemoveSchedule forgets a schedule, with its counts; what it submitted stays and goes on. removed is false when
// there was none, or when an answer was lost and the repeat found it gone. Errors: flowfabric.ErrConflict with
// flowfabric.IfRevision.
func (a *Admin) RemoveSchedule(ctx context.Context, name string, opts ...flowfabric.ChangeOption) (removed bool,
	err error) {
	already := false
	acts, expected := link.ChangeOf(opts)
	act, err := a.act(acts)
	if err = cmp.Or(a.admitSchedule(name), err); err == nil {
		already, err = a.store.RemoveSchedule(act.Noted(ctx, "remove", "schedule", name), name, expected)
	}
	if err != nil {
		return false, fmt.Errorf("remove schedule %q: %w", name, err)
	}
	return !already, nil
}

func (a *Admin) admitSchedule(name string) error {
	if a.closed() {
		return client.ErrClosed
	}
	return valid.Name("schedule name", name)
}
