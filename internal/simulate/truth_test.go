package simulate

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// truth is what the calls that were carried out did, whether or not their callers heard of it.
type truth struct {
	known   []flowfabric.ExecutionID // in the order of their creation
	flows   []flowfabric.FlowID
	points  []point
	of      map[flowfabric.ExecutionID]*fate
	settled int // ends that were seen
	gone    int // leases that were taken over
}

// point is a waitpoint.
type point struct {
	engine.Minted
	id flowfabric.ExecutionID
}

// fate is what happened to an execution.
type fate struct {
	order   int               // of its creation
	lone    bool              // it was submitted alone, so it depends on nobody
	epoch   uint64            // of the newest claim
	steps   map[string]string // recorded and not forgotten
	ends    int
	replays int
}

// created notes an execution.
func (w *world) created(id flowfabric.ExecutionID) *fate {
	if f := w.of[id]; f != nil {
		return f
	}
	if w.of == nil {
		w.of = map[flowfabric.ExecutionID]*fate{}
	}
	w.of[id] = &fate{order: len(w.known), steps: map[string]string{}}
	w.known = append(w.known, id)
	return w.of[id]
}

// younger lists what an execution may wait for without ever waiting for itself. Longer circles than one of two are not
// refused: nothing but a time limit or an operator ends them.
func (w *world) younger(id flowfabric.ExecutionID) (list []flowfabric.ExecutionID) {
	for _, other := range w.known[w.created(id).order+1:] {
		if w.of[other].lone {
			list = append(list, other)
		}
	}
	return list
}

func (w *world) joined(members []engine.FlowMember) {
	for _, m := range members {
		w.created(m.ID)
	}
}

func (w *world) flow(id flowfabric.FlowID) {
	for _, f := range w.flows {
		if f == id {
			return
		}
	}
	w.flows = append(w.flows, id)
}

func (w *world) pointed(id flowfabric.ExecutionID, m engine.Minted) {
	for _, p := range w.points {
		if p.ID == m.ID {
			return
		}
	}
	w.points = append(w.points, point{m, id})
}

// claimed: a claim is newer than all before it, and brings every step that was recorded.
func (w *world) claimed(c engine.Claim, repeated bool) {
	id := c.Fence.Execution
	f := w.created(id)
	if c.Fence.Epoch < f.epoch || c.Fence.Epoch == f.epoch && !repeated {
		w.wrong("%s was claimed with epoch %d after epoch %d", short(id), c.Fence.Epoch, f.epoch)
	}
	if c.Type == flowfabric.AttemptReclaim && !repeated {
		w.gone++
	}
	f.epoch = c.Fence.Epoch
	for name, value := range f.steps { // the order is none of a decision
		if got, ok := c.Steps[name]; !ok || string(got) != value {
			w.wrong("%s was claimed with %q for step %s, which was recorded as %q", short(id), got, name, value)
		}
	}
}

// fenced: only the newest claim allows a holder to write.
func (w *world) fenced(f flowfabric.Fence, what string) {
	if newest := w.created(f.Execution).epoch; f.Epoch != newest {
		w.wrong("somebody %s %s with epoch %d, and %d was claimed since", what, short(f.Execution), f.Epoch, newest)
	}
}

// ended: an execution ends once, and once more for each replay.
func (w *world) ended(id flowfabric.ExecutionID) {
	f := w.created(id)
	f.ends++
	w.settled++
	if f.ends > 1+f.replays {
		w.wrong("%s ended %d times and was replayed %d times", short(id), f.ends, f.replays)
	}
}

func (w *world) recorded(id flowfabric.ExecutionID, name, value string) {
	w.created(id).steps[name] = value
}

// forgotten: the execution begins anew.
func (w *world) forgotten(id flowfabric.ExecutionID) { clear(w.created(id).steps) }

func (w *world) replayed(id flowfabric.ExecutionID) { w.created(id).replays++ }
