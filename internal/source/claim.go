package source

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Answered takes in what a claim of up to n executions said about its partition. claims is what it brought. again asks
// for another claim after [Source.Declare]: routes are new, or the server has forgotten the subscription. The error is
// err unless another claim meets it.
func (s *Source) Answered(p *Partition, n int, reply engine.ClaimReply, claims []*engine.Claim,
	err error) (again bool, _ error) {
	if errors.Is(err, denied.UnknownSubscription) {
		p.digest = ""
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if failures := s.recovered(p); failures > 0 {
		s.cfg.Logger.Info("flowfabric: the partition answers again", "partition", p.id, "failures", failures)
	}
	if s.learned(p, reply) {
		return true, nil
	}
	s.visited(p, claims, reply.Registered)
	found := len(claims) > 0 || reply.More || reply.Duplicate
	if found {
		s.open(p)
	}
	switch {
	case reply.Registered: // there was less than this worker has room for
		s.registered(p, time.Now())
	case p.ahead && len(claims) < n && !reply.More:
		s.dried(p)
	case !found:
		s.pause(p, time.Now().Add(unregisteredPause))
	}
	return false, nil
}

// Joined is Answered for the claim of a call that [Source.Join] let claim as well: registered is what Join told. What
// is wrong with such a claim is left to the next claim round, which meets it again.
func (s *Source) Joined(p *Partition, registered bool, reply engine.ClaimReply, claims []*engine.Claim, err error) {
	if err != nil {
		s.open(p)
		if errors.Is(err, denied.UnknownSubscription) {
			p.digest = ""
		}
		return
	}
	learned := s.learned(p, reply)
	s.visited(p, claims, reply.Registered)
	switch {
	case learned, reply.More, reply.Duplicate:
		s.open(p)
	case reply.Registered:
		s.registered(p, time.Now())
	case !registered:
		s.open(p)
	}
}

// NotMade says that a claim that was joined was not sent: what made the partition hot before may have been meant for
// it.
func (s *Source) NotMade(p *Partition) { s.open(p) }

// Failed records a claim round without an answer and returns how many that makes in a row. The partition is asked
// again after a while.
func (s *Source) Failed(p *Partition, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered = false
	p.failures++
	p.notBefore = now.Add(p.backoff.NextBackOff())
	return p.failures
}

// Declare stores the partition's subscription and remembers its digest. Only for the caller that claims from it.
func (s *Source) Declare(ctx context.Context, p *Partition) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	digest, err := s.cfg.Store.SetSubscription(ctx, p.id, s.cfg.Offer.Subscribe(p.subscription))
	if err == nil {
		p.digest = digest
	}
	return err
}

// Foreign looks the route of a claim up, and tells whether it is for somebody else: then the caller gives the
// execution back, and the next claim reads the table, or stores the subscription, anew. Only for the caller that
// claims from p.
func (s *Source) Foreign(p *Partition, c *engine.Claim) (r engine.Route, foreign bool) {
	r, known := p.table.Route(c.Route)
	switch {
	case !known: // never seen: read the table anew
		s.cfg.Logger.Error("flowfabric: claimed an execution of an unknown route; it is released", "execution",
			c.Fence.Execution.String(), "route", c.Route)
		p.table.Version, p.digest = 0, ""
		return r, true
	case !s.Serves(r): // a failover gave the id of a route of ours to another one
		s.cfg.Logger.Warn(
			"flowfabric: claimed an execution of a route that this worker does not serve; it is released", "execution",
			c.Fence.Execution.String(), "kind", r.Kind)
		p.digest = ""
		return r, true
	}
	return r, false
}

// learned takes in what a claim says of routes, and tells whether the subscription is another now: then it has to be
// stored.
func (s *Source) learned(p *Partition, reply engine.ClaimReply) bool {
	p.rotation++
	p.more = reply.More
	if p.table.Learn(reply) {
		p.digest = ""
	}
	if reply.Gated && !p.gated {
		s.gates(p)
	}
	if p.digest != "" && len(reply.Routes) == 0 && !reply.TableFull {
		return false
	}
	subscription := s.cfg.Offer.Subscription(&p.table)
	if p.digest != "" && slices.Equal(subscription, p.subscription) {
		return false
	}
	p.subscription, p.digest = subscription, ""
	s.open(p)
	return true
}

// registered records an empty claim: the server rings from now on.
func (s *Source) registered(p *Partition, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered, p.until = true, now.Add(registration)
	if p.polled {
		p.polled = false
		p.emptyPolls = min(p.emptyPolls+1, maxPenalty)
		p.ignorePolls = now.Add(time.Duration(1<<p.emptyPolls-1) * pollEvery)
	}
}

// open records a claim round after which there may be more to get.
func (s *Source) open(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered, p.polled, p.emptyPolls, p.ignorePolls = false, false, 0, time.Time{}
}

// gates records that some of a partition's work has gates.
func (s *Source) gates(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.gated = true
}

// dried records a claim ahead that got less than it asked for. It did not register, since no slot is idle: the
// partition stays hot for when one is.
func (s *Source) dried(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.dry = !p.rung && p.urgent.priority == 0
}

// recovered ends a streak of failures and returns how long it was.
func (s *Source) recovered(p *Partition) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := p.failures
	if n > 0 {
		p.failures, p.notBefore = 0, time.Time{}
		p.backoff.Reset()
	}
	return n
}

// pause keeps a partition hot, but unasked, for a while.
func (s *Source) pause(p *Partition, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.registered, p.notBefore = false, until
}
