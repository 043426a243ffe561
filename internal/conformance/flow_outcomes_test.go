package conformance

import (
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// kin is an execution that waits for children, and who works for all of them.
type kin struct {
	*graph
	parent flowfabric.ExecutionID
}

func (w *env) kin() *kin {
	id := w.create()
	return &kin{&graph{env: w, id: flowfabric.FlowID(id), w: w.worker("k")}, id}
}

// ask makes the call by which the holder waits for children of these names.
func (f *kin) ask(c engine.Claim, wait string, mode engine.WaitMode, names ...string) (childtest.Waited, error) {
	q := engine.ChildWait{Name: wait, Mode: mode}
	for _, name := range names {
		x := f.item()
		x.ID, x.Digest = f.parent.Child(wait, name), name
		q.Children = append(q.Children, engine.FlowMember{NewExecution: x, Node: name})
	}
	return childtest.Wait(f.ctx, f.e, c.Fence, q)
}

// wait makes that call and fails unless the lease is given up.
func (f *kin) wait(c engine.Claim, wait string, mode engine.WaitMode, names ...string) {
	f.Helper()
	out, err := f.ask(c, wait, mode, names...)
	f.no(err)
	same(f.env, "parked", out.Parked, true)
	f.check()
}

// told is what a claim says of a wait, "none" if it says nothing.
func (f *kin) told(c engine.Claim, wait string) string {
	f.Helper()
	value, ok := c.Steps[engine.StepChildren+wait]
	if !ok {
		return "none"
	}
	outcomes, err := engine.DecodeChildren(f.p, value)
	f.no(err)
	return f.outcomes(outcomes)
}

func (f *kin) outcomes(outcomes []engine.ChildOutcome) string {
	var out []string
	for _, o := range outcomes {
		out = append(out, fmt.Sprintf("%s:%s:%d", o.Node, o.Outcome, o.Attempt))
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

var flowOutcomeScenarios = []scenario{
	{name: "the claim of a resumed parent brings its children's outcomes, which then stay fixed", run: func(w *env) {
		f := w.kin()
		f.wait(f.w.one(f.parent), "first", engine.WaitFirst, "a", "b")
		c := f.claim()
		f.fail(c["a"])
		again := f.claim()["root"]
		same(w, "told", f.told(again, "first"), "[a:failed:1 b::0]")
		f.complete(c["b"], "late")
		_, err := w.e.ReplayExecution(w.ctx, f.parent.Child("first", "a"), engine.Replay{})
		w.no(err)
		f.complete(f.claim()["a"], "now")
		out, err := f.ask(again, "first", engine.WaitFirst, "a", "b")
		w.no(err)
		w.check()
		same(w, "asked again", f.outcomes(out.Outcomes), "[a:failed:1 b::0]")
		f.wait(again, "second", engine.WaitAll, "x")
		f.complete(f.claim()["x"], "")
		last := f.claim()["root"]
		same(w, "both", f.told(last, "first")+f.told(last, "second"), "[a:failed:1 b::0][x:completed:1]")
		f.complete(last, "")
		f.ends(flowfabric.FlowCompleted)
	}},
	{name: "a replay keeps waits whose children all succeeded and evaluates the others again", run: func(w *env) {
		for _, drop := range []bool{false, true} {
			f := w.kin()
			f.wait(f.w.one(f.parent), "good", engine.WaitAll, "a")
			f.complete(f.claim()["a"], "")
			f.wait(f.claim()["root"], "bad", engine.WaitAll, "b", "c")
			c := f.claim()
			f.complete(c["b"], "")
			f.fail(c["c"])
			f.fail(f.claim()["root"])
			f.ends(flowfabric.FlowFailed)
			_, err := w.e.ReplayExecution(w.ctx, f.parent.Child("bad", "c"), engine.Replay{})
			w.no(err)
			_, err = w.e.ReplayExecution(w.ctx, f.parent, engine.Replay{DropSteps: drop})
			w.no(err)
			w.check()
			c = f.claim()
			kept := "[a:completed:1]"
			if drop {
				kept = "none"
			}
			same(w, "told", f.told(c["root"], "good")+" "+f.told(c["root"], "bad"), kept+" none")
			f.wait(c["root"], "bad", engine.WaitAll, "b", "c")
			f.complete(c["c"], "repaired")
			last := f.claim()["root"]
			same(w, "now", f.told(last, "bad"), "[b:completed:1 c:completed:2]")
			f.complete(last, "")
			f.ends(flowfabric.FlowCompleted)
		}
	}},
}
