package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/engine"
)

// crewman is what an explanation needs to know of a live worker.
type crewman struct {
	instance, namespace        string
	lanes, kinds, capabilities []string
}

// takes tells whether a worker would claim of a route if only it had the capabilities.
func (m crewman) takes(r engine.Route) bool {
	return m.namespace == r.Namespace && slices.Contains(m.lanes, r.Lane) && slices.Contains(m.kinds, r.Kind)
}

// lacks lists the capabilities of a route that a worker does not have.
func (m crewman) lacks(r engine.Route) (missing []string) {
	for _, token := range r.Capabilities {
		if !slices.Contains(m.capabilities, token) {
			missing = append(missing, token)
		}
	}
	return missing
}

// crew are the live workers of a store, or why they could not be read.
type crew struct {
	live []crewman
	err  error
}

// count returns how many take the kind of a route from its lane, and how many of those have its capabilities. -1 when nobody
// could be asked.
func (c crew) count(r engine.Route) (serving, capable int) {
	if c.err != nil {
		return -1, -1
	}
	for _, m := range c.live {
		if m.takes(r) {
			serving++
			if len(m.lacks(r)) == 0 {
				capable++
			}
		}
	}
	return serving, capable
}

// closest returns the worker that takes a route and lacks the fewest capabilities; each is judged alone.
func (c crew) closest(r engine.Route) (instance string, lacks []string) {
	for _, m := range c.live {
		if missing := m.lacks(r); m.takes(r) && (instance == "" || len(missing) < len(lacks)) {
			instance, lacks = m.instance, missing
		}
	}
	return instance, lacks
}

// serve says how many there are.
func (c crew) serve(capable int, r engine.Route) string {
	with := ""
	if len(r.Capabilities) > 0 {
		with = " with the capabilities " + quoted(r.Capabilities)
	}
	if capable == 1 {
		return "1 live worker" + with + " is there"
	}
	return fmt.Sprintf("%d live workers%s are there", capable, with)
}

// muster reads the live workers.
func muster(ctx context.Context, from Explainer) crew { return crew{} }
