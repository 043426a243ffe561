package explain

import (
	"context"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// crew are the live workers of a store, as far as they could be read.
type crew struct {
	live []flowfabric.Worker
	err  error // the registry of some partition could not be read
}

// muster reads the live workers.
func muster(ctx context.Context, from Source) (c crew) {
	for _, p := range from.Workers(ctx) {
		if p.Err != nil {
			c.err = fmt.Errorf("partition %d: %w", p.Partition, p.Err)
		}
		for _, w := range p.Reply {
			if w.Alive {
				c.live = append(c.live, w)
			}
		}
	}
	return c
}

// able splits those that take a route into those that can run it and those that lack a capability. Each is judged
// alone.
func (c crew) able(r engine.Route) (able, unable []flowfabric.Worker) {
	for _, w := range c.live {
		switch {
		case !engine.Takes(w.WorkerInfo, r):
		case len(engine.Lacks(w.WorkerInfo, r)) == 0:
			able = append(able, w)
		default:
			unable = append(unable, w)
		}
	}
	return able, unable
}

// instead names kinds that live workers take from the lane of a route, since its own may be misspelt.
func (c crew) instead(r engine.Route) string {
	var kinds []string
	for _, w := range c.live {
		for _, kind := range w.Kinds {
			if r.Kind = kind; engine.Takes(w.WorkerInfo, r) && !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	slices.Sort(kinds)
	const most = 8
	if more := len(kinds) - most; more > 0 {
		return fmt.Sprintf(" Live workers take %s and %d more from it.", quoted(kinds[:most]), more)
	}
	return fmt.Sprintf(" Live workers take %s from it.", quoted(kinds))
}

// count returns how many take a route and how many of those can run it; nil when that cannot be told.
func (c crew) count(r engine.Route) (serving, capable *int) {
	able, unable := c.able(r)
	if len(able) == 0 && c.blind(r) != "" {
		return nil, nil
	}
	return new(len(able) + len(unable)), new(len(able))
}

// blind says why a worker that can run a route may have been overlooked; "" when none was.
func (c crew) blind(r engine.Route) string {
	if c.err != nil {
		return "the list of workers could not be read: " + quote(c.err.Error())
	}
	for _, w := range c.live {
		if len(w.Namespaces) == 0 || w.Truncated && (engine.Serves(w.WorkerInfo, r.Namespace) ||
			len(w.Namespaces) > 1) {
			return "what worker " + quote(w.Instance) + " takes is not listed in full"
		}
	}
	return ""
}

// closest returns of the workers that lack something one that lacks the least.
func closest(unable []flowfabric.Worker, r engine.Route) flowfabric.Worker {
	return slices.MinFunc(unable, func(a, b flowfabric.Worker) int {
		return len(engine.Lacks(a.WorkerInfo, r)) - len(engine.Lacks(b.WorkerInfo, r))
	})
}

// ready says how many can run a route, and how busy they were when they were last heard of.
func ready(able []flowfabric.Worker, r engine.Route, work string) string {
	used, stuck, slots := slotsOf(able)
	text := plural(len(able), "live worker")
	if len(r.Capabilities) > 0 {
		text += " with the capabilities " + quoted(r.Capabilities)
	}
	text += " " + take(len(able), work)
	if slots > 0 {
		text += fmt.Sprintf(" (%d of %s in use when last heard of%s)", used, plural(slots, "slot"), stuckIn(stuck))
	}
	return text
}

// slotsOf sums up how many slots workers have, how many of those are in use, and how many are in use by stuck handlers.
func slotsOf(workers []flowfabric.Worker) (used, stuck, slots int) {
	for _, w := range workers {
		used, stuck, slots = used+w.Reported, stuck+w.Stuck, slots+w.Concurrency
	}
	return used, stuck, slots
}

// stuckIn says how many slots stuck handlers have.
func stuckIn(stuck int) string {
	if stuck == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them by handlers that ignore the end of their context", stuck)
}

// blockedBy tells whether stuck handlers have all slots of all workers.
func blockedBy(workers []flowfabric.Worker) bool {
	_, stuck, slots := slotsOf(workers)
	return slots > 0 && stuck >= slots
}
