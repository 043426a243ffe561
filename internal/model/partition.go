package model

import (
	"cmp"
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Limits and periods of the library that answers depend on, in ms where they are times.
const (
	maxRoutes      = limits.MaxClasses
	ownRoutes      = limits.MaxOwnClasses
	sureRoutes     = limits.SureClasses
	maxAhead       = int64(315_360_000_000) // ten years
	year           = int64(31_536_000_000)
	glance         = 1000    // while anything is ready, the tick looks this often
	span           = 10_000  // and this often while anything waits for its time
	late           = 2000    // a tick that is later than this may be taken over
	subscriptionMs = 600_000 // a subscription lives this long after it was last used by an idle claim
	recordMs       = 600_000 // so does the record of an ended session
)

// Partition is everything the model knows. Make it with [New]; move Now with [Partition.Advance].
type Partition struct {
	Now    int64 // ms
	Gate   Gate
	Routes map[int]Row // by id
	Issued int         // route ids so far
	// version of the route table: a time, so that a worker notices when a failover lost a route
	Table         int64
	Lanes         map[LaneName]Lane
	Subscriptions map[string]Subscription
	Executions    map[string]*Execution
	Tombstones    map[string]Tombstone
	Keys          map[string]string // key → the execution that has it, or had it last
	Bounces       map[string]Bounce // of keys that debounce
	Sessions      map[string]*Session
	Owner         string // who ticks
	Wake          int64  // when the tick is due, 0 = nothing to wait for
	Ticked        int64  // when the last tick was

	over map[string]Tombstone // tombstones whose time was over, which a clock that steps back restores

	// ClockTTL says that the server's key TTLs run on Now, as on the embedded server; otherwise none runs out.
	ClockTTL bool
	// Moved, when set, is told every change of state.
	Moved func(from, to Code)
}

// Gate is why a partition refuses every call.
type Gate string

// The gates; the zero value is open.
const (
	Missing  Gate = "partition_missing"
	Frozen   Gate = "partition_frozen"
	Mismatch Gate = "protocol_mismatch"
)

// Subscription is the set of routes that a kind of worker serves.
type Subscription struct {
	Routes []int
	Until  int64
}

// Tombstone is what is left of a purged execution.
type Tombstone struct {
	Code   Code
	Digest string
	Until  int64
}

// New is an empty partition.
func New(now int64) *Partition {
	return &Partition{Now: now, Routes: map[int]Row{}, Lanes: map[LaneName]Lane{},
		Subscriptions: map[string]Subscription{}, Executions: map[string]*Execution{},
		Tombstones: map[string]Tombstone{}, Keys: map[string]string{}, Bounces: map[string]Bounce{},
		Sessions: map[string]*Session{}}
}

// Clone is an independent copy.
func (p *Partition) Clone() *Partition {
	c := *p
	c.Routes, c.Lanes = maps.Clone(p.Routes), maps.Clone(p.Lanes)
	c.Subscriptions, c.Tombstones, c.Keys, c.Bounces = maps.Clone(p.Subscriptions), maps.Clone(p.Tombstones),
		maps.Clone(p.Keys), maps.Clone(p.Bounces)
	c.Executions = make(map[string]*Execution, len(p.Executions))
	for id, x := range p.Executions {
		c.Executions[id] = x.clone()
	}
	c.Sessions = make(map[string]*Session, len(p.Sessions))
	for id, s := range p.Sessions {
		c.Sessions[id] = s.clone()
	}
	return &c
}

// Advance moves the clock to an instant, never backwards. Time alone changes no state: whatever is due waits for a
// tick; only tombstones end, and what keys forget is forgotten.
func (p *Partition) Advance(now int64) {
	p.Now = max(p.Now, now)
	maps.DeleteFunc(p.Tombstones, func(id string, t Tombstone) bool {
		if t.Until > p.Now {
			return false
		}
		if p.over == nil {
			p.over = map[string]Tombstone{}
		}
		p.over[id] = t
		return true
	})
	if !p.ClockTTL {
		return
	}
	maps.DeleteFunc(p.Subscriptions, func(_ string, i Subscription) bool { return i.Until <= p.Now })
	maps.DeleteFunc(p.Sessions, func(_ string, s *Session) bool { return s.Forget != 0 && s.Forget <= p.Now })
}

// Due lists the instants at which something will be due, in order: what a test wants to jump to.
func (p *Partition) Due() []int64 {
	var all []int64
	for _, x := range p.Executions {
		if x.delayed() {
			all = append(all, x.DelayUntil)
		}
		all = append(all, x.alarm(), x.Filed)
		for _, w := range x.Points {
			if w.State == "p" {
				all = append(all, w.Expires)
			}
		}
	}
	for _, s := range p.Sessions {
		all = append(all, s.Expires)
	}
	all = slices.DeleteFunc(all, func(at int64) bool { return at <= p.Now })
	slices.Sort(all)
	return slices.Compact(all)
}

// enter is the entrance of every function.
func (p *Partition) enter() (refused Reply, shut bool) {
	return Reply{Code: string(p.Gate)}, p.Gate != ""
}

// need makes sure that a tick comes no later than at, and within a span.
func (p *Partition) need(at int64) {
	wake := max(p.Now, min(at, p.Now+span)) // what is overdue already makes no tick late
	if p.Wake == 0 || p.Wake > wake {
		p.Wake = wake
	}
}

// vacate takes the tick from its owner: it is anybody's, within a glance.
func (p *Partition) vacate() {
	p.Owner = ""
	if p.Wake != 0 {
		p.Wake = min(p.Wake, p.Now+glance)
	}
}

// stepped tells that the clock stepped back since the last tick, by more than the second that is waited for.
func (p *Partition) stepped() bool { return p.Ticked > p.Now+1000 }

// StepBack sets the clock back. Server keys that ran out meanwhile stay gone, so it is not for ClockTTL.
func (p *Partition) StepBack(ms int64) {
	p.Now -= ms
	for id, t := range p.over {
		if t.Until > p.Now && p.Executions[id] == nil {
			p.Tombstones[id] = t
			delete(p.over, id)
		}
	}
}

// late tells a caller that nobody ticks.
func (p *Partition) late() bool {
	if p.Now < p.Wake { // of another clock, if that stepped back
		return p.Wake > p.Now+glance && p.stepped()
	}
	return p.Wake != 0 && p.Now >= p.Wake && (p.Now > p.Wake+late || p.Owner == "")
}

// move changes an execution's code, and tells the tick when it is due next.
func (p *Partition) move(x *Execution, to Code) {
	if !slices.Contains(Legal[x.Code], to) {
		panic("model: no move from " + string(x.Code) + " to " + string(to))
	}
	if p.Moved != nil {
		p.Moved(x.Code, to)
	}
	x.Code = to
	if x.waiting() && p.laneOf(x).handsOut() {
		p.need(p.Now + glance)
	}
	if x.delayed() {
		p.need(x.DelayUntil)
	} else {
		x.DelayUntil = 0
	}
}

// sorted lists the executions that satisfy a condition by a number, then by id.
func (p *Partition) sorted(keep func(*Execution) bool, by func(*Execution) int64) []string {
	var ids []string
	for id, x := range p.Executions {
		if keep(x) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(by(p.Executions[a]), by(p.Executions[b])), cmp.Compare(a, b))
	})
	return ids
}

// queue lists what waits in a route, best first.
func (p *Partition) queue(route int) []string {
	return p.sorted(func(x *Execution) bool { return x.waiting() && x.Route == route }, (*Execution).score)
}
