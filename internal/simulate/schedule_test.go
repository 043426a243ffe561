package simulate

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// schedules are the names that producers use.
var schedules = []string{"hourly", "nightly"}

// plant makes or changes a schedule, pauses it, or removes it.
func (p *producer) plant() {
	name := pick(p.world, schedules...)
	switch n := p.r.IntN(10); {
	case n < 7:
		d := schedule.Definition{Spec: schedule.Every(pick(p.world, 5*time.Second, 20*time.Second), time.Time{}),
			CatchUp: pick(p.world, schedule.CatchUpAll, schedule.CatchUpLast, schedule.CatchUpSkip),
			Overlap: pick(p.world, schedule.OverlapAllow, schedule.OverlapSkip), Runs: 1 + p.r.Uint64N(4),
			Item: schedule.Item{Start: flowfabric.Start{Namespace: namespace, Lane: "default", Kind: "report"}}}
		text, err := calendar.Encode(d)
		if err != nil {
			p.wrong("encode a schedule: %v", err)
			return
		}
		q := engine.SchedulePut{Name: name, Definition: text, Input: []byte("1"),
			Next: calendar.Next(d, p.now), Limit: d.Runs, Begin: p.chance(50)}
		_ = p.try(func() error { return p.putSchedule(p.name, q) })
	case n < 9:
		paused := p.chance(50)
		_ = p.try(func() error { return p.pauseSchedule(p.name, name, paused) })
	default:
		_ = p.try(func() error { return p.removeSchedule(p.name, name) })
	}
}

// fire makes the steps of a partition's schedules that are due, as internal/maintain does.
func (m *maintainer) fire(p uint16) {
	page, err := m.due(p)
	if err != nil {
		m.wrong("read schedules: %v", err)
		return
	}
	for _, s := range page.Schedules {
		d, err := calendar.Decode(s.Definition)
		if err != nil {
			m.wrong("decode a schedule: %v", err)
			return
		}
		step, due := calendar.Plan(d, s.Next, s.ResumedAt, page.Now)
		if !due {
			continue
		}
		f := engine.Firing{Name: s.Name, Revision: s.Revision, Seen: s.Next, Next: step.Then,
			Missed: engine.MissedInstants(step.Missed), Limit: d.Runs, At: step.Fire,
			Solo: d.Overlap == schedule.OverlapSkip}
		if !step.Fire.IsZero() {
			f.Item = engine.NewExecution{Start: d.Item.Start, Digest: d.Item.Digest,
				ID: mint.Join(ids.Scheduled(s.Partition, s.Name, s.Incarnation, step.Fire))}
			f.Item.Tags = calendar.Labels(d.Item.Tags, s.Name, step.Fire)
		}
		_ = m.fireSchedule(m.name, p, f)
	}
}
