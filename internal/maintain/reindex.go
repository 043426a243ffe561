package maintain

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// Reindex lists in the catalogue of every partition what was there before somebody said what it keeps
// ([engine.Engine.SetIndex]), and returns how many executions it looked at. It lists all keys of every primary (SCAN)
// and gives each execution to a call of at most 100, so nothing that moves meanwhile is missed. It may be called again,
// and while everything else works. A partition that moves, or whose primary fails over, is begun anew, at most twice;
// then
// the error wraps [ErrAuditIncomplete]. told, if it is not nil, is told the count as it grows.
func Reindex(ctx context.Context, e *engine.Engine, told func(executions int)) (int, error) {
	a, err := newAudit(AuditConfig{Engine: e})
	if err != nil {
		return 0, err
	}
	r := reindex{audit: a, told: told}
	for round := 0; round < auditRounds && len(a.left()) > 0 && ctx.Err() == nil; round++ {
		primaries, err := e.Primaries(ctx)
		if err != nil {
			a.away = err
			continue
		}
		for _, p := range primaries {
			r.primary(ctx, p)
		}
	}
	for _, p := range a.parts {
		if !p.done {
			return r.seen, fmt.Errorf("partition %d: %w: %w", p.id, ErrAuditIncomplete,
				cmp.Or(ctx.Err(), p.out.Err, a.away, errMoved))
		}
	}
	return r.seen, nil
}

type reindex struct {
	*audit
	told func(int)
	seen int
}

// primary does it for the partitions that live on one server.
func (r *reindex) primary(ctx context.Context, server engine.Primary) {
	here := r.here(ctx, server)
	whole := r.scan(ctx, server, here, func(p *part, k engine.Key) {
		id, err := uuid.Parse(k.Of)
		if k.Area != "x" || err != nil {
			return
		}
		if p.ids = append(p.ids, id); len(p.ids) == auditBatch {
			r.flush(ctx, p)
		}
	})
	if !whole {
		return
	}
	for _, p := range here {
		r.flush(ctx, p)
	}
	still, err := server.Serves(ctx)
	if err != nil {
		r.away = err
		return
	}
	for _, p := range here {
		p.done = p.out.Err == nil && still[p.id]
	}
}

// flush lists those collected so far.
func (r *reindex) flush(ctx context.Context, p *part) {
	if len(p.ids) == 0 || p.out.Err != nil {
		return
	}
	list := make([]flowfabric.ExecutionID, len(p.ids))
	for i, id := range p.ids {
		list[i] = mint.Join(p.id, id)
	}
	p.out.Err = r.cfg.Engine.IndexExecutions(ctx, p.id, list)
	r.seen += len(list)
	p.ids = nil
	if r.told != nil {
		r.told(r.seen)
	}
}
