package maintain

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// count compares how many executions the routes of a partition count with how many there are. The counts are read
// before the executions are listed: those created before were counted then (low is at least how many there were), and
// all that are seen, with those purged meanwhile, are at most as many (high). Server time decides which is which.
type count struct {
	since    engine.RouteCount
	uses     map[int]*engine.RouteUse
	seen     map[uuid.UUID]bool // only where they are counted again
	doubtful bool
}

func (c *count) add(x engine.Audited) {
	if x.Route == 0 {
		return // its record is broken, and reported
	}
	u := c.uses[int(x.Route)]
	if u == nil {
		u = &engine.RouteUse{Route: int(x.Route)}
		c.uses[u.Route] = u
	}
	u.High++
	if x.Created < c.since.Now {
		u.Low++
	}
}

// otherRoutes is what a class is multiplied by in the numbers of routes that are not its own; the first of these
// numbers is none of a route.
const otherRoutes = 1_000_000_000

// suspects are the routes whose count is not what was seen.
func (c *count) suspects() (list []engine.RouteUse) {
	others := map[int]int{}
	for route := range c.since.Uses { // the routes of a class that are not its own are counted under a number of theirs
		if n := route % otherRoutes; route > otherRoutes && n != 0 {
			if c.uses[route-n] == nil {
				c.uses[route-n] = &engine.RouteUse{Route: route - n}
			}
			others[route-n]++
		}
	}
	for route, stored := range c.since.Uses {
		if c.uses[route] == nil {
			c.uses[route] = &engine.RouteUse{Route: route}
		}
		c.uses[route].Stored = stored
	}
	for _, counted := range c.uses {
		u := *counted
		u.Low, u.High = u.Low+others[u.Route], u.High+others[u.Route]
		if u.Low > u.Stored || u.High < u.Stored || u.High+u.Stored <= 0 {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b engine.RouteUse) int { // how many others a class has decides whether it may go
		return cmp.Or(cmp.Compare(a.Route%otherRoutes, b.Route%otherRoutes), cmp.Compare(b.Route, a.Route))
	})
	return list
}

func (p *part) beginCount(ctx context.Context) {
	if p.out.Err != nil {
		return
	}
	since, _, err := p.cfg.Engine.AuditRoutes(ctx, p.id, false, engine.RouteCount{}, nil)
	p.failed(err)
	p.count = count{since: since, uses: map[int]*engine.RouteUse{}, seen: map[uuid.UUID]bool{}, doubtful: p.doubtful}
}

// compare asks whether the counts are wrong for certain; what a purge explains is not.
func (p *part) compare(ctx context.Context) {
	suspects := p.suspects()
	if len(suspects) == 0 || p.out.Err != nil {
		return
	}
	_, found, err := p.cfg.Engine.AuditRoutes(ctx, p.id, false, p.since, suspects)
	p.failed(err)
	p.doubtful = len(found) > 0
}

// seeAgain counts an execution that was not counted yet.
func (p *part) seeAgain(ctx context.Context, k engine.Key) {
	id, err := uuid.Parse(k.Of)
	if err != nil || id.String() != k.Of || p.seen[id] {
		return
	}
	p.seen[id] = true
	if p.ids = append(p.ids, id); len(p.ids) == auditBatch {
		p.countAgain(ctx)
	}
}

func (p *part) countAgain(ctx context.Context) {
	for len(p.ids) > 0 && p.out.Err == nil {
		list, _, err := p.cfg.Engine.AuditExecutions(ctx, p.id, false, p.ids)
		p.failed(err)
		for _, x := range list {
			if x.Code != "" {
				p.count.add(x)
			}
		}
		p.ids = p.ids[len(list):]
		p.pause(ctx)
	}
	p.ids = nil
}

// endCount reports and repairs the counts. Somebody else's recount in between makes this one void; then that one holds.
func (p *part) endCount(ctx context.Context) {
	p.countAgain(ctx)
	suspects := p.suspects()
	p.seen = nil
	if len(suspects) == 0 || p.out.Err != nil {
		return
	}
	_, found, err := p.cfg.Engine.AuditRoutes(ctx, p.id, p.cfg.Repair, p.since, suspects)
	p.found(found, err)
}
