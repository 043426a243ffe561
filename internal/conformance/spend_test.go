package conformance

import (
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

var spendScenarios = []scenario{
	{name: "a holder can undo its last report once, and no other report", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		b := g.budget(nil)
		report := func(epoch, sequence uint64, n int64) admission.Usage {
			u := admission.Usage{Gate: b, Execution: id, Epoch: epoch, Sequence: sequence,
				Amounts: map[string]int64{"tokens": n, "calls": 1}}
			_, err := w.e.ReportUsage(w.ctx, u)
			w.no(err)
			return u
		}
		undo := func(u admission.Usage, want bool, tokens int64) {
			w.Helper()
			undone, _, err := w.e.UndoUsage(w.ctx, u)
			w.no(err)
			same(w, "undone", undone, want)
			same(w, "used", g.spent(b, "tokens"), tokens)
			w.check()
		}
		first, second := report(5, 1, 40), report(5, 2, 30)
		undo(first, false, 70)
		undo(second, true, 40)
		undo(second, false, 40)
		r, err := w.e.ReportUsage(w.ctx, second) // a repetition that was under way for long
		w.no(err)
		same(w, "replayed", r.Replayed, true)
		same(w, "used", g.spent(b, "tokens"), 40)
		undo(report(5, 3, 61), false, 40) // refused
		third := report(5, 4, 60)
		undo(report(4, 9, 0), false, 100) // late
		undo(third, true, 40)
		record, err := w.e.ReadGate(w.ctx, b, 10, 0, 0)
		w.no(err)
		sameDeep(w, "ledger", record.Spenders[0].Used, map[string]int64{"calls": 2, "tokens": 40})
		missing := third
		missing.Gate += "x"
		_, _, err = w.e.UndoUsage(w.ctx, missing)
		w.is(err, denied.NoGate)
		missing.Gate = b
		missing.Execution = mint.ID(w.p)
		undo(missing, false, 40)
	}},
	{name: "a keyed spend counts once for its execution, and again after it was undone", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		b := g.budget(func(b *admission.Gate) { b.StrictDimensions = true })
		report := func(id flowfabric.ExecutionID, epoch, sequence uint64, n int64, more ...string) (admission.Usage,
			admission.Reported, error) {
			u := admission.Usage{Gate: b, Execution: id, Epoch: epoch, Sequence: sequence, Key: "k",
				Amounts: map[string]int64{"tokens": n}}
			for _, dim := range more {
				u.Amounts[dim] = 1
			}
			r, err := w.e.ReportUsage(w.ctx, u)
			return u, r, err
		}
		counts := func(id flowfabric.ExecutionID, epoch, sequence uint64, replayed bool, used int64) admission.Usage {
			w.Helper()
			u, r, err := report(id, epoch, sequence, 10)
			w.no(err)
			w.all("report", eq(r.Applied, true), eq(r.Replayed, replayed), eq(g.spent(b, "tokens"), used))
			w.check()
			return u
		}
		first := counts(id, 5, 1, false, 10)
		again := counts(id, 5, 2, true, 10)
		later := counts(id, 6, 1, true, 10) // of a later run
		counts(mint.ID(w.p), 5, 1, false, 20)
		_, _, err := report(id, 6, 2, 11)
		w.is(err, flowfabric.ErrConflict)
		_, _, err = report(id, 6, 3, 10, "strange") // the next report leaves it out
		w.is(err, denied.Dimension)
		for _, u := range []admission.Usage{again, later} { // neither has counted anything
			undone, _, err := w.e.UndoUsage(w.ctx, u)
			w.no(err)
			w.all("undo", eq(undone, false), eq(g.spent(b, "tokens"), int64(20)))
		}
		undone, _, err := w.e.UndoUsage(w.ctx, first)
		w.no(err)
		w.all("undo", eq(undone, true), eq(g.spent(b, "tokens"), int64(10)))
		counts(id, 6, 4, false, 20)
	}},
	{name: "an undo does not take back what was refunded or counted in another period", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		b := g.budget(func(b *admission.Gate) { b.Reset = flowfabric.Millis(time.Minute) })
		report := func(sequence uint64) admission.Usage {
			u := admission.Usage{Gate: b, Execution: id, Epoch: 5, Sequence: sequence,
				Amounts: map[string]int64{"tokens": 40}}
			_, err := w.e.ReportUsage(w.ctx, u)
			w.no(err)
			return u
		}
		u := report(1)
		g.tell(refundOf(b, id))
		g.spend(b, "other", map[string]int64{"tokens": 25})
		_, _, err := w.e.UndoUsage(w.ctx, u)
		w.no(err)
		same(w, "used after a refund", g.spent(b, "tokens"), 25)
		u = report(2)
		g.advance(time.Minute + time.Millisecond)
		g.spend(b, "another", map[string]int64{"tokens": 25})
		undone, _, err := w.e.UndoUsage(w.ctx, u)
		w.no(err)
		same(w, "undone", undone, true)
		same(w, "used in the next period", g.spent(b, "tokens"), 25)

		u = report(3)
		g.tell(refundOf(b, id))
		own := func(key string) {
			w.Helper()
			_, err := w.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: id, Key: key, Amounts: tokens(20)})
			w.no(err)
		}
		keep := func(what string, u admission.Usage, used int64) {
			w.Helper()
			undone, _, err := w.e.UndoUsage(w.ctx, u)
			w.no(err)
			w.all(what, eq(undone, false), eq(g.spent(b, "tokens"), used))
		}
		own("after-the-refund")
		keep("what came after a refund", u, 45)
		u = report(4)
		g.advance(time.Minute + time.Millisecond)
		own("in-the-next-period")
		keep("what came in the next period", u, 20)
	}},
	{name: "undoing a report wakes the routes that wait for the gate", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		u := admission.Usage{Gate: b, Execution: mint.ID(w.p), Epoch: 5, Sequence: 1,
			Amounts: map[string]int64{"tokens": 100}}
		_, err := w.e.ReportUsage(w.ctx, u)
		w.no(err)
		same(w, "room", g.room(b, 3), false)
		_, wake, err := w.e.UndoUsage(w.ctx, u)
		w.no(err)
		sameList(w, "wake", wake, engine.Waiter{Partition: w.p, Route: 3})
		same(w, "used", g.spent(b, "tokens"), 0)
	}},
	{name: "a ledger belongs to the partition and UUID of an execution, in one exact spelling", run: func(w *env) {
		g, id := newGates(w), mint.ID(3)
		b := g.budget(func(b *admission.Gate) {
			b.WarnSoft, b.Limits = true, map[string]admission.Limit{"tokens": {Hard: 100, Soft: 80}}
		})
		twin := mint.Join(65535, ids.UUID(id))
		for x, n := range map[flowfabric.ExecutionID]int64{id: 40, twin: 41} {
			_, err := w.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b, Execution: x, Epoch: 5, Sequence: 1, Amounts: tokens(n)})
			w.no(err)
		}
		spent := map[flowfabric.ExecutionID]int64{}
		for _, s := range g.record(b).Spenders {
			spent[s.Execution] = s.Used["tokens"]
		}
		w.all("spenders", eq(len(spent), 2), eq(spent[id], 40), eq(spent[twin], 41))
		given, _ := g.tell(refundOf(b, id))
		w.all("given back", eq(given, true), eq(g.spent(b, "tokens"), 41))
		log := g.record(b).Audit
		same(w, "audit log", log[len(log)-1].Detail, id.String()+" asked tokens=40")
		same(w, "warned of", slices.ContainsFunc(log, func(e admission.AuditEntry) bool {
			return e.What == "soft_limit" && (e.By == id.String() || e.By == twin.String())
		}), true)
		name, root := ids.UUID(id).String(), string(g.gateRoot(b))
		for _, who := range []string{name, "3-" + name, "." + name, "03." + name, "-1." + name, "65536." + name,
			"3." + strings.ToUpper(name), "3." + name[1:], "3." + name + " "} {
			for _, c := range [][]string{{"ff_spend", proto, b, "report", who, "0", "0", "k", "1", "tokens", "1"},
				{"ff_spend", proto, b, "undo", who, "5", "1", "", "0"},
				{"ff_settle_gates", proto, "1", b, who, "0", "0", "asked"}} {
				same(w, c[0]+" of "+who, w.fcallOn([]string{root}, c[0], c[1:]...).code, "invalid_input")
			}
		}
		w.check()
	}},
	{name: "a report of an epoch before the last two counts as repeated", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		b := g.budget(nil)
		report := func(what string, epoch uint64, replayed, late bool, spent int64) {
			w.Helper()
			r, err := w.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b, Execution: id, Epoch: epoch, Sequence: 1, Amounts: tokens(10)})
			w.no(err)
			w.all(what, eq(r.Replayed, replayed), eq(r.Late, late), eq(g.spent(b, "tokens"), spent))
		}
		for i, epoch := range []uint64{1, 2, 5} {
			report("of a holder", epoch, false, false, int64(10*(i+1)))
		}
		report("of the first, whose reply was lost", 1, true, true, 30)
		report("and again", 1, true, true, 30)
		report("of one between the last two, which was never heard of", 3, false, true, 40)
		report("of what is the third now", 2, true, true, 40)
		w.check()
	}},
	{name: "a late refund for an earlier attempt does not refund what the replay spent", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Refund = []string{"failed"} })
		k := g.asker("w1")
		id := w.create(asking(flowfabric.Gate(b)))
		run := func(n int64) flowfabric.Fence {
			w.Helper()
			f := k.granted(k.grants(1)...)[0].Fence
			_, err := w.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: id, Epoch: f.Epoch, Sequence: 1,
				Amounts: tokens(n)})
			w.no(err)
			return f
		}
		fail := func(f flowfabric.Fence) engine.News {
			w.Helper()
			_, err := w.e.FailExecution(w.ctx, f, engine.Failure{Category: "broken", Permanent: true})
			w.no(err)
			entries, _, err := w.e.ReadOutbox(w.ctx, w.p, "")
			w.no(err)
			ended := engine.News{Gate: b, Execution: id, What: "failed", Epoch: f.Epoch}
			sameList(w, "told", entries[0].News, ended)
			g.deliver()
			return ended
		}
		told := fail(run(10))
		same(w, "given back", g.spent(b, "tokens"), 0)
		w.advance(time.Millisecond)
		_, err := w.e.ReplayExecution(w.ctx, id, engine.Replay{Request: mint.UUID()})
		w.no(err)
		f := run(50)
		again, wake := g.tell(told)
		w.all("told again", eq(again, false), eqList(wake), eq(g.spent(b, "tokens"), 50))
		fail(f)
		same(w, "the replay's own end", g.spent(b, "tokens"), 0)
	}},
	{name: "a ledger outlives its execution's purge by half an hour, for late reports and refunds", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Refund = []string{"failed"} })
		k := g.asker("w1")
		id := w.create(asking(flowfabric.Gate(b)))
		f := k.granted(k.grants(1)...)[0].Fence
		report := func(sequence uint64, n int64) admission.Reported {
			w.Helper()
			r, err := w.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b, Execution: id, Epoch: f.Epoch, Sequence: sequence, Amounts: tokens(n)})
			w.no(err)
			return r
		}
		ledger := g.gateRoot(b).Ledger(b, strconv.Itoa(int(id.Partition()))+"."+ids.UUID(id).String())
		left := func() time.Duration {
			w.Helper()
			ms, err := w.do("PTTL", ledger).AsInt64()
			w.no(err)
			return time.Duration(ms) * time.Millisecond
		}
		report(1, 10)
		same(w, "kept while the execution is", left() > 6*24*time.Hour, true)
		_, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, nil)
		w.no(err)
		_, err = w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		entries, _, err := w.e.ReadOutbox(w.ctx, w.p, "")
		w.no(err)
		sameList(w, "told", entries[len(entries)-1].News,
			engine.News{Gate: b, Execution: id, What: engine.NewsPurged})
		g.deliver()
		w.all("counted still, by nobody who is there", eq(g.spent(b, "tokens"), 10), eq(len(g.record(b).Spenders), 0))
		same(w, "soon forgotten", left() > 0 && left() <= 30*time.Minute, true)

		same(w, "repeated", report(1, 10).Replayed, true)
		same(w, "one that was under way", report(2, 5).Applied, true)
		w.all("used, spenders", eq(g.spent(b, "tokens"), 15), eq(len(g.record(b).Spenders), 0))
		same(w, "still soon forgotten", left() > 0 && left() <= 30*time.Minute, true)
		refund := func(outcome string) bool {
			w.Helper()
			given, _ := g.tell(engine.News{Gate: b, Execution: id, What: outcome})
			return given
		}
		g.advance(20 * time.Minute)
		same(w, "told of the purge again", refund(engine.NewsPurged), false)
		w.all("a refund that was under way", eq(refund("failed"), true), eq(g.spent(b, "tokens"), 0))
		report(3, 7)
		g.advance(9 * time.Minute)
		same(w, "kept still", report(3, 7).Replayed, true)
		g.advance(time.Minute)
		w.all("forgotten", eq(refund(engine.NewsAsked), false), eq(g.spent(b, "tokens"), 7))
		same(w, "another of this id", report(1, 1).Replayed, false)
		w.all("is a spender", eq(len(g.record(b).Spenders), 1), eq(left() > 6*24*time.Hour, true))
		w.check()
		g.sound()
	}},
	{name: "a gate counts 64 dimensions a period and reserves places for those with limits", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		b := g.budget(func(b *admission.Gate) {
			b.Reset, b.Refund, b.Limits = flowfabric.Millis(time.Hour), []string{"failed"},
				map[string]admission.Limit{"tokens": {Hard: 1000}, "cost": {}}
		})
		sequence := uint64(0)
		report := func(more ...string) error {
			by := map[string]int64{}
			for _, dim := range more {
				by[dim] = 1
			}
			sequence++
			_, err := w.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: id, Epoch: 5, Sequence: sequence,
				Amounts: by})
			return err
		}
		var many []string
		for i := range 62 {
			many = append(many, "d"+strconv.Itoa(i))
		}
		w.no(report(many...))
		g.still(b, "a place that is kept", func() {
			err := report("tokens", "other")
			w.is(err, flowfabric.ErrInvalidInput)
			same(w, "named", strings.Contains(err.Error(), "dimension other: a gate counts at most 64 in a period"),
				true)
			_, _, err = w.e.AdjustUsage(w.ctx, b, map[string]int64{"other": 1})
			w.is(err, flowfabric.ErrInvalidInput)
		})
		w.no(report("tokens", "cost", "d7"))
		same(w, "counted", len(g.record(b).Used), 64)
		_, _, _, err := w.e.PutGate(w.ctx, admission.Gate{Name: b, Reset: flowfabric.Millis(time.Hour),
			Limits: hardLimit(1000)}, 1)
		w.no(err)
		_, _, _, err = w.e.PutGate(w.ctx, admission.Gate{Name: b, Reset: flowfabric.Millis(time.Hour),
			Limits: map[string]admission.Limit{"tokens": {Hard: 1}, "new": {}}}, 2)
		w.no(err)
		w.is(report("new"), flowfabric.ErrInvalidInput)
		given, _ := g.tell(refundOf(b, id))
		w.all("given back", eq(given, true), eq(g.spent(b, "d61"), 0))
		w.is(report("other"), flowfabric.ErrInvalidInput)
		g.advance(time.Hour)
		w.no(report("other", "new"))
		same(w, "in the next period", len(g.record(b).Used), 2)
		w.check()
	}},
	{name: "a ledger stays for a week, or for a day longer than the budget's period", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		for reset, want := range map[time.Duration]time.Duration{0: 7 * 24 * time.Hour, time.Hour: 7 * 24 * time.Hour,
			30 * 24 * time.Hour: 31 * 24 * time.Hour} {
			b := g.budget(func(b *admission.Gate) { b.Reset = flowfabric.Millis(reset) })
			_, err := w.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b, Execution: id, Epoch: 5, Sequence: 1, Amounts: tokens(1)})
			w.no(err)
			w.lives(g.gateRoot(b).Ledger(b, spenderText(id)), want)
		}
	}},
	{name: "removing a soft limit forgets that it was passed", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) {
			b.Limits = map[string]admission.Limit{"tokens": {Soft: 1}, "cost": {Soft: 1}}
		})
		crossed := func(key string) []admission.Breach {
			w.Helper()
			return g.spend(b, key, map[string]int64{"tokens": 2, "cost": 2}).Breaches
		}
		sameList(w, "both", crossed("1"), breach("cost", false, 2, 1, true), breach("tokens", false, 2, 1, true))
		revision := uint64(1)
		put := func(l map[string]admission.Limit) {
			w.Helper()
			r, _, _, err := w.e.PutGate(w.ctx, admission.Gate{Name: b, Limits: l}, revision)
			w.no(err)
			revision = r
		}
		put(map[string]admission.Limit{"cost": {Soft: 2}})
		kept, err := w.do("HKEYS", g.gateRoot(b).Gate(b)).AsStrSlice()
		w.no(err)
		w.all("marks", eq(slices.Contains(kept, "w:cost"), true), eq(slices.Contains(kept, "w:tokens"), false))
		put(map[string]admission.Limit{"tokens": {Soft: 1}, "cost": {Soft: 2}})
		sameList(w, "the one that stayed was told", crossed("2"), breach("cost", false, 4, 2, false),
			breach("tokens", false, 4, 1, true))
	}},
	{name: "a repeated call returns the same routes to wake, and a route with room waits no more", run: func(w *env) {
		g, id := newGates(w), mint.ID(w.p)
		b := g.budget(func(b *admission.Gate) { b.Reset = flowfabric.Millis(time.Hour) })
		ask := func(route uint64, open bool) {
			w.Helper()
			same(w, "room", g.room(b, route), open)
		}
		u := admission.Usage{Gate: b, Execution: id, Epoch: 5, Sequence: 1, Amounts: tokens(100)}
		_, err := w.e.ReportUsage(w.ctx, u)
		w.no(err)
		ask(3, false)
		three, four := []engine.Waiter{{Partition: w.p, Route: 3}}, []engine.Waiter{{Partition: w.p, Route: 4}}
		for _, first := range []bool{true, false, false} {
			undone, wake, err := w.e.UndoUsage(w.ctx, u)
			w.no(err)
			w.all("undone", eq(undone, first), eqList(wake, three...))
		}
		g.spend(b, "k", tokens(100))
		ask(3, false)
		wider := admission.Gate{Name: b, Reset: flowfabric.Millis(time.Hour), Limits: hardLimit(200)}
		for _, again := range []bool{false, true, true} {
			_, already, wake, err := w.e.PutGate(w.ctx, wider, 1)
			w.no(err)
			w.all("wider", eq(already, again), eqList(wake, three...))
		}
		g.spend(b, "l", tokens(100))
		ask(3, false)
		ask(4, false)
		g.advance(time.Hour)
		ask(3, true)
		same(w, "still waiting", g.record(b).Waiting, 1)
		never := u
		never.Sequence = 9
		_, wake, err := w.e.UndoUsage(w.ctx, never)
		w.no(err)
		sameList(w, "nothing to undo, and room", wake, four...)
		same(w, "waiting", g.record(b).Waiting, 0)
	}},
	{name: "a budget that refuses dimensions without limits names them in the error", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.StrictDimensions = true })
		_, err := w.e.ReportUsage(w.ctx,
			admission.Usage{Gate: b, Key: "k", Amounts: map[string]int64{"tokens": 1, "calls": 2, "images": 3}})
		w.is(err, denied.Dimension)
		same(w, "detail", err.Error(),
			"ff_spend: unknown_dimension: the gate refuses dimensions that it does not limit (calls, images)")
		same(w, "used", g.spent(b, "tokens"), 0)
	}},
	{name: "what a blocking budget refused waits for room for all of it, longer each time, and those before it do not",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) {
				b.Reset, b.OnHard = flowfabric.Millis(time.Hour),
					admission.HardBlock
			})
			big, other := mint.ID(w.p), mint.ID(w.p)
			sequence := uint64(0)
			spend := func(id flowfabric.ExecutionID, n int64, action admission.HardAction) {
				w.Helper()
				sequence++
				r, err := w.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: id, Epoch: 5, Sequence: sequence,
					Amounts: tokens(n)})
				w.no(err)
				same(w, "counted", r.Applied, action == "")
				if action != "" {
					same(w, "action", r.Action, action)
				}
			}
			ask := func(want engine.Admitted, executions ...flowfabric.ExecutionID) {
				w.Helper()
				holds := make([]engine.Hold, len(executions))
				for i, x := range executions {
					holds[i] = engine.Hold{Execution: x, Epoch: 5}
				}
				for _, look := range []bool{true, false} {
					a, err := w.e.Admit(w.ctx, b, engine.Waiter{Partition: w.p, Route: 3}, time.Second, look, holds)
					w.no(err)
					if want := want; look {
						want.Count = 0
						sameDeep(w, "room", a, want)
					} else {
						sameDeep(w, "admitted", a, want)
					}
				}
			}
			open := func(count int) engine.Admitted {
				return engine.Admitted{Count: count, Meters: "a", Suspects: []string{}}
			}
			short := func(first int, used int, pause time.Duration) engine.Admitted {
				return engine.Admitted{Count: first, Why: "amount", Retry: pause, Meters: "a", Dimension: "tokens",
					Used: used, Limit: 100, Refused: 70, Suspects: []string{}}
			}
			spend(other, 40, "")
			spend(big, 70, admission.HardBlock)
			ask(short(0, 40, 30*time.Second), big, other)
			ask(short(1, 40, 30*time.Second), other, big)
			ask(open(1), other)
			ask(open(0))
			spend(big, 101, admission.HardFail)
			ask(short(0, 40, 30*time.Second), big)
			_, _, err := w.e.AdjustUsage(w.ctx, b, tokens(-10))
			w.no(err)
			ask(open(1), big)
			spend(other, 1, "")
			spend(big, 70, admission.HardBlock)
			ask(short(0, 31, time.Minute), big)
			same(w, "refused", g.record(b).Refused["tokens"], 70+101+70)
			_, _, _, err = w.e.PutGate(w.ctx, admission.Gate{Name: b, Reset: flowfabric.Millis(time.Hour),
				OnHard: admission.HardBlock,
				Limits: hardLimit(99)}, 1)
			w.no(err)
			ask(open(1), big) // other limits: what was refused may be less now
			spend(big, 70, admission.HardBlock)
			g.advance(time.Hour)
			ask(open(1), big)
			same(w, "refused in the new period", len(g.record(b).Refused), 0)
			spend(big, 70, "")
			spend(other, 30, admission.HardBlock)
			ask(open(1), big)
			w.check()
		}},
}
