package explain

import (
	"fmt"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// blocked explains a member of a flow that waits for others.
func blocked(f engine.Facts) account {
	switch {
	case f.Flow != nil && f.Flow.State == flowfabric.FlowStaging:
		return account{reason: WhyFlowStaging,
			why: fmt.Sprintf(
				"It is node %s of flow %s, which is still being put together: nothing of a flow runs before all of it is there.",
				quote(f.Node), f.Flow.ID),
			next: "It may run once the flow is released, which the submit that stages it does (client.SubmitFlow); one that was cut short is completed by " +
				"submitting it again under its key, and given up a day after its last part came."}
	case f.Group != nil && f.Group.Pending:
		return awaitsUpstreams(f)
	}
	return resolving(f, "Nothing that it waits for is missing")
}

// resolving explains one whose next step is in the backlog of its flow.
func resolving(f engine.Facts, what string) account {
	return account{reason: WhyAwaitingBacklog, ticked: true,
		why:  fmt.Sprintf("%s: its release is queued in its flow%s.", what, of(f)),
		next: "A tick releases it."}
}

// of names the flow and how much of it is unfinished.
func of(f engine.Facts) string {
	if f.Flow == nil {
		return ""
	}
	return fmt.Sprintf(" %s (%s)", f.Flow.ID, plural(f.Flow.Backlog, "piece"))
}

func awaitsUpstreams(f engine.Facts) account {
	g, told := f.Group, tally(f.Others)
	if g.Policy == codes.AllEnded || g.Policy == codes.AnyFailed {
		return awaitsEnds(f, told)
	}
	wants := g.Total
	switch g.Policy {
	case codes.AnyOf:
		wants = 1
	case codes.Quorum:
		wants = g.K
	}
	all := f.Open == len(f.Others) // else some were not looked at
	needs := fmt.Sprintf("It needs %s: %d of %d have succeeded", policyWords(g), g.Succeeded, g.Total)
	if len(told.ended) > 0 && (f.Code != codes.BlockedReplay || f.Flow != nil && f.Flow.Backlog > 0) {
		return resolving(f, "Some of those that it depends on have ended")
	}
	if all && len(told.ended) > 0 && g.Succeeded+len(told.running)+told.succeeded < wants {
		return account{reason: WhyAwaitingReplay,
			why: fmt.Sprintf(
				"It was replayed and waits for those it depends on. %s, and %s ended without success before that and %s not replayed, without which it cannot run: %s.",
				needs, plural(len(told.ended), "upstream"), were(len(told.ended)), states64(told.ended)),
			next: "It waits until somebody replays what is needed of them (admin.ReplayFlow, or admin.Replay of each), or cancels it."}
	}
	if all && g.Succeeded+told.succeeded >= wants {
		return resolving(f, "Those that it depends on have ended")
	}
	return account{reason: WhyAwaitingOthers,
		why:  fmt.Sprintf("It waits for those it depends on. %s. %s.", needs, listed(f, "upstream", "upstreams")),
		next: "It becomes claimable in the call that ends the last one it needs; it is skipped in the call after which it can no longer get what it needs."}
}

// awaitsEnds explains one that runs whatever those it depends on come to.
func awaitsEnds(f engine.Facts, told gathered) account {
	g := f.Group
	if len(told.ended)+told.succeeded > 0 {
		return resolving(f, "Some of those that it depends on have ended")
	}
	next := "It becomes claimable in the call that ends the last of them."
	if g.Policy == codes.AnyFailed {
		next = "The call that ends the last of them makes it claimable if one did not succeed, and skips it otherwise."
	}
	return account{reason: WhyAwaitingOthers,
		why: fmt.Sprintf(
			"It waits until all that it depends on have ended, in whatever way: %d of %d have (%d succeeded, %d failed, were cancelled or expired, %d were skipped). %s.",
			g.Succeeded+g.Failed+g.Skipped, g.Total, g.Succeeded, g.Failed, g.Skipped,
			listed(f, "upstream", "upstreams")),
		next: next}
}

// policyWords is what a member needs.
func policyWords(g *engine.GroupRecord) string {
	if g.Total == 1 {
		return "its one upstream"
	}
	switch g.Policy {
	case codes.AnyOf:
		return fmt.Sprintf("any of its %s", plural(g.Total, "upstream"))
	case codes.Quorum:
		return fmt.Sprintf("%d of its %s", g.K, plural(g.Total, "upstream"))
	}
	return fmt.Sprintf("all of its %s", plural(g.Total, "upstream"))
}

// gathered sorts those that have not told how they ended.
type gathered struct {
	running, ended []engine.Other // ended without success
	succeeded      int            // ended, and that is in the backlog
}

func tally(others []engine.Other) (t gathered) {
	for _, o := range others {
		switch {
		case o.State.Public == flowfabric.Completed:
			t.succeeded++
		case o.State.Public == "" || o.State.Terminal():
			t.ended = append(t.ended, o)
		default:
			t.running = append(t.running, o)
		}
	}
	return t
}

// listed names those that are open and their states.
func listed(f engine.Facts, one, many string) string {
	if apart(f) {
		one, many = "execution", "executions"
	}
	if f.Open == 1 {
		return "1 " + one + " is open: " + states64(f.Others)
	}
	text := fmt.Sprintf("%d %s are open: %s", f.Open, many, states64(f.Others))
	if f.Open == 0 {
		return "None is open"
	}
	return text
}

// states64 names up to eight of those that were looked at.
func states64(others []engine.Other) string {
	var parts []string
	for i, o := range others {
		if i == 8 {
			parts = append(parts, fmt.Sprintf("and %d more", len(others)-i))
			break
		}
		state := string(o.State.Public)
		if o.State.Public == "" {
			state = "gone"
		}
		name := quote(o.Node)
		if o.Apart {
			name += " (" + o.ID.String() + ")"
		}
		parts = append(parts, name+" is "+state)
	}
	return strings.Join(parts, ", ")
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// barred tells one that is about to be cancelled with its flow.
func barred(f engine.Facts) bool {
	if f.Flow == nil || f.Flow.State != flowfabric.FlowCancelled || f.State.Terminal() {
		return false
	}
	return f.Flow.Policy == flowfabric.CancelAll ||
		f.Flow.Policy == flowfabric.CancelPending && f.Phase().LifecyclePhase != "active"
}

func doomed(f engine.Facts) account {
	next := "A tick cancels it; so does the claim that would take it."
	if f.Phase().LifecyclePhase == "active" {
		next = "A tick cancels it, and the worker that holds it is told."
	}
	return account{reason: WhyFlowCancelled, ticked: true,
		why: fmt.Sprintf(
			"Its flow %s was cancelled with %s at %s%s, and it is about to be: nobody is handed it any more.",
			f.Flow.ID, f.Flow.Policy,
			moment(f, f.Flow.Cancelled), reasoned(f.Flow.Reason)),
		next: next}
}

// apart tells whether one of those that are open is no child.
func apart(f engine.Facts) bool {
	return slices.ContainsFunc(f.Others, func(o engine.Other) bool { return o.Apart })
}

// children is what a wait for children wants, or for others.
func children(f engine.Facts) string {
	one, many := "child", "children"
	if apart(f) {
		one, many = "execution", "executions"
	}
	switch engine.WaitMode(f.Wait.Mode) {
	case engine.WaitFirst:
		return "the first " + one
	case engine.WaitFirstSuccess:
		return "the first " + one + " that succeeds"
	case engine.WaitFailFast:
		return "all " + many + ", or the first that does not succeed,"
	}
	return "all " + many
}
