package maintain

import (
	"context"
	"errors"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// auditPatience is how often a flow that changes while its members are counted is begun anew. One that changes that
// much is alive.
const auditPatience = 5

// headers compares the flows with their members, which come before: what a header counts follows from them. A scan
// may list a flow twice, which does no harm.
func (p *part) headers(ctx context.Context) {
	var list []engine.AuditedFlow
	tries := map[string]int{}
	single := false
	for p.out.Err == nil {
		for len(list) < auditBatch && len(p.flows) > 0 {
			list = append(list, engine.AuditedFlow{ID: p.flows[0]})
			p.flows = p.flows[1:]
		}
		if len(list) == 0 {
			return
		}
		batch := list
		if single {
			batch = list[:1]
		}
		seen, found, err := p.cfg.Engine.AuditFlows(ctx, p.id, p.cfg.Repair, batch)
		if errors.Is(err, denied.Script) && !single {
			single = true // to find out which one it is
			continue
		}
		if p.unreadable("fw", batch[0].ID.String(), err) {
			list = list[1:]
			continue
		}
		p.found(found, err)
		var left []engine.AuditedFlow
		for _, f := range seen {
			if f.Busy {
				if tries[f.ID.String()]++; tries[f.ID.String()] >= auditPatience {
					p.out.Busy++
					continue
				}
				f = engine.AuditedFlow{ID: f.ID}
			}
			if !f.Done {
				left = append(left, f)
			}
		}
		list = append(left, list[len(seen):]...)
		p.pause(ctx)
	}
}
