package httpapi

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/backfill"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// rangeBody is which instants of a schedule are submitted.
type rangeBody struct {
	From time.Time `json:"from" jsonschema:"the first instant may be this one"`
	To   time.Time `json:"to,omitzero" jsonschema:"and the last this one; default now"`
	why
}

// timesBody is when a schedule runs, all of it, and another input.
type timesBody struct {
	Cron    string            `json:"cron,omitempty" jsonschema:"minute hour day month weekday"`
	Zone    string            `json:"zone,omitempty" jsonschema:"of the cron expression; default UTC"`
	EveryMs int64             `json:"every_ms,omitempty" jsonschema:"instead of cron"`
	Anchor  time.Time         `json:"anchor,omitzero" jsonschema:"a time that every_ms counts from"`
	Until   time.Time         `json:"until,omitzero" jsonschema:"no run after this time; default without end"`
	Runs    uint64            `json:"max_runs,omitempty" jsonschema:"it ends after so many; default without end"`
	Jitter  flowfabric.Millis `json:"jitter_ms,omitzero" jsonschema:"each run starts up to so much later"`
	CatchUp schedule.CatchUp  `json:"catch_up,omitempty" jsonschema:"last (default), all or skip"`
	Overlap schedule.Overlap  `json:"overlap,omitempty" jsonschema:"allow (default) or skip"`
	given
	why
}

// editSchedule changes the times of a schedule. What it submits stays, but for an input that is given.
func (c *call) editSchedule(b *timesBody) (set client.ScheduleSet, err error) {
	err = c.onSchedule(func(s admin.ScheduleInfo) error {
		switch {
		case s.Err != nil:
			return s.Err
		case s.Nodes > 0:
			return invalid("key", "it submits a flow: change it where it is declared, or put it as a whole")
		}
		d := scheduleBody{Cron: b.Cron, Zone: b.Zone, EveryMs: b.EveryMs, Anchor: b.Anchor, Definition: s.Definition,
			given: b.given}
		d.Until, d.Runs, d.Jitter, d.CatchUp, d.Overlap = b.Until, b.Runs, b.Jitter, b.CatchUp, b.Overlap
		if b.Input == nil && b.Base64 == nil {
			source, err := backfill.Read(c.ctx(), c.h.conn, s.Name, s.Revision)
			if err != nil {
				return err
			}
			if d.Base64 = source.Input(); sealed.Is(d.Base64) {
				return invalid("/input", "the one that is stored is encrypted, and this server has no key for it: "+
					"give it again")
			}
		}
		declared, err := c.declaration(s.Name, d, "", flowfabric.IfRevision(s.Revision))
		if err == nil {
			set, err = declared.Put(c.ctx(), c.h.client, c.act(b.why)...)
		}
		return err
	})
	return set, err
}

type backfilled = apiv1.Backfilled

// fromSchedule does something with the work of the schedule that the path names, and notes it.
func (c *call) fromSchedule(verb string, b why, detail string, do func(s *backfill.Source) error) error {
	return c.onSchedule(func(s admin.ScheduleInfo) error {
		if s.Err != nil {
			return s.Err
		}
		source, err := backfill.Read(c.ctx(), c.h.conn, s.Name, s.Revision)
		if err != nil {
			return err
		}
		act := link.Act{By: c.who.Name, Reason: b.Reason}
		c.r = c.r.WithContext(act.In(c.ctx(), s.Namespace, verb, "schedule", s.Name, detail))
		return do(source)
	})
}

func (c *call) runSchedule(b *why) (run backfill.Run, err error) {
	err = c.fromSchedule("run", *b, "", func(s *backfill.Source) error {
		run, err = s.Once(c.ctx())
		return err
	})
	return run, err
}

func (c *call) backfillSchedule(b *rangeBody) (out backfilled, err error) {
	if b.From.IsZero() {
		return out, invalid("/from", "it is missing: a time such as 2026-12-31T17:00:00Z")
	}
	detail := b.From.UTC().Format(time.RFC3339)
	if !b.To.IsZero() {
		detail += " to " + b.To.UTC().Format(time.RFC3339)
	}
	err = c.fromSchedule("backfill", b.why, detail, func(s *backfill.Source) error {
		to := b.To
		switch {
		case to.IsZero():
			to = s.Now()
		case to.After(s.Now()):
			return invalid("/to", "it is in the future: the schedule submits those instants itself")
		}
		if to.Before(b.From) {
			return invalid("/to", "it is before from")
		}
		instants, err := s.Instants(b.From, to)
		if err != nil {
			return invalid("/to", "%v: make the range shorter", err)
		}
		out.Items, err = s.Each(c.ctx(), instants)
		return err
	})
	for _, r := range out.Items {
		switch {
		case r.Error != "":
			out.Refused++
		case r.Existed:
			out.Existed++
		default:
			out.Created++
		}
	}
	return out, err
}
