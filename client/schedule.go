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

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// scheduler is the part of the engine behind the calls of this file. Each of them may be repeated.
type scheduler interface {
	SchedulePartition(name string) uint16
	PutSchedule(ctx context.Context, q engine.SchedulePut) (engine.ScheduleSet, error)
	PauseSchedule(ctx context.Context, name string, paused bool, by string) (since time.Time, already bool, err error)
	RemoveSchedule(ctx context.Context, name string, expected *uint64) (already bool, err error)
	Schedules(ctx context.Context, partition uint16, q engine.ScheduleQuery) (engine.SchedulePage, error)
}

// maxPutTries bounds how often a put begins anew because the schedule moved on between its read and its change.
const maxPutTries = 10

// ScheduleInfo is a schedule as it was read.
type ScheduleInfo struct {
	engine.Schedule
	Decoded schedule.Definition // what Definition says
	Err     error               // why it could not be decoded: schedule.ErrNewer, or ErrInvalidInput
	Now     time.Time           // the server's, when it was read
}

// scheduling is one schedule on its way to the server.
type scheduling struct {
	submission
	catchUp  schedule.CatchUp
	overlap  schedule.Overlap
	by       string
	expected *uint64
}

// ScheduleOption changes a [Schedule]: [CatchUp], [Overlap] and every [WorkOption] ([Lane], [Priority], [Tags]…), and what is
// a [PutOption].
type ScheduleOption interface{ schedule(s *scheduling) }

// PutOption is an option of [Schedule] and [Client.PutSchedule]: [By], [IfNew], [IfRevision].
type PutOption interface {
	ScheduleOption
	put(s *scheduling)
}

func (b By) schedule(s *scheduling) { s.by = string(b) }
func (b By) put(s *scheduling)      { s.by = string(b) }
func (b By) pause(by *string)       { *by = string(b) }

// RevisionOption is [IfRevision], an option of [Schedule], [Client.PutSchedule] and [Client.RemoveSchedule].
type RevisionOption interface {
	PutOption
	remove(expected **uint64)
}

type revision uint64

func (r revision) schedule(s *scheduling)   { s.expected = (*uint64)(&r) }
func (r revision) put(s *scheduling)        { s.expected = (*uint64)(&r) }
func (r revision) remove(expected **uint64) { *expected = (*uint64)(&r) }

// IfRevision changes the schedule only if it has this revision; otherwise flowfabric.ErrScheduleChanged.
func IfRevision(n uint64) RevisionOption { return revision(n) }

// IfNew creates the schedule only if there is none of that name; otherwise flowfabric.ErrScheduleChanged, unless the one
// there is the same.
func IfNew() PutOption { return revision(0) }

type schedulingFunc func(*scheduling)

func (f schedulingFunc) schedule(s *scheduling) { f(s) }

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
// If the times change, instants that are due and not fired yet are missed (schedule.Updated); otherwise they are fired with the
// new input. A paused schedule stays paused.
//
// Errors before any I/O: those of [Submit], and ErrInvalidInput for spec and name. From the server: ErrBudgetNotFound, ErrQuotaNotFound;
// ErrScheduleChanged with
// [IfNew] or [IfRevision]; ErrOutOfMemory, ErrTransport.
func Schedule[In, Out any](ctx context.Context, c *Client, name string, spec schedule.Spec, def *handler.Definition[In, Out], in In, opts ...ScheduleOption) (engine.ScheduleSet, error) {
	common, err := prepare(c, def, nil)
	if err != nil {
		return engine.ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	s := &scheduling{submission: *common, by: c.by()}
	for _, o := range opts {
		o.schedule(s)
	}
	s.digest = true // by which another input is told from the same one
	filled, err := fill(&s.submission, def, in, 0)
	if err != nil {
		return engine.ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	x := filled.Item
	return c.put(ctx, name, schedule.Definition{Spec: spec, CatchUp: s.catchUp, Overlap: s.overlap, Item: schedule.Item{
		Namespace: x.Namespace, Lane: x.Lane, Kind: x.Kind, Capabilities: x.Capabilities, Gates: x.Gates, Priority: x.Priority, Deadline: x.Deadline,
		Policy: x.Policy, Tags: x.Tags, Creator: x.Creator, Digest: x.Digest}}, x.Payload, s)
}

// PutSchedule is [Schedule] for those who have no definition of the work: input is the bytes to submit, as the handler's
// codec reads them. A namespace that is not given is the client's, a lane the default one; a digest is made of the input.
func (c *Client) PutSchedule(ctx context.Context, name string, d schedule.Definition, input []byte, opts ...PutOption) (engine.ScheduleSet, error) {
	if c.closed.Load() {
		return engine.ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, ErrClosed)
	}
	s := &scheduling{by: c.by()}
	for _, o := range opts {
		o.put(s)
	}
	d.Item.Namespace = cmp.Or(d.Item.Namespace, c.cfg.Namespace)
	d.Item.Lane = cmp.Or(d.Item.Lane, flowfabric.DefaultLane)
	d.Item.Creator = cmp.Or(d.Item.Creator, c.cfg.Creator)
	if d.Item.Digest == "" {
		sum := sha256.Sum256(input)
		d.Item.Digest = hex.EncodeToString(sum[:16])
	}
	return c.put(ctx, name, d, input, s)
}

// put stores a schedule. What it was before is read first, since only Go knows which instants a change gives up; the
// server refuses the change if it has moved on since.
func (c *Client) put(ctx context.Context, name string, d schedule.Definition, input []byte, s *scheduling) (engine.ScheduleSet, error) {
	fail := func(err error) (engine.ScheduleSet, error) {
		return engine.ScheduleSet{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	text, err := d.Encode()
	if err == nil {
		err = errors.Join(flowfabric.ValidateName("schedule name", name), validateBy(s.by))
	}
	if err == nil && len(input) > flowfabric.MaxPayload {
		err = fmt.Errorf("%w: input has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(input), flowfabric.MaxPayload)
	}
	if err != nil {
		return fail(err)
	}
	if err := c.requireGates(ctx, d.Item.Gates); err != nil {
		return fail(err)
	}
	for try := 1; ; try++ {
		page, err := c.store.Schedules(ctx, c.store.SchedulePartition(name), engine.ScheduleQuery{Name: name, Limit: 1})
		if err != nil {
			return fail(err)
		}
		q := change(d, page)
		q.Name, q.Definition, q.Input, q.Expected, q.By = name, text, input, s.expected, s.by
		set, err := c.store.PutSchedule(ctx, q)
		if refused, ok := errors.AsType[*flowfabric.Error](err); ok && errors.Is(err, flowfabric.ErrScheduleChanged) && try < maxPutTries &&
			(s.expected == nil || refused.Slot(0) == strconv.FormatUint(*s.expected, 10)) {
			continue // it was fired in between
		}
		if err != nil {
			return fail(err)
		}
		return set, nil
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
	before, err := schedule.Decode(old.Definition)
	switch {
	case err == nil && before.Spec.String() == d.Spec.String():
		q.Next = old.Next // the same times: what is due stays due
	case err == nil:
		m := before.Unfired(old.Next, page.Now, schedule.Updated)
		q.Missed = engine.MissedInstants(m)
	case !old.Next.After(page.Now): // of a newer version: at least this one
		q.Missed = engine.MissedInstants{From: old.Next, To: old.Next, Count: 1, Reason: schedule.Updated}
	}
	return q
}

// Schedules lists all schedules, by partition and name. The error sums up the partitions that could not be read; the list has the
// rest. Errors: flowfabric.ErrTransport, ErrPartitionFrozen; [ErrClosed].
func (c *Client) Schedules(ctx context.Context) ([]ScheduleInfo, error) {
	if c.closed.Load() {
		return nil, fmt.Errorf("list schedules: %w", ErrClosed)
	}
	lists := make([][]ScheduleInfo, c.store.Partitions())
	errs := make([]error, len(lists))
	calls := pool.New().WithMaxGoroutines(maxListCalls)
	for p := range lists {
		calls.Go(func() { lists[p], errs[p] = c.schedulesOf(ctx, uint16(p)) })
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

func (c *Client) schedulesOf(ctx context.Context, partition uint16) (out []ScheduleInfo, err error) {
	for after, more := "", true; more; {
		page, err := c.store.Schedules(ctx, partition, engine.ScheduleQuery{After: after})
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
	info := ScheduleInfo{Schedule: s, Now: now}
	info.Decoded, info.Err = schedule.Decode(s.Definition)
	return info
}

// GetSchedule reads one schedule. Errors: flowfabric.ErrScheduleNotFound, ErrInvalidInput for a name that none can have.
func (c *Client) GetSchedule(ctx context.Context, name string) (ScheduleInfo, error) {
	if err := c.admitSchedule(name); err != nil {
		return ScheduleInfo{}, fmt.Errorf("get schedule %q: %w", name, err)
	}
	page, err := c.store.Schedules(ctx, c.store.SchedulePartition(name), engine.ScheduleQuery{Name: name, Limit: 1})
	if err == nil && len(page.Schedules) == 0 {
		err = flowfabric.ErrScheduleNotFound
	}
	if err != nil {
		return ScheduleInfo{}, fmt.Errorf("get schedule %q: %w", name, err)
	}
	return newScheduleInfo(page.Schedules[0], page.Now), nil
}

// NextRuns tells the next n instants of a schedule, at most 1000: those that are due and will be fired, and those to come. Of a paused one, what
// would come if it were resumed now. Errors: those of [Client.GetSchedule], and of decoding it.
func (c *Client) NextRuns(ctx context.Context, name string, n int) ([]time.Time, error) {
	info, err := c.GetSchedule(ctx, name)
	if err != nil {
		return nil, err
	}
	if info.Err != nil {
		return nil, fmt.Errorf("next runs of schedule %q: %w", name, info.Err)
	}
	if info.Paused || info.Next.IsZero() {
		return info.Decoded.Spec.Upcoming(info.Now, n), nil
	}
	var out []time.Time
	next := info.Next
	for len(out) < n && !next.After(info.Now) {
		step, due := info.Decoded.Plan(next, info.ResumedAt, info.Now)
		if !due || step.Then.IsZero() {
			return out, nil
		}
		if !step.Fire.IsZero() {
			out = append(out, step.Fire)
		}
		next = step.Then
	}
	return append(out, info.Decoded.Spec.Upcoming(next.Add(-time.Millisecond), n-len(out))...), nil
}

// PauseOption changes a [Client.PauseSchedule], [Client.ResumeSchedule], [Client.Pause] or [Client.Unpause]: [By].
type PauseOption interface{ pause(by *string) }

// PauseSchedule keeps a schedule from firing until [Client.ResumeSchedule]. What it submitted goes on. Pausing what is paused is
// no error. Errors: flowfabric.ErrScheduleNotFound; ErrInvalidInput for a By of more than 64 bytes.
func (c *Client) PauseSchedule(ctx context.Context, name string, opts ...PauseOption) error {
	return c.setPaused(ctx, "pause", name, true, opts)
}

// ResumeSchedule ends a pause. Instants that fell into it are not fired; they count as missed (schedule.Paused), as does one that was
// due and not fired when the pause began. Errors: those of [Client.PauseSchedule].
func (c *Client) ResumeSchedule(ctx context.Context, name string, opts ...PauseOption) error {
	return c.setPaused(ctx, "resume", name, false, opts)
}

func (c *Client) setPaused(ctx context.Context, verb, name string, paused bool, opts []PauseOption) error {
	by := c.by()
	for _, o := range opts {
		o.pause(&by)
	}
	err := c.admitSchedule(name)
	if err == nil {
		err = validateBy(by)
	}
	if err == nil {
		_, _, err = c.store.PauseSchedule(ctx, name, paused, by)
	}
	if err != nil {
		return fmt.Errorf("%s schedule %q: %w", verb, name, err)
	}
	return nil
}

// RemoveOption changes a [Client.RemoveSchedule]: [IfRevision].
type RemoveOption interface{ remove(expected **uint64) }

// RemoveSchedule forgets a schedule, with its counts; what it submitted stays and goes on. removed is false when there was none,
// or when an answer was lost and the repeat found it gone. Errors: flowfabric.ErrScheduleChanged with [IfRevision].
func (c *Client) RemoveSchedule(ctx context.Context, name string, opts ...RemoveOption) (removed bool, err error) {
	var expected *uint64
	for _, o := range opts {
		o.remove(&expected)
	}
	already := false
	if err = c.admitSchedule(name); err == nil {
		already, err = c.store.RemoveSchedule(ctx, name, expected)
	}
	if err != nil {
		return false, fmt.Errorf("remove schedule %q: %w", name, err)
	}
	return !already, nil
}

func (c *Client) admitSchedule(name string) error {
	if c.closed.Load() {
		return ErrClosed
	}
	return flowfabric.ValidateName("schedule name", name)
}
