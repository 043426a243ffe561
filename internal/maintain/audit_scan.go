package maintain

import (
	"context"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// dedupe is how many executions are told apart by id at a time, where counts do not agree.
const dedupe = 500_000

// primary audits what lives on one server and has not been audited yet. A partition is done if it was there all the
// time.
func (a *audit) primary(ctx context.Context, server engine.Primary) {
	here := a.here(ctx, server)
	for _, p := range here {
		p.begin(ctx)
	}
	if !a.scan(ctx, server, here, func(p *part, k engine.Key) { p.see(ctx, k) }) {
		return
	}
	for _, p := range here {
		p.flush(ctx)
		p.indexes(ctx)
		p.compare(ctx)
	}
	for _, group := range groups(here) {
		a.recount(ctx, server, group)
	}
	still, err := server.Serves(ctx)
	if err != nil {
		a.away = err
		return
	}
	for _, p := range here {
		p.done = p.done || p.out.Err == nil && still[p.id]
	}
}

// here are the partitions to audit on a server, as if nobody had looked at them before.
func (a *audit) here(ctx context.Context, server engine.Primary) (list []*part) {
	served, err := server.Serves(ctx)
	if err != nil {
		a.away = err
		return nil
	}
	for _, p := range a.left() {
		if served[p.id] {
			p.reset()
			list = append(list, p)
		}
	}
	return list
}

// scan lists the keys of partitions once; false means not to the end.
func (a *audit) scan(ctx context.Context, server engine.Primary, of []*part, see func(*part, engine.Key)) bool {
	byID, ids := map[uint16]*part{}, []uint16{}
	for _, p := range of {
		if p.out.Err == nil {
			byID[p.id], ids = p, append(ids, p.id)
		}
	}
	if len(ids) == 0 {
		return true
	}
	for cursor := uint64(0); ; {
		list, next, err := server.Scan(ctx, cursor, ids...)
		if err != nil {
			a.away = err
			return false
		}
		for _, k := range list {
			if p := byID[k.Partition]; p != nil && p.out.Err == nil {
				see(p, k)
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
		a.pause(ctx)
	}
}

// groups are the partitions whose counts do not agree, by as many as are recounted at a time.
func groups(list []*part) (out [][]*part) {
	size := 0
	for _, p := range list {
		if !p.doubtful || p.out.Err != nil {
			continue
		}
		n := 0
		for _, count := range p.out.Executions {
			n += count
		}
		if len(out) == 0 || size+n > dedupe {
			out, size = append(out, nil), 0
		}
		out[len(out)-1], size = append(out[len(out)-1], p), size+n
	}
	return out
}

// recount counts executions again, each once: a scan may list a key twice.
func (a *audit) recount(ctx context.Context, server engine.Primary, group []*part) {
	for _, p := range group {
		p.beginCount(ctx)
	}
	whole := a.scan(ctx, server, group, func(p *part, k engine.Key) {
		if k.Area == "x" {
			p.seeAgain(ctx, k)
		}
	})
	for _, p := range group {
		if whole {
			p.endCount(ctx)
		} else {
			p.failed(a.away)
		}
	}
}

func (a *audit) pause(ctx context.Context) {
	if a.cfg.Pause <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(a.cfg.Pause):
	}
}
