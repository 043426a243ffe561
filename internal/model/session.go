package model

import (
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Session is the lease of one worker instance on everything it holds here. It is opened by the claim that
// finds work. Dead is for good.
type Session struct {
	Expires   int64
	TTL       int64  // for which the last renewal or claim was good
	Look      int64  // when the tick looks at it, no later than it expires; 0 = it need not any more
	Last      uint64 // claim number
	Dead      bool
	Why       string   // the reason of who declared it dead
	Forget    int64    // when the record of an ended session is gone
	Notices   []Notice // what the holder has not confirmed, oldest first
	Confirmed uint64   // notices before those; their sum is the generation
}

// Notice tells a session that an execution was taken from it.
type Notice struct {
	ID    string
	Epoch uint64
	Cause string
}

func (s *Session) clone() *Session {
	c := *s
	c.Notices = slices.Clone(s.Notices)
	return &c
}

func (s *Session) generation() uint64 { return s.Confirmed + uint64(len(s.Notices)) }

// alive reports whether a session may still do anything. Expiry is inclusive.
func (p *Partition) alive(id string) bool {
	s := p.Sessions[id]
	return s != nil && !s.Dead && s.Expires > p.Now
}

// extend lets a session live for a time from now, which may end earlier than before.
func (p *Partition) extend(s *Session, ttl int64) {
	until := p.Now + ttl
	s.TTL = ttl
	if until < s.Expires {
		s.Look = until
		p.need(until)
	}
	s.Expires = until
}

// holds lists what a session holds, by claim and id; claim 0 means all.
func (p *Partition) holds(session string, claim uint64) []string {
	return p.sorted(func(x *Execution) bool {
		return x.Code == "A1" && x.Held.Session == session && (claim == 0 || x.Held.Claim == claim)
	}, func(x *Execution) int64 { return int64(x.Held.Claim) })
}

// lost leaves a notice for the holder of an active execution, if it lives.
func (p *Partition) lost(x *Execution, id, cause string) {
	if s := p.Sessions[x.Held.Session]; p.alive(x.Held.Session) {
		s.Notices = append(s.Notices, Notice{ID: id, Epoch: x.Held.Epoch, Cause: cause})
	}
}

func badTTL(ms int64) bool {
	return ms < limits.MinLeaseTTL.Milliseconds() || ms > limits.MaxLeaseTTL.Milliseconds()
}

func badSession(id string) bool { return len(id) < 1 || len(id) > 64 }

// Renew extends a session, forgets the notices that the holder has processed and tells the next.
// Slots: tick overdue, generation, more, then the notices.
func (p *Partition) Renew(session string, ttl int64, processed uint64) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if badSession(session) || badTTL(ttl) {
		return answer("invalid_input")
	}
	if !p.alive(session) {
		return answer("lease_expired")
	}
	s := p.Sessions[session]
	if processed > s.generation() { // a failover lost notices that the holder knows: it is told all there are
		processed = s.Confirmed
	}
	p.extend(s, ttl)
	if processed > s.Confirmed {
		s.Notices, s.Confirmed = s.Notices[processed-s.Confirmed:], processed
	}
	shown := s.Notices[:min(len(s.Notices), 100)]
	r := answer(OK, flag(p.late()), number(s.Confirmed+uint64(len(shown))), flag(len(shown) < len(s.Notices)))
	for _, n := range shown {
		r.Slots = append(r.Slots, n.ID+" "+number(n.Epoch)+" "+n.Cause)
	}
	return r
}

// Held lists what a session holds. Slots: alive, total, then id and claim of each.
func (p *Partition) Held(session string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if badSession(session) {
		return answer("invalid_input")
	}
	ids := p.holds(session, 0)
	r := answer(OK, flag(p.alive(session)), number(len(ids)))
	for _, id := range ids {
		r.Slots = append(r.Slots, id, number(p.Executions[id].Held.Claim))
	}
	return r
}

// Close ends an empty session. Its record stays for a while, so that a late claim cannot open it again.
func (p *Partition) Close(session string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if badSession(session) {
		return answer("invalid_input")
	}
	s := p.Sessions[session]
	if s == nil || s.Dead {
		return answer(Already, "closed")
	}
	if n := len(p.holds(session, 0)); n > 0 {
		return answer("session_not_empty", number(n))
	}
	p.bury(s)
	return answer(OK, "closed")
}

// bury ends a session that holds nothing.
func (p *Partition) bury(s *Session) {
	s.Dead, s.Look, s.Notices, s.Forget = true, 0, nil, p.Now+recordMs
}

// MarkDead declares a session dead before it expires; the tick requeues what it holds.
func (p *Partition) MarkDead(session, reason string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if badSession(session) {
		return answer("invalid_input")
	}
	s := p.Sessions[session]
	switch {
	case s == nil:
		return answer("session_not_found")
	case s.Dead:
		return answer(Already)
	}
	s.Dead, s.Look, s.Why = true, min(s.Expires, p.Now), reason[:min(len(reason), limits.MaxDeadReason)]
	if instance, _, _ := strings.Cut(session, "~"); instance == p.Owner {
		p.vacate()
	}
	p.need(p.Now)
	return answer(OK, number(len(p.holds(session, 0))))
}
