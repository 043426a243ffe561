package keeper

import (
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// partition is where this instance claims; at most one of its sessions takes claims.
type partition struct {
	id      uint16
	turn    chan struct{} // capacity 1: a claim or a close is in flight
	current *session      // nil: the next claim mints one
}

// session is the client side of one server session. All fields but the first three are guarded by Keeper.mu.
type session struct {
	keeper    *Keeper
	id        string
	partition uint16

	number   uint64  // last claim number known to be used up
	pending  bool    // claim number+1 was sent and its outcome is unknown
	garbled  int     // answers in a row to claim number+1 that could not be read
	claiming bool    // a claim is in flight right now
	opened   bool    // exists on the server
	sent     bool    // start is valid: some call that may have extended the lease was sent
	start    Instant // of the newest call that extended the lease

	generation uint64        // newest lost notice that has been acted on
	early      []engine.Lost // notices of claims whose answer is not here yet
	held       holds
	emptySince Instant

	failures int // renewals failed in a row
	renewals int // that succeeded
	tried    Instant
	renewing bool
	force    bool // renew at the next turn

	doubted   bool // what the server holds is to be compared with held
	patience  time.Duration
	compared  Instant // when the last comparison ended; the next comes patience later
	comparing bool
	refusals  int // comparisons in a row that met something that cannot be handed back

	retiring bool // no more claims
	closing  bool
	dead     bool
}

// holds is what a session holds: a list, since most leave it without having been looked for.
type holds struct {
	first *Held
	count int
}

func (l *holds) add(h *Held) {
	if h.next = l.first; h.next != nil {
		h.next.prev = h
	}
	l.first = h
	l.count++
}

func (l *holds) remove(h *Held) {
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		l.first = h.next
	}
	if h.next != nil {
		h.next.prev = h.prev
	}
	h.prev, h.next = nil, nil
	l.count--
}

// trusted reports whether the lease certainly still runs on the server at now. Called with Keeper.mu held.
func (s *session) trusted(now Instant) bool {
	return !s.dead && (!s.sent || now.Since(s.start) < s.keeper.trust)
}

// extend moves the start of trust to a call that succeeded.
func (s *session) extend(start Instant) {
	if !s.sent || start.After(s.start) {
		s.start, s.sent = start, true
	}
}

// untilRenewal is how long until the next renewal is due; a failed one is repeated sooner.
func (s *session) untilRenewal(now Instant) time.Duration {
	if s.force {
		return 0
	}
	if s.failures > 0 {
		return s.keeper.retry - now.Since(s.tried)
	}
	return s.keeper.cfg.TTL/3 - now.Since(s.start)
}

// idle reports whether nothing here or, as far as known, on the server needs the session.
func (s *session) idle() bool { return s.held.count == 0 && !s.pending && !s.claiming }

// notice acts on one lost notice. The execution may not be known yet: its claim may still be in flight.
func (s *session) notice(lost engine.Lost) {
	if h := s.keeper.executions[lost.Execution]; h != nil && h.session == s && h.claim.Fence.Epoch == lost.Epoch {
		h.heed(lost)
		return
	}
	if s.claiming || s.pending {
		s.early = append(s.early, lost)
	}
}
