package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// expects opens a waitpoint for an event of a subject of another partition, and registers it there.
func (w *env) expects(f flowfabric.Fence, at *env, s engine.Subject, key string, where map[string]any) engine.Minted {
	w.Helper()
	m := minted(key)
	m.Event = s
	o, err := w.openNamed(f, m, time.Hour)
	w.no(err)
	w.all("opened for the event", eq(o.Event, subjectID(s).String()), eq(o.Wanted, true))
	w.no(at.expect(f.Execution, m, where))
	return m
}

// expect registers a waitpoint with the subject of its event, whose partition this is.
func (w *env) expect(id flowfabric.ExecutionID, m engine.Minted, where map[string]any) error {
	w.Helper()
	terms, err := trigger.Filter(where)
	w.no(err)
	err = w.e.ExpectEvent(w.ctx, engine.Expectation{Subject: m.Event, Terms: terms, Execution: id, Waitpoint: m.ID,
		Digest: m.Digest})
	w.check()
	return err
}

// happens is a new event of a subject.
func (w *env) happens(s engine.Subject, data string) engine.Event {
	w.Helper()
	terms, err := trigger.Terms([]byte(data))
	w.no(err)
	return engine.Event{Subject: s, ID: uuid.NewString(), Data: []byte(data), Terms: terms}
}

// brings publishes an event that resumes so many waits.
func (w *env) brings(x engine.Event, resumes int) {
	w.Helper()
	out, err := w.e.PublishEvent(w.ctx, x)
	w.no(err)
	same(w, "published", out, engine.PublishedNow{Resumes: resumes})
	w.check()
}

// expected is how many waitpoints take an event of a subject of this partition.
func (w *env) expected() int {
	w.Helper()
	list, err := w.e.Expected(w.ctx, w.p, 0)
	w.no(err)
	return len(list)
}

// onKey waits for one signal on a pending waitpoint.
func onKey(m engine.Minted) []suspending {
	return []suspending{waitFor(names(1, 1, "")), onPending(m), awaiting(m.Key)}
}

var expectScenarios = []scenario{
	{name: "an event resumes the wait that it matches, once, whatever is repeated", run: func(w *env) {
		w.seed()
		at := w.neighbour()
		s := at.subject()
		k, c := w.holder()
		id := c.Fence.Execution
		m := w.expects(c.Fence, at, s, "paid", map[string]any{"order.id": 7, "order.state": "paid"})
		w.suspend(c.Fence, onKey(m)...)
		at.brings(at.happens(s, `{"order":{"id":7,"state":"open"}}`), 0)
		x := at.happens(s, `{"order":{"id":7,"state":"paid"}}`)
		x.ID = "the event"
		at.brings(x, 1)
		entries, _, err := at.e.ReadOutbox(at.ctx, at.p, "")
		w.no(err)
		at.unchanged("published again", func() {
			out, err := at.e.PublishEvent(at.ctx, x)
			w.no(err)
			same(w, "again", out, engine.PublishedNow{Resumes: 1, Already: true})
		})
		same(w, "nothing takes another", at.expected(), 0)
		spread(at, w)
		w.unchanged("delivered again", func() {
			_, err := admit.Deliver(w.ctx, delivered{w.e, entries}, at.p)
			w.no(err)
		})
		again := k.one(id)
		same(w, "signals", len(again.Resume.Signals), 1)
		g := again.Resume.Signals[0]
		w.all("the signal", eq(g.Name, "event"), eq(g.SourceType, "event"), eq(g.Source, s.Text),
			eq(g.Correlation, "the event"), eq(g.Encoding, "json"), eq(string(g.Payload), string(x.Data)))
		next := x
		next.ID = "the next"
		at.brings(next, 0)
	}},
	{name: "an event that comes before the wait is kept for it", run: func(w *env) {
		w.seed()
		s := w.subject()
		_, c := w.holder()
		m := w.expects(c.Fence, w, s, "early", nil)
		w.brings(w.happens(s, `{}`), 1)
		spread(w)
		r, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(onKey(m)...))
		w.no(err)
		w.check()
		w.all("answered at once", eq(r.Satisfied, true), eq(len(r.Resume.Signals), 1))
		spread(w)
	}},
	{name: "a repeated registration is one, and its step says until when it is to be repeated", run: func(w *env) {
		w.seed()
		s := w.subject()
		k, c := w.holder()
		id := c.Fence.Execution
		m := w.expects(c.Fence, w, s, "once", map[string]any{"a": 1, "b": 2})
		w.unchanged("again", func() { w.no(w.expect(id, m, map[string]any{"b": 2, "a": 1})) })
		step := func() engine.Opened {
			w.Helper()
			kept := c.Steps[engine.StepWaitpoint+"once"]
			o, err := engine.DecodeOpened(kept)
			w.no(err)
			read, ok, err := w.e.Waitpoint(w.ctx, id, "once")
			w.no(err)
			w.all("read alone", eq(string(read), string(kept)), eq(ok, true))
			w.all("its step", eq(o.ID, m.ID), eq(o.Key, "once"), eq(o.Event, subjectID(s).String()))
			return o
		}
		w.release(c.Fence)
		c = k.one(id)
		same(w, "it has not come", step().Wanted, true)
		w.no(w.expect(id, m, map[string]any{"a": 2})) // another version of the handler asks for something else
		same(w, "one", w.expected(), 1)
		w.brings(w.happens(s, `{"a":1,"b":2}`), 0)
		w.brings(w.happens(s, `{"a":2}`), 1)
		spread(w)
		w.release(c.Fence)
		c = k.one(id)
		same(w, "it has come", step().Wanted, false)
		w.suspend(c.Fence, operatorsOnly()...)
		w.resume(id)
		w.cancel(id)
		spread(w)
	}},
	{name: "a subject forgets a wait that ends otherwise: answered, timed out, closed, cancelled, expired or purged",
		run: func(w *env) {
			w.seed()
			at := w.neighbour()
			s := at.subject()
			left := func(what string) {
				w.Helper()
				spread(w, at)
				same(w, what, at.expected(), 0)
			}
			began := func() (*worker, flowfabric.Fence, engine.Minted) {
				w.Helper()
				k, c := w.holder(deadline(3 * time.Hour))
				return k, c.Fence, w.expects(c.Fence, at, s, "wait", nil)
			}
			_, f, m := began()
			w.suspend(f, onKey(m)...)
			w.signal(f.Execution, m, "something else", waitwords.EffectSatisfied)
			left("answered")
			w.cancel(f.Execution)
			_, f, m = began()
			w.suspend(f, append(onKey(m), within(time.Minute, "auto_resume"))...)
			w.advance(2 * time.Minute)
			w.tick()
			left("timed out")
			w.cancel(f.Execution)
			_, f, m = began()
			already, err := w.e.CloseWaitpoint(w.ctx, f, m.ID)
			w.no(err)
			w.check()
			same(w, "closed already", already, false)
			left("closed")
			w.cancel(f.Execution)
			_, f, _ = began()
			w.cancel(f.Execution)
			left("cancelled while it runs")
			_, f, m = began()
			w.suspend(f, onKey(m)...)
			w.cancel(f.Execution)
			left("cancelled while it waits")
			_, f, _ = began()
			w.no(w.complete(f, "r").Err)
			left("ended")
			_, f, _ = began()
			w.advance(2 * time.Hour) // the waitpoint had one
			w.tick()
			left("expired")
		}},
	{name: "a reminder leaves the wait for the event open", run: func(w *env) {
		w.seed()
		s := w.subject()
		_, c := w.holder()
		id := c.Fence.Execution
		m := w.expects(c.Fence, w, s, "wait", nil)
		w.suspend(c.Fence, append(onKey(m), within(time.Minute, "auto_resume_open"))...)
		w.advance(2 * time.Minute)
		w.tick()
		spread(w)
		same(w, "still known", w.expected(), 1)
		w.suspend(w.holds(id), onKey(m)...)
		w.brings(w.happens(s, `{}`), 1)
		spread(w)
		same(w, "resumed", w.logged(id, m), "event resume_condition_satisfied")
		spread(w)
	}},
	{name: "the filter decides: all of its fields, and what is common fills no file",
		damaged: "waits of executions that do not exist", run: func(w *env) {
			s := w.subject()
			var all []flowfabric.ExecutionID
			for n := range 40 { // all ask for the same state, each for its own order
				id, m := mint.ID(w.p), minted("k")
				m.Event = s
				w.no(w.expect(id, m, map[string]any{"state": "paid", "order": n}))
				all = append(all, id)
			}
			terms, err := trigger.Filter(map[string]any{"state": "paid"})
			w.no(err)
			n, err := w.do("SCARD", w.k.Filed(subjectID(s).String(), terms[0])).AsInt64()
			w.no(err)
			same(w, "at most one is filed under the state", n <= 1, true)
			w.brings(w.happens(s, `{"state":"open","order":3}`), 0)
			w.brings(w.happens(s, `{"state":"paid","order":40}`), 0)
			w.brings(w.happens(s, `{"state":"paid","order":3}`), 1)
			entries, _, err := w.e.ReadOutbox(w.ctx, w.p, "")
			w.no(err)
			same(w, "whose", entries[0].Event.Resumes[0].Execution, all[3])
			same(w, "the others wait", w.expected(), 39)
			spread(w) // there is no such execution, so it is given up
			same(w, "what has no execution is found", w.audit(true).Repaired, 39)
		}},
	{name: "at most 1,000 waits have one filter, and an event that may concern more is refused for now",
		run: func(w *env) {
			w.quiet = true
			s := w.subject()
			register := func(where map[string]any) error {
				m := minted("k")
				m.Event = s
				return w.expect(mint.ID(w.p), m, where)
			}
			for range 1000 {
				w.no(register(map[string]any{"a": 1}))
			}
			w.unchanged("one more", func() {
				err := register(map[string]any{"a": 1})
				w.is(err, denied.TooManyExpected)
				w.is(err, flowfabric.ErrLimit)
			})
			w.no(register(map[string]any{"a": 1, "b": 1}))
			w.quiet = false
			w.check()
			x := w.happens(s, `{"a":1,"b":1}`)
			w.unchanged("too many", func() {
				_, err := w.e.PublishEvent(w.ctx, x)
				w.is(err, denied.TooManyExpected)
			})
			w.brings(w.happens(s, `{"a":1}`), 1000)
			w.brings(x, 1)
			entries, total, err := w.e.ReadOutbox(w.ctx, w.p, "")
			w.no(err)
			w.all("entries", eq(total, 2), eq(len(entries), 1), eq(len(entries[0].Event.Resumes), 1000))
			w.set("DEL", w.k.Outbox())
			same(w, "what is left", w.expected(), 0)
		}},
	{name: "a wait that is over when its event comes stays as it is, and holds up nothing", run: func(w *env) {
		w.seed()
		at := w.neighbour()
		s := at.subject()
		_, c := w.holder()
		w.expects(c.Fence, at, s, "late", nil)
		other, d := w.holder()
		m := w.expects(d.Fence, at, s, "in time", nil)
		w.suspend(d.Fence, onKey(m)...)
		at.brings(at.happens(s, `{}`), 2)
		w.cancel(c.Fence.Execution)
		spread(at, w)
		same(w, "the other", len(other.one(d.Fence.Execution).Resume.Signals), 1)
		same(w, "cancelled", w.read(c.Fence.Execution).State.Public, flowfabric.Cancelled)
	}},
	{name: "a partition that is away gets its event later, and others do not wait for it", run: func(w *env) {
		w.seed()
		at := w.neighbour()
		at.seed()
		s := at.subject()
		k, c := w.holder()
		far, d := at.holder()
		m, n := w.expects(c.Fence, at, s, "there", nil), at.expects(d.Fence, at, s, "here", nil)
		w.suspend(c.Fence, onKey(m)...)
		at.suspend(d.Fence, onKey(n)...)
		at.brings(at.happens(s, `{}`), 2)
		w.must("ff_freeze_partition", proto, "1")
		_, err := admit.Deliver(w.ctx, w.e, at.p)
		w.is(err, flowfabric.ErrPartitionFrozen)
		same(w, "here", len(far.one(d.Fence.Execution).Resume.Signals), 1)
		w.must("ff_freeze_partition", proto, "0")
		spread(at, w)
		same(w, "there", len(k.one(c.Fence.Execution).Resume.Signals), 1)
	}},
	{name: "people see which event a wait is for, and its token is for nobody else", run: func(w *env) {
		w.seed()
		s := w.subject()
		_, c := w.holder()
		id := c.Fence.Execution
		m := w.expects(c.Fence, w, s, "paid", nil)
		w.suspend(c.Fence, onKey(m)...)
		same(w, "subject", w.waitpoint(id, m).Subject, s.Text)
		f, err := w.e.Explain(w.ctx, id)
		w.no(err)
		same(w, "why", f.Suspension.Waitpoints[0].Subject, s.Text)
		w.unchanged("a new token", func() {
			a := w.fcall("ff_reissue_token", wireReissue(id, m)...)
			text := strings.Join(a.slots, " ")
			w.all("refused", eq(a.code, "invalid_input"), eq(strings.Contains(text, "event"), true))
		})
		w.signal(id, m, "by its own", waitwords.EffectSatisfied)
		spread(w)
	}},
	{name: "an audit finds and removes what a worker without a lease left behind",
		damaged: "a wait that is over", run: func(w *env) {
			w.seed()
			s := w.subject()
			_, c := w.holder()
			stays := w.expects(c.Fence, w, s, "stays", nil)
			gone := minted("gone")
			gone.Event = s
			_, err := w.openNamed(c.Fence, gone, time.Hour)
			w.no(err)
			_, err = w.e.CloseWaitpoint(w.ctx, c.Fence, gone.ID)
			w.no(err)
			spread(w)
			w.no(w.expect(c.Fence.Execution, gone, nil)) // late
			r := w.audit(false)
			same(w, "found", fmt.Sprint(len(r.Findings), r.Findings[0].Index, r.Findings[0].Repairable), "1ewtrue")
			same(w, "repaired", w.audit(true).Repaired, 1)
			list, err := w.e.Expected(w.ctx, w.p, 0)
			w.no(err)
			w.all("the other stays", eq(len(list), 1), eq(list[0].Waitpoint, stays.ID))
			_, err = w.e.CloseWaitpoint(w.ctx, c.Fence, stays.ID)
			w.no(err)
			same(w, "on its way", len(w.audit(false).Findings), 0)
			spread(w)
		}},
}

// operatorsOnly waits for nothing that comes.
func operatorsOnly() []suspending { return []suspending{waitFor(operatorOnly)} }

// forgetExpected takes back what staged calls registered, before an audit: their waitpoints are for no event, so nobody
// says when they close. A call may have frozen the partition: then nobody asks.
func (w *env) forgetExpected() {
	for _, x := range w.unheard {
		w.fcall("ff_forget_expected", append([]string{proto, "1"}, x...)...)
	}
}
