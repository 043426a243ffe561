package conformance

import (
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

var spendScenarios = []scenario{
	{name: "spec 70 §2.4 the last report of a holder is taken back, once", run: func(w *world) {
		g, id := newGates(w), flowfabric.NewExecutionID(w.p)
		b := g.budget(nil)
		report := func(epoch, sequence uint64, n int64) engine.Usage {
			u := engine.Usage{Budget: b, Execution: id, Epoch: epoch, Sequence: sequence, Amounts: map[string]int64{"tokens": n, "calls": 1}}
			_, err := w.e.ReportUsage(w.ctx, u)
			w.no(err)
			return u
		}
		undo := func(u engine.Usage, want bool, tokens int64) {
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
		record, err := w.e.ReadBudget(w.ctx, b, 10, 0)
		w.no(err)
		same(w, "ledger", words(record.Spenders[0].Used), "map[calls:2 tokens:40]")
		missing := third
		missing.Budget += "x"
		_, _, err = w.e.UndoUsage(w.ctx, missing)
		w.is(err, flowfabric.ErrBudgetNotFound)
		missing.Budget = b
		missing.Execution = flowfabric.NewExecutionID(w.p)
		undo(missing, false, 40)
	}},
	{name: "spec 70 §2.5 what was given back, or counted in another period, is not taken back twice", run: func(w *world) {
		g, id := newGates(w), flowfabric.NewExecutionID(w.p)
		b := g.budget(func(b *engine.BudgetSpec) { b.Reset = time.Minute })
		report := func(sequence uint64) engine.Usage {
			u := engine.Usage{Budget: b, Execution: id, Epoch: 5, Sequence: sequence, Amounts: map[string]int64{"tokens": 40}}
			_, err := w.e.ReportUsage(w.ctx, u)
			w.no(err)
			return u
		}
		u := report(1)
		_, _, err := w.e.ReleaseUsage(w.ctx, "me", []engine.Refund{{Budget: b, Execution: id, Outcome: engine.RefundAsked}})
		w.no(err)
		g.spend(b, "other", map[string]int64{"tokens": 25})
		_, _, err = w.e.UndoUsage(w.ctx, u)
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
		_, _, err = w.e.ReleaseUsage(w.ctx, "me", []engine.Refund{{Budget: b, Execution: id, Outcome: engine.RefundAsked}})
		w.no(err)
		own := func(key string) {
			w.Helper()
			_, err := w.e.ReportUsage(w.ctx, engine.Usage{Budget: b, Execution: id, Key: key, Amounts: tokens(20)})
			w.no(err)
		}
		keep := func(what string, u engine.Usage, used int64) {
			w.Helper()
			undone, _, err := w.e.UndoUsage(w.ctx, u)
			w.no(err)
			same(w, what, words(undone, g.spent(b, "tokens")), words(false, used))
		}
		own("after-the-refund")
		keep("what came after a refund", u, 45)
		u = report(4)
		g.advance(time.Minute + time.Millisecond)
		own("in-the-next-period")
		keep("what came in the next period", u, 20)
	}},
	{name: "spec 70 §2.4 who waits for a budget is told that a report was taken back", run: func(w *world) {
		g := newGates(w)
		b := g.budget(nil)
		u := engine.Usage{Budget: b, Execution: flowfabric.NewExecutionID(w.p), Epoch: 5, Sequence: 1, Amounts: map[string]int64{"tokens": 100}}
		_, err := w.e.ReportUsage(w.ctx, u)
		w.no(err)
		rooms, err := w.e.CheckBudgets(w.ctx, w.p, 3, []string{b})
		w.no(err)
		same(w, "room", rooms[0].Open, false)
		_, wake, err := w.e.UndoUsage(w.ctx, u)
		w.no(err)
		same(w, "wake", words(wake), words([]engine.Waiter{{Partition: w.p, Route: 3}}))
		same(w, "used", g.spent(b, "tokens"), 0)
	}},
	{name: "spec 70 §2.4 a ledger is of a whole id: partition and UUID, written in one way", run: func(w *world) {
		g, id := newGates(w), flowfabric.NewExecutionID(3)
		b := g.budget(func(b *engine.BudgetSpec) {
			b.WarnSoft, b.Limits = true, map[string]engine.Limit{"tokens": {Hard: 100, Soft: 80}}
		})
		twin := flowfabric.MakeExecutionID(65535, id.UUID())
		for x, n := range map[flowfabric.ExecutionID]int64{id: 40, twin: 41} {
			_, err := w.e.ReportUsage(w.ctx, engine.Usage{Budget: b, Execution: x, Epoch: 5, Sequence: 1, Amounts: tokens(n)})
			w.no(err)
		}
		spent := map[flowfabric.ExecutionID]int64{}
		for _, s := range g.record(b).Spenders {
			spent[s.Execution] = s.Used["tokens"]
		}
		same(w, "spenders", words(len(spent), spent[id], spent[twin]), "2 40 41")
		given, _, err := w.e.ReleaseUsage(w.ctx, "me", []engine.Refund{{Budget: b, Execution: id, Outcome: engine.RefundAsked}})
		w.no(err)
		same(w, "given back", words(given, g.spent(b, "tokens")), "[true] 41")
		book := g.record(b).Book
		same(w, "book", book[len(book)-1].Detail, id.String()+" asked tokens=40")
		same(w, "warned of", slices.ContainsFunc(book, func(e engine.BookEntry) bool {
			return e.What == "soft_limit" && (e.By == id.String() || e.By == twin.String())
		}), true)
		name, root := id.UUID().String(), string(g.budgetRoot(b))
		for _, who := range []string{name, "{fp:3}:" + name, "." + name, "03." + name, "-1." + name, "65536." + name, "3." + strings.ToUpper(name), "3." + name[1:], "3." + name + " "} {
			for _, c := range [][]string{{"ff_report_usage", "1", b, who, "0", "0", "k", "1", "tokens", "1"}, {"ff_undo_usage", "1", b, who, "5", "1"},
				{"ff_release_usage", "1", "me", "1", b, who, "asked"}} {
				same(w, c[0]+" of "+who, w.fcallOn([]string{root}, c[0], c[1:]...).code, "invalid_input")
			}
		}
		w.check()
	}},
	{name: "spec 70 §1.2 a strict budget names the dimensions that it does not know", run: func(w *world) {
		g := newGates(w)
		b := g.budget(func(b *engine.BudgetSpec) { b.Strict = true })
		_, err := w.e.ReportUsage(w.ctx, engine.Usage{Budget: b, Key: "k", Amounts: map[string]int64{"tokens": 1, "calls": 2, "images": 3}})
		w.is(err, flowfabric.ErrUnknownDimension)
		same(w, "detail", err.Error(), "ff_report_usage: unknown_dimension: the budget is strict and has no limit for the dimension (calls, images)")
		same(w, "used", g.spent(b, "tokens"), 0)
	}},
}
