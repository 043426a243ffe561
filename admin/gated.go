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
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Gated is what gates are attached to, and which work they hold back, from all partitions.
type Gated struct {
	Attached   []AttachedGates `json:"attached"` // by scope
	Closed     []ClosedRoute   `json:"closed" jsonschema:"work that is not handed out, what opens first in front; at most 1024 of each partition"`
	Outbox     int             `json:"outbox" jsonschema:"messages that gates have not got yet"`
	Partitions int             `json:"partitions" jsonschema:"number of partitions that answered"`
	Missing    string          `json:"missing,omitempty" jsonschema:"which partitions did not answer"`
}

// AttachedGates lists the gates of a scope, as the partition that changed last has them.
type AttachedGates struct {
	Scope admission.Scope   `json:"scope"`
	Gates []flowfabric.Gate `json:"-"`
	Names []string          `json:"gates,omitempty" jsonschema:"those of limits of keys in words"`
	At    time.Time         `json:"changed_at,omitzero"`
	By    string            `json:"by,omitempty"`
	Mixed bool              `json:"mixed,omitempty" jsonschema:"partitions differ, because a change did not reach all of them: make it again"`
}

// ClosedRoute is work of one kind in one partition that is not handed out, because a gate refused it.
type ClosedRoute struct {
	Partition uint16 `json:"partition"`
	flowfabric.Route
	Until   time.Time         `json:"until,omitzero" jsonschema:"when it opens by itself"`
	Reason  admission.Closing `json:"reason"`
	Waiting int               `json:"waiting" jsonschema:"executions"`
}

// UsedUp is a gate that has no room for the work that waits for it.
type UsedUp struct {
	Gate    string `json:"gate"`
	Waiting int    `json:"waiting" jsonschema:"executions"`
}

// usedUp lists the gates whose amounts keep work waiting, those for which most waits in front.
func (g Gated) usedUp() (out []UsedUp) {
	all := gatetext.UsedUp{}
	for _, c := range g.Closed {
		all.Add(c.Reason, c.Waiting)
	}
	for _, name := range all.Names() {
		out = append(out, UsedUp{name, all[name]})
	}
	return out
}

// Gated tells what is attached to scopes, which work gates keep from being handed out, until when and
// why, and how much they have not been told yet. When partitions do not answer, the rest is put together, beside an
// error that names those.
//
// Errors: flowfabric.ErrTransport, ErrPartitionFrozen and others by partition; client.ErrClosed.
func (a *Admin) Gated(ctx context.Context) (Gated, error) {
	if a.closed() {
		return Gated{}, fmt.Errorf("read gates: %w", client.ErrClosed)
	}
	all := a.store.Gates(ctx)
	out := Gated{Attached: []AttachedGates{}, Closed: []ClosedRoute{}}
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
			out.Closed = append(out.Closed, ClosedRoute{p.Partition, x.Route, x.Until, gatetext.WhyClosed(x.Why),
				x.Waiting})
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
		a.Names = valid.GateNames(a.Gates)
		out.Attached = append(out.Attached, *a)
	}
	slices.SortFunc(out.Attached, func(a, b AttachedGates) int {
		x, y := a.Scope, b.Scope
		return cmp.Or(cmp.Compare(x.TagKey, y.TagKey), cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Namespace, y.Namespace),
			cmp.Compare(x.Lane, y.Lane))
	})
	slices.SortStableFunc(out.Closed, func(a, b ClosedRoute) int { return a.Until.Compare(b.Until) })
	err := failed.sum("read gates", len(all))
	if err != nil {
		out.Missing = err.Error()
	}
	return out, err
}

func (a *AttachedGates) merge(x engine.Attachment) {
	a.Mixed = a.Mixed || !slices.Equal(a.Gates, x.Gates)
	if x.At.After(a.At) {
		a.Gates, a.At, a.By = x.Gates, x.At, x.By
	}
}
