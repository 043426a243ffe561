package httpapi

import (
	"cmp"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	measured "github.com/flowfabric/flowfabric-go/internal/times"
)

// times tells how long attempts waited and ran.
func (c *call) times() (none apiv1.Times, err error) {
	q := c.query()
	ask, byKind := q.times(time.Now()), q.flag("by_kind")
	if ask.Kind != engine.EveryKind && byKind {
		q.wrong("by_kind", "it is true, and kind names one")
	}
	if q.err != nil {
		return none, q.err
	}
	if named := q.text("namespace"); named == engine.AllSpaces && len(c.who.Namespaces) == 0 {
		ask.Namespace = engine.AllSpaces
	} else if ask.Namespace, err = c.namespace(named); err != nil {
		return none, err
	}
	ask.Namespace = cmp.Or(ask.Namespace, c.h.conn.Namespace)
	out, kinds, err := measured.Read(c.ctx(), c.h.conn.Engine, ask)
	if err != nil || !byKind {
		return out, err
	}
	if n := (len(kinds) + 1) * ask.Minutes; n > measured.MostByKind {
		return none, invalid("since", "it asks for %d minutes of %d kinds, want at most %d minutes in all", ask.Minutes,
			len(kinds)+1, measured.MostByKind)
	}
	out.Kinds, err = measured.ByKind(c.ctx(), c.h.conn.Engine, ask, kinds)
	return out, err
}

// times reads which minutes are asked for: those that since and until are in and all between.
func (q *query) times(now time.Time) measured.Query {
	since, until := q.instant("since"), q.instant("until")
	if until.IsZero() {
		until = now
	}
	if since.IsZero() {
		since = until.Add(-time.Hour + time.Minute)
	}
	ask := measured.Query{Kind: cmp.Or(q.text("kind"), engine.EveryKind), From: since.Unix() / 60}
	length := until.Unix()/60 - ask.From + 1
	if ask.From < 1 || length < 1 || length > measured.Day+1 {
		q.wrong("since", "it is %s, want a time in the day before until", since.UTC().Format(time.RFC3339))
		return ask
	}
	if length > measured.Day { // the minutes of both ends of a day
		ask.From, length = ask.From+1, measured.Day
	}
	ask.Minutes = int(length)
	usual := (ask.Minutes + 59) / 60
	step := q.number("step_ms", 60_000, measured.Day*60_000, uint64(usual)*60_000)
	if step%60_000 != 0 {
		q.wrong("step_ms", "it is %d, want a multiple of 60000", step)
	}
	ask.Step = max(int(step/60_000), 1)
	return ask
}
