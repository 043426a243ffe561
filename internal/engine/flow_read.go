package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// classes are the counters of a header by the public state they count.
var classes = map[string]flowfabric.PublicState{"mb": flowfabric.WaitingChildren, "mw": flowfabric.Waiting,
	"md": flowfabric.Delayed, "ma": flowfabric.Active, "mu": flowfabric.Suspended, "ms": flowfabric.Completed,
	"mf": flowfabric.Failed,
	"mc": flowfabric.Cancelled, "me": flowfabric.Expired, "mk": flowfabric.Skipped}

// DescribeFlow reads the header of a flow (lua/flow/ff_flow_describe.lua). denied.NoFlow; ErrResultPurged for one
// that is no longer retained, with its last state in slot 0.
func (e *Engine) DescribeFlow(ctx context.Context, id flowfabric.FlowID) (FlowRecord, error) {
	r, err := e.call(ctx, fnFlowDescribe, id.Partition(), protocol, id.UUID().String())
	if err != nil {
		return FlowRecord{}, err
	}
	now := r.Instant()
	out := flowRecord(fields{m: r.Pairs(), r: r})
	out.Now, out.ID, out.Tags = now, id, r.Pairs()
	return out, r.fail()
}

// flowRecord reads the fields of a header.
func flowRecord(f fields) (out FlowRecord) {
	out.State = f.flowState("st")
	out.Seal, out.Namespace, out.Kind, out.Creator, out.Digest = string(sealOf(f.m["sl"])), f.m["ns"], f.m["kd"],
		f.m["cr"], f.m["pd"]
	out.Revision, out.CreatedAt, out.ChangedAt = uint64(f.number("rv")), f.instant("ct"), f.instant("mt")
	out.ReleasedAt, out.EndedAt, out.Cancelled = f.instant("rl"), f.instant("en"), f.instant("ca")
	out.Members, out.Edges, out.Purged = int(f.number("nn")), int(f.number("ne")), int(f.number("pu"))
	out.Failing, out.Backlog = int(f.number("lv")), int(f.number("bl"))
	out.Policy, out.CancelBy, out.Reason = flowfabric.CancellationPolicy(f.m["cp"]), f.m["cb"], f.m["cw"]
	out.Siblings = SiblingCancels{Cancelled: int(f.number("xc")), AlreadyTerminal: int(f.number("xt")),
		NotFound: int(f.number("xn")), Spared: int(f.number("xs"))}
	out.Count = f.classes()
	return out
}

func (f fields) classes() map[flowfabric.PublicState]int {
	out := map[flowfabric.PublicState]int{}
	for name, state := range classes {
		if n := int(f.number(name)); n != 0 {
			out[state] = n
		}
	}
	return out
}

func (f fields) flowState(name string) flowfabric.FlowState {
	state, ok := FlowStateOf(f.m[name])
	if !ok {
		f.r.Stop("state of a flow %q", clip(f.m[name]))
	}
	return state
}

func (r *reader) flowState() flowfabric.FlowState {
	code := r.Text()
	state, ok := FlowStateOf(code)
	if !ok {
		r.Stop("slot %d is %q, want the state of a flow", r.At(), clip(code))
	}
	return state
}

func sealOf(text string) SealMode {
	switch text {
	case "1":
		return SealClosed
	case "g":
		return SealGrowing
	}
	return SealOpen
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
	r, err := e.call(ctx, fnFlowMembers, partition, protocol, id.UUID().String(), strconv.FormatInt(next, 10),
		strconv.Itoa(limit), bit(edges))
	if err != nil {
		return FlowMembersPage{}, err
	}
	out := FlowMembersPage{Next: r.number()}
	n := r.Count(12)
	used := make([]string, 0, n)
	for range n {
		m, route := memberRecord(partition, r)
		out.Members, used = append(out.Members, m), append(used, route)
	}
	rows := r.Pairs()
	for i, route := range used {
		parts := strings.Split(rows[route], "\x1f")
		if len(parts) == 5 {
			out.Members[i].Lane, out.Members[i].Kind = parts[1], parts[2]
		}
	}
	return out, r.fail()
}

func memberRecord(partition uint16, r *reader) (m MemberRecord, route string) {
	m.ID, m.Number, m.Node = r.id(partition), r.number(), r.Text()
	code := r.Text()
	m.State, _ = flowfabric.Project(flowfabric.Code(code))
	route = r.Text()
	m.Attempt, m.Category, m.StartedAt, m.EndedAt = r.attempt(), r.Text(), r.maybeInstant(), r.maybeInstant()
	if flowfabric.Code(code) == codes.Completed {
		m.Category = "" // it is that of a failed attempt before
	}
	m.Group, m.Wait = groupRecord(r.Text()), waitRecord(r.Text())
	for range r.Count(2) {
		from, text := r.id(partition), r.Text()
		parts := strings.SplitN(text, ",", 3)
		if len(parts) != 3 {
			r.Stop("slot %d is %q, want an edge", r.At(), clip(text))
			return m, route
		}
		edge := EdgeRecord{From: from, Input: parts[2], Outcome: endings[parts[0]], Late: parts[0] == "l",
			Spared: parts[0] == "~"}
		edge.Attempt, _ = strconv.Atoi(parts[1]) // empty: none
		m.Edges = append(m.Edges, edge)
	}
	return m, route
}

var endings = map[string]flowfabric.PublicState{"s": flowfabric.Completed, "l": flowfabric.Completed,
	"f": flowfabric.Failed, "c": flowfabric.Cancelled, "e": flowfabric.Expired, "k": flowfabric.Skipped,
	"n": flowfabric.Skipped}

// attempt reads the number of an attempt, 0 for an empty slot.
func (r *reader) attempt() int {
	text := r.Text()
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.Stop("slot %d: %w", r.At(), err)
	}
	return n
}

// maybeInstant reads an instant, zero for an empty slot.
func (r *reader) maybeInstant() time.Time {
	text := r.Text()
	if text == "" {
		return time.Time{}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.Stop("slot %d: %w", r.At(), err)
	}
	return time.UnixMilli(n)
}

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

// waitRecord reads lib/wait.lua's text, nil when there is none or it is not one.
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

// FlowSummary is a flow as ListFlows shows it.
type FlowSummary struct {
	ID         flowfabric.FlowID // zero when Member is no id
	Member     string            // what the list holds
	CreatedAt  time.Time
	State      flowfabric.FlowState // empty when there is no such flow: drift
	Seal       string
	Namespace  string
	Kind       string
	ReleasedAt time.Time
	EndedAt    time.Time
	Members    int
	Failing    int
	Count      map[flowfabric.PublicState]int
}

// Position is where the entry stands.
func (s FlowSummary) Position() Position { return Position{s.CreatedAt.UnixMilli(), s.Member} }

// FlowsPage is one page of the flows of a partition.
type FlowsPage struct {
	Now   time.Time
	Size  int  // flows of the partition
	More  bool // there is something behind the last entry
	Flows []FlowSummary
}

// ListFlows reads 1..100 flows of a partition behind a position, by when they were created (lua/flow/ff_flow_list.lua).
func (e *Engine) ListFlows(ctx context.Context, partition uint16, newest bool, after Position,
	limit int) (FlowsPage, error) {
	r, err := e.call(ctx, fnFlowList, partition,
		append(append([]string{protocol, bit(newest)}, after.args()...), strconv.Itoa(limit))...)
	if err != nil {
		return FlowsPage{}, err
	}
	out := FlowsPage{Now: r.Instant(), Size: r.Int(), More: r.Flag()}
	names := []string{"st", "sl", "ns", "kd", "rl", "en", "nn", "lv", "mb", "mw", "md", "ma", "mu", "ms", "mf", "mc",
		"me", "mk"}
	for range r.Count(2 + len(names)) {
		x := FlowSummary{Member: r.Text(), CreatedAt: r.Instant()}
		f := fields{m: make(map[string]string, len(names)), r: r}
		for _, name := range names {
			f.m[name] = r.Text()
		}
		if id, err := ids.ParseUUID(x.Member); err == nil {
			x.ID = flowfabric.FlowID(flowfabric.MakeExecutionID(partition, id))
		}
		x.State, _ = FlowStateOf(f.m["st"])
		x.Seal, x.Namespace, x.Kind = string(sealOf(f.m["sl"])), f.m["ns"], f.m["kd"]
		x.ReleasedAt, x.EndedAt, x.Members, x.Failing = f.instant("rl"), f.instant("en"), int(f.number("nn")),
			int(f.number("lv"))
		x.Count = f.classes()
		out.Flows = append(out.Flows, x)
	}
	return out, r.fail()
}
