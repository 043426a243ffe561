package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// classes are the counters of a header by the public state they count.
var classes = map[string]flowfabric.PublicState{"mb": flowfabric.WaitingChildren, "mw": flowfabric.Waiting,
	"md": flowfabric.Delayed, "ma": flowfabric.Active, "mu": flowfabric.Suspended, "ms": flowfabric.Completed,
	"mf": flowfabric.Failed, "mc": flowfabric.Cancelled, "me": flowfabric.Expired, "mk": flowfabric.Skipped}

// DescribeFlow reads the header of a flow (lua/flow/ff_flow_describe.lua). denied.NoFlow; ErrResultPurged for one
// that is no longer retained, with its last state in slot 0.
func (e *Engine) DescribeFlow(ctx context.Context, id flowfabric.FlowID) (FlowRecord, error) {
	r, _, err := ask[wire.FlowDescribeReply](ctx, e, id.Partition(), wire.FlowDescribe{Flow: ids.UUID(id).String()})
	if err != nil {
		return FlowRecord{}, err
	}
	own := &reader{op: "ff_flow_describe"}
	out := flowRecord(wire.Fields{M: r.Fields, R: own})
	out.Now, out.ID, out.Tags, out.Reason = r.Now, id, r.Tags, e.text(out.Reason)
	return out, own.fail()
}

// flowRecord reads the fields of a header.
func flowRecord(f wire.Fields) (out FlowRecord) {
	state, ok := FlowStateOf(f.M["st"])
	if !ok {
		f.R.Stop("state of a flow %q", clip(f.M["st"]))
	}
	out.State = state
	out.Seal, out.Namespace, out.Kind, out.Creator, out.Digest = sealOf(f.M["sl"]), f.M["ns"], f.M["kd"],
		f.M["cr"], f.M["pd"]
	out.Revision, out.CreatedAt, out.ChangedAt = uint64(f.Number("rv")), f.Instant("ct"), f.Instant("mt")
	out.ReleasedAt, out.EndedAt, out.Cancelled = f.Instant("rl"), f.Instant("en"), f.Instant("ca")
	out.Members, out.Edges, out.Purged = int(f.Number("nn")), int(f.Number("ne")), int(f.Number("pu"))
	out.Failing, out.Backlog = int(f.Number("lv")), int(f.Number("bl"))
	out.Policy, out.CancelBy, out.Reason = flowfabric.CancellationPolicy(f.M["cp"]), f.M["cb"], f.M["cw"]
	out.Siblings = SiblingCancels{Cancelled: int(f.Number("xc")), AlreadyTerminal: int(f.Number("xt")),
		NotFound: int(f.Number("xn")), Spared: int(f.Number("xs"))}
	out.Count = map[flowfabric.PublicState]int{}
	for name, class := range classes {
		if n := int(f.Number(name)); n != 0 {
			out.Count[class] = n
		}
	}
	return out
}

// sealOf is the seal of a header.
func sealOf(text string) string {
	return string(cmp.Or(map[string]SealMode{"1": SealClosed, "g": SealGrowing}[text], SealOpen))
}

// FlowMembersPage is one page; Next is -1 behind the last.
type FlowMembersPage struct {
	Next    int64
	Members []MemberRecord
}

// FlowMembers reads members of a flow from a number on (lua/flow/ff_flow_members.lua), in an order in which a member
// that depends on others comes after them; up to limit, 1..100. A page may have fewer although there are more.
// denied.NoFlow.
func (e *Engine) FlowMembers(ctx context.Context, id flowfabric.FlowID, next int64, limit int,
	edges bool) (FlowMembersPage, error) {
	partition := id.Partition()
	r, _, err := ask[wire.FlowMembersReply](ctx, e, partition,
		wire.FlowMembers{Flow: ids.UUID(id).String(), Next: int(next), Limit: limit, Edges: edges})
	if err != nil {
		return FlowMembersPage{}, err
	}
	out := FlowMembersPage{Next: int64(r.Next)}
	for _, x := range r.Members {
		m := MemberRecord{ID: mint.Join(partition, x.ID), Number: int64(x.Number), Node: x.Node,
			Attempt: x.Attempt, Category: flowfabric.Category(x.Category), StartedAt: x.Started, EndedAt: x.Ended,
			Group: groupRecord(x.Group), Wait: waitRecord(x.Wait)}
		if m.State = codes.Shown(codes.Code(x.Code)); m.State.Public == flowfabric.Completed {
			m.Category = "" // it is that of a failed attempt before
		}
		if parts := strings.Split(r.Routes[x.Route], "\x1f"); len(parts) == 5 {
			m.Lane, m.Kind = parts[1], parts[2]
		}
		for _, up := range x.Edges {
			parts := strings.SplitN(up.Edge, ",", 3)
			if len(parts) != 3 {
				return out, unread("ff_flow_members", fmt.Errorf("%q is no edge", clip(up.Edge)))
			}
			edge := EdgeRecord{From: mint.Join(partition, up.Upstream), Input: parts[2],
				Outcome: endings[parts[0]], Late: parts[0] == "l", Spared: parts[0] == "~"}
			edge.Attempt, _ = strconv.Atoi(parts[1]) // empty: none
			m.Edges = append(m.Edges, edge)
		}
		out.Members = append(out.Members, m)
	}
	return out, nil
}

var endings = map[string]flowfabric.PublicState{"s": flowfabric.Completed, "l": flowfabric.Completed,
	"f": flowfabric.Failed, "c": flowfabric.Cancelled, "e": flowfabric.Expired, "k": flowfabric.Skipped,
	"n": flowfabric.Skipped}

// groupRecord reads lib/group.lua's text, nil when there is none or it is not one.
func groupRecord(text string) *GroupRecord {
	var g GroupRecord
	var policy, after, state string
	var unneeded int // upstreams that were skipped because nothing failed; only of an optional member
	if n, _ := fmt.Sscanf(text, "%s %d %s %d %d %d %d %s %d", &policy, &g.K, &after, &g.Total, &g.Succeeded, &g.Failed,
		&g.Skipped, &state, &unneeded); n < 8 {
		return nil
	}
	g.Policy, g.CancelRest = policy, after == "cancel"
	g.Optional = strings.Count(text, " ") == 8
	g.Pending, g.Satisfied, g.Impossible = state == "p", state == "s", state == "i"
	return &g
}

// waitRecord reads lib/wait_children.lua's text, nil when there is none or it is not one.
func waitRecord(text string) *WaitRecord {
	var w WaitRecord
	var mode, after, state, rest string
	if n, _ := fmt.Sscanf(text, "%s %d %d %d %s %s %s", &mode, &w.Total, &w.Succeeded, &w.Others, &after, &state,
		&rest); n != 7 {
		return nil
	}
	w.Mode, w.Pending = mode, state == "p"
	return &w
}

// ListedFlow is a flow as ListFlows shows it. One without a State is drift: there is no such flow.
type ListedFlow struct {
	flowfabric.FlowSummary
	Member string // the entry as it is stored
}

// Position is where the entry stands.
func (s ListedFlow) Position() Position { return Position{s.CreatedAt.UnixMilli(), s.Member} }

// FlowsPage is one page of the flows of a partition.
type FlowsPage struct {
	Now   time.Time
	Size  int  // flows of the partition
	More  bool // there is something behind the last entry
	Flows []ListedFlow
}

// ListFlows reads 1..100 flows of a partition behind a position, by when they were created (lua/flow/ff_flow_list.lua).
func (e *Engine) ListFlows(ctx context.Context, partition uint16, newest bool, after Position,
	limit int) (FlowsPage, error) {
	q := wire.FlowList{Newest: newest, Member: after.Member, Limit: limit}
	if q.Member != "" {
		q.Score = strconv.FormatInt(after.Score, 10)
	}
	r, _, err := ask[wire.FlowListReply](ctx, e, partition, q)
	out := FlowsPage{Now: r.Now, Size: r.Size, More: r.More}
	for _, x := range r.Flows {
		s := flowfabric.FlowSummary{CreatedAt: x.Created, Seal: sealOf(x.Seal),
			Namespace: x.Namespace,
			Kind:      x.Kind, ReleasedAt: x.Released, EndedAt: x.Ended, Members: x.Members, Failing: x.Failing,
			Count: map[flowfabric.PublicState]int{flowfabric.WaitingChildren: x.WaitingChildren,
				flowfabric.Waiting: x.Waiting, flowfabric.Delayed: x.Delayed, flowfabric.Active: x.Active,
				flowfabric.Suspended: x.Suspended, flowfabric.Completed: x.Completed, flowfabric.Failed: x.Failed,
				flowfabric.Cancelled: x.Cancelled, flowfabric.Expired: x.Expired, flowfabric.Skipped: x.Skipped}}
		maps.DeleteFunc(s.Count, func(_ flowfabric.PublicState, n int) bool { return n == 0 })
		if id, err := ids.ParseUUID(x.Member); err == nil {
			s.ID = flowfabric.FlowID(mint.Join(partition, id))
		}
		s.State, _ = FlowStateOf(x.State)
		out.Flows = append(out.Flows, ListedFlow{s, x.Member})
	}
	return out, err
}
