package engine

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Facts is one consistent look at everything in its partition that decides why an execution is where it is. Package
// client puts it into words.
type Facts struct {
	Snapshot // without Steps and Tags; AttemptLog has the last two attempts at most

	Now  time.Time // on the server
	Lane Lane      // of its route; Routes and Waiting are not counted

	// While it waits for a worker.
	Ahead  int  // how many are before it in its queue; -1: it is not in one
	Queued int  // how many wait in its queue, itself included
	Ready  bool // claims look at its queue
	// idle instances that are rung for its route, as far as the first 64 subscriptions with idle instances tell
	Waiters       int
	Subscriptions int // different subscriptions of those

	// With gates, while it waits or is granted; see also GrantedTo.
	ClosedUntil time.Time // when its route, which a gate closed, opens by itself; zero: it is open
	ClosedWhy   string    // see [gatetext.ParseClosing]
	Slots       int       // of the gate that keeps it waiting because they are taken; 0: not so, or not known
	Outbox      int       // entries that gates have not been told of yet

	// While a worker asks its gates.
	GrantedTo string    // the session
	GrantEnds time.Time // by then it is claimed, or returned

	// While an operator keeps it from being handed out. By and reason are "" if its history does not tell any more.
	HeldAt     time.Time // when an operator held it, or set until when it is delayed; so the next two
	HeldBy     string
	HoldReason string

	// While it is active.
	HolderAlive      bool      // its session lives
	DeclaredDead     string    // why its session was declared dead before its lease ran out, if somebody said so
	AttemptTimeoutAt time.Time // zero: none

	// Service is for whose turn it was delayed last, if it was; while it is, Turn is what the gate of that says, and
	// TurnErr why it does not.
	Service string
	Turn    Turn
	TurnErr error

	// While it is suspended, or resumed and not yet suspended again.
	Suspension     *suspend.Record // with the waitpoints that its condition names, numbered from 1
	Satisfied      map[int]int     // parts of the condition that are satisfied, by node, numbered from 1
	ResumedBy      string          // who resumed it, if an operator or a policy did
	OpenWaitpoints int             // how many of its waitpoints take signals, pending ones included
	TimeoutAt      time.Time       // of the suspension; zero: none

	// Released is how its last holder gave it up, if that was the last that happened to the lease: [ReleasedBack],
	// [ReleasedDelayed], [ReleasedSuspended] or "".
	Released string

	// Of a member of a flow.
	Flow  *FlowRecord  // the header, without tags; nil for one that is in none
	Node  string       // its name there
	Group *GroupRecord // what it depends on; nil: nothing
	Wait  *WaitRecord  // the children it waits for, or waited for last

	// While it is blocked: how many of its upstreams or children have not told it how they ended, and the first 64 of
	// them, by id.
	Open   int
	Others []Other
	// Asks are those below it that wait for an answer, while it is suspended for its children. Package explain looks
	// for them.
	Asks []Asked

	// Once it has ended. PurgeAt is as it was filed; a tick from then on purges it, unless its lane keeps what ended
	// for longer since: then it is filed anew, see KeptUntil.
	PurgeAt time.Time
	Purging bool // a tick has begun to

	TickOwner   string    // who maintains the partition; "" when nobody does
	TickWake    time.Time // when that is due next; zero: nothing to wait for, or overdue since for ever
	TickOverdue bool      // nobody does it
}

// Other is an execution that a blocked one waits for. It may have ended all the same: its end is in the backlog, or
// it ended before this one was replayed.
type Other struct {
	ID    flowfabric.ExecutionID
	Node  string
	State flowfabric.State // empty when there is no such execution any more
	Apart bool             // one that it did not make, perhaps of another partition
}

// Asked is a child, or one further below, that waits for an answer.
type Asked struct {
	ID   flowfabric.ExecutionID
	Path []string // the names of the children down to it
	Keys []string // of the waitpoints that are open
}

// KeptUntil is the end of an ended execution's retention as its policy, else its lane, says now. An earlier one than
// PurgeAt is applied by an audit with Repair, a later one by the tick at PurgeAt.
func (f Facts) KeptUntil() time.Time {
	how := f.State.Public
	return f.EndedAt.Add(cmp.Or(valid.RetentionOf(f.Policy.Retention, how),
		valid.RetentionOf(f.Lane.Retention, how), valid.RetentionOf(valid.UsualRetention, how)))
}

// Values of [Facts.Released].
const (
	ReleasedBack      = "handed_back"
	ReleasedDelayed   = "delayed"
	ReleasedSuspended = "suspended"
)

var releases = map[string]string{"h": ReleasedBack, "d": ReleasedDelayed, "u": ReleasedSuspended}

// Explain reads everything in its partition that decides why an execution is where it is
// (lua/read/ff_explain_execution.lua), and the slots of a gate that closed its route. It writes nothing.
//
// ErrNotFound; ErrResultPurged while a tombstone is left (slots: the last code, until when it stays, ms);
// ErrPartitionFrozen (slots: the partition's root, why it is frozen); denied.PartitionMissing.
func (e *Engine) Explain(ctx context.Context, id flowfabric.ExecutionID) (Facts, error) {
	a, _, err := ask[wire.ExplainExecutionReply](ctx, e, id.Partition(),
		wire.ExplainExecution{ID: ids.UUID(id).String()})
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Now: a.Now, HolderAlive: a.Alive, DeclaredDead: a.Why, Ahead: a.Ahead, Queued: a.Queued, Ready: a.Ready,
		Lane: Lane{ListLanesLane: wire.ListLanesLane{State: a.Lane, Since: a.Since, By: a.LaneBy}}, Waiters: a.Waiters,
		Subscriptions: a.Subscriptions, TickOwner: a.Owner, TickWake: a.Wake, TickOverdue: a.Overdue, PurgeAt: a.Purge,
		Open: a.Open, ClosedUntil: a.Closed, ClosedWhy: a.ClosedWhy, Outbox: a.Outbox, HeldAt: a.Held, HeldBy: a.HeldBy,
		HoldReason: e.text(a.HoldReason)}
	core, r := a.Core, &reader{op: "ff_explain_execution"}
	if f.Lane.Retention, err = valid.UnpackRetentions(a.Keep); err != nil {
		r.Stop("%w", err)
	}
	points := waitpoints(a.Waitpoints, r)
	for _, o := range a.Others {
		x := Other{Node: o.Node, Apart: strings.Contains(o.ID, ".")}
		if x.ID, err = parseFull(id.Partition(), o.ID); err != nil {
			r.Stop("%w", err)
		}
		x.State = codes.Shown(codes.Code(o.Code))
		f.Others = append(f.Others, x)
	}
	if r.Err != nil {
		return Facts{}, r.fail()
	}
	if f.Snapshot, err = snapshot(id, r, core, a.Attempts, a.Row, holding{a.Alive, a.Expiry}); err != nil {
		return Facts{}, err
	}
	e.texts(&f.Snapshot)
	if text := a.Suspension["question"]; text != "" {
		a.Suspension["question"] = e.openQuestion(text)
	}
	u := wire.Fields{M: a.Suspension, R: r}
	relate(&f.Snapshot, core, flowfabric.Wait{Name: u.M["name"], Since: u.Instant("created_at")})
	if core["deadline"] == "0" { // before 1970, which is a deadline too
		f.DeadlineAt = time.UnixMilli(0).UTC()
	}
	f.Lane.Namespace, f.Lane.Lane = f.Route.Namespace, f.Route.Lane
	if by := gatetext.ParseClosing(f.ClosedWhy); by.Kind == gatetext.ClosedByCap {
		if _, l, ok := by.Gate.Limit(); ok {
			f.Slots = l.Concurrency
		} else if g, err := e.ReadGate(ctx, by.Gate.Name(), 0, 0, 0); err == nil {
			// a number more, in a partition that may be away
			f.Slots = g.Concurrency
		}
	}
	x := wire.Fields{M: core, R: r}
	f.AttemptTimeoutAt, f.TimeoutAt = x.Instant("attempt_deadline"), x.Instant("suspension_deadline")
	f.OpenWaitpoints, f.Purging = int(x.Number("open_waitpoints")), core["purged_until"] != ""
	f.Released, f.Service = released(core)
	if f.Service != "" && f.Phase().Eligibility == "not_eligible_until_time" {
		f.Turn, f.TurnErr = e.TurnOf(ctx, f.Service, id) // of a partition that may be away
	}
	f.GrantedTo, f.GrantEnds = core["grant_session"], x.Instant("grant_deadline")
	f.Node, f.Group, f.Wait = core["node"], groupRecord(core["upstreams"]), waitRecord(core["children_wait"])
	if len(a.Flow) > 0 {
		record := flowRecord(wire.Fields{M: a.Flow, R: r})
		if of, err := ids.ParseUUID(core["flow"]); err == nil {
			record.ID = flowfabric.FlowID(mint.Join(id.Partition(), of))
		}
		record.Now, record.Reason, f.Flow = f.Now, e.text(record.Reason), &record
	}
	f.suspended(a.Suspension, points, r)
	if r.Err != nil {
		return Facts{}, r.fail()
	}
	return f, e.states(ctx, f.Others)
}

// waitpoints reads those that the condition names, in its order.
func waitpoints(rows []wire.ExplainExecutionWaitpoint, r *reader) (points []suspend.Waitpoint) {
	for _, x := range rows {
		w, err := decodeWaitpoint(x.Waitpoint, x.Record)
		if err != nil {
			r.Stop("%w", err)
			return nil
		}
		points = append(points, w)
	}
	return points
}

// suspended reads the record of the suspension, and of its condition how far it is.
func (f *Facts) suspended(u map[string]string, points []suspend.Waitpoint, r *reader) {
	if u["id"] == "" {
		return
	}
	f.Suspension = &suspend.Record{State: f.State.Public, Waitpoints: points}
	fillSuspension(f.Suspension, u, r)
	f.ResumedBy, f.Satisfied = u["resumed_by"], map[int]int{}
	n := wire.Fields{M: u, R: r}
	for field := range u {
		if node, err := strconv.Atoi(strings.TrimPrefix(field, "n")); err == nil && field[0] == 'n' {
			f.Satisfied[node] = int(n.Number(field))
		}
	}
}

// released tells from "op,epoch,attempt,slot" how the last holder gave it up, and for the turn of which service.
func released(core map[string]string) (how, service string) {
	p := strings.SplitN(core["last_release"], ",", 4)
	if len(p) < 3 || p[1] != core["epoch"] {
		return "", ""
	}
	if how = releases[p[0]]; how == ReleasedDelayed && len(p) == 4 {
		_, service, _ = strings.Cut(p[3], " ")
	}
	return how, service
}
