package conformance

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// What a partition counts of ends.
var totalScenarios = []scenario{
	{name: "a partition counts how each execution ended, whatever is purged or replayed", run: func(w *env) {
		none := flowfabric.Totals{}
		same(w, "at first", w.describe().Totals, none)
		k := w.worker("w1")
		ids := w.createN(6)
		w.create(delay(time.Hour), deadline(2*time.Hour))
		duplicate := w.item()
		for range 2 { // the second is a repeat
			_, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{duplicate})
			w.no(err)
		}
		same(w, "created", w.describe().Totals, none)
		held := k.claim(4)
		for _, c := range held[:2] {
			w.no(w.complete(c.Fence, "").Err)
		}
		w.no(w.complete(held[0].Fence, "").Err) // a repeat
		w.fail(held[2].Fence, "x")
		w.cancel(held[3].Fence.Execution)
		w.cancel(ids[4]) // it never ran
		same(w, "ended", w.describe().Totals, flowfabric.Totals{Completed: 2, Failed: 1, Cancelled: 2})
		w.advance(3 * time.Hour)
		w.settleTime()
		same(w, "expired", w.describe().Totals, flowfabric.Totals{Completed: 2, Failed: 1, Cancelled: 2, Expired: 1})
		failed := held[2].Fence.Execution
		w.replay(failed, engine.Replay{})
		same(w, "replayed", w.describe().Totals, flowfabric.Totals{Completed: 2, Failed: 1, Cancelled: 2, Expired: 1})
		k = w.worker("w2")
		for _, c := range k.claim(10) {
			w.no(w.complete(c.Fence, "").Err)
		}
		want := flowfabric.Totals{Completed: 5, Failed: 1, Cancelled: 2, Expired: 1}
		same(w, "ended again", w.describe().Totals, want)
		w.check()
		for _, c := range held {
			_, err := w.e.PurgeExecution(w.ctx, c.Fence.Execution, 0)
			w.no(err)
		}
		want.Purged = len(held)
		same(w, "purged", w.describe().Totals, want)
		w.check()
	}},
	{name: "members of flows are counted, too, and skipped ones on their own", run: func(w *env) {
		f := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"b"}).node("d", nil)
		f.submit(engine.SealClosed)
		same(w, "created", w.describe().Totals, flowfabric.Totals{})
		k := w.worker("w1")
		for _, c := range k.claim(10) {
			if c.Node == "a" {
				_, err := w.e.FailExecution(w.ctx, c.Fence, engine.Failure{Category: "x", Permanent: true})
				w.no(err)
			} else {
				w.no(w.complete(c.Fence, "").Err)
			}
		}
		w.settleTime()
		same(w, "ended", w.describe().Totals, flowfabric.Totals{Completed: 1, Failed: 1, Skipped: 2})
		same(w, "as of flows", w.describe().FlowTotals.Skipped, 2)
		w.check()
	}},
}
