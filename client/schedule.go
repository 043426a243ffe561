package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/submission"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// scheduler is the part of the engine behind the calls of this file. Each of them may be repeated.
type scheduler interface {
	SchedulePartition(name string) uint16
	PutSchedule(ctx context.Context, q engine.SchedulePut) (engine.ScheduleSet, error)
	RemoveSchedule(ctx context.Context, name string, expected *uint64) (already bool, err error)
	Schedules(ctx context.Context, partition uint16, q engine.ScheduleQuery) (engine.SchedulePage, error)
}

// maxPutTries bounds how often a put starts over because the schedule moved on between its read and its change.
const maxPutTries = 10

// scheduling is one schedule on its way to the server.
type scheduling struct {
	definition schedule.Definition
	input      []byte
	submits    []engine.NewExecution // at each instant
	gates      []flowfabric.Gate     // that must exist
	first      bool                  // due at once if it is new
	expected   *uint64
	owned      bool // the one there must belong to the owner of the definition, or to nobody
}

// ScheduleOption changes a [Schedule]: a [SchedulingOption], and of package flowfabric, for the executions that it
// submits, Priority, Lane, Timeout, Deadline, Retries, Retention, Capabilities, Tags, Gates, LimitKey,
// Namespace and Creator. Later options win over earlier ones, and all of them over the definition.
type ScheduleOption interface{ ScheduleOption() }

// ScheduleFlowOption changes a [ScheduleFlow]: a [SchedulingOption], and of package flowfabric, for the flows that it
// submits, Tags, Gates, LimitKey, Namespace and Creator.
type ScheduleFlowOption interface{ ScheduleFlowOption() }

// SchedulingOption says when a schedule fires, whatever it submits: [CatchUp], [Overlap], [Until], [MaxRuns],
// [Jitter], [FirstRunNow], flowfabric.IfNew and flowfabric.IfRevision.
type SchedulingOption interface {
	ScheduleOption
	ScheduleFlowOption
}

// schedulingFunc is an option of this package.
type schedulingFunc func(*scheduling)

func (schedulingFunc) ScheduleOption()     {}
func (schedulingFunc) ScheduleFlowOption() {}

// take applies an option that is about the schedule and not about what it submits.
func (s *scheduling) take(o any) bool {
	if n, ok := link.Expected(o); ok {
		s.expected = &n
		return true
	}
	if owner, ok := o.(link.Owner); ok {
		s.definition.Owner, s.owned = string(owner), true
		return true
	}
	own, ok := o.(schedulingFunc)
	if ok {
		own(s)
	}
	return ok
}

// CatchUp says what happens to instants that nobody fired in time. Default schedule.CatchUpLast.
func CatchUp(policy schedule.CatchUp) SchedulingOption {
	return schedulingFunc(func(s *scheduling) { s.definition.CatchUp = policy })
}

// Overlap says what happens when an instant comes while the previous execution, or flow, has not ended. Default
// schedule.OverlapAllow.
func Overlap(policy schedule.Overlap) SchedulingOption {
	return schedulingFunc(func(s *scheduling) { s.definition.Overlap = policy })
}

// Until ends the schedule: no instant after t fires; t itself may be one. It is cut to whole milliseconds. A schedule
// that is over has no next instant. It stays listed, with its counts, until it is removed, or changed so that it goes
// on. The zero time is no end, the default.
func Until(t time.Time) SchedulingOption {
	return schedulingFunc(func(s *scheduling) { s.definition.Until = t.Truncate(time.Millisecond).UTC() })
}

// MaxRuns ends the schedule once it has submitted n executions, or flows, since its creation. The call that submits
// the last one ends it, so the number is exact. Missed instants do not count. A change of the schedule does not
// restart the count; remove the schedule to do so. 0 is no limit, the default.
func MaxRuns(n uint64) SchedulingOption {
	return schedulingFunc(func(s *scheduling) { s.definition.Runs = n })
}

// Jitter lets the work of each instant start up to d later, so that schedules with the same times do not start
// together: 0..24 h, in whole milliseconds, and at most halfway to the next instant. It is submitted at the instant,
// with a delay. How long the delay is follows from the name of the schedule and the instant alone. A deadline counts
// from the start. Default 0.
func Jitter(d time.Duration) SchedulingOption {
	return schedulingFunc(func(s *scheduling) { s.definition.Jitter = flowfabric.Millis(d) })
}

// FirstRunNow makes the schedule due once at its creation, without [Jitter], and by its spec from then on. It is no
// part of the definition: a schedule that exists is not due by it. One that was removed and is created again is. The
// run counts for [MaxRuns]. If nobody fires it in time, [CatchUp] decides about it as about any instant.
func FirstRunNow() SchedulingOption {
	return schedulingFunc(func(s *scheduling) { s.first = true })
}

// Schedule submits an execution of def with input in at every instant of spec, from now on, once however many processes
// run: any process with a worker or a maintenance loop fires it. name is 1..64 bytes of printable ASCII without
// braces, the same for everybody; the schedule of that name is created, or changed if it is another one. Called at
// every start of a program, it changes nothing while the program stays the same. The input is encoded now, and the
// same bytes are submitted every time; the execution's tags schedule.name and schedule.due tell its handler what it
// is for. A deadline counts from the submission.
//
// If the times change, instants that are due and not fired yet are missed (reason updated); otherwise they are fired
// with the new input. A paused schedule stays paused. A schedule that belonged to an owner, see
// [Client.SyncSchedules], belongs to nobody afterwards.
//
// Errors before any I/O: those of [Submit], and ErrInvalidInput for spec, name and options. From the server:
// ErrNotFound; ErrConflict with flowfabric.IfNew or IfRevision; ErrOutOfMemory, ErrTransport.
//
// To list, pause or remove schedules, see admin.Admin.Schedules, PauseSchedule, ResumeSchedule and RemoveSchedule.
// For a flow at every instant see [ScheduleFlow].
func Schedule[In, Out any](ctx context.Context, c *Client, name string, spec schedule.Spec,
	def *handler.Definition[In, Out], in In, opts ...ScheduleOption) (ScheduleSet, error) {
	return c.declare(ctx, DeclareSchedule(name, spec, def, in, opts...))
}

// ScheduleFlow is [Schedule] for a flow: at every instant it submits f, as it is now, as [SubmitFlow] would. The flow
// and each of its members have the tags schedule.name and schedule.due. The members of one instant become claimable
// in the call that moves the schedule on: all of them, once, however many processes fire. The flow of an instant
// lives in the partition of the schedule's name.
//
// As it is stored, the flow has at most 1 MiB, with all inputs in base64. It must end by itself: not flow.Unsealed.
// Nodes take flowfabric.Delay and Deadline, and not DelayUntil and DeadlineAt. [Overlap] looks at the flow before,
// and [Jitter] delays the members that wait for no other.
//
// Errors before any I/O: those of flow.Flow.Err, and ErrInvalidInput for what is said above, ErrPayloadTooLarge. From
// the server: those of [Schedule].
func ScheduleFlow(ctx context.Context, c *Client, name string, spec schedule.Spec, f *flow.Flow,
	opts ...ScheduleFlowOption) (ScheduleSet, error) {
	return c.declare(ctx, DeclareFlowSchedule(name, spec, f, opts...))
}

// ScheduleDeclaration is a schedule that is to be, see [Client.SyncSchedules]. It is made by [DeclareSchedule] or
// [DeclareFlowSchedule].
type ScheduleDeclaration struct {
	name string
	plan func(c *Client) (*scheduling, error)
}

// checked is the schedule that is declared, for a client.
func (d ScheduleDeclaration) checked(c *Client) (*scheduling, error) {
	if d.plan == nil {
		return nil, fmt.Errorf("%w: it was not made by DeclareSchedule or DeclareFlowSchedule",
			flowfabric.ErrInvalidInput)
	}
	return d.plan(c)
}

// Put makes the schedule what the declaration says, as [Schedule] and [ScheduleFlow] do. Without By the client's
// Creator makes it.
func (d ScheduleDeclaration) Put(ctx context.Context, c *Client, opts ...flowfabric.ActOption) (ScheduleSet, error) {
	return c.declare(ctx, d, opts...)
}

// DeclareSchedule says what [Schedule] does, and does nothing: the declaration is for [Client.SyncSchedules], which
// reports what is wrong with it. in must not change before that.
func DeclareSchedule[In, Out any](name string, spec schedule.Spec, def *handler.Definition[In, Out], in In,
	opts ...ScheduleOption) ScheduleDeclaration {
	return ScheduleDeclaration{name: name, plan: func(c *Client) (*scheduling, error) {
		common, err := prepare(c, def, nil)
		if err != nil {
			return nil, err
		}
		s := &scheduling{}
		err = option.Over(&common.Item.Start, func() error {
			for i, o := range opts {
				if s.take(o) {
					continue
				}
				if err := option.Apply(&common.Item.Start, i, o); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		common.Digest = true // by which another input is told from the same one
		if err := submission.Fill(&common.Submission, common, def, in, 0); err != nil {
			return nil, err
		}
		x := common.Item
		s.definition.Spec, s.input, s.gates = spec, x.Payload, x.Gates()
		s.definition.Item = schedule.Item{Start: x.Start, Digest: x.Digest}
		s.submits = []engine.NewExecution{x}
		return s, nil
	}}
}

// DeclareFlowSchedule is [DeclareSchedule] for [ScheduleFlow].
func DeclareFlowSchedule(name string, spec schedule.Spec, f *flow.Flow,
	opts ...ScheduleFlowOption) ScheduleDeclaration {
	return ScheduleDeclaration{name: name, plan: func(c *Client) (*scheduling, error) {
		s := &scheduling{}
		var rest []FlowOption
		for i, o := range opts {
			if s.take(o) {
				continue
			}
			if shared, ok := o.(FlowOption); ok {
				rest = append(rest, shared)
			} else {
				return nil, fmt.Errorf("%w: option %d is nil or not an option of flowfabric",
					flowfabric.ErrInvalidInput, i)
			}
		}
		q, err := c.newFlowSubmission(rest)
		if err != nil {
			return nil, err
		}
		plan, err := c.plan(f, flowfabric.FlowID(mint.ID(0)), q)
		if err != nil {
			return nil, err
		}
		if plan.Mode == engine.SealOpen {
			return nil, fmt.Errorf(
				"%w: a schedule cannot submit a flow.Unsealed flow, which nobody seals; leave it out, or use flow.Growing",
				flowfabric.ErrInvalidInput)
		}
		plain, err := plan.Encode()
		if err != nil {
			return nil, err
		}
		// The digest is of what is plain, and the plan is read by processes that have no key.
		for i := range plan.Members {
			if plan.Members[i].Payload, err = c.box.Seal(plan.Members[i].Payload); err != nil {
				return nil, err
			}
		}
		if s.input, err = plan.Encode(); err != nil {
			return nil, err
		}
		for i := range plan.Members {
			s.submits = append(s.submits, plan.Members[i].NewExecution)
		}
		s.definition.Spec, s.gates = spec, gatesOf(plan.Members)
		q.Kind, q.Tags = plan.Kind, plan.Tags
		s.definition.Item = schedule.Item{Nodes: len(plan.Members), Start: q.Start, Digest: digestOf(plain)}
		return s, nil
	}}
}

func digestOf(input []byte) string {
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:16])
}

// ScheduleSet is the result of a change of a schedule.
type ScheduleSet struct {
	Name     string    `json:"name"`
	Already  bool      `json:"already" jsonschema:"it was so before, nothing changed"`
	Revision uint64    `json:"revision"`
	Next     time.Time `json:"next_at,omitzero" jsonschema:"absent: it is over"`
}

// declare makes one schedule of a declaration.
func (c *Client) declare(ctx context.Context, d ScheduleDeclaration,
	opts ...flowfabric.ActOption) (ScheduleSet, error) {
	if c.closed.Load() {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", d.name, ErrClosed)
	}
	s, err := d.checked(c)
	if err != nil {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", d.name, err)
	}
	return c.put(ctx, d.name, s, opts...)
}

// text checks a schedule and is what is stored of its definition.
func (s *scheduling) text(name string) ([]byte, error) {
	text, err := calendar.Encode(s.definition)
	if err == nil {
		err = valid.Name("schedule name", name)
	}
	if err == nil && len(s.input) > limits.MaxPayload {
		err = fmt.Errorf("%w: input has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(s.input),
			limits.MaxPayload)
	}
	return text, err
}

// put stores a schedule. What it was before is read first, since only Go knows which instants a change gives up, and
// whose it is; the server refuses the change if it has moved on since.
func (c *Client) put(ctx context.Context, name string, s *scheduling,
	opts ...flowfabric.ActOption) (ScheduleSet, error) {
	fail := func(err error) (ScheduleSet, error) {
		return ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	text, err := s.text(name)
	act, unnamed := c.act(opts)
	if err = errors.Join(err, unnamed); err != nil {
		return fail(err)
	}
	if err := c.link.Gates.Require(ctx, s.gates); err != nil {
		return fail(err)
	}
	d := s.definition
	for try := 1; ; try++ {
		page, err := c.store.Schedules(ctx, c.store.SchedulePartition(name), engine.ScheduleQuery{Name: name, Limit: 1})
		if err != nil {
			return fail(err)
		}
		q := change(d, s.first, page)
		q.Name, q.Definition, q.Input, q.Expected = name, text, s.input, s.expected
		q.Parts, q.Submits = d.Item.Nodes > 0, s.submits
		if s.owned {
			revision, err := mine(name, d.Owner, page)
			if err != nil {
				return fail(err)
			}
			q.Expected = cmp.Or(s.expected, revision)
		}
		if r := link.Rehearsed(ctx); r != nil {
			r.Schedule = d
			same := len(page.Schedules) > 0 && bytes.Equal(page.Schedules[0].Definition, text)
			return ScheduleSet{Name: name, Already: same, Next: q.Next.UTC()}, nil
		}
		set, err := c.store.PutSchedule(act.In(ctx, d.Item.Namespace, "put", "schedule", name, d.Item.Kind,
			d.Spec.String()), q)
		if refused, ok := errors.AsType[*flowfabric.Error](err); ok && errors.Is(err, denied.ScheduleChanged) &&
			try < maxPutTries && (s.expected == nil || denied.Slot(refused, 0) == strconv.FormatUint(*s.expected, 10)) {
			continue // it was fired in between
		}
		if err != nil {
			return fail(err)
		}
		return ScheduleSet{name, set.Already, set.Revision, set.Next.UTC()}, nil
	}
}

// change tells when a schedule is due after it got definition d, and what it misses by that.
func change(d schedule.Definition, first bool, page engine.SchedulePage) engine.SchedulePut {
	q := engine.SchedulePut{Next: calendar.Next(d, page.Now), Limit: d.Runs,
		Begin: first && (d.Until.IsZero() || page.Now.Before(d.Until))}
	if len(page.Schedules) == 0 || page.Schedules[0].Next.IsZero() {
		return q
	}
	old := page.Schedules[0]
	q.Seen = old.Next
	over := !d.Until.IsZero() && old.Next.After(d.Until)
	before, err := calendar.Decode(old.Definition)
	switch {
	case q.Begin && old.Next.Equal(old.CreatedAt) && old.Fired == 0 && !over:
		q.Next = old.Next // its first run is still due
	case err == nil && before.Spec.String() == d.Spec.String() && !over:
		q.Next = old.Next // the same times: what is due stays due
	case err == nil:
		m := calendar.Unfired(before, old.Next, page.Now, calendar.Updated)
		q.Missed = engine.MissedInstants(m)
	case !old.Next.After(page.Now): // of a newer version: at least this one
		q.Missed = engine.MissedInstants{From: old.Next, To: old.Next, Count: 1, Reason: calendar.Updated}
	}
	return q
}
