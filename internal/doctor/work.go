package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// UnservedRoute is work that waits in active or draining lanes and that no live worker has registered for.
type UnservedRoute struct {
	Namespace, Lane, Kind string
	Capabilities          []string
	Waiting               int // executions, over all partitions
}

// takes tells whether a worker claims work of a route. A worker whose lists were cut, or are not known, may.
func takes(i flowfabric.WorkerInfo, r engine.Route) bool {
	return len(i.Namespaces) == 0 || i.Truncated || engine.Takes(i, r) && len(engine.Lacks(i, r)) == 0
}

// readWork reads how full the route tables are, and what waits that nobody serves. Routes that a gate closed, or
// whose lane hands nothing out, are not looked at: they do not wait for a worker. Of a class that many namespaces use
// it looks at the first ones.
func (s *StoreReport) readWork(ctx context.Context, p *engine.Probe) {
	s.UsedUp = gatetext.UsedUp{}
	const each = 5
	var commands []engine.Command
	now := strconv.FormatInt(s.At.UnixMilli(), 10)
	for i := range s.Partitions {
		k := keys.Of(i)
		commands = append(commands, engine.On("ZCARD", k.RouteLog()), engine.On("SMEMBERS", k.Ready()),
			engine.On("SMEMBERS", k.Gready()), engine.On("ZRANGEBYSCORE", k.Workers(), "("+now, "+inf"),
			engine.On("ZRANGE", k.Closed(), "0", "1023"))
	}
	var found []ready
	var rings, infos, closed, makers []engine.Command
	var made []*RootReport
	answers := p.Do(ctx, commands...)
	for i := range s.Partitions {
		part, k := answers[int(i)*each:int(i+1)*each], keys.Of(i)
		routes, err := part[0].AsInt64()
		s.doubt(err)
		if s.Roots[i].Routes = int(routes); routes > limits.SureClasses/2 {
			made = append(made, &s.Roots[i])
			makers = append(makers, engine.On("HVALS", k.Makers()))
		}
		for n, resp := range part[1:3] {
			members, err := resp.AsStrSlice()
			s.doubt(err)
			for _, member := range members {
				class, ring := strings.CutPrefix(member, "c")
				if !ring {
					found = append(found, ready{partition: i, route: class})
					continue
				}
				key := k.Ring(class)
				if n == 1 {
					key = k.Gring(class)
				}
				found = append(found, ready{partition: i, class: class, gated: n == 1})
				rings = append(rings, engine.On("ZRANGE", key, "0", strconv.Itoa(maxLooked-1)))
			}
		}
		routed, err := part[4].AsStrSlice()
		s.doubt(err)
		for _, id := range routed {
			closed = append(closed, engine.On("HGET", k.Closings(), id), engine.On("ZCARD", k.Queue(id)))
		}
		names, err := part[3].AsStrSlice()
		s.doubt(err)
		for _, name := range names {
			infos = append(infos, engine.On("HMGET", k.Worker(name), "info", "dead", "seen"))
		}
	}
	for i, resp := range p.Do(ctx, makers...) {
		namespaces, err := resp.AsStrSlice()
		s.doubt(err)
		counts := map[string]int{}
		for _, name := range namespaces {
			counts[name]++
		}
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if n := counts[name]; n > made[i].Made {
				made[i].Maker, made[i].Made = name, n
			}
		}
	}
	for pair := range slices.Chunk(p.Do(ctx, closed...), 2) {
		why, _ := pair[0].ToString() // it may have been opened since
		waiting, err := pair[1].AsInt64()
		s.doubt(err)
		s.UsedUp.Add(gatetext.WhyClosed(why), int(waiting))
	}
	if len(found) == 0 || s.WorkErr != nil {
		return
	}
	s.unserved(s.queues(ctx, p, found, rings), s.liveWorkers(p.Do(ctx, infos...)))
}

// maxLooked is how many namespaces of a class, and how many of their routes with gates, are looked at.
const maxLooked = 16

// ready is a route that has work, or a class in whose ring some have.
type ready struct {
	partition    uint16
	route, class string
	gated        bool
}

// queues reads the rows and lengths of what is ready; rings are the commands that read the rings among it.
func (s *StoreReport) queues(ctx context.Context, p *engine.Probe, found []ready,
	rings []engine.Command) []engine.Response {
	var classes []engine.Command
	for _, x := range found {
		if x.class != "" {
			classes = append(classes, engine.On("HGET", keys.Of(x.partition).Routes(), x.class))
		}
	}
	namespaces, own := p.Do(ctx, rings...), p.Do(ctx, classes...)
	var more []engine.Command
	var of []uint16
	n := 0
	for _, x := range found {
		if x.class == "" {
			continue
		}
		k := keys.Of(x.partition)
		names, err := namespaces[n].AsStrSlice()
		s.doubt(err)
		row, _ := own[n].ToString()
		_, rest, _ := strings.Cut(row, "\x1f")
		for _, name := range names {
			if x.gated {
				more = append(more, engine.On("ZRANGE", k.Turns(x.class, name), "0", strconv.Itoa(maxLooked-1)))
			} else {
				more = append(more, engine.On("HMGET", k.RouteIDs(), name+"\x1f"+rest))
			}
			of = append(of, x.partition)
		}
		n++
	}
	var rows []engine.Command
	seen := map[ready]bool{}
	add := func(partition uint16, id string) {
		k, x := keys.Of(partition), ready{partition: partition, route: id}
		if seen[x] {
			return
		}
		seen[x] = true
		rows = append(rows, engine.On("HGET", k.Routes(), id), engine.On("ZCARD", k.Queue(id)))
	}
	for i, resp := range p.Do(ctx, more...) {
		list, err := resp.AsStrSlice()
		s.doubt(err)
		for _, id := range list {
			if id != "" { // it may be gone since
				add(of[i], id)
			}
		}
	}
	for _, x := range found {
		if x.class == "" {
			add(x.partition, x.route)
		}
	}
	return p.Do(ctx, rows...)
}

// doubt keeps the first reason why something could not be read.
func (s *StoreReport) doubt(err error) {
	if err != nil && s.WorkErr == nil {
		s.WorkErr = engine.CallError("read routes and workers", err)
	}
}

// liveWorkers reads what the workers say of themselves.
func (s *StoreReport) liveWorkers(answers []engine.Response) (live []flowfabric.WorkerInfo) {
	for _, resp := range answers {
		fields, err := resp.ToArray()
		s.doubt(err)
		if err != nil || len(fields) != 3 || fields[0].IsNil() || !fields[1].IsNil() {
			continue // it left meanwhile, or was given up
		}
		if seen, _ := fields[2].AsInt64(); time.UnixMilli(seen).After(s.At.Add(clockSlack)) {
			continue // it was heard of before the clock stepped back, and not since
		}
		text, _ := fields[0].ToString()
		var info flowfabric.WorkerInfo
		_ = json.Unmarshal([]byte(text), &info) // what cannot be read may take anything
		live = append(live, info)
	}
	return live
}

// unserved adds up what nobody takes, from pairs of a route's row and the length of its queue.
func (s *StoreReport) unserved(answers []engine.Response, live []flowfabric.WorkerInfo) {
	found := map[string]*UnservedRoute{}
	for pair := range slices.Chunk(answers, 2) {
		row, err := pair[0].ToString()
		if engine.IsNil(err) {
			continue // the route is gone since
		}
		s.doubt(err)
		depth, err := pair[1].AsInt64()
		s.doubt(err)
		r, err := engine.ParseRoute(row)
		if s.WorkErr != nil || err != nil || depth == 0 ||
			slices.ContainsFunc(live, func(i flowfabric.WorkerInfo) bool { return takes(i, r) }) {
			continue
		}
		key := strings.Join([]string{r.Namespace, r.Lane, r.Kind, strings.Join(r.Capabilities, ",")}, "\x1f")
		if found[key] == nil {
			found[key] = &UnservedRoute{Namespace: r.Namespace, Lane: r.Lane, Kind: r.Kind,
				Capabilities: r.Capabilities}
		}
		found[key].Waiting += int(depth)
	}
	for _, u := range found {
		s.Unserved = append(s.Unserved, *u)
	}
	slices.SortFunc(s.Unserved, func(a, b UnservedRoute) int {
		return cmp.Or(b.Waiting-a.Waiting, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Lane, b.Lane),
			strings.Compare(a.Kind, b.Kind), slices.Compare(a.Capabilities, b.Capabilities))
	})
}
