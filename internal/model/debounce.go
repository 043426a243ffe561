package model

import (
	"maps"
	"slices"
)

// Bounce is what the key of submissions that debounce remembers of them: the latest eight that its execution took in,
// and those of the execution before.
type Bounce struct {
	Took   []string
	Before string
	Older  []string
}

// unclaimed tells whether a submission still changes an execution.
func (x *Execution) unclaimed() bool { return x.Links == 0 && (x.Code == "R2af" || x.Code == "R1f") }

// debounce admits a submission under a key that debounces, whose id is not known: it was applied before; or it
// replaces what the execution that has the key was submitted with; or rest is false, and it makes another.
func (p *Partition) debounce(s Submission) (r Reply, rest bool) {
	if s.Delay == 0 || s.Most > 0 && s.Most < s.Delay {
		return answer("invalid_input"), true
	}
	id, b := p.Keys[s.Key], p.Bounces[s.Key]
	x := p.Executions[id]
	if x == nil || !x.Debounced {
		if holder, x := p.holder(s.Key); x != nil {
			return p.meets(s, holder, x), true
		}
		return Reply{}, false
	}
	for applied, took := range map[string][]string{id: b.Took, b.Before: b.Older} {
		if code, _, known := p.known(applied); known && slices.Contains(took, s.ID) {
			return answer(Replaced, string(code)+" "+applied), true
		}
	}
	if !x.unclaimed() {
		return Reply{}, false
	}
	if lane := p.lane(s.Route); !lane.accepts() {
		return answer("lane_closed", s.Route.Lane, "is", lane.State), true
	}
	route := p.route(s.Route)
	if route == 0 {
		return answer("too_many_routes"), true
	}
	old := x.Route
	x.Route, x.Priority, x.Policy, x.Creator, x.Digest, x.Input, x.Tags = route, clamp(s.Priority), s.Policy, s.Creator,
		"", s.Input, maps.Clone(s.Tags)
	if x.Tags == nil {
		x.Tags = map[string]string{}
	}
	p.vacant(old)
	x.Deadline = 0
	if s.Deadline > 0 {
		x.Deadline = p.Now + s.Deadline
		p.need(x.Deadline)
	}
	b.Took = append(slices.Clip(b.Took), s.ID)
	b.Took = b.Took[max(0, len(b.Took)-8):]
	p.Bounces[s.Key] = b
	x.DelayUntil = p.Now + s.Delay
	if s.Most > 0 {
		x.DelayUntil = min(x.DelayUntil, x.Created+s.Most)
	}
	if x.DelayUntil > p.Now {
		p.move(x, "R2af")
	} else {
		p.move(x, "R1f")
	}
	return answer(Replaced, string(x.Code)+" "+id), true
}

// meets answers a submission whose key another execution has.
func (p *Partition) meets(s Submission, id string, x *Execution) Reply {
	if s.Digest != "" && x.Digest != "" && s.Digest != x.Digest {
		return answer("idempotency_conflict", id)
	}
	return answer(Duplicate, string(x.Code)+" "+id)
}

// begins notes that a new execution has a key, that of s.
func (p *Partition) begins(x *Execution, s Submission) {
	x.Key = s.Key
	if s.Debounce {
		x.Debounced = true
		b := Bounce{}
		if before := p.Executions[p.Keys[s.Key]]; before != nil && before.Debounced {
			b.Before, b.Older = p.Keys[s.Key], p.Bounces[s.Key].Took
		}
		p.Bounces[s.Key] = b
	} else if x.Till = s.Held; s.Held > 0 {
		x.Till = p.Now + s.Held
	}
	p.Keys[s.Key] = s.ID
}

// vacant forgets a route that no execution uses any more.
func (p *Partition) vacant(route int) {
	for _, other := range p.Executions {
		if other.Route == route {
			return
		}
	}
	delete(p.Routes, route)
}
