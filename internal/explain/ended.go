package explain

import (
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
)

// over explains an execution that has ended.
func over(f engine.Facts) account {
	a := account{at: f.PurgeAt}
	if !f.PurgeAt.IsZero() && f.KeptUntil().After(f.PurgeAt) {
		a.at = f.KeptUntil()
	}
	ran := fmt.Sprintf(", after %s", plural(int(f.Attempts), "attempt"))
	if f.Attempts == 0 {
		ran = ", before it ever ran"
	}
	end := func(reason string, how string) {
		a.reason = reason
		a.why = fmt.Sprintf("It ended %s at %s%s: %s.", f.State.Public, moment(f, f.EndedAt), ran, how)
	}
	switch state := f.State.Public; {
	case state == flowfabric.Completed:
		end(WhyCompleted, fmt.Sprintf("worker %s completed it", holder(f)))
	case state == flowfabric.Failed:
		end(failed(f))
	case state == flowfabric.Cancelled:
		end(cancelled(f))
	case state == flowfabric.Expired:
		end(expired(f))
	case f.Failure.Category == causes.NotNeeded:
		end(WhySkipped,
			"nothing that it depends on failed, and it runs only if something did, or depends on what does; that fails no flow")
	default:
		how := "what it depends on can no longer be satisfied"
		if g := f.Group; g != nil {
			how += fmt.Sprintf(
				": it needed %s, of which %d succeeded, %d failed, were cancelled or expired, and %d were skipped",
				policyWords(g), g.Succeeded, g.Failed, g.Skipped)
		}
		end(WhySkipped, how)
	}
	a.next = "Nothing moves it by itself. " + replayable(f) + kept(f)
	return a
}

// failed says why there was no further retry.
func failed(f engine.Facts) (string, string) {
	last, p := failure(f), f.Policy.Retry
	switch {
	case f.Failure.Category == causes.Reclaims:
		return WhyFailedReclaimsExhausted, fmt.Sprintf(
			"%s, and it had been reclaimed %s, which is all its policy allows", last, plural(f.Reclaims, "time"))
	case f.Failure.Category == causes.WaitTimeout:
		return WhyFailedWaitTimeout, "its suspension lasted too long, which no retry follows"
	case p.MaxRetries == 0:
		return WhyFailedNoRetries, last + ", and its policy has no retries"
	case f.Retries >= p.MaxRetries:
		return WhyFailedRetriesExhausted, fmt.Sprintf("%s, and %s used up", last, allUsed(p.MaxRetries))
	case !retries(f, f.Failure.Category):
		return WhyFailedNotRetried, fmt.Sprintf("%s, which is not among the categories that its policy retries (%s)",
			last, quoted(p.Categories))
	}
	return WhyFailedPermanent, last + ", and its worker reported that as permanent"
}

func allUsed(n int) string {
	if n == 1 {
		return "its only retry is"
	}
	return fmt.Sprintf("all %d retries are", n)
}

func cancelled(f engine.Facts) (string, string) {
	switch f.CancelSource {
	case timeline.CancelTimeout:
		return WhyCancelledWaitTimeout, "its suspension lasted too long"
	case engine.CancelOperator:
		who := "an operator or producer"
		if f.CancelledBy != "" {
			who = quote(f.CancelledBy)
		}
		return WhyCancelled, who + " cancelled it" + reasoned(f.CancelReason)
	case engine.CancelFlow:
		switch f.CancelReason {
		case "sibling_quorum_satisfied":
			return WhyCancelled, "those that depend on it had got what they need from others"
		case "sibling_quorum_impossible":
			return WhyCancelled, "those that depend on it could no longer run"
		case "parent_ended":
			return WhyCancelled, "the execution that waited for it ended before it"
		case "wait_over":
			return WhyCancelled, "the execution that waited for it, among others, needs it no more"
		}
		return WhyCancelled, "its flow was cancelled" + reasoned(f.CancelReason)
	}
	return WhyCancelled,
		"its holder (" + quote(ids.Worker(f.Session)) + ") cancelled it" + reasoned(f.CancelReason)
}

// reasoned is because, also of those who said nothing.
func reasoned(text string) string {
	if text == "" {
		return " without a reason"
	}
	return because(text)
}

func expired(f engine.Facts) (string, string) {
	switch f.Failure.Category {
	case causes.WaitTimeout:
		return WhyExpiredWaitTimeout, "its suspension lasted too long"
	case causes.Timeout:
		return WhyExpiredAttemptTimeout,
			fmt.Sprintf("attempt %d ran longer than the %s it may, and no retry was left for that", f.Attempts,
				f.Policy.AttemptTimeout)
	}
	return WhyExpiredDeadline, "its deadline, " + moment(f, f.DeadlineAt) + ", had passed"
}

// replayable says whether and how it may run again.
func replayable(f engine.Facts) string {
	left := replayCap(f) - f.Replays
	force := ""
	if f.State.Public == flowfabric.Completed {
		force = ", but only if forced, because it succeeded"
	}
	switch {
	case f.Purging:
		return "It is being purged and cannot be replayed"
	case replayCap(f) == 0:
		return "Its policy allows no replay"
	case left <= 0:
		return fmt.Sprintf("It has been replayed %s, which is all its policy allows", plural(f.Replays, "time"))
	}
	return fmt.Sprintf("It may be replayed %s more (admin.Replay)%s", plural(left, "time"), force)
}

// kept says how long it is retained.
func kept(f engine.Facts) string {
	until := f.KeptUntil()
	switch {
	case f.PurgeAt.IsZero():
		return "; it is lost among what is to be purged (admin.Admin.Repair puts that right)."
	case f.Flow != nil && f.Flow.EndedAt.IsZero() && !f.Purging:
		return "; it is kept until its flow has ended, and at least until " + moment(f, f.PurgeAt) + "."
	case f.Purging:
		return "; its retention is over since " + moment(f, f.PurgeAt) + ", and the next tick purges it."
	case until.After(f.PurgeAt) && until.After(f.Now):
		return "; it is to be purged at " + moment(f, f.PurgeAt) +
			", but its lane keeps what ended for longer now: a tick then moves that to " + moment(f, until) + "."
	case !f.PurgeAt.After(f.Now):
		return "; its retention is over since " + moment(f, f.PurgeAt) + ", and the next tick purges it."
	case until.Before(f.PurgeAt):
		return "; a tick purges it after " + moment(f, f.PurgeAt) +
			", as its lane said when it ended; the lane keeps less now, which a repair applies to it."
	}
	return "; a tick purges it after " + moment(f, f.PurgeAt) + "."
}
