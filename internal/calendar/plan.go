package calendar

import (
	"time"

	"github.com/flowfabric/flowfabric-go/schedule"
)

// grace is how late an instant may be under [schedule.CatchUpSkip].
const grace = time.Minute

// slice bounds the instants that one step looks at, so that years of missed seconds are counted in pieces.
const slice = 10000

// Step is what one call does to a schedule: it counts the missed instants, submits the one of Fire (none if zero), and
// moves on to Then (never again if zero). The instants from the schedule's next one up to Then are exactly those of
// Missed and Fire.
type Step struct {
	Missed schedule.Missed
	Fire   time.Time
	Then   time.Time
}

// Plan makes the next step of a schedule whose oldest instant that was neither fired nor missed is next, and which
// was last resumed at resumed (zero: never). It is false when nothing is due at now. One step looks at 10,000
// instants at most; steps are made until nothing is due.
func Plan(d schedule.Definition, next, resumed, now time.Time) (Step, bool) {
	if next.IsZero() || next.After(now) {
		return Step{}, false
	}
	d = withDefaults(d)
	if next.Before(resumed) {
		return skip(d, next, now, Paused, func(at time.Time) bool { return at.Before(resumed) }), true
	}
	switch d.CatchUp {
	case schedule.CatchUpAll:
		return Step{Fire: next, Then: Next(d, next)}, true
	case schedule.CatchUpSkip:
		fresh := now.Add(-grace)
		step := skip(d, next, now, Late, func(at time.Time) bool { return at.Before(fresh) })
		if step.Missed.Count < slice && !step.Then.IsZero() && !step.Then.After(now) {
			step.Fire, step.Then = step.Then, Next(d, step.Then)
		}
		return step, true
	}
	step := skip(d, next, now, Late, func(at time.Time) bool {
		later := Next(d, at)
		return !later.IsZero() && !later.After(now)
	})
	if step.Missed.Count < slice {
		step.Fire, step.Then = step.Then, Next(d, step.Then)
	}
	return step, true
}

// skip counts the due instants from next on as missed, as long as they are to be.
func skip(d schedule.Definition, next, now time.Time, reason string, missed func(time.Time) bool) Step {
	step := Step{Then: next}
	for !step.Then.IsZero() && !step.Then.After(now) && step.Missed.Count < slice && missed(step.Then) {
		if step.Missed.Count == 0 {
			step.Missed.From, step.Missed.Reason = step.Then, reason
		}
		step.Missed.To = step.Then
		step.Missed.Count++
		step.Then = Next(d, step.Then)
	}
	return step
}

// Unfired counts the instants from next up to now, at most a million of them, as missed for a reason: what is left
// behind when a schedule gets other times.
func Unfired(d schedule.Definition, next, now time.Time, reason string) (all schedule.Missed) {
	for range 100 {
		step := skip(d, next, now, reason, func(time.Time) bool { return true })
		if step.Missed.Count == 0 {
			break
		}
		if all.Count == 0 {
			all = schedule.Missed{From: step.Missed.From, Reason: reason}
		}
		all.To, next = step.Missed.To, step.Then
		all.Count += step.Missed.Count
	}
	return all
}
