package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// NewFlow is a flow and the first of its members.
type NewFlow struct {
	ID        flowfabric.FlowID
	Namespace string
	Kind      string // what the application calls flows of this shape; 1..64 printable bytes without braces
	Creator   string // at most 64 bytes
	Digest    string // of the definition, ≤ 64 bytes; compared when the id exists
	// Key is one that no other flow has while this one has not ended, and of this partition; uuid.Nil: none
	Key     uuid.UUID
	Tags    map[string]string
	Members []FlowMember // 0..100 that fit into one call, see Batches
	// Members are all of them, and the flow is released; '' more are staged, or SealFlow releases it
	Mode SealMode
}

// FlowCreated answers CreateFlow and StageFlow.
type FlowCreated struct {
	Already  bool // it was there before, nothing was written
	State    flowfabric.FlowState
	Revision uint64
	Members  int
	Edges    int
	More     bool // the backlog goes on with the release, see DrainFlows; of CreateFlow
	// Other is the flow that has the key, and that the answer is about; zero: it is the flow of the call
	Other flowfabric.FlowID
}

// FlowMember is an execution that joins a flow, with all edges that lead into it.
type FlowMember struct {
	NewExecution
	Node       string // its name in the flow, 1..64 bytes without control characters
	Policy     string
	K          int  // of a quorum, 1..len(Edges)
	CancelRest bool // once its group is decided, cancel the upstreams that have not ended
	Edges      []FlowEdge
	// Share is how much a child may use of the gates of its parent, by dimension; nil: as much as the parent. Who makes
	// the children sets it aside.
	Share map[string]int64
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

// CreateFlow makes a flow and some of its members, or all of them and releases it, in one atomic call
// (lua/flow/ff_flow_create.lua). The call may be repeated, which is up to the caller: the engine makes one try. A
// flow that was released before is left as it is; one that was not is completed. A flow that is not released within a
// day is given up. If another flow that has not ended has the key, nothing is made, and the answer tells of that.
//
// denied.FlowConflict: the id belongs to a flow of another namespace, kind or digest; and the errors of StageFlow
// about members.
func (e *Engine) CreateFlow(ctx context.Context, q NewFlow) (FlowCreated, error) {
	id := ids.UUID(q.ID).String()
	if q.Key != uuid.Nil {
		id += " " + q.Key.String()
	}
	members, err := e.rowsOf(ctx, "ff_flow_create", q.ID.Partition(), q.Members)
	if err != nil {
		return FlowCreated{}, err
	}
	r, already, err := ask[wire.FlowCreateReply](ctx, e, q.ID.Partition(), wire.FlowCreate{Flow: id,
		Namespace: q.Namespace, Kind: q.Kind, Creator: cut(q.Creator, limits.MaxName), Digest: q.Digest,
		Mode: string(q.Mode), Tags: q.Tags, Members: members})
	if err != nil {
		return FlowCreated{}, err
	}
	out := FlowCreated{Already: already, Revision: uint64(r.Revision), Members: r.Members, Edges: r.Edges, More: r.More}
	if r.Flow != nil {
		out.Other = flowfabric.FlowID(mint.Join(q.ID.Partition(), *r.Flow))
	}
	out.State, err = stateOf("ff_flow_create", r.State)
	return out, err
}

// StageFlow adds 1..100 members with at most 1,000 edges each and 1 MiB of payload (lua/flow/ff_flow_stage.lua).
// Members that are there already are left alone, so the call may be repeated, which is up to the caller as with
// CreateFlow. An edge leads from a member that was staged before, or that stands earlier in the call. A non-nil
// revision is the one the flow must have. Members with few edges and tags go in by one atomic call, all or none;
// where there are so many that it would hold up the server, several calls are made, in the order of the members: see
// [StageCost].
//
// Errors name the node in their last slot: denied.SelfEdge, denied.DuplicateEdge, denied.NotInFlow, denied.FanIn,
// denied.Namespace, denied.OtherFlow, denied.Idempotency; of the flow: denied.NoFlow, denied.FlowTerminal,
// denied.FlowSealed, denied.StaleRevision, denied.FlowTooLarge; and those of CreateExecutions.
func (e *Engine) StageFlow(ctx context.Context, id flowfabric.FlowID, revision *uint64,
	members []FlowMember) (FlowCreated, error) {
	if len(members) < 1 || len(members) > limits.MaxBatch {
		return FlowCreated{}, fmt.Errorf("ff_flow_stage: %w: %d members, want 1..%d", flowfabric.ErrInvalidInput,
			len(members), limits.MaxBatch)
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

// StageCost is the largest sum in one call to the server of all edges and, for each member but the first, its tags
// and stageMember.
const (
	StageCost   = 1000
	stageMember = 8
)

// fits is how many of the first members go into one call, at least one.
func fits(members []FlowMember) int {
	cost := 0
	for i := range members {
		if i > 0 {
			cost += stageMember + len(members[i].Tags)
		}
		if cost += len(members[i].Edges); i > 0 && cost > StageCost {
			return i
		}
	}
	return len(members)
}

func (e *Engine) stage(ctx context.Context, id flowfabric.FlowID, revision *uint64,
	members []FlowMember) (FlowCreated, error) {
	rows, err := e.rowsOf(ctx, "ff_flow_stage", id.Partition(), members)
	if err != nil {
		return FlowCreated{}, err
	}
	r, already, err := ask[wire.FlowStageReply](ctx, e, id.Partition(),
		wire.FlowStage{Flow: ids.UUID(id).String(), Revision: revisionOf(revision), Members: rows})
	return FlowCreated{Already: already, Revision: uint64(r.Revision), Members: r.Members, Edges: r.Edges}, err
}

// rowsOf seals and judges members, and puts together those that are alike.
func (e *Engine) rowsOf(ctx context.Context, op string, partition uint16,
	members []FlowMember) (out wire.Members, err error) {
	if members, err = e.sealMembers(ctx, op, members); err != nil {
		return out, err
	}
	total, upstreams := 0, 0
	for i := range members {
		m := &members[i]
		if m.ID.IsZero() || m.ID.Partition() != partition {
			return out, fmt.Errorf("%s: %w: node %q: id %q is not of partition %d", op, flowfabric.ErrInvalidInput,
				m.Node, m.ID, partition)
		}
		if err := valid.Stored(&m.Start); err != nil {
			return out, fmt.Errorf("%s: node %q: %w", op, m.Node, err)
		}
		total += len(m.Payload)
		upstreams += len(m.Edges)
		for _, edge := range m.Edges {
			if edge.From.Partition() != partition {
				return out, fmt.Errorf("%s: %w: node %q: its upstream %q is not of partition %d", op, denied.NotInFlow,
					m.Node, edge.From, partition)
			}
		}
	}
	if total > limits.MaxCallBytes {
		return out, fmt.Errorf("%s: %w: the call has %d payload bytes, want at most %d", op,
			flowfabric.ErrPayloadTooLarge, total, limits.MaxCallBytes)
	}
	edges := make([]wire.MemberEdge, 0, upstreams)
	words := make(words, 0, uuidWords*(len(members)+upstreams))
	for len(members) > 0 {
		n, start := startOf(0, len(members), func(i int) *NewExecution { return &members[i].NewExecution })
		row := wire.MembersAll{Start: start, Members: make([]wire.MembersAllMember, n)}
		for i := range row.Members {
			row.Members[i].Member, edges = members[i].row(&words, edges)
		}
		out.All, members = append(out.All, row), members[n:]
	}
	return out, nil
}

// row is a member as a call has it; edges are the memory of its edges, too.
func (m *FlowMember) row(words *words, edges []wire.MemberEdge) (wire.Member, []wire.MemberEdge) {
	own := len(edges)
	for _, edge := range m.Edges {
		edges = append(edges, wire.MemberEdge{Upstream: words.uuid(ids.UUID(edge.From)), Input: edge.Input})
	}
	out := wire.Member{ID: words.uuid(ids.UUID(m.ID)), Digest: m.Digest, Payload: rueidis.BinaryString(m.Payload),
		Node: m.Node, Upstreams: cmp.Or(m.Policy, codes.AllOf), K: m.K, Satisfied: "run", Edges: edges[own:]}
	if m.CancelRest {
		out.Satisfied = "cancel"
	}
	return out, edges
}

// Batches splits members, in their order, into calls of CreateFlow, StageFlow or WaitChildren: at most 100 members,
// what [StageCost] allows and 1 MiB of payload each.
func Batches(members []FlowMember) [][]FlowMember {
	var out [][]FlowMember
	for len(members) > 0 {
		n, bytes := fits(members[:min(len(members), limits.MaxBatch)]), 0
		for i := range n {
			if bytes += len(members[i].Payload) + sealed.Room; i > 0 && bytes > limits.MaxCallBytes {
				n = i
				break
			}
		}
		out, members = append(out, members[:n]), members[n:]
	}
	return out
}

// SealFlow releases a flow, whose members may run from then on, and says how it may grow (lua/flow/ff_flow_seal.lua).
// members and edges are what the caller has staged: denied.FlowIncomplete when the flow lacks some. more: the backlog
// goes on with the release, see DrainFlows. The call may be repeated, which is up to the caller as with CreateFlow.
// denied.FlowSealed, denied.FlowTerminal, denied.NoFlow.
func (e *Engine) SealFlow(ctx context.Context, id flowfabric.FlowID, mode SealMode, members,
	edges int) (state flowfabric.FlowState, more bool, err error) {
	r, _, err := ask[wire.FlowSealReply](ctx, e, id.Partition(),
		wire.FlowSeal{Flow: ids.UUID(id).String(), Mode: string(mode), Members: members, Edges: edges})
	if err != nil {
		return "", false, err
	}
	state, err = stateOf("ff_flow_seal", r.State)
	return state, r.More, err
}

// FlowCancelled answers CancelFlow.
type FlowCancelled struct {
	Already bool // it was cancelled before: Policy and Reason are what was said then
	Policy  flowfabric.CancellationPolicy
	Reason  string
	Unended int  // members that have not ended
	More    bool // the backlog goes on, see DrainFlows
}

// CancelFlow cancels a flow (lua/flow/ff_flow_cancel.lua). From then on no member that the policy covers can be
// claimed. denied.CancellationPolicy, denied.NoFlow; denied.FlowTerminal when it has completed or failed.
func (e *Engine) CancelFlow(ctx context.Context, id flowfabric.FlowID,
	policy flowfabric.CancellationPolicy) (FlowCancelled, error) {
	r, already, err := ask[wire.FlowCancelReply](ctx, e, id.Partition(), wire.FlowCancel{Flow: ids.UUID(id).String(),
		Policy: string(policy)})
	return FlowCancelled{Already: already, Policy: flowfabric.CancellationPolicy(r.Policy), Reason: e.text(r.Reason),
		Unended: r.Unended, More: r.More}, err
}

// SetFlowTags sets and removes tags of a flow in any state, all of them or none (lua/execution/ff_set_tags.lua). A key
// in both is removed. denied.NoFlow; denied.TagKey, ErrInvalidInput for a value over 256 bytes or more than 64 tags.
func (e *Engine) SetFlowTags(ctx context.Context, id flowfabric.FlowID, set map[string]string, remove []string) error {
	of := flowfabric.ExecutionID(id)
	return e.setTags(ctx, of, wire.SetTags{Of: "flow", Sets: set, Removals: remove})
}

// DrainFlows goes on with what calls about flows left behind in a partition (lua/flow/ff_flow_drain.lua); more tells
// that something is left. Nobody has to call it, the tick does the same.
func (e *Engine) DrainFlows(ctx context.Context, partition uint16) (more bool, err error) {
	r, _, err := ask[wire.FlowDrainReply](ctx, e, partition, wire.FlowDrain{})
	return r.More, err
}

// FlowReplayed answers one item of ReplayFlow. Err is ErrNotFound, denied.NotTerminal, denied.NotInFlow,
// denied.FlowCancelled, denied.ResolutionPending, denied.ReplayNotAllowed or denied.ReplaysExhausted.
type FlowReplayed struct {
	State   flowfabric.PublicState // waiting, or waiting_children for one that waits for its upstreams
	Already bool                   // this request has replayed it before
	Err     error
}

// ReplayFlow replays 1..64 members of a flow, each judged alone (lua/flow/ff_flow_replay.lua), and so opens a flow
// that has ended. Members with many edges take several calls. q.Request must be the same in a repetition.
func (e *Engine) ReplayFlow(ctx context.Context, id flowfabric.FlowID, q Replay,
	members []flowfabric.ExecutionID) ([]FlowReplayed, error) {
	if q.Request.IsZero() {
		q.Request = mint.UUID()
	}
	out := make([]FlowReplayed, 0, len(members))
	for {
		left := members[len(out):]
		call := wire.FlowReplay{Flow: ids.UUID(id).String(), Request: q.Request.String(), Steps: q.steps(),
			Force: q.Force}
		for _, m := range left {
			call.Members = append(call.Members, ids.UUID(m).String())
		}
		answer, _, err := ask[wire.FlowReplayReply](ctx, e, id.Partition(), call)
		if err != nil {
			return nil, err
		}
		r := &reader{Reader: wire.NewReader(wire.Texts(answer.Answers), 0), op: "ff_flow_replay"}
		if n := len(answer.Answers); n < 1 || n > len(left) {
			r.Stop("%d answers to %d members", n, len(left))
			return nil, r.fail()
		}
		for r.More() {
			var x FlowReplayed
			var text string
			text, x.Already, x.Err = r.settled()
			state, _ := codes.Project(codes.Code(text))
			x.State = state.Public
			out = append(out, x)
		}
		if err := r.fail(); err != nil || len(out) == len(members) {
			return out, err
		}
	}
}
