package schedule

import (
	"time"

	cron "github.com/netresearch/go-cron"
)

// wall is a calendar rule on the clock of a zone. The rule itself is only ever asked in UTC, where every wall time
// exists once; the way to and from the zone's clock, with its jumps, is made here, by whole periods of one offset.
type wall struct {
	rule   *cron.SpecSchedule
	loc    *time.Location
	hourly bool // every hour matches: follow elapsed time
}

// periods bounds the walk over changes of the offset: 40 years with up to four a year.
const periods = 200

func (w *wall) next(t time.Time) time.Time {
	if w.hourly {
		return w.elapsed(t)
	}
	at := clock(t.In(w.loc))
	for {
		at = w.rule.Next(at)
		if at.IsZero() {
			return at
		}
		if instant := w.first(at); instant.After(t) {
			return instant // otherwise the clock shows the hour for the second time
		}
	}
}

// elapsed finds the first instant after t at which the clock shows a matching time.
func (w *wall) elapsed(t time.Time) time.Time {
	for range periods {
		local := t.In(w.loc)
		_, offset := local.Zone()
		_, end := local.ZoneBounds()
		at := w.rule.Next(clock(local))
		if at.IsZero() {
			return at
		}
		instant := at.Add(-time.Duration(offset) * time.Second)
		if end.IsZero() || instant.Before(end) {
			return instant
		}
		_, then := end.In(w.loc).Zone()
		if at := w.at(end, then); !at.IsZero() {
			return at
		}
		t = end
	}
	return time.Time{}
}

// at returns t if the clock shows a matching time then.
func (w *wall) at(t time.Time, offset int) time.Time {
	shown := t.UTC().Add(time.Duration(offset) * time.Second)
	if w.rule.Next(shown.Add(-time.Second)).Equal(shown) {
		return t.UTC()
	}
	return time.Time{}
}

// first is the first instant at which the clock shows at or later: the instant itself, the first of two, or the end of
// the jump that left it out.
func (w *wall) first(at time.Time) time.Time {
	t := at.Add(-26 * time.Hour).In(w.loc) // before it in every zone, a change of the date line included
	for range periods {
		start, end := t.ZoneBounds()
		_, offset := t.Zone()
		instant := at.Add(-time.Duration(offset) * time.Second)
		if !start.IsZero() && instant.Before(start) {
			return start.UTC()
		}
		if end.IsZero() || instant.Before(end) {
			return instant.UTC()
		}
		t = end.In(w.loc)
	}
	return time.Time{}
}

// clock is what the clock shows at t, as a time of UTC.
func clock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
