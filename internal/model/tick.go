package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Tick does everything that happens because time passed: what dead sessions held is requeued, delays come
// due, then alarms fire in their order, and what was kept long enough is purged. Only the owner ticks, or a process
// that finds it late. Slots: is the owner, more, ms until the next, nothing to wait for, then the counts requeued,
// exhausted, promoted, timed out, expired, suspensions that timed out, pending waitpoints that expired, purged,
// schedules that are due and entries of the outbox (the model knows neither).
func (p *Partition) Tick(owner string, release bool) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if owner == "" || len(owner) > 64 {
		return answer("invalid_input")
	}
	if release {
		if p.Owner != owner {
			return answer(Already, p.Owner)
		}
		p.vacate()
		return answer(OK, "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0")
	}
	if p.Owner != "" && p.Owner != owner && !p.late() {
		return answer(Already, p.Owner)
	}
	p.Owner = owner
	if p.stepped() {
		for _, id := range p.looked() {
			p.Sessions[id].Look = min(p.Sessions[id].Look, p.Now)
		}
	}
	p.Ticked = p.Now
	var n counts
	p.deaths(&n)
	p.promotions(&n)
	p.alarms(&n)
	p.expirations(&n)
	p.retention(&n)
	p.Wake = p.next()
	idle, in := p.Wake == 0, max(0, p.Wake-p.Now)
	return answer(OK, "1", "0", number(in), flag(idle), number(n.requeued), number(n.exhausted), number(n.promoted),
		number(n.timedout), number(n.expired), number(n.suspensions), number(n.waitpoints), number(n.purged), "0", "0")
}

type counts struct{ requeued, exhausted, promoted, timedout, expired, suspensions, waitpoints, purged int }

// deaths looks at sessions that may have ended, makes that final, and requeues what they held.
func (p *Partition) deaths(n *counts) {
	for _, id := range p.looked() {
		s := p.Sessions[id]
		if s.Look > p.Now {
			break
		}
		if p.alive(id) {
			s.Expires = min(s.Expires, p.Now+s.TTL) // it was renewed before the clock stepped back
			s.Look = s.Expires
			continue
		}
		s.Dead = true
		for _, held := range p.holds(id, 0) {
			p.requeue(p.Executions[held], "lease_expired", n)
		}
		p.bury(s)
	}
}

// looked lists the sessions that the tick will look at, earliest first.
func (p *Partition) looked() []string {
	var ids []string
	for id, s := range p.Sessions {
		if s.Look != 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Sessions[a].Look, p.Sessions[b].Look), strings.Compare(a, b))
	})
	return ids
}

// promotions lets those wait whose delay is over; due is inclusive.
func (p *Partition) promotions(n *counts) {
	over := func(x *Execution) bool { return x.delayed() && x.DelayUntil <= p.Now }
	for _, id := range p.sorted(over, func(x *Execution) int64 { return x.DelayUntil }) {
		x := p.Executions[id]
		p.move(x, due[x.Code])
		n.promoted++
	}
}

// alarms fires those that are due. The deadline comes before everything; a timeout goes through the retry policy and
// ends as expired; what was revoked is requeued.
func (p *Partition) alarms(n *counts) {
	rings := func(x *Execution) bool { at := x.alarm(); return at != 0 && at <= p.Now }
	for _, id := range p.sorted(rings, (*Execution).alarm) {
		x := p.Executions[id]
		switch {
		case x.overdue(p.Now):
			if x.open() {
				x.end(p.Now, "ended_failure", "execution_deadline", "")
			}
			if x.Code == "A1" {
				p.lost(x, id, "expired")
			}
			x.Category = "execution_deadline"
			p.finish(x, "T4", "expired")
			n.expired++
		case x.Code == "A3":
			p.requeue(x, "lease_revoked", n)
		case x.suspended():
			p.timeout(x)
			n.suspensions++
		default:
			p.lost(x, id, "attempt_timeout")
			p.fail(x, Failure{Category: "attempt_timeout", After: -1}, true)
			n.timedout++
		}
	}
}

// requeue takes an execution from a holder who lost it: it waits for another, after a pause unless it was the first, or
// ends when that happened too often. It is no retry: nobody failed.
func (p *Partition) requeue(x *Execution, why string, n *counts) {
	said := ""
	if s := p.Sessions[x.Held.Session]; s != nil && x.Code == "A1" {
		said = s.Why // an operator's reason
	}
	last := x.Reclaims >= cmp.Or(x.Policy.MaxReclaims, limits.DefaultMaxReclaims)
	if last && x.Code == "A1" && said == "" {
		said = fmt.Sprintf("worker %s was lost while it ran this, loss %d of a worker: its handler may be the cause",
			instance(x.Held.Session), x.Reclaims+1)
	}
	x.end(p.Now, "interrupted_reclaimed", why, said)
	if last {
		x.Category = "max_reclaims_exceeded"
		p.finish(x, "T2", why)
		n.exhausted++
		return
	}
	pauses := x.Code == "A1" && x.Reclaims > 0 // a revoked lease lost no worker
	if pauses {
		x.DelayUntil = p.Now + min(60_000, int64(1000)<<min(x.Reclaims-1, 6))
	}
	x.Reclaims++
	x.close(why)
	x.TimeoutAt, x.TimeLeft = 0, 0
	if pauses {
		p.move(x, "R2r")
	} else {
		p.move(x, "R1r")
	}
	n.requeued++
}

// retention purges what was kept long enough. When it is looked at was decided at its end; if it is kept longer
// since, it is looked at again.
func (p *Partition) retention(n *counts) {
	over := func(x *Execution) bool { return x.terminal() && x.Filed <= p.Now }
	for _, id := range p.sorted(over, func(x *Execution) int64 { return x.Filed }) {
		x := p.Executions[id]
		if at := max(x.Ended+p.kept(x), x.Till); at > p.Now {
			x.Filed = at
			continue
		}
		keep := tombstone
		if id[14] == '7' {
			keep = unkeyed
		}
		p.forget(id, keep)
		n.purged++
	}
}

// next is when the tick has to come again: at the first thing due, at the latest after a span, or a glance while
// something is ready, 0 when there is nothing to wait for. If all that is left has ended, it comes when the first of
// that is to be purged.
func (p *Partition) next() int64 {
	first, anything, later := p.Now+span, false, int64(0)
	at := func(instant int64) {
		if instant != 0 {
			first, anything = min(first, instant), true
		}
	}
	for _, x := range p.Executions {
		at(x.alarm())
		at(x.DelayUntil)
		for _, w := range x.Points {
			if w.State == "p" {
				at(w.Expires)
			}
		}
		if x.waiting() && p.laneOf(x).handsOut() {
			at(p.Now + glance)
		}
		if x.terminal() && (later == 0 || x.Filed < later) {
			later = x.Filed
		}
	}
	for _, s := range p.Sessions {
		at(s.Look)
	}
	switch {
	case later != 0 && (!anything || later < first):
		return later
	case !anything:
		return 0
	}
	return first
}
