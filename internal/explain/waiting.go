package explain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// waits explains an execution that could be claimed now.
func waits(f engine.Facts, workers crew) account {
	a := account{}
	came := cameToWait(f)
	lane := fmt.Sprintf("lane %s of namespace %s", quote(f.Route.Lane), quote(f.Route.Namespace))
	work := fmt.Sprintf("kind %s in %s", quote(f.Route.Kind), lane)
	switch {
	case shut(f.Lane) != "":
		a.reason = WhyLanePaused
		if f.Lane.State == string(flowfabric.LaneDisabled) {
			a.reason = WhyLaneDisabled
		}
		a.why = fmt.Sprintf("It could be claimed, but %s is %s since %s%s, and hands nothing out. %s", lane,
			f.Lane.State, moment(f, f.Lane.Since), changedBy(f.Lane), came)
		a.next = "It is handed out once somebody resumes the lane (admin.SetLane)" + served(f, workers) + "."
	case f.Ahead < 0:
		a.reason = WhyNotQueued
		a.why = "It waits for a worker, but its queue has lost it, so that no worker finds it. " + came
		a.next = "A repair of the partition (admin.Admin.Repair) puts it back."
	case !f.ClosedUntil.IsZero():
		a = closed(f, workers)
		a.why += " " + came
	case !f.Ready:
		a.reason = WhyNotOffered
		a.why =
			"It waits for a worker, but workers do not look at its queue, although its lane hands work out. " +
				came
		a.next =
			"A repair of the partition (admin.Admin.Repair) puts that right; so does the next execution of its kind."
	default:
		a = crewed(f, workers, work)
		a.why += " " + came
	}
	return a
}

// served says, of a lane that hands nothing out, whether workers would take the kind if it did.
func served(f engine.Facts, workers crew) string {
	able, unable := workers.able(f.Route)
	switch {
	case len(able) > 0:
		return fmt.Sprintf("; %s this kind from its lane", takeIt(len(able)))
	case f.Waiters > 0:
		return "; idle workers that are not listed would take it"
	case workers.blind(f.Route) != "":
		return "; whether a worker takes this kind from its lane cannot be told, " + workers.blind(f.Route)
	case len(unable) > 0:
		return fmt.Sprintf(" and a worker has the capabilities %s, which none of the %s that would take it has all of",
			quoted(f.Route.Capabilities), plural(len(unable), "live worker"))
	}
	return " and a worker starts that takes this kind from its lane" + needing(f.Route) + ": no live one does"
}

func takeIt(n int) string {
	if n == 1 {
		return "1 live worker takes"
	}
	return strconv.Itoa(n) + " live workers take"
}

// changedBy names who changed a lane last.
func changedBy(l engine.Lane) string {
	if l.By == "" {
		return ""
	}
	return ", last changed by " + quote(l.By)
}

// shut says that what becomes claimable is not handed out.
func shut(l engine.Lane) string {
	if l.State != string(flowfabric.LanePaused) && l.State != string(flowfabric.LaneDisabled) {
		return ""
	}
	return fmt.Sprintf(", but its lane %s is %s and hands nothing out", quote(l.Lane), l.State)
}

// crewed explains one that claims can find: it depends on the workers.
func crewed(f engine.Facts, workers crew, work string) account {
	place := "it is the first in its queue"
	if f.Ahead > 0 {
		place = plural(f.Ahead, "other") + " in its queue"
		if f.Ahead == 1 {
			place += " is ahead of it"
		} else {
			place += " are ahead of it"
		}
	}
	able, unable := workers.able(f.Route)
	switch {
	case len(able) > 0 && blockedBy(able):
		_, stuck, slots := slotsOf(able)
		return account{reason: WhyWaitingStuck,
			why: fmt.Sprintf(
				"It waits for a slot: %s %s, and handlers that ignore the end of their context had %d of %s when last heard of; %s.",
				plural(len(able), "live worker"), take(len(able), work), stuck, plural(slots, "slot"), place),
			next: "It is claimed once such a handler returns, its process is restarted (the worker's log and flowfabric_stuck_handlers tell which), or a worker starts that takes this kind from this lane" + needing(f.Route) + "."}
	case len(able) > 0:
		a := account{reason: WhyWaitingNext,
			why: fmt.Sprintf("It waits to be claimed: %s; %s.", ready(able, f.Route, work), place)}
		a.next = "The next claim of such a worker takes it."
		if f.Ahead > 0 {
			a.reason = WhyWaitingBehind
			a.next = "A worker claims it when its turn comes; a higher priority (admin.SetPriority) moves it forward."
		}
		return a
	case f.Waiters > 0: // who asks for its route can run it, whatever the registry knows
		return account{reason: WhyWaitingUnregistered,
			why: fmt.Sprintf("It waits for a worker: %s waiting for %s; %s.",
				areIdle(f.Waiters), work, place), next: "Such a worker claims it, if it still lives."}
	case workers.blind(f.Route) != "":
		return account{reason: WhyWaitingUnlisted,
			why: fmt.Sprintf("It waits for a worker for %s; %s. Whether there is one cannot be told, %s.",
				work, place, workers.blind(f.Route)), next: "A worker that takes it claims it."}
	case len(unable) == 0:
		return account{reason: WhyWaitingNoWorker,
			why: fmt.Sprintf("It waits for a worker: no live worker takes %s; %s.", work, place),
			next: "It is claimed once a worker starts that takes this kind from this lane" + needing(f.Route) + "." +
				workers.instead(f.Route)}
	}
	one := closest(unable, f.Route)
	if version, others := pinned(engine.Lacks(one.WorkerInfo, f.Route)); version != "" && len(others) == 0 {
		return account{reason: WhyWaitingNoCapability,
			why: fmt.Sprintf("It waits for version %s of the application, which no live worker has: %s %s, %s; %s.",
				quote(version), plural(len(unable), "live worker"), take(len(unable), work), versionsOf(unable), place),
			next: "It is claimed once a worker starts that takes this kind from this lane" + needing(f.Route) + "."}
	}
	return account{
		reason: WhyWaitingNoCapability,
		why: fmt.Sprintf(
			"It waits for a capable worker: %s %s, but none has all of its capabilities (%s): %s, which comes closest, lacks %s; %s.",
			plural(len(unable), "live worker"), take(len(unable), work), quoted(f.Route.Capabilities),
			quote(one.Instance), quoted(engine.Lacks(one.WorkerInfo, f.Route)), place),
		next: "It is claimed once a worker starts that takes this kind from this lane" + needing(f.Route) + ".",
	}
}

func take(n int, work string) string {
	if n == 1 {
		return "takes " + work
	}
	return "take " + work
}

func areIdle(n int) string {
	if n == 1 {
		return "no live worker is listed that can run it, but 1 idle worker is"
	}
	return fmt.Sprintf("no live worker is listed that can run it, but %d idle workers are", n)
}

// needing says what else a worker must have.
func needing(r engine.Route) (text string) {
	version, others := pinned(r.Capabilities)
	if version != "" {
		text = " and is of version " + quote(version)
	}
	if len(others) > 0 {
		text += " and has the capabilities " + quoted(others)
	}
	return text
}

// pinned splits capabilities into the version that one of them asks for, and the others.
func pinned(capabilities []string) (version string, others []string) {
	for _, token := range capabilities {
		if v, is := strings.CutPrefix(token, valid.VersionCapability); is && version == "" {
			version = v
		} else {
			others = append(others, token)
		}
	}
	return version, others
}

// versionsOf says of which versions workers are.
func versionsOf(workers []flowfabric.Worker) string {
	var all []string
	for _, w := range workers {
		if w.Version != "" {
			all = append(all, w.Version)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return "without a version"
	}
	return "of version " + quoted(all)
}

// cameToWait says what happened before.
func cameToWait(f engine.Facts) string {
	switch f.Code {
	case codes.WaitingFirst, codes.GrantedFirst, codes.HeldFirst:
		if f.Continues > 0 {
			return fmt.Sprintf("It goes on with another input, for the %s time: steps, waits and retries start over.",
				nth(f.Continues))
		}
		return "It has never run."
	case codes.WaitingRetry, codes.GrantedRetry, codes.HeldRetry:
		return fmt.Sprintf("Its retry %d of %d is due, because %s.", f.Retries, f.Policy.Retry.MaxRetries, failure(f))
	case codes.WaitingReplay, codes.GrantedReplay, codes.HeldReplay:
		if f.Rewinds > 0 {
			return "It was rewound, and goes on again from an earlier step."
		}
		return fmt.Sprintf("It was replayed, for the %s time of at most %d.", nth(f.Replays), replayCap(f))
	case codes.WaitingReclaim, codes.GrantedReclaim, codes.HeldReclaim:
		return fmt.Sprintf("Its worker %s was lost, %s; this is reclaim %d of at most %d.", holder(f), failure(f),
			f.Reclaims, reclaimCap(f))
	}
	switch f.Released {
	case engine.ReleasedBack:
		return fmt.Sprintf("Its worker %s handed it back, and attempt %d goes on.", holder(f), f.Attempts)
	case engine.ReleasedDelayed:
		if f.Service != "" {
			return fmt.Sprintf("It waited for its turn at service %s, which is near, and attempt %d goes on.",
				plainly(f.Service), f.Attempts)
		}
		return fmt.Sprintf("The delay that worker %s asked for is over, and attempt %d goes on.", holder(f), f.Attempts)
	case engine.ReleasedSuspended:
		return fmt.Sprintf("It was resumed%s, and attempt %d goes on.", resumedBy(f), f.Attempts)
	}
	return fmt.Sprintf("Attempt %d goes on with the next claim.", f.Attempts)
}

// resumedBy says what ended the last suspension.
func resumedBy(f engine.Facts) string {
	if f.Suspension == nil {
		return ""
	}
	who := ""
	if f.ResumedBy != "" {
		who = " " + quote(f.ResumedBy)
	}
	switch f.Suspension.Trigger {
	case "signal":
		return " by a signal"
	case "operator":
		return " by operator" + who
	case "auto_resume":
		return " by a policy" + who
	case "timeout":
		return " by the timeout of its suspension"
	}
	return ""
}

func reclaimCap(f engine.Facts) int {
	if f.Policy.MaxReclaims == 0 {
		return limits.DefaultMaxReclaims
	}
	return f.Policy.MaxReclaims
}

// reclaimPause is how long the next reclaim waits: nothing for the first, then 1, 2, 4 … 60 s. The library decides it
// (lua/lib/policy.lua).
func reclaimPause(f engine.Facts) time.Duration {
	if f.Reclaims == 0 || f.Code == codes.Revoked {
		return 0
	}
	return min(time.Minute, time.Second<<min(f.Reclaims-1, 6))
}

func replayCap(f engine.Facts) int {
	switch f.Policy.MaxReplays {
	case 0:
		return 10
	case -1:
		return 0
	}
	return f.Policy.MaxReplays
}

func nth(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// delayed explains an execution that becomes claimable later.
func delayed(f engine.Facts) account {
	a := account{at: f.DelayUntil, timed: true}
	until, due, sooner := moment(f, f.DelayUntil), !f.DelayUntil.After(f.Now), false
	past := func(then, now string) string {
		if due {
			return then
		}
		return now
	}
	switch f.Code {
	case codes.RetryBackoff:
		a.reason = WhyRetryBackoff
		a.why = fmt.Sprintf("It "+past("paused until %s and is due for", "pauses until %s before")+
			" retry %d of %d, because %s.", until, f.Retries, f.Policy.Retry.MaxRetries, failure(f))
	case codes.ReclaimBackoff:
		a.reason = WhyReclaimBackoff
		a.why = fmt.Sprintf("It "+past("paused until %s and is due for", "pauses until %s before")+
			" reclaim %d of at most %d, because workers were lost while they ran it: its handler may be the cause. "+
			"The last was %s; %s.", until, f.Reclaims, reclaimCap(f), holder(f), failure(f))
	case codes.ResumeDelay:
		a.reason = WhyResumeDelay
		a.why = fmt.Sprintf("It was resumed%s, with a delay until %s"+past(", and is due", "")+".", resumedBy(f), until)
	case codes.DelayedInterrupted:
		a.reason = WhyDelayedByWorker
		a.why = fmt.Sprintf("Its handler on worker %s delayed attempt %d until %s"+past(", and it is due", "")+".",
			holder(f), f.Attempts, until)
		if f.Service != "" {
			a.reason, a.why = WhyWaitingTurn, turn(f)
			sooner = f.HeldAt.IsZero()
		}
	default:
		a.reason = WhyDelayed
		a.why = fmt.Sprintf("It was created with a delay until %s"+past(", is due,", "")+" and has never run.", until)
		if f.KeyHeld == "until_claimed" {
			a.reason = WhyDebounced
			a.why += " " + debounced(f)
		}
	}
	if !f.HeldAt.IsZero() {
		who := "an operator"
		if f.HeldBy != "" {
			who = "operator " + quote(f.HeldBy)
		}
		a.why += " That time was set by " + who + " at " + moment(f, f.HeldAt) + because(f.HoldReason) + "."
	}
	a.next = "Then a tick makes it claimable" + shut(f.Lane) + "."
	if sooner {
		a.next = "It goes on when its turn is near, at the latest at " + until + shut(f.Lane) + "."
	}
	if due {
		a.reason, a.next, a.ticked = WhyDelayDue, "A tick makes it claimable"+shut(f.Lane)+".", true
	}
	return a
}

// turn says where one is in the line of a service.
func turn(f engine.Facts) string {
	t, at := f.Turn, "its turn at service "+plainly(f.Service)
	closed := ""
	if t.ClosedUntil.After(f.Now) {
		closed = " That refused calls, and nobody calls it until " + moment(f, t.ClosedUntil) + "."
	}
	switch {
	case errors.Is(f.TurnErr, denied.NoGate):
		return "It waits for " + at + ", which has no gate any more: nobody lets a call pass."
	case f.TurnErr != nil:
		return "It waits for " + at + ". Its place there cannot be told, because of " + quote(f.TurnErr.Error()) + "."
	case t.Place == 0:
		return "It waits for " + at + ", where it has no place in line: it gets one when it asks again." + closed
	}
	var wants []string
	for _, dim := range slices.Sorted(maps.Keys(t.Wants)) {
		if dim != "requests" || len(t.Wants) == 1 {
			wants = append(wants, fmt.Sprintf("%d %s", t.Wants[dim], dim))
		}
	}
	what := ""
	if len(wants) > 0 {
		what = ", for " + strings.Join(wants, ", ")
	}
	return fmt.Sprintf("It waits for %s%s: %s of %d, about %s.%s", at, what, nth(t.Place), t.Waiting,
		max(time.Second, t.Retry.Round(time.Second)), closed)
}

// debounced says what a key that debounces has to do with the delay of an execution.
func debounced(f engine.Facts) string {
	if f.Replaced == 0 {
		return "It is debounced: another submit under its key replaces the input and delays it again."
	}
	return fmt.Sprintf(
		"It is debounced: its input is that of the last of %d submits. Another one replaces the input and delays it again.",
		f.Replaced+1)
}
