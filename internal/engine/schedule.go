package engine

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Schedule is the record of a schedule. What its definition means is up to who stored it: package schedule.
type Schedule struct {
	Name        string
	Partition   uint16
	Revision    uint64 // grows with every change of the definition
	Incarnation uint64 // the revision of its creation
	Definition  []byte
	InputBytes  int
	Input       []byte    // read with Whole alone
	Next        time.Time // the oldest instant that was neither fired nor missed; zero: there is none
	LastDue     time.Time // the last instant that was fired
	LastID      flowfabric.ExecutionID
	LastFlow    flowfabric.FlowID // if it was a flow; then LastID is zero
	Fired       uint64
	Missed      uint64            // instants that were not fired
	LastMissed  MissedInstants    // the last run of them
	Reasons     map[string]uint64 // all of them, by reason
	Paused      bool
	PausedAt    time.Time // the last time
	PausedBy    string
	ResumedAt   time.Time
	ResumedBy   string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	By          string // who updated it last
}

// MissedInstants is a run of instants that were not fired for the same reason. The zero value is none.
type MissedInstants struct {
	From, To time.Time // the first and the last
	Count    uint64
	Reason   string // a-z and _, at most 32 bytes: late, paused, overlap, updated, or the code of a refusal
}

// SchedulePut is what a schedule shall be.
type SchedulePut struct {
	Name       string // 1..64 printable ASCII bytes without braces
	Definition []byte // 1..64 KiB; schedules with different inputs must differ in it
	Input      []byte // at most 1 MiB
	Parts      bool   // of the input only parts are sealed, and have been: it is a plan of a flow
	// Submits is what each instant submits, whose inputs must fit the schemas of their kinds.
	Submits []NewExecution
	// Expected is the revision the schedule must have: nil any, 0 none, it must be new.
	Expected *uint64
	// Seen is the next instant that the caller read; if it is not zero, and the schedule has moved on since, nothing
	// changes.
	Seen   time.Time
	Next   time.Time      // when it is due from now on; zero: never
	Missed MissedInstants // instants before Next that are given up by this change
	Limit  uint64         // how often it may fire since its creation; once it has, it is never due; 0: without end
	Begin  bool           // if it is new, it is due at once, and at Next afterwards
}

// ScheduleSet answers a change of a schedule.
type ScheduleSet struct {
	Already  bool // it was so before, nothing changed
	Revision uint64
	Next     time.Time // zero: never
}

// SchedulePartition is the partition of a schedule.
func (e *Engine) SchedulePartition(name string) uint16 {
	return ids.SchedulePartition(name, e.partitions)
}

// PutSchedule creates or changes a schedule (lua/operate/ff_put_schedule.lua). A definition that is stored already
// changes nothing, whatever the rest says, so the call may be repeated. A paused schedule stays paused.
//
// Errors: denied.ScheduleChanged when it has another revision than Expected, with that revision in slot 0 (0: there
// is none), or is not due at Seen; ErrInvalidInput, also for more than 10,000 schedules in a partition;
// ErrPayloadTooLarge.
func (e *Engine) PutSchedule(ctx context.Context, q SchedulePut) (ScheduleSet, error) {
	if q.Missed.Count == 0 {
		q.Missed = MissedInstants{}
	}
	for i := range q.Submits {
		x := &q.Submits[i]
		if err := e.fits(ctx, x.Namespace, x.Kind, x.Payload, x.Type); err != nil {
			return ScheduleSet{}, fmt.Errorf("ff_put_schedule: %w", err)
		}
	}
	if !q.Parts {
		input, err := e.seal("ff_put_schedule", q.Input)
		if err != nil {
			return ScheduleSet{}, err
		}
		q.Input = input
	}
	r, already, err := ask[wire.PutScheduleReply](ctx, e, e.SchedulePartition(q.Name), wire.PutSchedule{
		Name: q.Name, Expected: revisionOf(q.Expected), Seen: q.Seen, Next: q.Next, Missed: int(q.Missed.Count),
		First: q.Missed.From, Last: q.Missed.To, Why: q.Missed.Reason, Limit: int(q.Limit), Begin: q.Begin,
		Definition: rueidis.BinaryString(q.Definition), Payload: rueidis.BinaryString(q.Input)})
	return ScheduleSet{Already: already, Revision: uint64(r.Revision), Next: r.Next}, err
}

// Firing moves a schedule on by one step.
type Firing struct {
	Name     string
	Revision uint64    // of the definition that the step was made from
	Seen     time.Time // the schedule's Next that the step was made from
	Next     time.Time // what it is from then on; zero: never again
	Missed   MissedInstants
	Limit    uint64    // how often it may fire since its creation; 0: without end
	At       time.Time // the instant that is fired, from Seen to the server's now; zero: none
	// Item is what At submits, with an id of the schedule's partition; its input is the schedule's own.
	Item NewExecution
	// Flow is what At submits instead of an item: it is released if the schedule moves on, and not otherwise.
	Flow StagedFlow
	// Solo does not submit it while the schedule's last execution has not ended.
	Solo bool
}

// StagedFlow is a flow of the schedule's partition that was staged with CreateFlow and StageFlow. The zero value is
// none.
type StagedFlow struct {
	ID             flowfabric.FlowID
	Members, Edges int
	Mode           SealMode // '': only ask whether it is FireWanted, before it is staged
}

// FireOutcome tells what became of an instant.
type FireOutcome string

// The outcomes of a firing.
const (
	FireCreated FireOutcome = "created"
	FireKnown   FireOutcome = "known"   // the execution existed
	FireOverlap FireOutcome = "overlap" // the last execution had not ended; counted as missed
	FireRefused FireOutcome = "refused" // the item was refused, see Refusal; counted as missed
	FireNothing FireOutcome = "missed"  // the step had nothing to fire
	FireWanted  FireOutcome = "wanted"  // the flow is to be staged first; nothing happened
)

// Fired answers FireSchedule.
type Fired struct {
	Already bool // the schedule was not as seen any more: somebody else has dealt with the instants, or it was changed
	Outcome FireOutcome
	Refusal error
	Next    time.Time // when the schedule is due now; zero: never
}

// FireSchedule counts instants of a schedule as missed, submits one, and moves the schedule on, all in one atomic call
// (lua/operate/ff_fire_schedule.lua); nothing happens unless the schedule's revision and next instant are those that
// were seen and it is not paused. So the call may be repeated, and of several processes that fire the same instant
// one succeeds. A flow that is not staged as a whole is FireWanted: stage it and make the call again.
//
// Errors: denied.NoSchedule, ErrInvalidInput, ErrOutOfMemory, ErrPartitionFrozen.
func (e *Engine) FireSchedule(ctx context.Context, f Firing) (Fired, error) {
	partition := e.SchedulePartition(f.Name)
	if f.Missed.Count == 0 {
		f.Missed = MissedInstants{}
	}
	q := wire.FireSchedule{Name: f.Name, Revision: int(f.Revision), Seen: f.Seen, Next: f.Next,
		Missed: int(f.Missed.Count), First: f.Missed.From, Last: f.Missed.To, Why: f.Missed.Reason,
		Limit: int(f.Limit), At: f.At, Solo: f.Solo}
	w, item := f.Flow, !f.At.IsZero() && f.Flow.ID.IsZero()
	if !f.At.IsZero() && !item {
		if w.ID.Partition() != partition {
			return Fired{}, fmt.Errorf("ff_fire_schedule: %w: flow %q is not of partition %d",
				flowfabric.ErrInvalidInput, w.ID, partition)
		}
		q.Flow, q.Members, q.Edges, q.Mode = ids.UUID(w.ID).String(), w.Members, w.Edges, string(w.Mode)
	}
	args := arguments(q)
	if item {
		if f.Item.ID.IsZero() || f.Item.ID.Partition() != partition {
			return Fired{}, fmt.Errorf("ff_fire_schedule: %w: id %q is not of partition %d", flowfabric.ErrInvalidInput,
				f.Item.ID, partition)
		}
		f.Item.Payload = nil
		if err := valid.Stored(&f.Item.Start); err != nil {
			return Fired{}, fmt.Errorf("ff_fire_schedule: %w", err)
		}
		args = appendItems(args, 1, func(int) *NewExecution { return &f.Item })
	}
	r, already, err := read[wire.FireScheduleReply](e.call(ctx, functionOf["ff_fire_schedule"], partition, args...))
	if err != nil || already {
		return Fired{Already: err == nil}, err
	}
	out := Fired{Outcome: FireOutcome(r.Outcome), Next: r.Next}
	if out.Outcome == FireRefused {
		code, rest, _ := strings.Cut(r.Detail, " ")
		out.Refusal = denied.New("ff_fire_schedule", code, rest)
	}
	return out, nil
}

// PauseSchedule pauses a schedule, or resumes it (lua/operate/ff_pause_schedule.lua). What comes due in between is not
// fired later but counted as missed by the next firing of the schedule. since is when it was paused, or resumed.
// already: it was so. expected is the revision it must have, nil any.
//
// Errors: denied.NoSchedule; denied.ScheduleChanged, with its revision in slot 0.
func (e *Engine) PauseSchedule(ctx context.Context, name string, paused bool,
	expected *uint64) (since time.Time, already bool, err error) {
	r, already, err := ask[wire.PauseScheduleReply](ctx, e, e.SchedulePartition(name),
		wire.PauseSchedule{Name: name, Paused: paused, Expected: revisionOf(expected)})
	return r.Since, already, err
}

// RemoveSchedule forgets a schedule (lua/operate/ff_remove_schedule.lua); what it submitted stays. expected is the
// revision it must have, nil any. already: there was none. Errors: denied.ScheduleChanged, with its revision in slot 0.
func (e *Engine) RemoveSchedule(ctx context.Context, name string, expected *uint64) (already bool, err error) {
	return e.settled(ctx, e.SchedulePartition(name), wire.RemoveSchedule{Name: name, Expected: revisionOf(expected)})
}

func revisionOf(expected *uint64) *int {
	if expected == nil {
		return nil
	}
	n := int(*expected)
	return &n
}

// ScheduleQuery says which schedules of a partition are read. The zero value: all of them, from the first page on.
type ScheduleQuery struct {
	Name  string // this one alone
	Whole bool   // with Name: its input, too
	Due   bool   // those that are due and not paused, oldest first
	Skip  int    // with Due: leave out this many of the oldest
	After string // names after this one
	Limit int    // 1..100; 0 means 100
}

// SchedulePage answers Schedules.
type SchedulePage struct {
	Now       time.Time // the server's
	Schedules []Schedule
	More      bool // some were left out
}

// Schedules reads schedules of one partition (lua/operate/ff_list_schedules.lua), by name or, with Due, by time. A
// page ends at the limit or at about 512 KiB; the next one begins after its last name.
func (e *Engine) Schedules(ctx context.Context, partition uint16, q ScheduleQuery) (SchedulePage, error) {
	c := wire.ListSchedules{Which: "all", Name: q.After, Limit: cmp.Or(q.Limit, limits.MaxListed)}
	switch {
	case q.Name != "" && q.Whole:
		c.Which, c.Name = "whole", q.Name
	case q.Name != "":
		c.Which, c.Name = "one", q.Name
	case q.Due:
		c.Which, c.Name = "due", strconv.Itoa(q.Skip)
	}
	r, _, err := ask[wire.ListSchedulesReply](ctx, e, partition, c)
	page := SchedulePage{Now: r.Now, More: r.More}
	for _, x := range r.Schedules {
		s, err := schedule(partition, x)
		s.Input = e.cfg.Box.Shown(s.Input)
		if err != nil {
			return page, fmt.Errorf("ff_list_schedules: %w: schedule %q: %w", denied.Reply, clip(x.Name), err)
		}
		page.Schedules = append(page.Schedules, s)
	}
	return page, err
}

func schedule(partition uint16, x wire.ListSchedulesSchedule) (s Schedule, err error) {
	s = Schedule{Name: x.Name, Partition: partition, Revision: uint64(x.Revision), Incarnation: uint64(x.Incarnation),
		Definition: []byte(x.Definition), InputBytes: x.Input, Next: x.Next, LastDue: x.LastDue, Fired: uint64(x.Fired),
		Missed: uint64(x.Missed), Paused: x.Paused, PausedAt: x.PausedAt, PausedBy: x.PausedBy, ResumedAt: x.ResumedAt,
		ResumedBy: x.ResumedBy, CreatedAt: x.Created, UpdatedAt: x.Updated, By: x.By,
		LastMissed: MissedInstants{From: x.From, To: x.To, Count: uint64(x.Run), Reason: x.Why}}
	if x.Payload != "" {
		s.Input = []byte(x.Payload)
	}
	if x.LastID != "" {
		last, err := uuid.Parse(x.LastID)
		if err != nil {
			return s, err
		}
		if s.LastID = mint.Join(partition, last); x.LastFlow == x.LastID {
			s.LastID, s.LastFlow = flowfabric.ExecutionID{}, flowfabric.FlowID(s.LastID)
		}
	}
	for _, missed := range x.Reasons {
		if s.Reasons == nil {
			s.Reasons = map[string]uint64{}
		}
		s.Reasons[missed.Why] = uint64(missed.Count)
	}
	return s, nil
}
