package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// GatesInfo is what the partitions know of gates, put together.
type GatesInfo struct {
	Attached   []AttachedGates // by scope
	Closed     []ClosedRoute   // those that open first in front; at most 1,024 of each partition
	Outbox     int             // messages to budgets and quotas that were not delivered yet, over all partitions
	Partitions int             // that answered
}

// AttachedGates is what is attached to a scope.
type AttachedGates struct {
	Scope admission.Scope
	Gates []flowfabric.Gate // of the partition that was changed last
	At    time.Time
	By    string
	Mixed bool // partitions differ, because a change did not reach all of them; making it again settles it
}

// ClosedRoute is work of one kind in one partition that is not handed out, because a budget or quota refused it.
type ClosedRoute struct {
	Partition uint16
	Route     flowfabric.Route
	Until     time.Time // when it opens by itself
	Why       string
	Waiting   int
}

// UsedUp is a budget that has no room for the work that waits for it.
type UsedUp struct {
	Budget  string
	Waiting int // executions
}

// UsedUp lists the budgets that keep work waiting, those for which most waits in front.
func (g GatesInfo) UsedUp() (out []UsedUp) {
	all := engine.UsedUp{}
	for _, c := range g.Closed {
		all.Add(c.Why, c.Waiting)
	}
	for _, name := range all.Names() {
		out = append(out, UsedUp{name, all[name]})
	}
	return out
}

// Gates tells what is attached to scopes, which work budgets and quotas keep from being handed out, until when and
// why, and how much they have not been told yet. When partitions do not answer, the rest is put together, beside an
// error that names those.
//
// Errors: flowfabric.ErrTransport, ErrPartitionFrozen and others by partition; client.ErrClosed.
func (a *Admin) Gates(ctx context.Context) (GatesInfo, error) {
	if a.closed() {
		return GatesInfo{}, fmt.Errorf("read gates: %w", client.ErrClosed)
	}
	all := a.store.Gates(ctx)
	var out GatesInfo
	var failed partitionErrors
	seen, count := map[admission.Scope]*AttachedGates{}, map[admission.Scope]int{}
	for _, p := range all {
		if p.Err != nil {
			failed.add(p.Partition, p.Err)
			continue
		}
		out.Partitions++
		out.Outbox += p.Outbox
		for _, x := range p.Closed {
			out.Closed = append(out.Closed, ClosedRoute{p.Partition, x.Route, x.Until, x.Why, x.Waiting})
		}
		for _, a := range p.Attached {
			count[a.Scope]++
			if seen[a.Scope] == nil {
				seen[a.Scope] = &AttachedGates{Scope: a.Scope, Gates: a.Gates, At: a.At, By: a.By}
			} else {
				seen[a.Scope].merge(a)
			}
		}
	}
	for scope, a := range seen {
		a.Mixed = a.Mixed || count[scope] < out.Partitions
		out.Attached = append(out.Attached, *a)
	}
	slices.SortFunc(out.Attached, func(a, b AttachedGates) int {
		x, y := a.Scope, b.Scope
		return cmp.Or(cmp.Compare(x.TagKey, y.TagKey), cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.Lane, y.Lane))
	})
	slices.SortStableFunc(out.Closed, func(a, b ClosedRoute) int { return a.Until.Compare(b.Until) })
	return out, failed.sum("read gates", len(all))
}

func (a *AttachedGates) merge(x engine.Attachment) {
	a.Mixed = a.Mixed || !slices.Equal(a.Gates, x.Gates)
	if x.At.After(a.At) {
		a.Gates, a.At, a.By = x.Gates, x.At, x.By
	}
}

// gateNames are the names of budgets and of quotas among gates, and with the quotas limits of keys in words.
func gateNames(gates []flowfabric.Gate) (budgets, quotas []string) {
	for _, g := range gates {
		if g.IsBudget() {
			budgets = append(budgets, g.Name())
		} else if key, l, ok := g.Limit(); ok {
			quotas = append(quotas, "key "+key+": "+l.String())
		} else {
			quotas = append(quotas, g.Name())
		}
	}
	return budgets, quotas
}
