package simulate

import (
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
)

// subjects are what events are published with; the two are in different partitions, or not, as their names have it.
var subjects = []engine.Subject{{Namespace: namespace, Text: "order.paid"}, {Namespace: namespace, Text: "order.sent"}}

// heard is what is known of events and of waits for them.
type heard struct {
	published  map[string]engine.PublishedNow // by id, as it was answered first
	registered map[flowfabric.UUID]bool       // waitpoints, by an answer that came
}

// publisher publishes events.
type publisher struct{ party }

func (p *publisher) turn() {
	if p.again() {
		return
	}
	x := engine.Event{Subject: pick(p.world, subjects...), ID: p.fresh("event"),
		Data: []byte(fmt.Sprintf(`{"n":%d,"of":"%s"}`, p.r.IntN(3), p.name))}
	terms, err := trigger.Terms(x.Data)
	if err != nil {
		p.wrong("terms: %v", err)
	}
	x.Terms = terms
	_ = p.try(func() error { return p.publish(p.name, x) })
}

// publish publishes an event; a repeat is answered as the first call was.
func (w *world) publish(who string, x engine.Event) error {
	at, _ := ids.Subject(partitions, x.Namespace, x.Text)
	return w.call(at, who, fmt.Sprintf("publishes %s %s", x.ID, x.Data), func() (string, error) {
		out, err := w.e.PublishEvent(w.ctx, x)
		if err != nil {
			return "", err
		}
		first, known := w.published[x.ID]
		if known != out.Already || known && (first.Starts != out.Starts || first.Resumes != out.Resumes) {
			w.wrong("event %s was answered %+v, then %+v", x.ID, first, out)
		}
		if !known {
			w.published[x.ID] = out
		}
		return fmt.Sprintf("%d waits", out.Resumes), nil
	})
}

// expect registers a waitpoint for an event.
func (w *world) expect(who string, x engine.Expectation) error {
	at, _ := ids.Subject(partitions, x.Namespace, x.Text)
	return w.call(at, who, "expects an event for "+short(x.Execution), func() (string, error) {
		err := w.e.ExpectEvent(w.ctx, x)
		if err == nil {
			w.registered[x.Waitpoint] = true
		}
		return "", err
	})
}

// hear waits for an event, in three calls; the worker may crash in between, or forget the rest.
func (k *worker) hear(j *job) {
	f, m := j.Fence, k.minted(k.fresh("key"))
	m.Event = pick(k.world, subjects...)
	terms, err := trigger.Filter(map[string]any{"n": k.r.IntN(3)})
	if err != nil {
		k.wrong("filter: %v", err)
	}
	goesOn := func() bool { return k.pending == nil && slices.Contains(k.jobs, j) && !k.chance(10) }
	name := k.fresh("point")
	k.hand(j, false, func() error { return k.offer(k.name, f, name, m) })
	if !goesOn() {
		return
	}
	x := engine.Expectation{Subject: m.Event, Terms: terms, Execution: f.Execution, Waitpoint: m.ID, Digest: m.Digest}
	k.hand(j, false, func() error { return k.expect(k.name, x) })
	if !goesOn() {
		return
	}
	k.await(j, engine.Suspension{ID: flowfabric.UUID(k.uuid()), Name: k.fresh("wait"), Reason: "waiting_for_signal",
		Behaviour: pick(k.world, "fail", "auto_resume_open", "auto_resume"), Condition: "L\x1f1\x1f1\x1f",
		Bindings: []engine.Binding{{Minted: m, Pending: true}}})
}

// unheard finds waits that no event will ever reach, when no outbox has anything more: they were registered, and are
// not any more, and no event came.
func (w *world) unheard() {
	for range 4 { // what is delivered may lead to more
		for p := range uint16(partitions) {
			w.deliver("m1", p)
		}
	}
	w.check()
	known := map[flowfabric.UUID]bool{}
	for p := range uint16(partitions) {
		for skip := 0; ; {
			list, err := w.e.Expected(w.ctx, p, skip)
			if err != nil {
				w.wrong("list waits for events: %v", err)
			}
			for _, x := range list {
				known[x.Waitpoint] = true
			}
			if skip += len(list); len(list) == 0 {
				break
			}
		}
	}
	for p := range uint16(partitions) {
		for _, id := range w.open[p] {
			r, err := w.e.ReadSuspension(w.ctx, id)
			if err != nil {
				w.wrong("read the waits of %s: %v", short(id), err)
			}
			for _, at := range r.Waitpoints {
				if at.Subject != "" && at.Open() && at.Signals == 0 && w.registered[at.ID] && !known[at.ID] {
					w.wrong("%s waits for an event on %s, and nobody knows that", short(id), at.Key)
				}
			}
		}
	}
}

// unexpected removes what late copies of calls have registered when all has ended; then nobody waits for events.
func (w *world) unexpected() {
	_, err := maintain.Audit(w.ctx, maintain.AuditConfig{Engine: w.e, Repair: true})
	if err != nil {
		w.wrong("audit: %v", err)
	}
	for p := range uint16(partitions) {
		if list, err := w.e.Expected(w.ctx, p, 0); err != nil || len(list) > 0 {
			w.wrong("at the end %v wait for events in %d, %v", list, p, err)
		}
	}
	w.advance(time.Second)
}
