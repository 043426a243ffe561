package explain

import (
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// gateList names gates.
func gateList(gates []flowfabric.Gate) string {
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = gateNamed(g)
	}
	return strings.Join(names, ", ")
}

func gateNamed(g flowfabric.Gate) string {
	if g.IsBudget() {
		return "budget " + quote(g.Name())
	}
	if key, l, ok := g.Limit(); ok {
		return "the limit of key " + quote(key) + " (" + l.String() + ")"
	}
	return "quota " + quote(g.Name())
}

// closed explains one whose route a gate has closed for a while.
func closed(f engine.Facts, workers crew) account {
	by := engine.ParseClosing(f.ClosedWhy)
	a := account{at: f.ClosedUntil, timed: true}
	until := moment(f, f.ClosedUntil)
	sooner := "; sooner, as soon as there is room"
	switch by.Kind {
	case engine.ClosedByBudget:
		a.reason = WhyWaitingBudget
		a.why = fmt.Sprintf("It waits for budget: when %s was asked last, %d of %d %s were used.", gateNamed(by.Gate), by.Used, by.Limit, quote(by.Dimension))
		sooner += " (a new period, a refund, an adjustment or another limit)"
	case engine.ClosedByRate:
		a.reason = WhyWaitingRate
		a.why = fmt.Sprintf("It waits for %s: as many executions have started in its window as may.", gateNamed(by.Gate))
	case engine.ClosedByCap:
		a.reason = WhyWaitingSlot
		a.why = fmt.Sprintf("It waits for %s: as many executions hold a slot of it as may%s.", gateNamed(by.Gate), outOf(f.Slots))
		if f.Outbox > 0 {
			a.why += fmt.Sprintf(" Its partition still has to tell quotas what was released (%s).", plural(f.Outbox, "notice"))
		}
	case engine.ClosedNoBudget:
		a.reason = WhyNoBudget
		a.why = fmt.Sprintf("It has %s, which does not exist, and so does not run.", gateNamed(by.Gate))
		sooner = "; it runs once somebody makes that budget (admin.PutBudget)"
	case engine.ClosedNoQuota:
		a.reason = WhyNoQuota
		a.why = fmt.Sprintf("It has %s, which does not exist, and so does not run.", gateNamed(by.Gate))
		sooner = "; it runs once somebody makes that quota (admin.PutQuota)"
	default:
		a.reason = WhyGateClosed
		a.why = "It waits because one of its gates (" + gateList(f.Route.Gates) + ") closed its route" + because(f.ClosedWhy) + "."
	}
	if !f.ClosedUntil.After(f.Now) {
		return account{reason: WhyGateDue, why: a.why + " Its gates were to be asked again at " + until + ".", at: a.at, ticked: true,
			next: "A tick opens its route, and the next claim asks them."}
	}
	a.next = "Its gates are asked again at " + until + sooner + served(f, workers) + "."
	return a
}

// outOf is a number of slots, if it is known.
func outOf(slots int) string {
	if slots == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d)", slots)
}

// granted explains one whose gates a worker is asking.
func granted(f engine.Facts) account {
	who := quote(engine.Instance(f.GrantedTo))
	a := account{reason: WhyGranted, at: f.GrantEnds, timed: true}
	a.why = fmt.Sprintf("Worker %s is asking its gates (%s), with a grant until %s. %s", who, gateList(f.Route.Gates), moment(f, f.GrantEnds), cameToWait(f))
	a.next = "The worker claims it if all of them let it pass, else returns it; if nothing comes, a tick returns it then."
	if !f.GrantEnds.After(f.Now) {
		a.reason, a.timed, a.ticked = WhyGrantDue, false, true
		a.next = "A tick returns it to its queue, unless the worker claims it before."
	}
	return a
}

// held explains one that an operator keeps from being handed out.
func held(f engine.Facts) account {
	a := account{reason: WhyExecutionHeld}
	since, who := "", "An operator"
	if !f.HeldAt.IsZero() {
		since = " since " + moment(f, f.HeldAt)
	}
	if f.HeldBy != "" {
		who = "Operator " + quote(f.HeldBy)
	}
	a.why = who + " holds it" + because(f.HoldReason) + ": it is not handed out" + since + ". " + cameToWait(f)
	a.next = "It waits for a worker again, in its old place, once an operator lets it (admin.Unhold)" + shut(f.Lane) + "."
	return a
}
