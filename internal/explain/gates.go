package explain

import (
	"fmt"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/ids"
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
	if key, _, ok := g.Limit(); ok {
		return "key " + plainly(key)
	}
	return "gate " + g.Name()
}

// plainly quotes a text of a caller only where it is not one plain word.
func plainly(text string) string {
	if strings.Trim(text, wordy) == "" && text != "" && len(text) <= 64 {
		return text
	}
	return quote(text)
}

const wordy = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/@_-"

// closed explains one that a gate or a limit of a key keeps waiting.
func closed(f engine.Facts, workers crew) account {
	by := gatetext.ParseClosing(f.ClosedWhy)
	a := account{at: f.ClosedUntil, timed: true}
	until, of := moment(f, f.ClosedUntil), gateNamed(by.Gate)
	sooner := ", or as soon as there is room"
	key, limit, ofKey := by.Gate.Limit()
	switch by.Kind {
	case gatetext.ClosedByAmount:
		a.reason = WhyWaitingAmount
		a.why = fmt.Sprintf("It waits for %s: %d of %d %s are used.", of, by.Used, by.Limit, plainly(by.Dimension))
		if by.Refused > 0 {
			a.why = fmt.Sprintf("It waits for %s: %d of %d %s are used, and %d more do not fit.", of, by.Used, by.Limit,
				plainly(by.Dimension), by.Refused)
			sooner = ", or as soon as there is room for them"
		}
		sooner += " (a new period, a refund, an adjustment or another limit)"
	case gatetext.ClosedByRate:
		a.reason = WhyWaitingRate
		a.why = "The maximum number of " + of + " has started in its window."
		if ofKey {
			a.why = fmt.Sprintf("%d of %d of key %s have started within %s.", limit.Rate, limit.Rate, plainly(key),
				limit.Per)
		}
		a.why += place(f)
	case gatetext.ClosedByCap:
		a.reason = WhyWaitingSlot
		a.why = "The maximum number of " + of + " runs now."
		if f.Slots > 0 {
			a.why = fmt.Sprintf("%d of %d of %s run now.", f.Slots, f.Slots, of)
		}
		a.why += place(f)
		sooner = ", or as soon as one of them ends"
		if f.Outbox > 0 {
			a.why += fmt.Sprintf(" Some may have ended: %s on the way.", reports(f.Outbox))
		}
	case gatetext.ClosedNoGate:
		a.reason = WhyNoGate
		a.why = fmt.Sprintf("It needs %s, which does not exist, and so does not run.", of)
		sooner = ", or once somebody makes that gate (admin.PutGate)"
	case gatetext.ClosedUnavailable:
		a.reason, sooner = WhyUnavailable, ""
		if by.Gate == "" {
			of = gateList(f.Route.Gates)
		}
		a.why = fmt.Sprintf("It waits for %s: no worker could find out whether there is room.", of)
	default:
		a.reason, sooner = WhyUnavailable, ""
		a.why = "It waits for " + gateList(f.Route.Gates) + because(f.ClosedWhy) + "."
	}
	if !f.ClosedUntil.After(f.Now) {
		return account{reason: WhyCheckDue, why: a.why + " It was to be checked again at " + until + ".", at: a.at,
			ticked: true, next: "A tick lets a worker check it again."}
	}
	a.next = "It is checked again at " + until + sooner + served(f, workers) + "."
	return a
}

// place says how many go first in its queue.
func place(f engine.Facts) string {
	switch f.Ahead {
	case 0:
		return " It is next."
	case 1:
		return " 1 other is ahead of it."
	}
	return fmt.Sprintf(" %d others are ahead of it.", f.Ahead)
}

// reports says how many ends a gate was not told of yet.
func reports(n int) string {
	if n == 1 {
		return "1 report is"
	}
	return fmt.Sprintf("%d reports are", n)
}

// granted explains one for which a worker is asking gates.
func granted(f engine.Facts) account {
	who := quote(ids.Worker(f.GrantedTo))
	a := account{reason: WhyGranted, at: f.GrantEnds, timed: true}
	a.why = fmt.Sprintf("Worker %s is asking whether there is room for it (%s), until %s. %s", who,
		gateList(f.Route.Gates), moment(f, f.GrantEnds), cameToWait(f))
	a.next = "The worker runs it if there is room, else returns it to its queue; if nothing comes, a tick does then."
	if !f.GrantEnds.After(f.Now) {
		a.reason, a.timed, a.ticked = WhyGrantDue, false, true
		a.next = "A tick returns it to its queue, unless the worker runs it before."
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
	a.next = "It waits for a worker again, in its old place, once an operator lets it (admin.Unhold)" + shut(f.Lane) +
		"."
	return a
}
