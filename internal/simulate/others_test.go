package simulate

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// maintainer ticks partitions and delivers what they have for others.
type maintainer struct{ party }

func (m *maintainer) turn() { m.tend(m.partition(), m.chance(20), m.chance(3)) }

func (m *maintainer) tend(p uint16, ask, leave bool) engine.TickReply {
	out, err := m.tick(m.name, p, ask, leave)
	if err == nil && out.Outbox > 0 {
		m.deliver(m.name, p)
	}
	if err == nil && out.Schedules > 0 {
		m.fire(p)
	}
	if m.askers != nil {
		m.reckon()
	}
	return out
}

// operator interferes.
type operator struct{ party }

func (o *operator) turn() {
	if o.again() {
		return
	}
	if len(o.known) == 0 || o.chance(3) {
		o.audit()
		return
	}
	id, who := pick(o.world, o.known...), o.name
	request := flowfabric.UUID(o.uuid())
	switch n := o.r.IntN(100); {
	case n < 14:
		_ = o.try(func() error { return o.hold(who, id) })
	case n < 28:
		_ = o.try(func() error { return o.unhold(who, id) })
	case n < 36:
		priority := o.r.IntN(5)
		_ = o.try(func() error { return o.prioritise(who, id, priority) })
	case n < 48:
		_ = o.try(func() error { return o.revoke(who, id) })
	case n < 56:
		q := engine.DelayChange{Delay: o.between(0, 10*time.Second), Request: request}
		_ = o.try(func() error { return o.postpone(who, id, q) })
	case n < 66:
		q := engine.ResumeRequest{Request: request, Delay: o.between(0, 2*time.Second)}
		_ = o.try(func() error { return o.resume(who, id, q) })
	case n < 80:
		q := engine.Replay{Request: request, DropSteps: o.chance(30), Force: o.chance(50)}
		_ = o.try(func() error { return o.replay(who, id, q) })
	case n < 84:
		_ = o.try(func() error { return o.tag(who, id, "simulated") })
	case n < 92 && len(o.points) > 0:
		at := pick(o.world, o.points...)
		s := suspend.SentSignal{ID: request, Name: "go", Source: who}
		_ = o.try(func() error { return o.approve(who, at, s) })
	default:
		k := o.actors[2+o.r.IntN(5)].(*worker)
		if len(k.jobs) > 0 {
			s := k.jobs[0].seat
			_ = o.try(func() error { return o.kill(who, s.partition, s.session) })
		}
	}
}

// audit finds nothing, at any time.
func (w *world) audit() {
	w.touched = [partitions]bool{true, true}
	r, err := maintain.Audit(w.ctx, maintain.AuditConfig{Engine: w.e})
	w.log("audit: sound %t, %d findings", r.Sound, len(r.Findings))
	late := 0 // waits for events that a late copy of a call has registered again
	for _, f := range r.Findings {
		if f.Index == "ew" {
			late++
			continue
		}
		w.wrong("an audit finds %+v", f)
	}
	if err != nil || !r.Sound && late == 0 {
		w.wrong("audit: sound %t, %v", r.Sound, err)
	}
}
