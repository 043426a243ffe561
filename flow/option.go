package flow

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Option changes a flow: [Growing], [Unsealed], flowfabric.Tags, Budgets or Quotas.
type Option interface{ FlowOption() }

// NodeOption changes a node: [Input.From], [After], [AllOf], [AnyOf], [Quorum], [CancelRemaining] and [LetRun]; of package flowfabric Priority,
// Lane, Timeout, Deadline, DeadlineAt, Delay, DelayUntil, Retries, Retention, Capabilities, Tags, Budgets, Quotas and Creator. Later
// options win over earlier ones, and all of them over the definition.
type NodeOption interface{ NodeOption() }

// flowFunc and nodeFunc are the options of this package.
type (
	flowFunc func(*Flow)
	nodeFunc func(*node)
)

func (flowFunc) FlowOption() {}
func (nodeFunc) NodeOption() {}

// Growing lets the handlers of a flow add members to it, see [Children]. It still ends by itself, when no member is left.
func Growing() Option { return flowFunc(func(f *Flow) { f.mode = engine.SealGrowing }) }

// Unsealed lets everybody add members to a flow after it was submitted. It stays open until it is sealed.
func Unsealed() Option { return flowFunc(func(f *Flow) { f.mode = engine.SealOpen }) }

// After makes a node depend on others without being given their results. Together with [Input.From] of the same node it is
// one edge; a second After of it is an error.
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
	return nodeFunc(func(n *node) { n.policy, n.k = flowfabric.AnyOf, 0 })
}

// Quorum runs the node as soon as k of those it depends on have succeeded, 1..n; it is skipped once that cannot happen any
// more.
func Quorum(k int) NodeOption {
	return nodeFunc(func(n *node) { n.policy, n.k = flowfabric.Quorum, k })
}

// AllOf runs the node once all it depends on have succeeded, which is the default.
func AllOf() NodeOption {
	return nodeFunc(func(n *node) { n.policy, n.k = flowfabric.AllOf, 0 })
}

// RemainingOption says what becomes of those that are not needed any more, when a node or a wait for children is decided.
type RemainingOption interface {
	NodeOption
	ChildrenOption
}

// remaining tells whether they are cancelled.
type remaining bool

func (remaining) NodeOption()     {}
func (remaining) ChildrenOption() {}

// CancelRemaining cancels what a node with [AnyOf] or [Quorum] depends on and what has not ended, once it is decided whether the
// node runs; or, for [Children], those that are open when the wait is over, whatever ended it. A member that another undecided node still
// needs is spared. A running handler's context ends with ErrCancelled.
func CancelRemaining() RemainingOption { return remaining(true) }

// LetRun leaves them alone, which is the default. Results that come after the decision are kept, but not given to the node.
func LetRun() RemainingOption { return remaining(false) }
