package conformance

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// subject is one whose partition is the scenario's.
func (w *env) subject() engine.Subject {
	for i := 0; ; i++ {
		s := engine.Subject{Namespace: "default", Text: "order." + w.named("s") + strconv.Itoa(i)}
		if p, _ := ids.Subject(partitions, s.Namespace, s.Text); p == w.p {
			return s
		}
	}
}

// trigger puts one that starts a kind of the same name for events whose fields are as where says.
func (w *env) trigger(s engine.Subject, name string, where map[string]any, opts ...option) engine.Trigger {
	w.Helper()
	x := w.item(append([]option{kind(name)}, opts...)...)
	definition, terms, err := trigger.Encode(trigger.Definition{Where: where, Start: x.Start})
	w.no(err)
	t := engine.Trigger{Subject: s, Name: name, Terms: terms, Definition: definition}
	_, err = w.e.PutTrigger(w.ctx, t)
	w.no(err)
	w.check()
	return t
}

// triggered is what a trigger starts because of an event.
func triggered(s engine.Subject, id, name string) flowfabric.ExecutionID {
	_, subject := ids.Subject(partitions, s.Namespace, s.Text)
	return mint.Join(ids.Triggered(partitions, ids.Published(subject, id), name))
}

// event is one with data whose executions are in the partitions of these environments, by the names of triggers.
func (w *env) event(s engine.Subject, data string, places map[string]*env) engine.Event {
	w.Helper()
	terms, err := trigger.Terms([]byte(data))
	w.no(err)
	for i := 0; ; i++ {
		x := engine.Event{Subject: s, ID: "e" + strconv.Itoa(i), Data: []byte(data), Terms: terms}
		fits := true
		for name, at := range places {
			fits = fits && triggered(s, x.ID, name).Partition() == at.p
		}
		if fits {
			return x
		}
	}
}

// publish publishes an event that starts so many executions.
func (w *env) publish(x engine.Event, starts int) {
	w.Helper()
	out, err := w.e.PublishEvent(w.ctx, x)
	w.no(err)
	w.all("published", eq(out, engine.PublishedNow{Starts: starts}))
	w.check()
}

// triggersOf lists those of a subject.
func (w *env) triggersOf(s engine.Subject) (out []wire.ListTriggersTrigger) {
	w.Helper()
	all, err := w.e.Triggers(w.ctx, s.Namespace)
	w.no(err)
	for _, t := range all {
		if t.Text == s.Text {
			out = append(out, t)
		}
	}
	return out
}

var triggerScenarios = []scenario{
	{name: "an event starts an execution of each trigger that it matches, once, whatever is repeated",
		run: func(w *env) {
			s, other := w.subject(), w.neighbour()
			w.trigger(s, "all", nil, kind("k"), priority(7), tags(map[string]string{"a.b": "c"}))
			w.trigger(s, "paid", map[string]any{"order.state": "paid", "order.total": 12}, kind("k"))
			w.trigger(s, "other", map[string]any{"order.state": "open"})
			x := w.event(s, `{"order":{"state":"paid","total":12.0}}`, map[string]*env{"all": w, "paid": other})
			w.publish(x, 2)
			entries, _, err := w.e.ReadOutbox(w.ctx, w.p, "")
			w.no(err)
			w.unchanged("published again", func() {
				out, err := w.e.PublishEvent(w.ctx, x)
				w.no(err)
				w.all("again", eq(out, engine.PublishedNow{Starts: 2, Already: true}))
			})
			spread(w, other)
			all := w.read(triggered(s, x.ID, "all"))
			w.all("what the definition says", eq(all.Priority, 7), eq(all.Tags["a.b"], "c"))
			for name, at := range map[string]*env{"all": w, "paid": other} {
				snapshot := at.read(triggered(s, x.ID, name))
				w.all(name, eq(snapshot.Kind, "k"), eq(snapshot.Tags["event.subject"], s.Text),
					eq(snapshot.Tags["event.id"], x.ID))
				c := at.worker("k").one(triggered(s, x.ID, name))
				same(w, "input", string(c.Input), string(x.Data))
			}
			w.unchanged("delivered again", func() {
				_, err := admit.Deliver(w.ctx, delivered{w.e, entries}, w.p)
				w.no(err)
			})
			counts := map[string]int{}
			for _, t := range w.triggersOf(s) {
				counts[t.Name] = t.Matched
			}
			sameDeep(w, "matched", counts, map[string]int{"all": 1, "paid": 1, "other": 0})
		}},
	{name: "an event is known for a day, and other data under its id is a conflict", run: func(w *env) {
		s := w.subject()
		x := w.event(s, `{"a":1}`, nil)
		w.publish(x, 0)
		changed := x
		changed.Data = []byte(`{"a":2}`)
		w.unchanged("other data", func() {
			_, err := w.e.PublishEvent(w.ctx, changed)
			w.is(err, denied.Idempotency)
		})
		key := w.k.Published(ids.Published(subjectID(s), x.ID).String())
		ttl, err := w.do("PTTL", key).AsInt64()
		w.no(err)
		same(w, "kept for a day", ttl > 86000000 && ttl <= 86400000, true)
		same(w, "nothing to tell", w.text(key) != "", true)
		elsewhere := x
		elsewhere.Namespace = "another"
		out, err := w.e.PublishEvent(w.ctx, elsewhere)
		w.no(err)
		same(w, "of another namespace", out.Already, false)
		p, id := ids.Subject(partitions, "another", s.Text)
		w.set("DEL", fmt.Sprintf("ff:{fp:%d}:pb:%s", p, ids.Published(id, x.ID)))
	}},
	{name: "a trigger starts what it said when the event was published, also when it is removed or changed later",
		run: func(w *env) {
			s := w.subject()
			places := map[string]*env{"a": w, "b": w}
			a := w.trigger(s, "a", nil)
			w.trigger(s, "b", nil)
			x := w.event(s, `{}`, places)
			w.publish(x, 2)
			already, err := w.e.RemoveTrigger(w.ctx, s, "a")
			w.no(err)
			same(w, "there was one", already, false)
			changed := w.trigger(s, "b", nil, kind("later"))
			same(w, "another definition", changed.Definition == a.Definition, false)
			spread(w)
			w.all("kinds", eq(w.read(triggered(s, x.ID, "a")).Kind, "a"), eq(w.read(triggered(s, x.ID, "b")).Kind, "b"))
			next := x
			for next.ID = "n"; triggered(s, next.ID, "b").Partition() != w.p; next.ID += "n" {
			}
			w.publish(next, 1)
			spread(w)
			same(w, "the next", w.read(triggered(s, next.ID, "b")).Kind, "later")
			w.unchanged("removed again", func() {
				already, err := w.e.RemoveTrigger(w.ctx, s, "a")
				w.no(err)
				same(w, "there is none", already, true)
			})
			w.unchanged("put again", func() {
				already, err := w.e.PutTrigger(w.ctx, changed)
				w.no(err)
				same(w, "it was so", already, true)
			})
		}},
	{name: "a start that is refused is told by its trigger, and holds up nothing", run: func(w *env) {
		s := w.subject()
		w.trigger(s, "shut", nil, lane("shut"))
		w.trigger(s, "open", nil)
		w.must("ff_set_lane", proto, "default", "shut", "disabled", "", "")
		x := w.event(s, `{}`, map[string]*env{"shut": w, "open": w})
		w.publish(x, 2)
		spread(w)
		same(w, "the other", w.read(triggered(s, x.ID, "open")).Kind, "open")
		_, err := w.e.ReadExecution(w.ctx, triggered(s, x.ID, "shut"))
		w.is(err, flowfabric.ErrNotFound)
		for _, t := range w.triggersOf(s) {
			want := map[string]string{"shut": "lane_closed", "open": ""}[t.Name]
			w.all(t.Name, eq(t.Refused, want), eq(t.RefusedEvent != "", want != ""))
		}
		w.unchanged("of a trigger that is gone", func() {
			w.no(w.e.RefuseStart(w.ctx, s, "gone", "lane_closed", x.ID))
		})
	}},
	{name: "a partition that is away gets its starts later, and others do not wait for it", run: func(w *env) {
		s, other := w.subject(), w.neighbour()
		w.trigger(s, "here", nil)
		w.trigger(s, "there", nil)
		x := w.event(s, `{}`, map[string]*env{"here": w, "there": other})
		w.publish(x, 2)
		other.must("ff_freeze_partition", proto, "1")
		_, err := admit.Deliver(w.ctx, w.e, w.p)
		w.is(err, flowfabric.ErrPartitionFrozen)
		same(w, "here", w.read(triggered(s, x.ID, "here")).Kind, "here")
		other.must("ff_freeze_partition", proto, "0")
		spread(w, other)
		same(w, "there", other.read(triggered(s, x.ID, "there")).Kind, "there")
	}},
	{name: "a subject has at most 100 triggers, and an event that matches all of them is one entry", run: func(w *env) {
		s := w.subject()
		for i := range 100 {
			name := fmt.Sprintf("t%02d", i)
			_, err := w.e.PutTrigger(w.ctx, engine.Trigger{Subject: s, Name: name, Definition: "d"})
			w.no(err)
		}
		w.check()
		w.unchanged("one more", func() {
			_, err := w.e.PutTrigger(w.ctx, engine.Trigger{Subject: s, Name: "more", Definition: "d"})
			w.is(err, flowfabric.ErrInvalidInput)
			same(w, "names the limit", strings.Contains(err.Error(), "at most 100 triggers"), true)
		})
		_, err := w.e.PutTrigger(w.ctx, engine.Trigger{Subject: s, Name: "t00", Definition: "changed"})
		w.no(err)
		w.publish(w.event(s, `{}`, nil), 100)
		entries, total, err := w.e.ReadOutbox(w.ctx, w.p, "")
		w.no(err)
		w.all("entries", eq(total, 1), eq(len(entries[0].Event.Starts), 100))
		list := w.triggersOf(s)
		w.all("listed", eq(len(list), 100), eq(list[0].Name, "t00"), eq(list[0].Definition, "changed"),
			eq(list[99].Matched, 1))
	}},
	{name: "the tick is told of a publication at once", run: func(w *env) {
		s := w.subject()
		w.trigger(s, "a", nil)
		w.tick()
		w.publish(w.event(s, `{}`, map[string]*env{"a": w}), 1)
		same(w, "due", w.root()["wake"], strconv.FormatInt(w.now(), 10))
		same(w, "outbox", w.tick().Outbox, 1)
		spread(w)
		same(w, "empty", w.tick().Outbox, 0)
	}},
	{name: "an audit removes notices of events that cannot be read, and keeps the others",
		damaged: "notices of no shape", run: func(w *env) {
			s := w.subject()
			w.trigger(s, "a", nil)
			x := w.event(s, `{}`, map[string]*env{"a": w})
			w.publish(x, 1)
			w.set("XADD", w.k.Outbox(), "*", "p", "nothing", "s", "")
			same(w, "found", len(w.audit(false).Findings), 1)
			same(w, "repaired", w.audit(true).Repaired, 1)
			spread(w)
			same(w, "started", w.read(triggered(s, x.ID, "a")).Kind, "a")
		}},
}

// delivered reads entries of the outbox once more.
type delivered struct {
	*engine.Engine
	entries []engine.OutboxEntry
}

func (d delivered) ReadOutbox(ctx context.Context, partition uint16, after string) ([]engine.OutboxEntry, int, error) {
	if after != "" {
		return nil, 0, nil
	}
	return d.entries, len(d.entries), nil
}

// subjectID is what stands for a subject.
func subjectID(s engine.Subject) uuid.UUID {
	_, id := ids.Subject(partitions, s.Namespace, s.Text)
	return id
}
