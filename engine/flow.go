package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// NewFlow is the header of a flow.
type NewFlow struct {
	ID        flowfabric.FlowID
	Namespace string
	Kind      string // what the application calls flows of this shape; 1..64 printable bytes without braces
	Creator   string // at most 64 bytes
	Digest    string // of the definition, ≤ 64 bytes; compared when the id exists
	Tags      map[string]string
}

// FlowCreated answers CreateFlow and StageFlow.
type FlowCreated struct {
	Already  bool // it was there before, nothing was written
	State    flowfabric.FlowState
	Revision uint64
	Members  int
	Edges    int // of StageFlow
}

// FlowMember is an execution that joins a flow, with all edges that lead into it.
type FlowMember struct {
	NewExecution
	Node       string // its name in the flow, 1..64 bytes without control characters
	Policy     flowfabric.GroupPolicy
	K          int  // of a quorum, 1..len(Edges)
	CancelRest bool // once its group is decided, cancel the upstreams that have not ended
	Edges      []FlowEdge
}

// FlowEdge leads from an earlier member. With an input name, the result of From is given to the member under that name.
type FlowEdge struct {
	From  flowfabric.ExecutionID
	Input string // at most 64 bytes, unique among the edges of a member; '' none
}

// SealMode says how a flow may grow after it was released.
type SealMode string

// The modes.
const (
	SealClosed  SealMode = "seal" // not at all; it ends by itself
	SealGrowing SealMode = "grow" // its members may add members; it ends by itself
	SealOpen    SealMode = "open" // members may be staged; it stays open until it is sealed
)

// CreateFlow makes the header of a flow (lua/flow/ff_flow_create.lua). The call may be repeated. A flow that is not released within a
// day is given up. ErrFlowConflict: the id belongs to a flow of another namespace, kind or digest. Spec 60 §2.1, F31.
func (e *Engine) CreateFlow(ctx context.Context, q NewFlow) (FlowCreated, error) {
	args := []string{protocol, q.ID.UUID().String(), q.Namespace, q.Kind, cut(q.Creator, flowfabric.MaxName), q.Digest, strconv.Itoa(len(q.Tags))}
	for k, v := range q.Tags {
		args = append(args, k, v)
	}
	r, err := e.call(ctx, fnFlowCreate, q.ID.Partition(), args...)
	if err != nil {
		return FlowCreated{}, err
	}
	out := FlowCreated{Already: r.already, State: r.flowState(), Revision: r.unsigned(), Members: int(r.unsigned())}
	return out, r.fail()
}

// StageFlow adds 1..100 members with at most 1,000 edges each and 1 MiB of payload (lua/flow/ff_flow_stage.lua). Members that are
// there already are left alone, so the call may be repeated. An edge leads from a member that was staged before, or that stands earlier
// in the call. A non-nil revision is the one the flow must have. Members with few edges go in by one atomic call, all or none;
// where there are so many that it would hold up the server, several calls are made, in the order of the members: see [StageCost].
//
// Errors name the node in their last slot: ErrSelfEdge, ErrDuplicateEdge, ErrNotInFlow, ErrFanIn, ErrNamespace, ErrOtherFlow,
// ErrIdempotencyConflict; of the flow: ErrFlowNotFound, ErrFlowTerminal, ErrFlowSealed, ErrStaleRevision, ErrFlowTooLarge; and those of
// CreateExecutions. Spec 60 §2.6.
func (e *Engine) StageFlow(ctx context.Context, id flowfabric.FlowID, revision *uint64, members []FlowMember) (FlowCreated, error) {
	if len(members) < 1 || len(members) > flowfabric.MaxBatch {
		return FlowCreated{}, fmt.Errorf("%s: %w: %d members, want 1..%d", fnFlowStage.name, flowfabric.ErrInvalidInput, len(members), flowfabric.MaxBatch)
	}
	out := FlowCreated{Already: true}
	for len(members) > 0 {
		n := fits(members)
		part, err := e.stage(ctx, id, revision, members[:n])
		if err != nil {
			return part, err
		}
		part.Already = part.Already && out.Already
		out, members = part, members[n:]
		if revision != nil {
			revision = &part.Revision
		}
	}
	return out, nil
}

// StageCost is the largest sum of edges and stageMember for each member but the first in one call to the server.
const (
	StageCost   = 1000
	stageMember = 8
)

// fits is how many of the first members go into one call, at least one.
func fits(members []FlowMember) int {
	cost := 0
	for i := range members {
		if i > 0 {
			cost += stageMember
		}
		if cost += len(members[i].Edges); i > 0 && cost > StageCost {
			return i
		}
	}
	return len(members)
}

func (e *Engine) stage(ctx context.Context, id flowfabric.FlowID, revision *uint64, members []FlowMember) (FlowCreated, error) {
	expected := ""
	if revision != nil {
		expected = strconv.FormatUint(*revision, 10)
	}
	args, err := memberArgs(fnFlowStage.name, []string{protocol, id.UUID().String(), expected, strconv.Itoa(len(members))}, id.Partition(), members)
	if err != nil {
		return FlowCreated{}, err
	}
	r, err := e.call(ctx, fnFlowStage, id.Partition(), args...)
	if err != nil {
		return FlowCreated{}, err
	}
	out := FlowCreated{Already: r.already, Revision: r.unsigned(), Members: int(r.unsigned()), Edges: int(r.unsigned())}
	return out, r.fail()
}

// memberArgs appends the items of members.
func memberArgs(op string, args []string, partition uint16, members []FlowMember) ([]string, error) {
	total := 0
	for i := range members {
		m := &members[i]
		if m.ID.IsZero() || m.ID.Partition() != partition {
			return nil, fmt.Errorf("%s: %w: node %q: id %q is not of partition %d", op, flowfabric.ErrInvalidInput, m.Node, m.ID, partition)
		}
		if err := m.validate(); err != nil {
			return nil, fmt.Errorf("%s: node %q: %w", op, m.Node, err)
		}
		total += len(m.Payload)
		policy, rest := m.Policy, "run"
		if policy == "" {
			policy = flowfabric.AllOf
		}
		if m.CancelRest {
			rest = "cancel"
		}
		args = append(m.appendTo(args), m.Node, string(policy), strconv.Itoa(m.K), rest, strconv.Itoa(len(m.Edges)))
		for _, edge := range m.Edges {
			if edge.From.Partition() != partition {
				return nil, fmt.Errorf("%s: %w: node %q: its upstream %q is not of partition %d", op, flowfabric.ErrNotInFlow, m.Node, edge.From, partition)
			}
			args = append(args, edge.From.UUID().String(), edge.Input)
		}
	}
	if total > flowfabric.MaxCallBytes {
		return nil, fmt.Errorf("%s: %w: the call has %d payload bytes, want at most %d", op, flowfabric.ErrPayloadTooLarge, total, flowfabric.MaxCallBytes)
	}
	return args, nil
}

// Batches splits members, in their order, into calls of StageFlow or WaitChildren: at most 100 members, what [StageCost] allows
// and 1 MiB of payload each.
func Batches(members []FlowMember) [][]FlowMember {
	var out [][]FlowMember
	for len(members) > 0 {
		n, bytes := fits(members[:min(len(members), flowfabric.MaxBatch)]), 0
		for i := range n {
			if bytes += len(members[i].Payload); i > 0 && bytes > flowfabric.MaxCallBytes {
				n = i
				break
			}
		}
		out, members = append(out, members[:n]), members[n:]
	}
	return out
}

// SealFlow releases a flow, whose members may run from then on, and says how it may grow (lua/flow/ff_flow_seal.lua). members and edges
// are what the caller has staged: ErrFlowIncomplete when the flow lacks some. more: the backlog goes on with the release, see
// DrainFlows. ErrFlowSealed, ErrFlowTerminal, ErrFlowNotFound. Spec 60 §1.7.
func (e *Engine) SealFlow(ctx context.Context, id flowfabric.FlowID, mode SealMode, members, edges int) (state flowfabric.FlowState, more bool, err error) {
	r, err := e.call(ctx, fnFlowSeal, id.Partition(), protocol, id.UUID().String(), string(mode), strconv.Itoa(members), strconv.Itoa(edges))
	if err != nil {
		return "", false, err
	}
	state, more = r.flowState(), r.flag()
	return state, more, r.fail()
}

// FlowCancelled answers CancelFlow.
type FlowCancelled struct {
	Already bool // it was cancelled before: Policy and Reason are what was said then
	Policy  flowfabric.CancellationPolicy
	Reason  string
	Unended int  // members that have not ended
	More    bool // the backlog goes on, see DrainFlows
}

// CancelFlow cancels a flow (lua/flow/ff_flow_cancel.lua). From then on no member that the policy covers can be claimed.
// ErrCancellationPolicy, ErrFlowNotFound; ErrFlowTerminal when it has completed or failed. Spec 60 §6.
func (e *Engine) CancelFlow(ctx context.Context, id flowfabric.FlowID, policy flowfabric.CancellationPolicy, by, reason string) (FlowCancelled, error) {
	r, err := e.call(ctx, fnFlowCancel, id.Partition(), protocol, id.UUID().String(), string(policy), cut(by, flowfabric.MaxName), cut(reason, flowfabric.MaxReason))
	if err != nil {
		return FlowCancelled{}, err
	}
	out := FlowCancelled{Already: r.already, Policy: flowfabric.CancellationPolicy(r.text()), Reason: r.text(), Unended: int(r.unsigned()), More: r.flag()}
	return out, r.fail()
}

// SetFlowTags sets and removes tags of a flow in any state, all of them or none (lua/flow/ff_flow_tags.lua). A key in both is
// removed. ErrFlowNotFound; ErrInvalidTagKey, ErrInvalidInput for a value over 256 bytes or more than 64 tags.
func (e *Engine) SetFlowTags(ctx context.Context, id flowfabric.FlowID, set map[string]string, remove []string) error {
	return e.setTags(ctx, fnFlowTags, flowfabric.ExecutionID(id), set, remove)
}

// DrainFlows goes on with what calls about flows left behind in a partition (lua/flow/ff_flow_drain.lua); more tells that something is
// left. Nobody has to call it, the tick does the same.
func (e *Engine) DrainFlows(ctx context.Context, partition uint16) (more bool, err error) {
	r, err := e.call(ctx, fnFlowDrain, partition, protocol)
	if err != nil {
		return false, err
	}
	more = r.flag()
	return more, r.fail()
}

// FlowReplayed answers one item of ReplayFlow. Err is ErrNotFound, ErrNotTerminal, ErrNotInFlow, ErrFlowCancelled,
// ErrResolutionPending, ErrReplayNotAllowed or ErrReplaysExhausted.
type FlowReplayed struct {
	State   flowfabric.PublicState // waiting, or waiting_children for one that waits for its upstreams
	Already bool                   // this request has replayed it before
	Err     error
}

// ReplayFlow replays 1..64 members of a flow, each judged alone (lua/flow/ff_flow_replay.lua), and so opens a flow that has ended.
// Members with many edges take several calls. q.Request must be the same in a repetition. Spec 60 §8.4.
func (e *Engine) ReplayFlow(ctx context.Context, id flowfabric.FlowID, q Replay, members []flowfabric.ExecutionID) ([]FlowReplayed, error) {
	steps := "keep"
	if q.DropSteps {
		steps = "drop"
	}
	if q.Request == uuid.Nil {
		q.Request = uuid.New()
	}
	out := make([]FlowReplayed, 0, len(members))
	for {
		left := members[len(out):]
		args := []string{protocol, id.UUID().String(), q.Request.String(), steps, bit(q.Force), cut(q.By, flowfabric.MaxName),
			cut(q.Reason, flowfabric.MaxReason), strconv.Itoa(len(left))}
		for _, m := range left {
			args = append(args, m.UUID().String())
		}
		r, err := e.call(ctx, fnFlowReplay, id.Partition(), args...)
		if err != nil {
			return nil, err
		}
		n := r.count(1)
		if n < 1 || n > len(left) {
			r.stop("%d answers to %d members", n, len(left))
			return nil, r.fail()
		}
		for range n {
			var x FlowReplayed
			var text string
			text, x.Already, x.Err = r.answer()
			state, _ := flowfabric.Project(flowfabric.Code(text))
			x.State = state.Public
			out = append(out, x)
		}
		if err := r.fail(); err != nil || len(out) == len(members) {
			return out, err
		}
	}
}

// FlowRecord is the header of a flow.
type FlowRecord struct {
	Now        time.Time // the server's
	ID         flowfabric.FlowID
	State      flowfabric.FlowState
	Seal       SealMode // what it was released with; meaningless while it is staging
	Namespace  string
	Kind       string
	Creator    string
	Digest     string
	Revision   uint64
	CreatedAt  time.Time
	ChangedAt  time.Time // when members were added last
	ReleasedAt time.Time
	EndedAt    time.Time // when its last member ended; zero while one has not
	Members    int       // ever
	Edges      int
	Purged     int                            // members that are no longer retained
	Count      map[flowfabric.PublicState]int // members by state; rate-limited and the like count as waiting
	Failing    int                            // members without dependants that ended without success
	Backlog    int                            // pieces of unfinished work
	Policy     flowfabric.CancellationPolicy
	Cancelled  time.Time
	CancelBy   string
	Reason     string
	Siblings   SiblingCancels
	Tags       map[string]string
}

// SiblingCancels counts what became of those that decided groups did not need any more, by disposition (spec 60 §7).
type SiblingCancels struct {
	Cancelled, AlreadyTerminal, NotFound, Spared int
}

// classes are the counters of a header by the public state they count.
var classes = map[string]flowfabric.PublicState{"mb": flowfabric.WaitingChildren, "mw": flowfabric.Waiting, "md": flowfabric.Delayed,
	"ma": flowfabric.Active, "mu": flowfabric.Suspended, "ms": flowfabric.Completed, "mf": flowfabric.Failed,
	"mc": flowfabric.Cancelled, "me": flowfabric.Expired, "mk": flowfabric.Skipped}

// DescribeFlow reads the header of a flow (lua/flow/ff_flow_describe.lua). ErrFlowNotFound; ErrResultPurged for one that is no longer
// retained, with its last state in slot 0.
func (e *Engine) DescribeFlow(ctx context.Context, id flowfabric.FlowID) (FlowRecord, error) {
	r, err := e.call(ctx, fnFlowDescribe, id.Partition(), protocol, id.UUID().String())
	if err != nil {
		return FlowRecord{}, err
	}
	now := r.instant()
	out := flowRecord(fields{m: r.pairs(), r: r})
	out.Now, out.ID, out.Tags = now, id, r.pairs()
	return out, r.fail()
}

// flowRecord reads the fields of a header.
func flowRecord(f fields) (out FlowRecord) {
	out.State = f.flowState("st")
	out.Seal, out.Namespace, out.Kind, out.Creator, out.Digest = sealOf(f.m["sl"]), f.m["ns"], f.m["kd"], f.m["cr"], f.m["pd"]
	out.Revision, out.CreatedAt, out.ChangedAt = uint64(f.number("rv")), f.instant("ct"), f.instant("mt")
	out.ReleasedAt, out.EndedAt, out.Cancelled = f.instant("rl"), f.instant("en"), f.instant("ca")
	out.Members, out.Edges, out.Purged = int(f.number("nn")), int(f.number("ne")), int(f.number("pu"))
	out.Failing, out.Backlog = int(f.number("lv")), int(f.number("bl"))
	out.Policy, out.CancelBy, out.Reason = flowfabric.CancellationPolicy(f.m["cp"]), f.m["cb"], f.m["cw"]
	out.Siblings = SiblingCancels{int(f.number("xc")), int(f.number("xt")), int(f.number("xn")), int(f.number("xs"))}
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
	state, ok := flowfabric.FlowStateOf(f.m[name])
	if !ok {
		f.r.stop("state of a flow %q", clip(f.m[name]))
	}
	return state
}

func (r *reader) flowState() flowfabric.FlowState {
	code := r.text()
	state, ok := flowfabric.FlowStateOf(code)
	if !ok {
		r.stop("slot %d is %q, want the state of a flow", r.at-1, clip(code))
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

// MemberRecord is a member as FlowMembers shows it.
type MemberRecord struct {
	ID        flowfabric.ExecutionID
	Number    int64 // those that depend on a member have higher ones than it
	Node      string
	State     flowfabric.State // Code is empty when there is no such execution any more
	Kind      string
	Lane      string
	Attempt   int // index of the last attempt, -1 before the first
	Category  string
	StartedAt time.Time
	EndedAt   time.Time
	Group     *GroupRecord
	Wait      *WaitRecord
	Edges     []EdgeRecord
}

// GroupRecord is what a member waits for, or waited for.
type GroupRecord struct {
	Policy                            flowfabric.GroupPolicy
	K                                 int
	CancelRest                        bool
	Total, Succeeded, Failed, Skipped int
	Pending, Satisfied, Impossible    bool
}

// WaitRecord tells of the children an execution waits for.
type WaitRecord struct {
	Mode             WaitMode
	Total, Succeeded int
	Others           int // ended without success
	Pending          bool
}

// EdgeRecord is one edge into a member.
type EdgeRecord struct {
	From    flowfabric.ExecutionID
	Input   string
	Outcome flowfabric.PublicState // how From ended; empty while it has not
	Attempt int                    // the one that ended so; -1 when there is none
	Late    bool                   // it succeeded after the group was decided: the input is not given
	Spared  bool                   // it was to be cancelled, but others need it
}

// FlowMembersPage is one page; Next is -1 behind the last.
type FlowMembersPage struct {
	Next    int64
	Members []MemberRecord
}

// FlowMembers reads members of a flow from a number on (lua/flow/ff_flow_members.lua), in an order in which whoever depends on others
// comes after them; up to limit, 1..100. A page may have fewer although there are more. ErrFlowNotFound.
func (e *Engine) FlowMembers(ctx context.Context, id flowfabric.FlowID, next int64, limit int, edges bool) (FlowMembersPage, error) {
	partition := id.Partition()
	r, err := e.call(ctx, fnFlowMembers, partition, protocol, id.UUID().String(), strconv.FormatInt(next, 10), strconv.Itoa(limit), bit(edges))
	if err != nil {
		return FlowMembersPage{}, err
	}
	out := FlowMembersPage{Next: r.number()}
	n := r.count(12)
	used := make([]string, 0, n)
	for range n {
		m, route := memberRecord(partition, r)
		out.Members, used = append(out.Members, m), append(used, route)
	}
	rows := r.pairs()
	for i, route := range used {
		parts := strings.Split(rows[route], "\x1f")
		if len(parts) == 5 {
			out.Members[i].Lane, out.Members[i].Kind = parts[1], parts[2]
		}
	}
	return out, r.fail()
}

func memberRecord(partition uint16, r *reader) (m MemberRecord, route string) {
	m.ID, m.Number, m.Node = r.id(partition), r.number(), r.text()
	code := r.text()
	m.State, _ = flowfabric.Project(flowfabric.Code(code))
	route = r.text()
	m.Attempt, m.Category, m.StartedAt, m.EndedAt = r.attempt(), r.text(), r.maybeInstant(), r.maybeInstant()
	m.Group, m.Wait = groupRecord(r.text()), waitRecord(r.text())
	for range r.count(2) {
		from, text := r.id(partition), r.text()
		parts := strings.SplitN(text, ",", 3)
		if len(parts) != 3 {
			r.stop("slot %d is %q, want an edge", r.at-1, clip(text))
			return m, route
		}
		edge := EdgeRecord{From: from, Input: parts[2], Outcome: endings[parts[0]], Attempt: -1, Late: parts[0] == "l", Spared: parts[0] == "~"}
		if n, err := strconv.Atoi(parts[1]); err == nil {
			edge.Attempt = n
		}
		m.Edges = append(m.Edges, edge)
	}
	return m, route
}

var endings = map[string]flowfabric.PublicState{"s": flowfabric.Completed, "l": flowfabric.Completed, "f": flowfabric.Failed,
	"c": flowfabric.Cancelled, "e": flowfabric.Expired, "k": flowfabric.Skipped}

// attempt reads the index of an attempt, -1 for an empty slot.
func (r *reader) attempt() int {
	text := r.text()
	if text == "" {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.stop("slot %d: %w", r.at-1, err)
	}
	return n
}

// maybeInstant reads an instant, zero for an empty slot.
func (r *reader) maybeInstant() time.Time {
	text := r.text()
	if text == "" {
		return time.Time{}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		r.stop("slot %d: %w", r.at-1, err)
	}
	return time.UnixMilli(n)
}

// groupRecord reads lib/group.lua's text, nil when there is none or it is not one.
func groupRecord(text string) *GroupRecord {
	var g GroupRecord
	var policy, after, state string
	if n, _ := fmt.Sscanf(text, "%s %d %s %d %d %d %d %s", &policy, &g.K, &after, &g.Total, &g.Succeeded, &g.Failed, &g.Skipped, &state); n != 8 {
		return nil
	}
	g.Policy, g.CancelRest = flowfabric.GroupPolicy(policy), after == "cancel"
	g.Pending, g.Satisfied, g.Impossible = state == "p", state == "s", state == "i"
	return &g
}

// waitRecord reads lib/wait.lua's text, nil when there is none or it is not one.
func waitRecord(text string) *WaitRecord {
	var w WaitRecord
	var mode, state, rest string
	if n, _ := fmt.Sscanf(text, "%s %d %d %d %s %s", &mode, &w.Total, &w.Succeeded, &w.Others, &state, &rest); n != 6 {
		return nil
	}
	w.Mode, w.Pending = WaitMode(mode), state == "p"
	return &w
}

// FlowSummary is a flow as ListFlows shows it.
type FlowSummary struct {
	ID         flowfabric.FlowID // zero when Member is no id
	Member     string            // what the list holds
	CreatedAt  time.Time
	State      flowfabric.FlowState // empty when there is no such flow: drift
	Seal       SealMode
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
func (e *Engine) ListFlows(ctx context.Context, partition uint16, newest bool, after Position, limit int) (FlowsPage, error) {
	r, err := e.call(ctx, fnFlowList, partition, append(append([]string{protocol, bit(newest)}, after.args()...), strconv.Itoa(limit))...)
	if err != nil {
		return FlowsPage{}, err
	}
	out := FlowsPage{Now: r.instant(), Size: int(r.number()), More: r.flag()}
	names := []string{"st", "sl", "ns", "kd", "rl", "en", "nn", "lv", "mb", "mw", "md", "ma", "mu", "ms", "mf", "mc", "me", "mk"}
	for range r.count(2 + len(names)) {
		x := FlowSummary{Member: r.text(), CreatedAt: r.instant()}
		f := fields{m: make(map[string]string, len(names)), r: r}
		for _, name := range names {
			f.m[name] = r.text()
		}
		if id, err := flowfabric.ParseUUID(x.Member); err == nil {
			x.ID = flowfabric.MakeFlowID(partition, id)
		}
		x.State, _ = flowfabric.FlowStateOf(f.m["st"])
		x.Seal, x.Namespace, x.Kind = sealOf(f.m["sl"]), f.m["ns"], f.m["kd"]
		x.ReleasedAt, x.EndedAt, x.Members, x.Failing = f.instant("rl"), f.instant("en"), int(f.number("nn")), int(f.number("lv"))
		x.Count = f.classes()
		out.Flows = append(out.Flows, x)
	}
	return out, r.fail()
}

// WaitMode says how many children must have ended.
type WaitMode string

// The modes.
const (
	WaitAll          WaitMode = "all"
	WaitFirst        WaitMode = "first"
	WaitFirstSuccess WaitMode = "success" // or all, when none succeeds
)

// ChildWait is what a holder waits for.
type ChildWait struct {
	Name     string // of the wait, 1..128 bytes, unique in a handler
	Mode     WaitMode
	Leave    bool         // let open children run on when the execution ends before them; they are cancelled else
	Park     bool         // give up the lease; without it the children are only made, more of the same wait follow
	Children []FlowMember // 0..100, at most 1,000 a wait; as for StageFlow, those with many edges take several calls
}

// ChildOutcome tells how a child ended.
type ChildOutcome struct {
	ID      flowfabric.ExecutionID
	Node    string
	Outcome flowfabric.PublicState // empty while it has not ended
	Attempt int                    // the one that ended so, -1 when there is none
}

// ChildrenReply answers WaitChildren. Neither Parked nor Satisfied: the children were made.
type ChildrenReply struct {
	Already   bool // a repetition: it was parked before
	Parked    bool // the lease is given up
	Satisfied bool // enough have ended; the lease is kept, and the outcomes are recorded as the step StepChildren+Name
	Outcomes  []ChildOutcome
}

// WaitChildren makes children of a held execution and waits for them (lua/flow/ff_wait_children.lua). They join the execution's flow; one
// that is not in a flow founds one. The call may be repeated; when the execution runs again it answers Satisfied.
//
// Errors: ErrFlowSealed for a flow that takes no members, ErrFlowCancelled, ErrFanIn, ErrStepLimit, those of StageFlow, and those of a fence.
// Spec 60 §9.
func (e *Engine) WaitChildren(ctx context.Context, f flowfabric.Fence, q ChildWait) (ChildrenReply, error) {
	rest := "cancel"
	if q.Leave {
		rest = "leave"
	}
	if len(q.Children) > flowfabric.MaxBatch {
		return ChildrenReply{}, fmt.Errorf("%s: %w: %d children, want at most %d a call", fnWaitChildren.name, flowfabric.ErrInvalidInput, len(q.Children), flowfabric.MaxBatch)
	}
	for n := fits(q.Children); n < len(q.Children); n = fits(q.Children) {
		first := q
		first.Children, first.Park = q.Children[:n], false
		if out, err := e.WaitChildren(ctx, f, first); err != nil || out.Parked {
			return out, err
		}
		q.Children = q.Children[n:]
	}
	args := append(fenceArgs([]string{protocol}, f), q.Name, string(q.Mode), rest, bit(q.Park), strconv.Itoa(len(q.Children)))
	args, err := memberArgs(fnWaitChildren.name, args, f.Execution.Partition(), q.Children)
	if err != nil {
		return ChildrenReply{}, err
	}
	r, err := e.call(ctx, fnWaitChildren, f.Execution.Partition(), args...)
	if err != nil {
		return ChildrenReply{}, err
	}
	out := ChildrenReply{Already: r.already}
	switch what := r.text(); what {
	case "made":
	case "parked":
		out.Parked = true
	case "satisfied":
		out.Satisfied = true
	default:
		r.stop("slot 0 is %q", clip(what))
	}
	if text := r.text(); out.Satisfied && r.err == nil {
		if out.Outcomes, err = DecodeChildren(f.Execution.Partition(), []byte(text)); err != nil {
			r.stop("%w", err)
		}
	}
	return out, r.fail()
}

// StepChildren begins the names of the steps that keep the outcomes of a wait for children; the name of the wait follows.
const StepChildren = "\x1fc:"

// DecodeChildren reads the outcomes that such a step keeps.
func DecodeChildren(partition uint16, value []byte) ([]ChildOutcome, error) {
	if len(value) == 0 {
		return nil, nil
	}
	var out []ChildOutcome
	for part := range strings.SplitSeq(string(value), "\x1f") {
		f := strings.SplitN(part, ",", 4)
		if len(f) != 4 {
			return nil, fmt.Errorf("%w: outcome of a child %q", flowfabric.ErrCorrupt, clip(part))
		}
		id, err := flowfabric.ParseUUID(f[0])
		if err != nil {
			return nil, fmt.Errorf("%w: outcome of a child: %w", flowfabric.ErrCorrupt, err)
		}
		x := ChildOutcome{ID: flowfabric.MakeExecutionID(partition, id), Node: f[3], Outcome: endings[f[1]], Attempt: -1}
		if x.Outcome == "" && f[1] != "." && f[1] != "~" {
			return nil, fmt.Errorf("%w: outcome %q of a child", flowfabric.ErrCorrupt, clip(f[1]))
		}
		if f[2] != "" {
			n, err := strconv.ParseUint(f[2], 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%w: attempt of a child: %w", flowfabric.ErrCorrupt, err)
			}
			x.Attempt = int(n)
		}
		out = append(out, x)
	}
	return out, nil
}

// inputs reads what the upstreams of a member left it, in two round trips (lua/read/ff_read_inputs.lua). An empty result is
// nil; an upstream that was purged leaves none.
func (e *Engine) inputs(ctx context.Context, id flowfabric.ExecutionID) (map[string][]byte, error) {
	r, err := e.call(ctx, fnReadInputs, id.Partition(), protocol, id.UUID().String())
	if err != nil {
		return nil, err
	}
	n := r.count(3)
	names, builds := make([]string, n), make([]func(rueidis.Client) rueidis.Completed, n)
	for i := range n {
		names[i] = r.text()
		from, attempt := r.id(id.Partition()), r.attempt()
		key := keys.Of(id.Partition()).Result(from.UUID(), uint32(max(0, attempt)))
		builds[i] = func(c rueidis.Client) rueidis.Completed { return c.B().Get().Key(key).Build() }
	}
	if err := r.fail(); err != nil {
		return nil, err
	}
	out := make(map[string][]byte, n)
	for i, answer := range e.plainAll(ctx, builds) {
		b, err := answer.AsBytes()
		if err != nil && !rueidis.IsRedisNil(err) {
			return nil, callError("read inputs", err)
		}
		out[names[i]] = b
	}
	return out, nil
}
