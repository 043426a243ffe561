package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// maxReplayBatch is how many members one call replays.
const maxReplayBatch = 64

// FlowReplay says which members [Admin.ReplayFlow] runs again, and how. The zero value: all that ended without
// success, but for those that nobody needs any more, and those that were skipped because nothing failed.
type FlowReplay struct {
	// Nodes replays these nodes instead, and of the nodes that depend on them, directly or through others, those that
	// were skipped. A node that succeeded is replayed only with Force.
	Nodes []string `json:"nodes,omitempty" jsonschema:"these instead of all that did not succeed"`
	// Everything replays also those that nobody needs any more: that ended without success, and whose dependants have
	// all got what they depend on without them, such as the losers of a race. It has no meaning beside Nodes.
	Everything bool `json:"everything,omitempty" jsonschema:"also those that nobody needs any more, such as the losers of a race"`
	// of each member; its Request names the whole request
	Replay
}

// FlowReplayed is the result of [Admin.ReplayFlow].
type FlowReplayed struct {
	Request  flowfabric.UUID `json:"request"` // see [Replay]
	Runnable int             `json:"runnable" jsonschema:"may be claimed now"`
	Blocked  int             `json:"blocked" jsonschema:"wait for what they depend on"`
	Already  int             `json:"already" jsonschema:"members that this request had replayed before"`
	// Unneeded are those that FlowReplay.Everything would have replayed, too.
	Unneeded int `json:"unneeded" jsonschema:"did not succeed, and nobody needs them any more"`
	// Kept are nodes that succeeded after a node with flow.AllEnded or flow.AnyFailed that is replayed. They stay
	// completed, with the result of what they were given then, also if that node is skipped this time. FlowReplay.Nodes
	// with Force replays them, too.
	Kept    []string      `json:"kept,omitempty" jsonschema:"nodes that stay completed behind a node that is replayed whatever came before it"`
	Refused []NodeRefusal `json:"refused,omitempty" jsonschema:"nodes that were not replayed"`
}

// NodeRefusal is one member that was not replayed.
type NodeRefusal struct {
	Node string                 `json:"node"`
	ID   flowfabric.ExecutionID `json:"id"`
	// Err matches flowfabric.ErrState (it succeeded, and Force was not said), ErrLimit,
	// ErrTerminal, ErrState (the flow still works off how its members ended, ask again), or ErrNotFound for one that
	// was purged.
	Err error `json:"-"`
	// Why is the text of Err, and Code its code.
	Why  string `json:"error" jsonschema:"why it was not"`
	Code string `json:"code,omitempty" jsonschema:"code of that error"`
}

func (r NodeRefusal) Error() string { return fmt.Sprintf("node %q: %v", r.Node, r.Err) }

// Unwrap returns Err.
func (r NodeRefusal) Unwrap() error { return r.Err }

// flows is the part of the engine behind the calls about flows. Each of them may be repeated.
type flows interface {
	link.FlowReader
	SetFlowTags(ctx context.Context, id flowfabric.FlowID, set map[string]string, remove []string) error
	ReplayFlow(ctx context.Context, id flowfabric.FlowID, q engine.Replay,
		members []flowfabric.ExecutionID) ([]engine.FlowReplayed, error)
	ListFlows(ctx context.Context, partition uint16, newest bool, after engine.Position,
		limit int) (engine.FlowsPage, error)
}

// ReplayFlow runs members of a flow that ended without success again, and so opens a flow that has ended. What
// succeeded stays as it is, and its results are used again. A skipped member waits again for those it depends on;
// what is upstream is replayed after what depends on it, so that no member misses how its upstream ends this time. A
// member waits as long as one that it needs has ended without success and is not replayed; [Admin.Why] tells which
// one that is.
//
// Nodes with flow.AllEnded or flow.AnyFailed that have ended are replayed with what they depend on, also those that
// succeeded: they wait until it has ended again. So cleanup runs again after the work, and what is for failures is
// skipped if nothing fails this time. Other nodes after them are replayed like any node: one that failed waits for
// them, and is skipped with them; one that succeeded stays completed ([FlowReplayed].Kept): its effects are out.
//
// Each member is judged alone: refusals are in the result and are no error. Calls are repeated with the same request,
// which replays no member twice; after an error the whole may be repeated with FlowReplayed.Request, which is valid
// then, too. Members are replayed 64 a call, so that some may run while others are still to be replayed.
//
// Errors: flowfabric.ErrNotFound; ErrTerminal for a cancelled flow, whose members stay cancelled (but not one that was
// cancelled with CancelFlow); ErrNotFound also for a node that the flow does not have; ErrInvalidInput for a By of
// more than 64 bytes; ErrTransport.
func (a *Admin) ReplayFlow(ctx context.Context, id flowfabric.FlowID, which FlowReplay,
	opts ...flowfabric.ActOption) (FlowReplayed, error) {
	if err := a.admitFlow("replay", id); err != nil {
		return FlowReplayed{}, err
	}
	act, err := a.act(opts)
	err = cmp.Or(err, which.check())
	r := flowReplaying{FlowReplay: which, admin: a, id: id, request: which.Replay.request()}
	r.out.Request = r.request.Request
	if err == nil {
		err = r.run(act.Noted(ctx, "replay", "flow", id.String(), which.Nodes...))
	}
	return r.out, link.AboutFlow("replay", id, err)
}

// SetFlowTags sets and removes tags of a flow in any state, all of them or none. A key in both is removed. At most 64
// tags are left; keys and values are bounded as by flowfabric.Tags. The tags of its members are their own.
//
// Errors: flowfabric.ErrInvalidInput, ErrNotFound.
func (a *Admin) SetFlowTags(ctx context.Context, id flowfabric.FlowID, set map[string]string, remove []string,
	opts ...flowfabric.ActOption) error {
	if err := a.admitFlow("set tags of", id); err != nil {
		return err
	}
	act, err := a.act(opts)
	if err == nil {
		err = a.store.SetFlowTags(act.Noted(ctx, "set tags", "flow", id.String(), tagWords(set, remove)...), id, set,
			remove)
	}
	return link.AboutFlow("set tags of", id, err)
}

func (a *Admin) admitFlow(verb string, id flowfabric.FlowID) error {
	return link.AdmitFlow(verb, id, a.conn.Closed())
}

// flowReplaying is one replay of a flow.
type flowReplaying struct {
	FlowReplay
	admin   *Admin
	id      flowfabric.FlowID
	request engine.Replay
	nodes   []engine.MemberRecord // of the flow, as it was read
	out     FlowReplayed
}

func (r *flowReplaying) run(ctx context.Context) error {
	record, nodes, err := link.ReadFlow(ctx, r.admin.store, r.id)
	if err == nil && record.Backlog > 0 { // not all that is to be skipped or cancelled is yet
		link.Drain(ctx, r.admin.store, r.id.Partition())
		record, nodes, err = link.ReadFlow(ctx, r.admin.store, r.id)
	}
	if err != nil {
		return err
	}
	if record.State == flowfabric.FlowCancelled && record.Policy != flowfabric.CancelFlow {
		return link.InWords(fmt.Sprintf("flow_cancelled: it was cancelled with %s, and its members stay as they are",
			record.Policy), denied.FlowCancelled)
	}
	r.nodes = nodes
	members, err := r.choose()
	if err != nil {
		return err
	}
	for len(members) > 0 {
		q, n := r.request, 1
		for n < min(len(members), maxReplayBatch) && members[n].force == members[0].force {
			n++
		}
		q.Force = q.Force || members[0].force
		if err := r.batch(ctx, q, members[:n]); err != nil {
			return err
		}
		members = members[n:]
	}
	return nil
}

// replayed is a member to replay. One that watches what is replayed may have succeeded.
type replayed struct {
	engine.MemberRecord
	force bool
}

// watches tells whether a member runs whatever those it depends on came to.
func watches(m engine.MemberRecord) bool {
	return m.Group != nil && (m.Group.Policy == codes.AllEnded || m.Group.Policy == codes.AnyFailed)
}

// choose returns the members to replay, in their order: first those that depend on others before these, then those that
// watch others and what ran behind them, after what they wait for, because they wait for what runs at that time.
func (r *flowReplaying) choose() (members []replayed, err error) {
	wanted, err := r.subtree()
	if err != nil {
		return nil, err
	}
	if r.Nodes == nil {
		wanted = map[flowfabric.ExecutionID]bool{}
		needed := needs(r.nodes)
		for _, m := range r.nodes {
			switch {
			case m.State.Public == "" || !m.State.Terminal() || m.State.Public == flowfabric.Completed:
			case m.State.Public == flowfabric.Skipped && m.Category == causes.NotNeeded:
			case r.Everything || needed(m.ID):
				wanted[m.ID] = true
			default:
				r.out.Unneeded++
			}
		}
	}
	var late []replayed
	anew := map[flowfabric.ExecutionID]bool{} // those that watch and may have succeeded, and what runs behind them
	for _, m := range r.nodes {               // members come after those they depend on
		among := func(set map[flowfabric.ExecutionID]bool) bool {
			return slices.ContainsFunc(m.Edges, func(e engine.EdgeRecord) bool { return set[e.From] })
		}
		switch {
		case watches(m) && wanted[m.ID]:
			late = append(late, replayed{m, false})
		case watches(m) && m.State.Terminal() && among(wanted):
			wanted[m.ID], anew[m.ID] = true, true
			late = append(late, replayed{m, true})
		case watches(m) || m.Group == nil || !m.Group.Satisfied || !among(anew):
		case wanted[m.ID]:
			anew[m.ID] = true
			late = append(late, replayed{m, false})
		case m.State.Public == flowfabric.Completed:
			r.out.Kept = append(r.out.Kept, m.Node)
		}
	}
	for _, m := range slices.Backward(r.nodes) {
		if wanted[m.ID] && !watches(m) && !anew[m.ID] {
			members = append(members, replayed{m, false})
		}
	}
	return append(members, late...), nil
}

// subtree is the nodes that were named, and the skipped ones among those that depend on them.
func (r *flowReplaying) subtree() (map[flowfabric.ExecutionID]bool, error) {
	out := map[flowfabric.ExecutionID]bool{}
	for _, name := range r.Nodes {
		i := slices.IndexFunc(r.nodes, func(m engine.MemberRecord) bool { return m.Node == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: it has no node %q", denied.NotInFlow, name)
		}
		out[r.nodes[i].ID] = true
	}
	for _, m := range r.nodes { // members come after those they depend on
		if m.State.Public != flowfabric.Skipped {
			continue
		}
		for _, e := range m.Edges {
			out[m.ID] = out[m.ID] || out[e.From]
		}
	}
	return out, nil
}

// needs tells whether the end of a member matters: nothing depends on it, or something does that has not got what it
// needs. Members that stand aside, see flowfabric.FlowState, do not count.
func needs(nodes []engine.MemberRecord) func(flowfabric.ExecutionID) bool {
	has, open := map[flowfabric.ExecutionID]bool{}, map[flowfabric.ExecutionID]bool{}
	for _, m := range nodes {
		if m.Group != nil && (m.Group.Optional || m.Group.Policy == codes.AllEnded) {
			continue
		}
		for _, e := range m.Edges {
			has[e.From] = true
			if m.Group == nil || !m.Group.Satisfied {
				open[e.From] = true
			}
		}
	}
	return func(id flowfabric.ExecutionID) bool { return open[id] || !has[id] }
}

// batch replays up to 64 members, those again whose flow still works off its backlog.
func (r *flowReplaying) batch(ctx context.Context, q engine.Replay, batch []replayed) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(r.admin.conn.SubmitTimeout))
	for {
		ids := make([]flowfabric.ExecutionID, len(batch))
		for i, m := range batch {
			ids[i] = m.ID
		}
		answers, err := r.admin.store.ReplayFlow(ctx, r.id, q, ids)
		if err != nil {
			return err
		}
		var later []replayed
		var refused []NodeRefusal
		for i, a := range answers {
			switch {
			case errors.Is(a.Err, denied.ResolutionPending):
				later = append(later, batch[i])
				refused = append(refused, NodeRefusal{batch[i].Node, ids[i], a.Err, a.Err.Error(),
					flowfabric.CodeOf(a.Err)})
				continue
			case a.Err != nil:
				r.out.Refused = append(r.out.Refused, NodeRefusal{batch[i].Node, ids[i], a.Err, a.Err.Error(),
					flowfabric.CodeOf(a.Err)})
				continue
			case a.Already:
				r.out.Already++
			}
			if a.State == flowfabric.WaitingChildren {
				r.out.Blocked++
			} else {
				r.out.Runnable++
			}
		}
		if len(later) == 0 {
			return nil
		}
		batch = later
		link.Drain(ctx, r.admin.store, r.id.Partition())
		pause := pauses.NextBackOff()
		if pause == backoff.Stop {
			r.out.Refused = append(r.out.Refused, refused...)
			return nil
		}
		select {
		case <-ctx.Done():
			r.out.Refused = append(r.out.Refused, refused...)
			return link.Ended(ctx)
		case <-time.After(pause):
		}
	}
}
