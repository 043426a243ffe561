package runtime_test

import (
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// Ten of high priority come behind 300 of low priority, in a worker with one slot that takes 64 partitions in turn.
// They run next, whichever way they become urgent: after what ran then, and what was claimed ahead.
func TestUrgentWorkRunsNext(t *testing.T) {
	const partitions, low, urgent = 64, 300, 10
	for name, x := range map[string]struct {
		before, spread int // how many starts come before, and over how many partitions the others wait
		make           func(l *line, waiting []flowfabric.ExecutionID) []flowfabric.ExecutionID
	}{
		"submitted": {5, partitions, func(l *line, _ []flowfabric.ExecutionID) (ids []flowfabric.ExecutionID) {
			for i := range urgent {
				ids = append(ids, l.submit("x", placed(i*6%partitions, 9000, "default")))
			}
			return ids
		}},
		"where nothing waited": {40, partitions / 2,
			func(l *line, _ []flowfabric.ExecutionID) (ids []flowfabric.ExecutionID) {
				for i := range urgent {
					ids = append(ids, l.submit("x", placed(partitions/2+i, 9000, "default")))
				}
				return ids
			}},
		"changed by an operator": {5, partitions,
			func(l *line, waiting []flowfabric.ExecutionID) (ids []flowfabric.ExecutionID) {
				for _, id := range waiting {
					if !slices.ContainsFunc(ids, func(other flowfabric.ExecutionID) bool {
						return other.Partition() == id.Partition()
					}) && len(ids) < urgent {
						if _, _, err := l.engine.ChangePriority(l.ctx, id, 9000); err != nil {
							l.Fatal(err)
						}
						ids = append(ids, id)
					}
				}
				return ids
			}},
		"due": {5, partitions, func(l *line, _ []flowfabric.ExecutionID) (ids []flowfabric.ExecutionID) {
			for i := range urgent {
				ids = append(ids, l.submit("x", placed(i*6%partitions, 9000, "default"),
					func(x *engine.NewExecution) { x.Delay = flowfabric.Millis(time.Millisecond) }))
			}
			for _, id := range ids {
				l.reach(id, codes.WaitingFirst, codes.WaitingInterrupted) // the latter was claimed ahead, and given back
			}
			return ids
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lineUp(t, partitions, func(l *line) {
				var waiting []flowfabric.ExecutionID
				for i := range low {
					waiting = append(waiting, l.submit("x", placed(i%x.spread, 0, "default")))
				}
				ran := append([]flowfabric.ExecutionID{l.begin(runtime.Config{})}, l.starts(x.before)...)
				waiting = slices.DeleteFunc(waiting, func(id flowfabric.ExecutionID) bool {
					return slices.Contains(ran, id)
				})
				heard := l.heard()
				ids := x.make(l, waiting[10:]) // the first may have been claimed ahead
				l.eventually("the worker has heard of all", func() bool { return l.heard() >= heard+urgent })
				next := l.starts(12)
				if late := slices.DeleteFunc(slices.Clone(ids), func(id flowfabric.ExecutionID) bool {
					return slices.Contains(next, id)
				}); len(late) > 0 {
					l.Errorf("%s were not among the next 12, which were\n%s\nand then came\n%s\nof\n%s", late, next,
						l.starts(40), ids)
				}
			})
		})
	}
}

// heard is how many messages about work the worker has had: for it, or for all.
func (l *line) heard() (n float64) {
	l.Helper()
	all, err := l.reg.Gather()
	if err != nil {
		l.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() != "flowfabric_doorbell_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if text := m.GetLabel()[0].GetValue(); text == "urgent" || text == "work" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
