package model

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// ClaimRequest asks for up to Max executions of the routes of a subscription.
type ClaimRequest struct {
	Session      string
	Number       uint64 // the session's next, or its last again after a lost reply
	TTL          int64
	Max          int
	Subscription string // "" asks for the route table only
	Table        int64  // version of the route table that the worker knows
	Wait         bool   // be rung when work comes
	Rotation     int64  // says which lane a claim begins with
}

var (
	hex       = regexp.MustCompile(`^[0-9a-fA-F]{1,64}$`)
	sessionID = regexp.MustCompile(`^[ -z|~]+~[ -z|]+$`)
)

func (q ClaimRequest) invalid() bool {
	return len(q.Session) > 64 || q.Number < 1 || badTTL(q.TTL) || q.Max < 1 || q.Max > 100 || q.Table < 0 ||
		q.Rotation < 0 || q.Subscription != "" && !hex.MatchString(q.Subscription)
}

// Claim hands out what waits, of its lanes by turns, of each the best first, and opens the session when it finds
// work. Claim numbers count up; the last one again answers what is still held under it. Slots: duplicate, registered
// as a waiter, more work is left, tick overdue, the table's version, and how many routes the worker did not know.
func (p *Partition) Claim(q ClaimRequest) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if q.invalid() {
		return answer("invalid_input")
	}
	s := p.Sessions[q.Session]
	switch {
	case s == nil && q.Number != 1:
		return answer("lease_expired")
	case s == nil && !sessionID.MatchString(q.Session):
		return answer("invalid_input")
	case s == nil:
	case !p.alive(q.Session):
		return answer("lease_expired")
	case q.Number == s.Last:
		p.extend(s, q.TTL)
		return p.claimed(q, p.holds(q.Session, q.Number), true, false)
	case q.Number != s.Last+1:
		return answer("claim_out_of_order", number(s.Last))
	}
	if q.Subscription == "" {
		return p.claimed(q, nil, false, false)
	}
	subscription, known := p.Subscriptions[q.Subscription]
	picked, left := p.pick(subscription.Routes, q.Max, q.Rotation)
	if !known && len(picked) == 0 {
		return answer("subscription_unknown")
	}
	if q.waits(len(picked), left) {
		p.Subscriptions[q.Subscription] = Subscription{Routes: subscription.Routes, Until: p.Now + subscriptionMs}
	}
	if len(picked) == 0 {
		return p.claimed(q, nil, false, false)
	}
	if s == nil {
		s = &Session{Expires: p.Now + q.TTL, TTL: q.TTL, Look: p.Now + q.TTL}
		p.Sessions[q.Session] = s
		p.need(s.Look)
	}
	p.extend(s, q.TTL)
	s.Last = q.Number
	for _, id := range picked {
		p.take(p.Executions[id], q)
	}
	return p.claimed(q, picked, false, left)
}

// waits tells whether a claim that got n registers as a waiter: it came up short, and nothing is left.
func (q ClaimRequest) waits(n int, left bool) bool {
	return q.Subscription != "" && q.Wait && (n == 0 || n < q.Max && !left)
}

// unknown counts the routes that were added after a version of the table.
func (p *Partition) unknown(version int64) (n int) {
	for _, row := range p.Routes {
		if row.Version > version {
			n++
		}
	}
	return n
}

// pick chooses up to n of what waits in those of some routes whose lanes hand out. Of each route it looks at a few
// more heads than wanted, because those whose deadline has passed stay for the tick. left reports whether anything
// stays in the queues.
func (p *Partition) pick(routes []int, n int, rotation int64) (picked []string, left bool) {
	lanes := map[string][][]string{} // queues
	for _, route := range routes {
		r := p.Routes[route].Route
		if q := p.queue(route); len(q) > 0 && p.lane(r).handsOut() {
			lanes[r.Lane] = append(lanes[r.Lane], q)
		}
	}
	total := 0
	heads := map[string][]string{}
	for lane, queues := range lanes {
		for _, q := range queues {
			heads[lane] = append(heads[lane], q[:min(len(q), n+4, 256/len(lanes)/len(queues))]...)
			total += len(q)
		}
		slices.SortFunc(heads[lane], func(a, b string) int {
			return cmp.Or(cmp.Compare(p.Executions[a].score(), p.Executions[b].score()), strings.Compare(a, b))
		})
		heads[lane] = slices.DeleteFunc(heads[lane], func(id string) bool { return p.Executions[id].overdue(p.Now) })
	}
	names := slices.Sorted(maps.Keys(lanes))
	for len(picked) < n && len(names) > 0 {
		some, dry := p.round(names, heads, n-len(picked), rotation)
		picked = append(picked, some...)
		names = slices.DeleteFunc(names, func(lane string) bool { return lane == dry })
	}
	return picked, total > len(picked)
}

// round takes up to n heads of lanes in their turns, until one of them has none left when it has its turn: dry names
// it. They are all alike: how many of them there are is how many places there are.
func (p *Partition) round(names []string, heads map[string][]string, n int,
	rotation int64) (picked []string, dry string) {
	places := len(names)
	rest := n % places
	first := int(rotation%int64(places)) * stride(places) % places
	for i := range n {
		on := i * stride(places)
		if beyond := i - (n - rest); beyond >= 0 {
			on = beyond * stride(rest) % rest * places / rest
		}
		lane := names[(first+on)%places]
		if len(heads[lane]) == 0 {
			return picked, lane
		}
		picked = append(picked, heads[lane][0])
		heads[lane] = heads[lane][1:]
	}
	return picked, ""
}

// stride is near the golden section of n and has no divisor in common with it.
func stride(n int) int {
	s := max(1, n*618/1000)
	for a, b := n, s; ; a, b = n, s {
		for b > 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return s
		}
		s++
	}
}

// take makes a waiting execution an active one: a new attempt, or the paused one again. Epochs never go back (F2).
func (p *Partition) take(x *Execution, q ClaimRequest) {
	timeout := time.Duration(x.Policy.AttemptTimeout).Milliseconds()
	x.Resumed = x.Code == "R1i"
	if x.Resumed {
		timeout = cmp.Or(x.TimeLeft, timeout)
	} else {
		kind := claims[x.Code]
		if x.Code == "R1f" && x.Links > 0 {
			kind = flowfabric.AttemptContinue
		}
		x.Attempts = append(x.Attempts, Attempt{Type: kind})
	}
	x.Held = Fence{Session: q.Session, Claim: q.Number, Epoch: max(x.Held.Epoch+1, uint64(p.Now)),
		Attempt: len(x.Attempts)}
	x.Claimed, x.Started, x.TimeLeft = p.Now, cmp.Or(x.Started, p.Now), 0
	p.move(x, "A1")
	if timeout > 0 {
		x.TimeoutAt = p.Now + timeout
		p.need(x.alarm())
	}
}

// claimed describes claims together with everything their handlers need.
func (p *Partition) claimed(q ClaimRequest, ids []string, again, left bool) Reply {
	registered := !again && q.waits(len(ids), left)
	r := answer(OK, flag(again), flag(registered), flag(left), flag(p.late()), number(p.Table),
		number(p.unknown(q.Table)))
	ahead := func(at int64) int64 {
		if at == 0 {
			return 0
		}
		return max(1, at-p.Now)
	}
	for _, id := range ids {
		x := p.Executions[id]
		c := Claim{ID: id, Fence: x.Held, Type: x.attempt().Type, Continues: x.Links,
			Takes: x.Replays + x.Rewinds, Route: x.Route,
			Priority: x.Priority, Created: x.Created, Claimed: x.Claimed, Retries: x.Retries, Reclaims: x.Reclaims,
			TimeLeft: ahead(x.TimeoutAt), DeadlineIn: ahead(x.Deadline),
			Sequence: x.attempt().Sequence, Input: x.Input > 0, Tags: maps.Clone(x.Tags), Steps: maps.Clone(x.Steps)}
		if x.Resumed {
			c.Type = flowfabric.AttemptResumed
		}
		if x.Told {
			c.Resume = x.Suspension.outcome()
		}
		r.Claims = append(r.Claims, c)
	}
	return r
}
