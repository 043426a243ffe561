package simulate

import (
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// rounds bounds how often the end looks for work that is left. Chains of waits, retries and reclaims are shorter.
const rounds = 60

// drain ends the deployment without faults: everything that exists comes to its end, because nothing is left that would
// keep it from that. Time passes as far as the first timer.
func (w *world) drain() {
	w.faults, w.late = 0, nil
	w.log("no more faults")
	w.unheard()
	m, k := w.drainers()
	for _, name := range schedules {
		_ = w.removeSchedule("p1", name)
	}
	over := false
	for n := 0; n < rounds && !over && len(w.bad) == 0; n++ {
		w.steps++
		over = w.settle(m, k)
	}
	if len(w.bad) > 0 {
		return
	}
	for p := range uint16(partitions) {
		for _, id := range w.open[p] {
			f, err := w.e.Explain(w.ctx, id)
			w.wrong("%s never ends: it is %s, %v", short(id), f.Code, err)
		}
	}
	if !over && len(w.bad) == 0 {
		w.wrong("everything has ended, but a flow goes on, or an outbox is never empty")
	}
	w.unexpected()
	w.audit()
}

// drainers are who works at the end.
func (w *world) drainers() (*maintainer, *worker) {
	k := newWorker(w, "last", false)
	return &maintainer{party{world: w, name: "m1"}}, k
}

// settle makes one round, and tells whether all is over.
func (w *world) settle(m *maintainer, k *worker) (over bool) {
	next, outbox := time.Hour, 0
	for p := range uint16(partitions) {
		for range 20 {
			out := m.tend(p, false, false)
			if next = min(next, out.Next); !out.Owner {
				w.advance(time.Second) // the other maintainer has gone without a word
			} else if !out.More && out.Outbox == 0 {
				break
			}
			outbox += out.Outbox
		}
		for range 20 {
			if more, err := w.e.DrainFlows(w.ctx, p); err != nil || !more {
				break
			}
		}
		w.free(p)
	}
	worked := k.finish()
	w.touched = [partitions]bool{true, true}
	w.check()
	if left := len(w.open[0]) + len(w.open[1]); left > 0 || outbox > 0 || worked {
		switch {
		case worked || outbox > 0:
		case w.steps%10 == 0:
			w.advance(25 * time.Hour) // flows that nobody has released are given up
		default:
			w.advance(max(next, time.Second))
		}
		return false
	}
	for _, id := range w.flows {
		f, err := w.e.DescribeFlow(w.ctx, id)
		if err == nil && !f.State.Terminal() {
			w.advance(time.Hour)
			return false
		}
	}
	return true
}

// free ends what waits for somebody who never comes.
func (w *world) free(p uint16) {
	for _, id := range w.open[p] {
		f, err := w.e.Explain(w.ctx, id)
		switch {
		case err != nil:
			w.wrong("explain %s: %v", short(id), err)
		case strings.HasPrefix(string(f.Code), "R4"):
			_ = w.unhold("o1", id)
		case strings.HasPrefix(string(f.Code), "S") && f.TimeoutAt.IsZero() && f.Code != codes.AwaitingChildren:
			_ = w.resume("o1", id, engine.ResumeRequest{Request: flowfabric.UUID(w.uuid())})
		case f.Code == codes.BlockedReplay && w.waitsForNobody(id):
			_ = w.cancel("o1", id, nil)
		}
	}
}

// waitsForNobody tells of a member that was replayed whether all that it waits for has ended: it goes on if somebody
// replays those, too.
func (w *world) waitsForNobody(id flowfabric.ExecutionID) bool {
	ups, err := w.e.Upstreams(w.ctx, id)
	if err != nil {
		w.wrong("read upstreams of %s: %v", short(id), err)
	}
	open := w.open[id.Partition()]
	return !slices.ContainsFunc(ups, func(up engine.UpstreamOutcome) bool { return slices.Contains(open, up.From) })
}
