package explain

import (
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// active explains an execution that a worker holds, or held until it was lost or revoked.
func active(f engine.Facts) account {
	switch f.Code {
	case codes.Revoked:
		return reclaimed(f, account{reason: WhyRevoked, at: f.Now,
			why: fmt.Sprintf(
				"Its lease was revoked: worker %s runs attempt %d no longer, whatever it still does counts for nothing.",
				holder(f), f.Attempts)})
	case codes.LeaseExpired:
		return reclaimed(f, dead(f))
	}
	a := account{reason: WhyActive}
	a.why = fmt.Sprintf("Worker %s runs attempt %d (%s) since %s, under a lease until %s.%s%s", holder(f), f.Attempts,
		f.AttemptType, moment(f, f.ClaimedAt), moment(f, f.LeaseExpiresAt), before(f), progress(f))
	a.next = "Its worker ends, delays or suspends it; if it fails to renew the lease, a tick requeues it" +
		lastReclaim(f) + "."
	if f.AttemptTimeoutAt.IsZero() {
		return a
	}
	a.at = f.AttemptTimeoutAt
	if f.AttemptTimeoutAt.After(f.Now) {
		a.next += " At " + moment(f, a.at) + " the attempt times out: a tick then " + timedOut(f) + "."
		return a
	}
	return account{reason: WhyAttemptTimeoutDue, why: a.why + " Its attempt timed out at " + moment(f, a.at) + ".",
		at: a.at, ticked: true, next: "A tick " + timedOut(f) + ", unless its worker ends the attempt before."}
}

// before tells of the attempt before this one.
func before(f engine.Facts) string {
	if text := failure(f); text != "" {
		return " Before, " + text + "."
	}
	return ""
}

func progress(f engine.Facts) string {
	p := f.Progress
	switch {
	case p.At.IsZero():
		return ""
	case p.Percent == nil && p.Message == "":
		return fmt.Sprintf(" It said nothing but that it was there, at %s.", moment(f, p.At))
	case p.Percent == nil:
		return fmt.Sprintf(" It said %s at %s.", quote(p.Message), moment(f, p.At))
	case p.Message == "":
		return fmt.Sprintf(" It was at %d %% at %s.", *p.Percent, moment(f, p.At))
	}
	return fmt.Sprintf(" It was at %d %% at %s: %s.", *p.Percent, moment(f, p.At), quote(p.Message))
}

// timedOut says what the retry policy makes of an attempt timeout.
func timedOut(f engine.Facts) string {
	if retries(f, "attempt_timeout") {
		return fmt.Sprintf("schedules retry %d of %d", f.Retries+1, f.Policy.Retry.MaxRetries)
	}
	return "ends it expired, as no retry is left for that"
}

// retries tells whether the policy retries a failure of a category once more.
func retries(f engine.Facts, category flowfabric.Category) bool {
	p := f.Policy.Retry
	return f.Retries < p.MaxRetries && (len(p.Categories) == 0 || slices.Contains(p.Categories, category))
}

func lastReclaim(f engine.Facts) string {
	if f.Reclaims >= reclaimCap(f) {
		return ", or rather ends it failed: it has been reclaimed " + plural(f.Reclaims, "time") +
			", which is all it may"
	}
	return ""
}

// dead explains that the session is dead: it ran out, or somebody said so.
func dead(f engine.Facts) account {
	a := account{reason: WhyLeaseExpired, at: f.LeaseExpiresAt}
	switch {
	case f.DeclaredDead != "" || f.LeaseExpiresAt.After(f.Now):
		a.reason, a.at = WhyHolderDead, f.Now
		a.why = fmt.Sprintf("The session of worker %s, which ran attempt %d, was declared dead%s.", holder(f),
			f.Attempts, because(f.DeclaredDead))
	case f.LeaseExpiresAt.IsZero():
		a.at = f.Now
		a.why = fmt.Sprintf("The session of worker %s, which ran attempt %d, is gone.", holder(f), f.Attempts)
	default:
		a.why = fmt.Sprintf("Worker %s ran attempt %d and did not renew its lease, which ran out at %s.", holder(f),
			f.Attempts, moment(f, f.LeaseExpiresAt))
	}
	return a
}

// reclaimed says what a tick does with an execution whose holder is gone.
func reclaimed(f engine.Facts, a account) account {
	a.ticked = true
	pause := ""
	if p := reclaimPause(f); p > 0 {
		pause = fmt.Sprintf(" and after a pause of %s", p)
	}
	a.next = fmt.Sprintf("A tick requeues it, as reclaim %d of at most %d%s; that uses up no retry.", f.Reclaims+1,
		reclaimCap(f), pause)
	if f.Reclaims >= reclaimCap(f) {
		a.reason = WhyReclaimsExhausted
		a.next = fmt.Sprintf(
			"A tick ends it failed (max_reclaims_exceeded): it has been reclaimed %s, which is all its policy allows.",
			plural(f.Reclaims, "time"))
	}
	return a
}
