package offer

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// AllNamespaces among the namespaces of a worker means all of them.
const AllNamespaces = "*"

// Offer is what a worker can serve. It is not changed once it is made.
type Offer struct {
	Namespaces   map[string]bool
	All          bool // namespaces
	Lanes        map[string]bool
	Kinds        map[string]bool
	Capabilities map[string]bool
	Weights      map[string]int // of lanes, where they are not 1
}

// New makes an offer of names.
func New(namespaces, lanes, kinds, capabilities []string) Offer {
	set := func(names []string) map[string]bool {
		m := make(map[string]bool, len(names))
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	return Offer{Namespaces: set(namespaces), All: slices.Contains(namespaces, AllNamespaces), Lanes: set(lanes),
		Kinds: set(kinds), Capabilities: set(capabilities)}
}

// Serves reports whether work of a route may be given to this worker: namespace, lane and kind are among its own, and
// it has every required capability.
func (o Offer) Serves(r engine.Route) bool {
	return (o.All || o.Namespaces[r.Namespace]) && o.class(r)
}

// class reports whether the worker serves a class of work, of whichever namespace.
func (o Offer) class(r engine.Route) bool {
	return o.Lanes[r.Lane] && o.Kinds[r.Kind] &&
		!slices.ContainsFunc(r.Capabilities, func(c string) bool { return !o.Capabilities[c] })
}

// Spaces are the namespaces of a subscription, none for all.
func (o Offer) Spaces() []string {
	if o.All {
		return nil
	}
	return slices.Sorted(maps.Keys(o.Namespaces))
}

// Weighing is the offer with weights of lanes.
func (o Offer) Weighing(weights map[string]int) Offer {
	o.Weights = maps.Clone(weights)
	maps.DeleteFunc(o.Weights, func(_ string, weight int) bool { return weight == 1 })
	return o
}

// Subscribe is what is asked for of some classes, which [Offer.Subscription] has listed.
func (o Offer) Subscribe(classes []uint64) engine.Subscription {
	return engine.Subscription{Classes: classes, Namespaces: o.Spaces(), Weights: o.Weights}
}

// Subscription lists the classes of a table that the offer serves, in order.
func (o Offer) Subscription(t *Table) []uint64 {
	ids := make([]uint64, 0, len(t.classes))
	for id, r := range t.classes {
		if o.class(r) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[max(0, len(ids)-limits.MaxClasses):] // the newest: the others include all that went
}
