package model

import "slices"

// Route is where work belongs.
type Route struct{ Namespace, Lane, Kind, Capabilities string }

// Row is a row of the route table. It goes with the last execution of its route, and a route that comes back gets
// another id: ids are never used again, so a worker that knows an old one waits for nothing instead of for somebody
// else's work.
type Row struct {
	Route
	Version int64 // of the table when it was added
}

// route finds the row of a route or adds one; 0 when the table is full, or half full and the namespace has its share.
func (p *Partition) route(r Route) int {
	for id, row := range p.Routes {
		if row.Route == r {
			return id
		}
	}
	made := 0
	for _, row := range p.Routes {
		if row.Namespace == r.Namespace {
			made++
		}
	}
	if len(p.Routes) >= maxRoutes || len(p.Routes) >= ownRoutes && made >= sureRoutes {
		return 0
	}
	p.Table, p.Issued = max(p.Table+1, p.Now), p.Issued+1
	p.Routes[p.Issued] = Row{Route: r, Version: p.Table}
	return p.Issued
}

// routesOf lists the ids of a lane's routes.
func (p *Partition) routesOf(lane LaneName) (ids []int) {
	for id, row := range p.Routes {
		if (LaneName{row.Namespace, row.Lane}) == lane {
			ids = append(ids, id)
		}
	}
	return ids
}

// waitingIn counts what waits in some routes.
func (p *Partition) waitingIn(routes []int) (n int) {
	for _, x := range p.Executions {
		if x.waiting() && slices.Contains(routes, x.Route) {
			n++
		}
	}
	return n
}

// forget removes an ended execution, and its route with the last of them. Its id stays taken for keep ms.
func (p *Partition) forget(id string, keep int64) {
	x := p.Executions[id]
	p.Tombstones[id] = Tombstone{Code: x.Code, Digest: x.Digest, Until: p.Now + keep}
	delete(p.over, id) // an older one of the same id has given way
	delete(p.Executions, id)
	if p.Keys[x.Key] == id {
		delete(p.Keys, x.Key)
	}
	p.vacant(x.Route)
}
