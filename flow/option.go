package flow

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// FlowOption changes a flow.
type FlowOption interface{ flow(*Flow) }

// Option changes a node. Later options win over earlier ones, and all of them over the definition.
type Option interface{ node(*node) }

type flowFunc func(*Flow)

func (o flowFunc) flow(f *Flow) { o(f) }

type nodeFunc func(*node)

func (o nodeFunc) node(n *node) { o(n) }

// Growing lets the handlers of a flow add members to it, see [Children]. It still ends by itself, when no member is left.
func Growing() FlowOption { return flowFunc(func(f *Flow) { f.mode = engine.SealGrowing }) }

// Unsealed lets everybody add members to a flow after it was submitted. It stays open until it is sealed.
func Unsealed() FlowOption { return flowFunc(func(f *Flow) { f.mode = engine.SealOpen }) }

// TagsOption is [Tags], an option of a flow and of a node.
type TagsOption interface {
	FlowOption
	Option
}

type tags map[string]string

func (t tags) flow(f *Flow) { f.tags = t }
func (t tags) node(n *node) { n.item.Tags = t }

// Tags are stored with a flow, or with the execution of a node and handed to its handler, as with client.Tags: at most 64. A
// key such as team.region is two or more words of a-z, 0-9 and _, joined by dots, beginning with a letter, at most 64 bytes; a
// value has at most 256 bytes. The map must not change until the flow was submitted.
func Tags(t map[string]string) TagsOption { return tags(t) }

// After makes a node depend on others without being given their results. Together with [Input.From] of the same node it is
// one edge; a second After of it is an error.
func After(nodes ...Upstream) Option {
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
func AnyOf() Option {
	return nodeFunc(func(n *node) { n.policy, n.k = flowfabric.AnyOf, 0 })
}

// Quorum runs the node as soon as k of those it depends on have succeeded, 1..n; it is skipped once that cannot happen any
// more.
func Quorum(k int) Option {
	return nodeFunc(func(n *node) { n.policy, n.k = flowfabric.Quorum, k })
}

// AllOf runs the node once all it depends on have succeeded, which is the default.
func AllOf() Option {
	return nodeFunc(func(n *node) { n.policy, n.k = flowfabric.AllOf, 0 })
}

// CancelRemaining cancels what a node with [AnyOf] or [Quorum] depends on and what has not ended, once it is decided whether the
// node runs. A member that another undecided node still needs is spared. A running handler's context ends with ErrCancelled.
func CancelRemaining() Option { return nodeFunc(func(n *node) { n.cancel = true }) }

// LetRun leaves them alone, which is the default. Results that come after the decision are kept, but not given to the node.
func LetRun() Option { return nodeFunc(func(n *node) { n.cancel = false }) }

// Priority is 0 (default) to 9000; higher is claimed first, within a partition. A value outside is refused.
func Priority(n int) Option { return nodeFunc(func(x *node) { x.item.Priority = n }) }

// Delay keeps the node from being claimed for d, 0..10 years in whole milliseconds, from when what it depends on allows it to run.
func Delay(d time.Duration) Option {
	return nodeFunc(func(n *node) { n.item.Delay, n.item.DelayUntil = d, time.Time{} })
}

// DelayUntil keeps the node from being claimed before t on the server's clock, at most 10 years ahead. A time that has passed
// means no delay.
func DelayUntil(t time.Time) Option {
	return nodeFunc(func(n *node) { n.item.Delay, n.item.DelayUntil = 0, t })
}

// Deadline ends the node as expired when it has not ended d after the flow was submitted (a child: after it was made), also
// while it waits for what it depends on: 1 ms to 10 years. 0 takes back the deadline of the definition.
func Deadline(d time.Duration) Option {
	return nodeFunc(func(n *node) { n.item.Deadline, n.item.DeadlineAt = d, time.Time{} })
}

// DeadlineAt is [Deadline] as an instant on the server's clock, at most 10 years ahead.
func DeadlineAt(t time.Time) Option {
	return nodeFunc(func(n *node) { n.item.Deadline, n.item.DeadlineAt = 0, t })
}

// Lane overrides the definition's lane: 1..64 printable ASCII bytes without braces.
func Lane(name string) Option { return nodeFunc(func(n *node) { n.item.Lane = name }) }

// Retention overrides for how long the execution is kept after its end, see handler.Retention: whole seconds, 1 s..10 years.
// 0 takes back what the definition says. While the flow has not ended its members stay anyway.
func Retention(d time.Duration) Option {
	return nodeFunc(func(n *node) { n.item.Policy.Retention = d })
}

// Retries overrides how often the node is tried again after a failed attempt, see client.Retries: 0..1000.
func Retries(n int) Option {
	return nodeFunc(func(x *node) { x.item.Policy.Retry.MaxRetries = n })
}

// Timeout overrides how long one attempt of the node may run, see handler.Timeout: 1 ms..10 years. 0 takes back what the definition says.
func Timeout(d time.Duration) Option {
	return nodeFunc(func(n *node) { n.item.Policy.AttemptTimeout = d })
}

// Capabilities replaces the definition's required capabilities: a worker claims the node only if it has all of them. At most
// 256 tokens and 4,096 bytes.
func Capabilities(tokens ...string) Option {
	return nodeFunc(func(n *node) { n.item.Capabilities = tokens })
}

// GatesOption is [Budgets] or [Quotas], an option of a flow and of a node.
type GatesOption interface {
	FlowOption
	Option
}

type gates func([]flowfabric.Gate) []flowfabric.Gate

func (g gates) flow(f *Flow) { f.gates = g(f.gates) }
func (g gates) node(n *node) { n.item.Gates = g(n.item.Gates) }

// Budgets names the budgets that must have room before the node runs, at most 16, instead of those of its definition. Of a flow: in
// addition to their own, for all nodes. client.SubmitFlow refuses a flow whose budgets do not exist; of a child nobody asks before
// it is to run, and it waits then.
func Budgets(names ...string) GatesOption {
	return gates(func(g []flowfabric.Gate) []flowfabric.Gate { return flowfabric.WithBudgets(g, names...) })
}

// Quotas names the quotas that must admit the node before it runs, at most 8, as [Budgets] does budgets.
func Quotas(names ...string) GatesOption {
	return gates(func(g []flowfabric.Gate) []flowfabric.Gate { return flowfabric.WithQuotas(g, names...) })
}

// Creator is a note of who made the node, at most 64 bytes. Default: who submits the flow, or the execution whose child it is.
func Creator(name string) Option { return nodeFunc(func(n *node) { n.item.Creator = name }) }
