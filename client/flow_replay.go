package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// maxReplayBatch is how many members one call replays.
const maxReplayBatch = 64

// FlowReplayOption changes a [Flow.Replay]: [FromNode], [Everything], [By], [Reason], [FromScratch], [Force], [ReplayRequest].
type FlowReplayOption interface{ replayFlow(q *flowReplaying) }

type flowReplaying struct {
	engine.Replay
	nodes      []string
	everything bool
}

type replayFlowFunc func(*flowReplaying)

func (f replayFlowFunc) replayFlow(q *flowReplaying) { f(q) }

// FromNode replays this node, and of the nodes that depend on it, directly or through others, those that were skipped. It may be
// given more than once. A node that succeeded is replayed only with [Force].
func FromNode(name string) FlowReplayOption {
	return replayFlowFunc(func(q *flowReplaying) { q.nodes = append(q.nodes, name) })
}

// Everything replays also those that nobody needs any more: that ended without success, and whose dependants have all got what
// they depend on without them, such as the losers of a race. It has no meaning beside [FromNode].
func Everything() FlowReplayOption {
	return replayFlowFunc(func(q *flowReplaying) { q.everything = true })
}

// FlowReplay is what became of a [Flow.Replay].
type FlowReplay struct {
	Request  uuid.UUID // see [ReplayRequest]
	Runnable int       // may be claimed now
	Blocked  int       // wait for what they depend on
	Already  int       // of the two, those that this request had replayed before
	// Unneeded are those that [Everything] would have replayed, too.
	Unneeded int
	// Refused are members that were not replayed, and why.
	Refused []NodeRefusal
}

// NodeRefusal is one member that was not replayed.
type NodeRefusal struct {
	Node string
	ID   flowfabric.ExecutionID
	// Err matches flowfabric.ErrNotTerminal, ErrReplayNotAllowed (it succeeded, and [Force] was not said), ErrReplaysExhausted,
	// ErrFlowCancelled, ErrResolutionPending (the flow still works off how its members ended, ask again), or ErrNotFound for one that
	// was purged.
	Err error
}

func (r NodeRefusal) Error() string { return fmt.Sprintf("node %q: %v", r.Node, r.Err) }

// Unwrap returns Err.
func (r NodeRefusal) Unwrap() error { return r.Err }

// Replay runs members of the flow that ended without success again, and so opens a flow that has ended. Without [FromNode] these are
// all that failed, expired, were cancelled or were skipped, but for those that nobody needs any more, see [Everything]. What
// succeeded stays as it is, and its results are used again. A skipped member waits again for those it depends on; what is upstream
// is replayed after what depends on it, so that no member misses how its upstream ends this time. A member waits as long as one
// that it needs has ended without success and is not replayed; [Client.Why] tells which one that is.
//
// Each member is judged alone: refusals are in the result and are no error. Calls are repeated with the same request, which
// replays no member twice; after an error the whole may be repeated with [ReplayRequest] and FlowReplay.Request, which is valid
// then, too. Members are replayed 64 a call, so that some may run while others are still to be replayed.
//
// Errors: flowfabric.ErrFlowNotFound; ErrFlowCancelled for a cancelled flow, whose members stay cancelled (but not one that was
// cancelled with CancelFlow); ErrNotInFlow for a node that the flow does not have; ErrInvalidInput for a By of more than 64 bytes;
// ErrTransport. Spec 60 §8.4.
func (f *Flow) Replay(ctx context.Context, opts ...FlowReplayOption) (FlowReplay, error) {
	q := flowReplaying{Replay: engine.Replay{Request: uuid.New(), By: f.client.by()}}
	for _, o := range opts {
		o.replayFlow(&q)
	}
	if err := f.admit("replay"); err != nil {
		return FlowReplay{}, err
	}
	out := FlowReplay{Request: q.Request}
	err := validateBy(q.By)
	if err == nil {
		err = f.replay(ctx, &q, &out)
	}
	return out, link.AboutFlow("replay", f.id, err)
}

func (f *Flow) replay(ctx context.Context, q *flowReplaying, out *FlowReplay) error {
	s, err := f.snapshot(ctx)
	if err == nil && s.Backlog > 0 { // not everybody who is to be skipped or cancelled is yet
		f.client.drain(ctx, f.id.Partition())
		s, err = f.snapshot(ctx)
	}
	if err != nil {
		return err
	}
	if s.State == flowfabric.FlowCancelled && s.Policy != flowfabric.CancelFlow {
		return link.InWords(fmt.Sprintf("flow_cancelled: it was cancelled with %s, and its members stay as they are", s.Policy), flowfabric.ErrFlowCancelled)
	}
	chosen, err := q.choose(&s, out)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(chosen, maxReplayBatch) {
		if err := f.replayBatch(ctx, q.Replay, batch, out); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the members to replay: those that depend on others before them.
func (q *flowReplaying) choose(s *FlowSnapshot, out *FlowReplay) ([]engine.MemberRecord, error) {
	wanted, err := q.subtree(s)
	if err != nil {
		return nil, err
	}
	if q.nodes == nil {
		wanted = map[flowfabric.ExecutionID]bool{}
		needed := needs(s)
		for _, m := range s.Nodes {
			switch {
			case m.State.Code == "" || !m.State.Terminal() || m.State.Public == flowfabric.Completed:
			case q.everything || needed(m.ID):
				wanted[m.ID] = true
			default:
				out.Unneeded++
			}
		}
	}
	var chosen []engine.MemberRecord
	for _, m := range slices.Backward(s.Nodes) {
		if wanted[m.ID] {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}

// subtree is the nodes that were named, and the skipped ones among those that depend on them.
func (q *flowReplaying) subtree(s *FlowSnapshot) (map[flowfabric.ExecutionID]bool, error) {
	out := map[flowfabric.ExecutionID]bool{}
	for _, name := range q.nodes {
		m, ok := s.Node(name)
		if !ok {
			return nil, fmt.Errorf("%w: it has no node %q", flowfabric.ErrNotInFlow, name)
		}
		out[m.ID] = true
	}
	for _, m := range s.Nodes { // whoever depends on others comes after them
		if m.State.Public != flowfabric.Skipped {
			continue
		}
		for _, e := range m.Edges {
			out[m.ID] = out[m.ID] || out[e.From]
		}
	}
	return out, nil
}

// needs tells whether the end of a member matters: nothing depends on it, or something does that has not got what it needs.
func needs(s *FlowSnapshot) func(flowfabric.ExecutionID) bool {
	has, open := map[flowfabric.ExecutionID]bool{}, map[flowfabric.ExecutionID]bool{}
	for _, m := range s.Nodes {
		for _, e := range m.Edges {
			has[e.From] = true
			if m.Group == nil || !m.Group.Satisfied {
				open[e.From] = true
			}
		}
	}
	return func(id flowfabric.ExecutionID) bool { return open[id] || !has[id] }
}

// replayBatch replays up to 64 members, those again whose flow still works off its backlog.
func (f *Flow) replayBatch(ctx context.Context, q engine.Replay, batch []engine.MemberRecord, out *FlowReplay) error {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(f.client.cfg.SubmitTimeout))
	for {
		ids := make([]flowfabric.ExecutionID, len(batch))
		for i, m := range batch {
			ids[i] = m.ID
		}
		answers, err := f.client.store.ReplayFlow(ctx, f.id, q, ids)
		if err != nil {
			return err
		}
		var later []engine.MemberRecord
		var refused []NodeRefusal
		for i, a := range answers {
			switch {
			case errors.Is(a.Err, flowfabric.ErrResolutionPending):
				later = append(later, batch[i])
				refused = append(refused, NodeRefusal{batch[i].Node, ids[i], a.Err})
				continue
			case a.Err != nil:
				out.Refused = append(out.Refused, NodeRefusal{batch[i].Node, ids[i], a.Err})
				continue
			case a.Already:
				out.Already++
			}
			if a.State == flowfabric.WaitingChildren {
				out.Blocked++
			} else {
				out.Runnable++
			}
		}
		if len(later) == 0 {
			return nil
		}
		batch = later
		f.client.drain(ctx, f.id.Partition())
		pause := pauses.NextBackOff()
		if pause == backoff.Stop {
			out.Refused = append(out.Refused, refused...)
			return nil
		}
		select {
		case <-ctx.Done():
			out.Refused = append(out.Refused, refused...)
			return link.Ended(ctx)
		case <-time.After(pause):
		}
	}
}
