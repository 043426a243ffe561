package flow

import (
	"maps"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Option changes a flow: [Growing], [Unsealed], flowfabric.Tags and Gates.
type Option interface{ FlowOption() }

// NodeOption changes a node: [Input.From], [After], [AllOf], [AnyOf], [Quorum], [AllEnded], [AnyFailed],
// [CancelRemaining], [Share] and [Streamed]; of package flowfabric Priority, Lane, Timeout, Deadline, DeadlineAt,
// Delay, DelayUntil, Retries, Retention, Capabilities, Tags, Gates, LimitKey and Creator. Later options win over
// earlier ones, and all of them over the definition.
type NodeOption interface{ NodeOption() }

// flowFunc and nodeFunc are the options of this package.
type (
	flowFunc func(*Flow)
	nodeFunc func(*node)
)

func (flowFunc) FlowOption() {}
func (nodeFunc) NodeOption() {}

// Growing lets the handlers of a flow add members to it, see [Children]. It still ends by itself, when no member is
// left.
func Growing() Option { return flowFunc(func(f *Flow) { f.mode = engine.SealGrowing }) }

// Unsealed lets everybody add members to a flow after it was submitted. It stays open until it is sealed.
func Unsealed() Option { return flowFunc(func(f *Flow) { f.mode = engine.SealOpen }) }

// After makes a node depend on others without being given their results. Together with [Input.From] of the same node
// it is one edge; a second After of it is an error.
func After(nodes ...Upstream) NodeOption {
	return nodeFunc(func(n *node) {
		for _, up := range nodes {
			if up == nil {
				n.after(nil)
				continue
			}
			n.after(up.upstream())
		}
	})
}

// AnyOf runs the node as soon as one of those it depends on has succeeded; it is skipped when none did.
func AnyOf() NodeOption {
	return nodeFunc(func(n *node) { n.policy, n.k = codes.AnyOf, 0 })
}

// Quorum runs the node as soon as k of those it depends on have succeeded, 1..n; it is skipped once that cannot
// happen any more.
func Quorum(k int) NodeOption {
	return nodeFunc(func(n *node) { n.policy, n.k = codes.Quorum, k })
}

// AllEnded runs the node once all it depends on have ended: completed, failed, cancelled, expired or skipped. So it is
// what cleanup wants. It is never skipped. handler.Task.Upstreams tells its handler what they came to, and
// handler.Given what those that succeeded left.
//
// Such a node stands aside: whether the flow has completed or failed is decided as if it did not depend on them. A
// flow whose work failed has failed, whatever its cleanup came to; and one whose cleanup failed has failed, too. A
// flow that is cancelled cancels these nodes with all others. If an upstream is replayed before the node became
// ready, the node waits for it again; later a replay of the node itself waits for those that run again, which
// admin.ReplayFlow sees to.
func AllEnded() NodeOption {
	return nodeFunc(func(n *node) { n.policy, n.k = codes.AllEnded, 0 })
}

// AnyFailed is [AllEnded] for a node that is only needed when something went wrong: it runs once all it depends on
// have ended, if at least one of them did not succeed. If all succeeded it is skipped, and so is what depends on it.
// Such a skip fails no flow and runs no other AnyFailed node.
func AnyFailed() NodeOption {
	return nodeFunc(func(n *node) { n.policy, n.k = codes.AnyFailed, 0 })
}

// Share is how much a child ([Child]) may use of its parent's gates, by dimension: 1..8 dimensions, 1..2^53-1 of each.
// It is set aside in these gates before the child is made (handler.Task.WaitChildren), so nobody else uses it up, and
// counts as used. What the child reserves and spends there is drawn from it, and needs no other room; what is beyond it
// is refused, with an error that wraps flowfabric.ErrOverBudget, whatever the gate says of itself. Shares of its
// own children are parts of its share, and what these leave is in it again; what children without a share use is not
// drawn from it. What is left is given back when the child has ended, at the latest two minutes later. If a gate begins
// a new period meanwhile, the share is still the most that the child may use, but the room there is not set aside any
// more. A gate that counts no amounts ignores it, and without gates it bounds nothing. A node of a flow has no parent,
// and is refused.
func Share(amounts map[string]int64) NodeOption {
	return nodeFunc(func(n *node) {
		if n.share = maps.Clone(amounts); n.share == nil {
			n.share = map[string]int64{}
		}
	})
}

// Streamed shows the output of a [Child] in that of the execution that waits for it: tails of the latter have the
// child's events among their own (stream.TailEvent.Child), until the child has ended, and those of the children that it
// shows itself, four levels down. Before handler.Task.WaitChildren makes the children it records, once, which of them
// are shown, as a step "streamed: " and the name of the wait, which has at most 118 bytes then. A node of a flow that
// is no Child refuses it, with flowfabric.ErrInvalidInput.
func Streamed() NodeOption { return nodeFunc(func(n *node) { n.streamed = true }) }

// RemainingOption is an option of a node and of a set of children: [CancelRemaining].
type RemainingOption interface {
	NodeOption
	ChildrenOption
}

// remaining is CancelRemaining.
type remaining struct{}

func (remaining) NodeOption()     {}
func (remaining) ChildrenOption() {}

// CancelRemaining cancels what the node depends on and what has not ended, once it is decided whether the node runs:
// with [AnyOf] and [Quorum] when enough have succeeded, and with them and [AllOf] when enough cannot succeed any
// more, so that a flow fails fast. For [Children] it cancels those that are open when the wait is over, whatever
// ended it. A member that another undecided node still needs is spared; [AllEnded] and [AnyFailed] need none. A
// running handler's context ends with ErrCancelled.
func CancelRemaining() RemainingOption { return remaining{} }
