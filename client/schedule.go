package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// scheduler is the part of the engine behind the calls of this file. Each of them may be repeated.
type scheduler interface {
	SchedulePartition(name string) uint16
	PutSchedule(ctx context.Context, q engine.SchedulePut) (engine.ScheduleSet, error)
	Schedules(ctx context.Context, partition uint16, q engine.ScheduleQuery) (engine.SchedulePage, error)
}

// maxPutTries bounds how often a put begins anew because the schedule moved on between its read and its change.
const maxPutTries = 10

// scheduling is one schedule on its way to the server.
type scheduling struct {
	submission
	catchUp  schedule.CatchUp
	overlap  schedule.Overlap
	by       string
	expected *uint64
}

// ScheduleOption changes a [Schedule]: [CatchUp], [Overlap], [IfNew] and [IfRevision]; of package flowfabric, for the executions that it
// submits, Priority, Lane, Timeout, Deadline, Retries, Retention, Capabilities, Tags, Budgets, Quotas, Namespace and Creator. Later options
// win over earlier ones, and all of them over the definition.
type ScheduleOption interface{ ScheduleOption() }

// schedulingFunc is an option of this package.
type schedulingFunc func(*scheduling)

func (schedulingFunc) ScheduleOption() {}

// IfRevision changes the schedule only if it has this revision; otherwise flowfabric.ErrScheduleChanged.
func IfRevision(n uint64) ScheduleOption {
	return schedulingFunc(func(s *scheduling) { s.expected = &n })
}

// IfNew creates the schedule only if there is none of that name; otherwise flowfabric.ErrScheduleChanged, unless the one
// there is the same.
func IfNew() ScheduleOption { return IfRevision(0) }

// CatchUp says what happens to instants that nobody fired in time. Default schedule.CatchUpLast.
func CatchUp(policy schedule.CatchUp) ScheduleOption {
	return schedulingFunc(func(s *scheduling) { s.catchUp = policy })
}

// Overlap says what happens when an instant comes while the previous execution has not ended. Default schedule.OverlapAllow.
func Overlap(policy schedule.Overlap) ScheduleOption {
	return schedulingFunc(func(s *scheduling) { s.overlap = policy })
}

// Schedule submits an execution of def with input in at every instant of spec, from now on, once however many processes
// run: any process with a worker or a maintenance loop fires it. name is 1..64 bytes of printable ASCII without braces, the same for
// everybody; the schedule of that name is created, or changed if it is another one. Called at every start of a program, it changes
// nothing while the program stays the same. The input is encoded now, and the same bytes are submitted every time; the execution's
// tags schedule.name and schedule.due tell its handler what it is for. A deadline counts from the submission.
//
// If the times change, instants that are due and not fired yet are missed (reason updated); otherwise they are fired with the
// new input. A paused schedule stays paused.
//
// Errors before any I/O: those of [Submit], and ErrInvalidInput for spec and name. From the server: ErrBudgetNotFound, ErrQuotaNotFound;
// ErrScheduleChanged with
// [IfNew] or [IfRevision]; ErrOutOfMemory, ErrTransport.
//
// To list, pause or remove schedules, see admin.Admin.Schedules, PauseSchedule, ResumeSchedule and RemoveSchedule.
func Schedule[In, Out any](ctx context.Context, c *Client, name string, spec schedule.Spec, def *handler.Definition[In, Out], in In, opts ...ScheduleOption) (ScheduleSet, error) {
	common, err := prepare(c, def, nil)
	if err != nil {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	s := &scheduling{submission: *common, by: c.by()}
	var said option.Values
	for i, o := range opts {
		if own, ok := o.(schedulingFunc); ok {
			own(s)
		} else if err := say(&said, i, o); err != nil {
			return ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
		}
	}
	s.item.Use(&said)
	s.digest = true // by which another input is told from the same one
	filled, err := fill(&s.submission, def, in, 0)
	if err != nil {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	x := filled.Item
	return c.put(ctx, name, schedule.Definition{Spec: spec, CatchUp: s.catchUp, Overlap: s.overlap, Item: schedule.Item{
		Namespace: x.Namespace, Lane: x.Lane, Kind: x.Kind, Capabilities: x.Capabilities, Gates: x.Gates, Priority: x.Priority, Deadline: x.Deadline,
		Policy: x.Policy, Tags: x.Tags, Creator: x.Creator, Digest: x.Digest}}, x.Payload, s)
}

// ScheduleChange is what [Client.PutSchedule] makes of a schedule.
type ScheduleChange struct {
	Definition schedule.Definition // a namespace that is not given is the client's, a lane the default one; a digest is made of the input
	Input      []byte              // as the handler's codec reads it
	Expected   *uint64             // change it only if it has this revision, 0: only if there is none; nil: in any case
}

// PutSchedule is [Schedule] for those who have no definition of the work. Without by the client's Creator changes it.
func (c *Client) PutSchedule(ctx context.Context, name string, change ScheduleChange, by ...flowfabric.By) (ScheduleSet, error) {
	if c.closed.Load() {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, ErrClosed)
	}
	s := &scheduling{by: c.by(), expected: change.Expected}
	for _, b := range by {
		s.by = string(b)
	}
	d := change.Definition
	d.Item.Namespace = cmp.Or(d.Item.Namespace, c.cfg.Namespace)
	d.Item.Lane = cmp.Or(d.Item.Lane, limits.DefaultLane)
	d.Item.Creator = cmp.Or(d.Item.Creator, c.cfg.Creator)
	if d.Item.Digest == "" {
		sum := sha256.Sum256(change.Input)
		d.Item.Digest = hex.EncodeToString(sum[:16])
	}
	return c.put(ctx, name, d, change.Input, s)
}

// ScheduleSet is what became of a change of a schedule.
type ScheduleSet struct {
	Already  bool // it was so before, nothing changed
	Revision uint64
	Next     time.Time
}

// put stores a schedule. What it was before is read first, since only Go knows which instants a change gives up; the
// server refuses the change if it has moved on since.
func (c *Client) put(ctx context.Context, name string, d schedule.Definition, input []byte, s *scheduling) (ScheduleSet, error) {
	fail := func(err error) (ScheduleSet, error) {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	text, err := calendar.Encode(d)
	if err == nil {
		err = errors.Join(valid.Name("schedule name", name), link.CheckBy(s.by))
	}
	if err == nil && len(input) > limits.MaxPayload {
		err = fmt.Errorf("%w: input has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(input), limits.MaxPayload)
	}
	if err != nil {
		return fail(err)
	}
	if err := c.link.Gates.Require(ctx, d.Item.Gates); err != nil {
		return fail(err)
	}
	for try := 1; ; try++ {
		page, err := c.store.Schedules(ctx, c.store.SchedulePartition(name), engine.ScheduleQuery{Name: name, Limit: 1})
		if err != nil {
			return fail(err)
		}
		q := change(d, page)
		q.Name, q.Definition, q.Input, q.Expected, q.By = name, text, input, s.expected, s.by
		set, err := c.store.PutSchedule(link.Act{By: s.by}.In(ctx, d.Item.Namespace, "put", "schedule", name, d.Item.Kind, d.Spec.String()), q)
		if refused, ok := errors.AsType[*flowfabric.Error](err); ok && errors.Is(err, flowfabric.ErrScheduleChanged) && try < maxPutTries &&
			(s.expected == nil || refused.Slot(0) == strconv.FormatUint(*s.expected, 10)) {
			continue // it was fired in between
		}
		if err != nil {
			return fail(err)
		}
		return ScheduleSet(set), nil
	}
}

// change tells when a schedule is due after it got definition d, and what it misses by that.
func change(d schedule.Definition, page engine.SchedulePage) engine.SchedulePut {
	q := engine.SchedulePut{Next: d.Spec.Next(page.Now)}
	if len(page.Schedules) == 0 || page.Schedules[0].Next.IsZero() {
		return q
	}
	old := page.Schedules[0]
	q.Seen = old.Next
	before, err := calendar.Decode(old.Definition)
	switch {
	case err == nil && before.Spec.String() == d.Spec.String():
		q.Next = old.Next // the same times: what is due stays due
	case err == nil:
		m := calendar.Unfired(before, old.Next, page.Now, calendar.Updated)
		q.Missed = engine.MissedInstants(m)
	case !old.Next.After(page.Now): // of a newer version: at least this one
		q.Missed = engine.MissedInstants{From: old.Next, To: old.Next, Count: 1, Reason: calendar.Updated}
	}
	return q
}
