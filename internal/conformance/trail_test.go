package conformance

import (
	"context"
	"strings"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// notes are the entries of the partition's audit trail, the newest first.
func (w *env) notes() []string {
	w.Helper()
	changes, _, err := w.e.ReadTrail(w.ctx, int(w.p), engine.Position{}, 100)
	w.no(err)
	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.Join([]string{c.Action, c.Name, c.By, c.From, c.Why, c.Detail}, "|"))
	}
	return lines
}

// noted is a context of a change that is to be noted.
func (w *env) noted(request, action string) context.Context {
	ctx := trail.Acting(w.ctx, trail.Actor{From: "api 192.0.2.1"})
	return trail.With(ctx, trail.Note{Request: request, Action: action, On: "execution", Name: "x", By: "anna",
		Why: "a\x1fb", Detail: "7"})
}

var trailScenarios = []scenario{
	{name: "a change is kept with who made it, from where and why", run: func(w *env) {
		id := w.create()
		_, err := w.e.HoldExecution(w.noted("r1", "hold"), id)
		w.no(err)
		w.check()
		sameList(w, "the trail", w.notes(), "hold|x|anna|api 192.0.2.1|a b|7")
		_, err = w.e.UnholdExecution(trail.As(w.ctx, "bea", ""), id) // nobody said that it is to be kept
		w.no(err)
		_, _, err = w.e.ChangePriority(w.noted("r2", "set priority"), id, 9)
		w.no(err)
		w.no(w.e.SetTags(w.noted("r3", "set tags"), id, map[string]string{"a.b": "c"}, nil))
		w.check()
		sameList(w, "the trail, newest first", w.notes(), "set tags|x|anna|api 192.0.2.1|a b|7",
			"set priority|x|anna|api 192.0.2.1|a b|7", "hold|x|anna|api 192.0.2.1|a b|7")
		history, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		var told []string
		for _, e := range history {
			told = append(told, string(e.Kind)+" "+e.By+" "+e.From)
		}
		same(w, "the history", strings.Join(told, ", "),
			"created  , held anna api 192.0.2.1, unheld bea , priority anna api 192.0.2.1, tagged anna api 192.0.2.1")
	}},
	{name: "a signal leaves its note if it counts, and none if it counts for nothing", run: func(w *env) {
		w.seed()
		_, c, m := w.waiting()
		deliver := func(request, name string, effect suspend.Effect) {
			w.Helper()
			d, err := w.e.DeliverSignal(w.noted(request, "answer"), c.Fence.Execution, m.ID, m.Digest,
				suspend.SentSignal{Name: name})
			w.no(err)
			w.check()
			same(w, "effect", d.Effect, effect)
		}
		deliver("r1", "other", waitwords.EffectNone)
		sameList(w, "the trail", w.notes())
		deliver("r2", "go", waitwords.EffectSatisfied)
		sameList(w, "the trail", w.notes(), "answer|x|anna|api 192.0.2.1|a b|7")
	}},
	{name: "what changes nothing leaves no note", run: func(w *env) {
		id := w.create()
		_, err := w.e.HoldExecution(w.noted("r1", "hold"), id)
		w.no(err)
		w.unchanged("holding what is held", func() {
			already, err := w.e.HoldExecution(w.noted("r2", "hold"), id)
			w.no(err)
			same(w, "already", already, true)
		})
		w.unchanged("what is refused", func() {
			if _, err := w.e.RevokeLease(w.noted("r3", "revoke"), id, ""); err == nil {
				w.Error("revoked what nobody runs")
			}
		})
	}},
	{name: "a request that takes several calls leaves one note", run: func(w *env) {
		ctx := w.noted("r1", "hold all")
		for _, id := range w.createN(3) {
			_, err := w.e.HoldExecution(ctx, id)
			w.no(err)
		}
		w.check()
		same(w, "notes", len(w.notes()), 1)
		_, err := w.e.HoldExecution(w.noted("r2", "hold"), w.create())
		w.no(err)
		same(w, "notes of two requests", len(w.notes()), 2)
	}},
	{name: "a history keeps the first bytes of who asks and why, and no half characters", run: func(w *env) {
		id := w.create()
		ctx := trail.As(w.ctx, strings.Repeat("a", 63)+"éb", strings.Repeat("é", 300))
		_, err := w.e.HoldExecution(ctx, id)
		w.no(err)
		history, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		last := history[len(history)-1]
		w.all("the entry", eq(last.By, strings.Repeat("a", 63)), eq(last.Reason, strings.Repeat("é", 128)),
			eq(last.From, ""))
		same(w, "notes", len(w.notes()), 0)
	}},
	{name: "the audit logs of gates keep who asks, and why of a correction", run: func(w *env) {
		g := newGates(w)
		ctx := trail.As(w.ctx, strings.Repeat("a", 63)+"éb", strings.Repeat("é", 127)+"a"+"é")
		b := admission.Gate{Name: w.gateName("asked"), Limits: hardLimit(9), Refund: []string{"failed"}}
		_, _, _, err := w.e.PutGate(ctx, b, 0)
		w.no(err)
		_, _, err = w.e.AdjustUsage(ctx, b.Name, tokens(1))
		w.no(err)
		for _, outcome := range []string{engine.NewsAsked, "failed"} {
			id := mint.ID(w.p)
			_, err := w.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b.Name, Execution: id, Key: outcome, Amounts: tokens(1)})
			w.no(err)
			_, _, err = w.e.SettleGates(ctx, []engine.News{{Gate: b.Name, Execution: id, What: outcome}})
			w.no(err)
		}
		_, _, _, err = w.e.ResetUsage(ctx, b.Name, false)
		w.no(err)
		b.Scope = "other"
		_, _, _, err = w.e.PutGate(w.ctx, b, 1)
		w.no(err)
		var told []string
		for _, e := range g.record(b.Name).Audit {
			told = append(told, strings.TrimSpace(e.What+" "+e.Outcome+e.By+e.Reason))
		}
		by := strings.Repeat("a", 63)
		sameList(w, "the first one's", told, "created "+by, "adjusted "+by+strings.Repeat("é", 127)+"a",
			"release asked"+by, "release failedoutbox", "period "+by, "changed")
		same(w, "nobody", g.record(b.Name).ChangedBy, "")
		q := g.gate(admission.Gate{Concurrency: 1})
		_, _, _, err = w.e.PutGate(ctx, admission.Gate{Name: q, Concurrency: 2}, 1)
		w.no(err)
		same(w, "the second one's", g.record(q).ChangedBy, by)
		same(w, "notes", len(w.notes()), 0)
	}},
	{name: "a note that cannot be read is refused", run: func(w *env) {
		id := ids.UUID(w.create()).String()
		for _, given := range []string{proto + "\x1f", proto + "\x1fa\x1fb", proto + strings.Repeat("\x1f", 9),
			proto + "\x1f1\x1f" + strings.Repeat("2", 257) + "\x1f3\x1f4\x1f5\x1f6\x1f7\x1f8\x1f9",
			proto + "\x1f1\x1f2\x1f3\x1f4\x1f5\x1f6\x1f7\x1f" + strings.Repeat("8", 1025) + "\x1f9",
			"x\x1f1\x1f2\x1f3\x1f4\x1f5\x1f6\x1f7\x1f8\x1f9",
			proto + "\x1f1\x1f2\x1f3\x1f4\x1f5\x1f6\x1f7\x1f8\x1f9\x1f10", proto +
				"\x1f1\x1f2\x1f3\x1f4\x1f5\x1f6\x1f7\x1f8\x1f" + strings.Repeat("x", 4097), strings.Repeat("9", 20)} {
			w.unchanged(given, func() {
				same(w, given, w.fcall("ff_hold_execution", given, id, "1").code, "invalid_input")
				same(w, "freeze with "+given, w.fcall("ff_freeze_partition", given, "1").code, "invalid_input")
			})
		}
		same(w, "another protocol with a note", w.fcall("ff_hold_execution",
			"1\x1f1\x1f2\x1f3\x1f4\x1f5\x1f6\x1f7\x1f8\x1f9", id, "1").code, "protocol_mismatch")
	}},
	{name: "what is frozen or declared dead keeps why and by whom as one text", run: func(w *env) {
		long, cut := strings.Repeat("é", 127)+"a", strings.Repeat("é", 127)+"a "
		for _, x := range []struct{ by, why, want string }{{"", "", ""}, {"anna", "", "by anna"},
			{"", "it moves", "it moves"}, {"anna", "it moves", "it moves (by anna)"},
			{strings.Repeat("b", 70), "x", "x (by " + strings.Repeat("b", 64) + ")"}, {"anna", long, cut},
			{"", "a" + strings.Repeat("é", 300), "a" + strings.Repeat("é", 127)}} {
			w.reset()
			ctx, name := trail.As(w.ctx, x.by, x.why), w.homed("w")
			w.register(name, "t")
			k := w.worker(name)
			k.one(w.create())
			_, err := w.e.MarkWorkerDead(ctx, name)
			w.no(err)
			_, err = w.e.MarkSessionDead(ctx, w.p, k.session)
			w.no(err)
			w.no(w.e.FreezePartition(ctx, w.p))
			p, err := w.e.DescribePartition(w.ctx, w.p)
			w.no(err)
			w.no(w.e.ThawPartition(w.ctx, w.p))
			w.check()
			w.all("why", eq(w.lone().Reason, x.want), eq(w.sessions()[0].Reason, x.want), eq(p.FrozenReason, x.want))
		}
	}},
	{name: "who freezes a partition is noted", run: func(w *env) {
		w.no(w.e.FreezePartition(w.noted("r1", "freeze"), w.p))
		w.no(w.e.ThawPartition(w.noted("r2", "thaw"), w.p))
		w.check()
		sameList(w, "notes", w.notes(), "thaw|x|anna|api 192.0.2.1|a b|7", "freeze|x|anna|api 192.0.2.1|a b|7")
	}},
}
