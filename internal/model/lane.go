package model

import (
	"cmp"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// LaneName is a lane of a namespace.
type LaneName struct{ Namespace, Name string }

// Lane is what an operator said about a lane. State is active, paused (accepts work but dispatches none), draining
// (hands out, accepts nothing) or disabled (neither).
type Lane struct {
	State string
	Keep  int64 // s that what ended in it is retained, 0 = the default
	Since int64 // when it got its state, 0 = it always had it
	By    string
}

func (l Lane) accepts() bool { return l.State == "active" || l.State == "paused" }

func (l Lane) handsOut() bool { return l.State == "active" || l.State == "draining" }

// LaneChange says something about a lane.
type LaneChange struct {
	LaneName
	State string // "" = as it is
	Keep  int64  // s, -1 = as it is
	By    string
}

const (
	maxLanes = 1024
	maxKeep  = int64(315_360_000) // s
	// ms that what completed is kept when nobody said anything; 14 times that of any other
	retained  = int64(86_400_000)
	tombstone = int64(86_400_000) // ms that a purge by age keeps a derived id taken
	unkeyed   = int64(3_600_000)  // ms that it keeps a random one taken, a UUIDv7
)

// lane is the lane of a route; an active one when nobody said anything.
func (p *Partition) lane(r Route) Lane {
	if l, ok := p.Lanes[LaneName{r.Namespace, r.Lane}]; ok {
		return l
	}
	return Lane{State: "active"}
}

// laneOf is the lane that an execution is in.
func (p *Partition) laneOf(x *Execution) Lane { return p.lane(p.Routes[x.Route].Route) }

// kept is for how many ms an execution is retained after its end: its policy comes before its lane.
func (p *Partition) kept(x *Execution) int64 {
	state, _ := codes.Project(x.Code)
	if s := cmp.Or(int64(valid.RetentionOf(x.Policy.Retention, state.Public).Seconds()), p.laneOf(x).Keep); s > 0 {
		return s * 1000
	}
	if state.Public != flowfabric.Completed {
		return 14 * retained
	}
	return retained
}

// SetLane changes a lane. What runs in it goes on; what waits in it is handed out, or not, from now on. Slots: state,
// retention in s, how many routes it has.
func (p *Partition) SetLane(q LaneChange) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	old, known := p.Lanes[q.LaneName]
	old.State = cmp.Or(old.State, "active")
	now := old
	now.State, now.By = cmp.Or(q.State, old.State), q.By[:min(len(q.By), limits.MaxName)]
	if q.Keep >= 0 {
		now.Keep = q.Keep
	}
	switch {
	case valid.Name("", q.Namespace) != nil || valid.Name("", q.Name) != nil:
		return answer("invalid_input")
	case !slices.Contains([]string{"active", "paused", "draining", "disabled"}, now.State):
		return answer("invalid_input")
	case q.Keep > maxKeep:
		return answer("invalid_input")
	case !known && len(p.Lanes) >= maxLanes:
		return answer("invalid_input")
	}
	in := p.routesOf(q.LaneName)
	slots := []string{now.State, number(now.Keep), number(len(in))}
	if now.State == old.State && now.Keep == old.Keep {
		return answer(Already, slots...)
	}
	if now.State != old.State {
		now.Since = p.Now
	}
	p.Lanes[q.LaneName] = now
	if now.State != old.State && now.handsOut() && p.waitingIn(in) > 0 {
		p.need(p.Now + glance)
	}
	return answer(OK, slots...)
}

// ListLanes lists the lanes that have routes, and those that an operator said something about. Slots: no cursor, how
// many, then of each namespace, name, state, retention, since, by, routes, waiting, ageing and weight, which it does
// not know.
func (p *Partition) ListLanes() Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	all := map[LaneName]Lane{}
	maps.Copy(all, p.Lanes)
	for _, r := range p.Routes {
		all[LaneName{r.Namespace, r.Lane}] = p.lane(r.Route)
	}
	r := answer(OK, "", number(len(all)))
	for _, name := range slices.SortedFunc(maps.Keys(all), func(a, b LaneName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}) {
		l, in := all[name], p.routesOf(name)
		r.Slots = append(r.Slots, name.Namespace, name.Name, l.State, number(l.Keep), number(l.Since), l.By,
			number(len(in)), number(p.waitingIn(in)), "0", "0")
	}
	return r
}
