package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Answer is what became of one of several things that were asked for.
type Answer struct {
	Already bool
	Err     error
}

// ClaimGranted claims 1..100 executions that a claim of this number granted to the session and whose gates let them
// pass (lua/admission/ff_claim_granted.lua). measured tells of their routes what their gates measure. The claims are of
// those without an error, in order; denied.StaleLease: the grant was taken back. The call may be repeated.
// denied.LeaseExpired: the session is dead.
func (e *Engine) ClaimGranted(ctx context.Context, partition uint16, session string, number uint64, grants []Grant,
	measured []wire.ClaimGrantedRoute) ([]Answer, []Claim, error) {
	args := []string{protocol, session, strconv.Itoa(len(grants))}
	for _, g := range grants {
		args = append(args, ids.UUID(g.Execution).String(), strconv.FormatUint(g.Epoch, 10))
	}
	args = append(args, strconv.Itoa(len(measured)))
	for _, x := range measured {
		args = append(args, strconv.Itoa(x.Route), x.Meters)
	}
	r, err := e.call(ctx, functionOf["ff_claim_granted"], partition, args...)
	if err != nil {
		return nil, nil, err
	}
	out := make([]Answer, r.Count(1))
	for i := range out {
		_, out[i].Already, out[i].Err = r.settled()
	}
	claims, err := e.claims(ctx, partition, session, number, r)
	return out, claims, err
}

// GrantReturn is a grant that goes back. Reserved: a gate may have a hold of it.
type GrantReturn struct {
	Grant
	Reserved bool
}

// RouteClosing closes a route for a while: 1 ms … 24 h. Why is for people and programs, see [Closing].
type RouteClosing struct {
	Route uint64
	For   time.Duration
	Why   string // at most 256 bytes
	// Wakes is that of the grants that were refused: if the route was woken since, it stays open, so that no wake is
	// lost. 0: close it anyway.
	Wakes uint64
}

// ReleaseGrants returns up to 100 grants to their queues and closes up to 100 routes in the same call
// (lua/admission/ff_release_grant.lua).
func (e *Engine) ReleaseGrants(ctx context.Context, partition uint16, session string, grants []GrantReturn,
	closings []RouteClosing) error {
	q := wire.ReleaseGrant{Session: session}
	for _, g := range grants {
		q.Grants = append(q.Grants, wire.ReleaseGrantGrant{ID: ids.UUID(g.Execution).String(),
			Epoch: int(g.Epoch), Reserved: g.Reserved})
	}
	for _, c := range closings {
		q.Routes = append(q.Routes, wire.ReleaseGrantRoute{Route: int(c.Route), Why: c.Why,
			Pause: min(max(c.For, time.Millisecond), 24*time.Hour), Wakes: int(c.Wakes)})
	}
	_, err := e.settled(ctx, partition, q)
	return err
}

// OpenRoutes opens routes of a partition that gates had closed, 64 a call (lua/admission/ff_open_route.lua). waiting
// tells where something waits that is handed out; after an error, of the calls before it.
func (e *Engine) OpenRoutes(ctx context.Context, partition uint16, routes []uint64) (waiting []bool, err error) {
	for batch := range slices.Chunk(routes, 64) {
		q := wire.OpenRoute{}
		for _, id := range batch {
			q.Routes = append(q.Routes, strconv.FormatUint(id, 10))
		}
		r, _, err := ask[wire.OpenRouteReply](ctx, e, partition, q)
		if err != nil {
			return waiting, err
		}
		waiting = append(waiting, r.Answers...)
	}
	return waiting, nil
}

// OutboxEntry is what gates and other executions are to be told because of one call.
type OutboxEntry struct {
	ID       string
	News     []News
	Awaiting []Awaiting   // executions that are to be told who waits for them
	Ends     []AwaitedEnd // waiters that are to be told
	Event    *Published   // that starts executions, and resumes waits
	Forget   []Expected   // waitpoints that are closed
}

// ReadOutbox reads the oldest entries of a partition's outbox, or with the id of an entry those that follow it, and
// how many there are in all (lua/admission/ff_read_outbox.lua).
func (e *Engine) ReadOutbox(ctx context.Context, partition uint16,
	after string) (entries []OutboxEntry, total int, err error) {
	r, _, err := ask[wire.ReadOutboxReply](ctx, e, partition, wire.ReadOutbox{After: after})
	for _, entry := range r.Outbox {
		x := OutboxEntry{ID: entry.Entry}
		for _, n := range entry.Notices {
			if err := x.notice(e.partitions, partition, n.Kind, header{rest: n.Text}); err != nil {
				return entries, r.Entries, unread("ff_read_outbox", err)
			}
		}
		entries = append(entries, x)
	}
	return entries, r.Entries, err
}

func (x *OutboxEntry) notice(partitions, partition uint16, kind string, h header) error {
	switch kind {
	case "a", "n", "k", "w":
		x.awaited(kind, partition, &h)
	case "p", "s":
		return x.published(partitions, kind, h.rest)
	case "r", "x":
		x.expected(partition, kind, &h)
	case "g":
		x.News = append(x.News, News{Gate: h.next(), Execution: h.id(partition), What: h.next(), Epoch: h.unsigned()})
	default:
		return fmt.Errorf("notice of kind %q", clip(kind))
	}
	if h.err != nil {
		return fmt.Errorf("notice: %w", h.err)
	}
	return nil
}

// TrimOutbox forgets 1..100 entries that were delivered (lua/admission/ff_trim_outbox.lua) and returns how many are
// left.
func (e *Engine) TrimOutbox(ctx context.Context, partition uint16, ids []string) (left int, err error) {
	r, _, err := ask[wire.TrimOutboxReply](ctx, e, partition, wire.TrimOutbox{Entries: ids})
	return r.Left, err
}

// AttachHow is what a call does with the gates of a scope.
type AttachHow string

// What it does.
const (
	AttachSet    AttachHow = "set"    // these instead of those that are attached
	AttachAdd    AttachHow = "add"    // these as well
	AttachRemove AttachHow = "remove" // these no longer
)

// ChangeAttached says which gates apply to what is created in a scope from now on (lua/admission/ff_attach.lua), in
// each partition by one atomic call; to set none detaches all. The call may be repeated.
func (e *Engine) ChangeAttached(ctx context.Context, scope admission.Scope, how AttachHow, gates []flowfabric.Gate,
) []InPartition[struct{}] {
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = string(g)
	}
	return e.settledInEach(ctx, wire.Attach{Scope: gatetext.Scope(scope), Gates: strings.Join(names, ","),
		How: string(how)})
}

func (e *Engine) settledInEach(ctx context.Context, q wire.Call) []InPartition[struct{}] {
	return inEach(e, func(partition uint16) (_ struct{}, already bool, err error) {
		already, err = e.settled(ctx, partition, q)
		return
	})
}

// Attachment is what was attached to a scope.
type Attachment struct {
	Scope admission.Scope
	Gates []flowfabric.Gate
	At    time.Time
	By    string
}

// Closing is a route that a gate has closed.
type Closing struct {
	Route   Route
	Until   time.Time
	Why     string
	Waiting int
}

// PartitionGates is what a partition knows of gates.
type PartitionGates struct {
	Partition uint16
	Outbox    int // entries that gates have not been told of
	Attached  []Attachment
	Closed    []Closing
	Err       error
}

// Gates reads what every partition knows of gates; each has its own error.
func (e *Engine) Gates(ctx context.Context) []PartitionGates {
	return forEach(e, func(partition uint16) PartitionGates {
		out, err := e.ReadGates(ctx, partition)
		if err != nil {
			return PartitionGates{Partition: partition, Err: err}
		}
		return out
	})
}

// ReadGates reads one partition (lua/admission/ff_read_gates.lua).
func (e *Engine) ReadGates(ctx context.Context, partition uint16) (PartitionGates, error) {
	r, _, err := ask[wire.ReadGatesReply](ctx, e, partition, wire.ReadGates{})
	if err != nil {
		return PartitionGates{}, err
	}
	out := PartitionGates{Partition: partition, Outbox: r.Outbox}
	for _, x := range r.Attached {
		scope, ok := gatetext.ParseScope(x.Scope)
		parts := strings.SplitN(x.Gates, " ", 3)
		if !ok || len(parts) != 3 {
			return out, fmt.Errorf("ff_read_gates: %w: attachment", denied.Reply)
		}
		ms, _ := strconv.ParseInt(parts[1], 10, 64)
		a := Attachment{Scope: scope, At: time.UnixMilli(ms).UTC(), By: parts[2]}
		for name := range strings.SplitSeq(parts[0], ",") {
			a.Gates = append(a.Gates, flowfabric.Gate(name))
		}
		out.Attached = append(out.Attached, a)
	}
	own := &reader{op: "ff_read_gates"}
	for _, x := range r.Closed {
		out.Closed = append(out.Closed, Closing{Route: route(uint64(x.Route), x.Row, own), Until: x.Until, Why: x.Why,
			Waiting: x.Waiting})
	}
	return out, own.fail()
}

// HoldExecution keeps an execution that could be claimed from being handed out (lua/operate/ff_hold_execution.lua).
// denied.NotEligible: it is in another state; denied.NotActive: it has ended; ErrNotFound.
func (e *Engine) HoldExecution(ctx context.Context, id flowfabric.ExecutionID) (already bool, err error) {
	return e.settled(ctx, id.Partition(), wire.HoldExecution{ID: ids.UUID(id).String(), Held: true})
}

// UnholdExecution lets it be handed out again.
func (e *Engine) UnholdExecution(ctx context.Context, id flowfabric.ExecutionID) (already bool, err error) {
	return e.settled(ctx, id.Partition(), wire.HoldExecution{ID: ids.UUID(id).String()})
}

// SetShare gives a namespace a weight in a lane, 1..1000, or with 0 the usual one, 1, in every partition
// (lua/admission/ff_set_share.lua).
func (e *Engine) SetShare(ctx context.Context, namespace, lane string, weight int) []InPartition[struct{}] {
	return e.settledInEach(ctx, wire.SetShare{Namespace: namespace, Lane: lane, Weight: weight})
}
