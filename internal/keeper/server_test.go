package keeper_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// server is the server side of the session protocol in memory, on the test's clock. Faults are set per method.
type server struct {
	mu       sync.Mutex
	queue    []flowfabric.ExecutionID
	revoked  []flowfabric.ExecutionID
	sessions map[string]*serverSession
	epoch    uint64
	fault    map[string]fault // by method: claim, renew, close
	calls    map[string]int
	last     engine.ClaimRequest
	hook     func(method string)             // called after the effect, before the reply
	refuse   map[string]error                // by method: claim, held, release; the call has no effect (a claim has)
	hidden   map[flowfabric.ExecutionID]bool // held, but not named by SessionHeld
}

type fault int

const (
	none      fault = iota
	lost            // the call takes effect, its reply is lost
	blackHole       // the call never arrives and is not answered
	unheard         // the call never arrives, and that is known at once
)

type serverSession struct {
	expiry time.Time
	closed bool
	number uint64
	held   map[flowfabric.ExecutionID]engine.Claim
	lost   []engine.Lost
	base   uint64
}

func newServer(n int) *server {
	s := &server{sessions: map[string]*serverSession{}, fault: map[string]fault{}, calls: map[string]int{},
		refuse: map[string]error{}, hidden: map[flowfabric.ExecutionID]bool{}}
	s.add(n)
	return s
}

func (s *server) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.queue = append(s.queue, mint.ID(0))
	}
}

func (s *server) set(method string, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault[method] = f
}

// fail makes a method answer err from now on; nil ends that.
func (s *server) fail(method string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[method] = err
}

// hide keeps a held execution out of the answers of SessionHeld.
func (s *server) hide(id flowfabric.ExecutionID, hidden bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden[id] = hidden
}

// holds reports whether a fence is that of the current holder.
func (s *server) holds(f flowfabric.Fence) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[f.Session]
	return x.alive() && x.held[f.Execution].Fence == f
}

// queued is how many executions wait.
func (s *server) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

func (s *server) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// session returns a session that still exists, alive or not.
func (s *server) session(id string) *serverSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// settle removes a held execution as a completion would.
func (s *server) settle(f flowfabric.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions[f.Session].held, f.Execution)
}

// take removes a held execution behind the holder's back.
func (s *server) take(f flowfabric.Fence, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[f.Session]
	delete(x.held, f.Execution)
	x.lost = append(x.lost, engine.Lost{Execution: f.Execution, Epoch: f.Epoch, Cause: cause})
}

// tell leaves a notice that takes nothing away.
func (s *server) tell(f flowfabric.Fence, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[f.Session]
	x.lost = append(x.lost, engine.Lost{Execution: f.Execution, Epoch: f.Epoch, Cause: cause})
}

// call applies the faults around an effect.
func (s *server) call(ctx context.Context, method string, effect func() error) error {
	s.mu.Lock()
	s.calls[method]++
	f, hook := s.fault[method], s.hook
	var err error
	if f != blackHole && f != unheard {
		err = effect()
	}
	s.mu.Unlock()
	if hook != nil {
		hook(method)
	}
	switch f {
	case blackHole:
		<-ctx.Done()
		return fmt.Errorf("%w: %w", flowfabric.ErrTransport, context.Cause(ctx))
	case lost, unheard:
		return flowfabric.ErrTransport
	}
	return err
}

// timed: virtual time
func (x *serverSession) alive() bool { return x != nil && !x.closed && time.Now().Before(x.expiry) }

func (s *server) ClaimNext(ctx context.Context, req engine.ClaimRequest) (reply engine.ClaimReply, err error) {
	s.mu.Lock()
	s.last = req
	s.mu.Unlock()
	err = s.call(ctx, "claim", func() error {
		x := s.sessions[req.Session]
		switch {
		case x != nil && !x.alive(), x == nil && req.Number != 1:
			return denied.New("ff_claim_next", "lease_expired")
		case x != nil && req.Number == x.number:
			reply.Duplicate = true
			for _, c := range x.held {
				if c.Fence.Claim == req.Number {
					reply.Claims = append(reply.Claims, c)
				}
			}
			x.expiry = time.Now().Add(req.TTL)
			return s.refuse["claim"]
		case x != nil && req.Number != x.number+1:
			return denied.New("ff_claim_next", "claim_out_of_order")
		case req.Subscription == "" || len(s.queue) == 0:
			reply.Registered = req.Wait
			return nil
		}
		if x == nil {
			x = &serverSession{held: map[flowfabric.ExecutionID]engine.Claim{}}
			s.sessions[req.Session] = x
		}
		x.number, x.expiry = req.Number, time.Now().Add(req.TTL)
		n := min(req.Max, len(s.queue))
		for _, id := range s.queue[:n] {
			s.epoch++
			c := engine.Claim{Fence: flowfabric.Fence{Execution: id, Session: req.Session, Claim: req.Number,
				Attempt: 1, Epoch: s.epoch}}
			x.held[id] = c
			reply.Claims = append(reply.Claims, c)
		}
		s.queue = s.queue[n:]
		return s.refuse["claim"]
	})
	if err != nil {
		return engine.ClaimReply{}, err
	}
	return reply, nil
}

func (s *server) RenewSession(ctx context.Context, _ uint16, id string, ttl time.Duration,
	processed uint64) (r engine.Renewal, err error) {
	err = s.call(ctx, "renew", func() error {
		x := s.sessions[id]
		if !x.alive() {
			return denied.New("ff_session_renew", "lease_expired")
		}
		x.expiry = time.Now().Add(ttl)
		if done := processed - x.base; done > 0 {
			x.lost, x.base = x.lost[done:], processed
		}
		n := min(len(x.lost), 2)
		r = engine.Renewal{Lost: x.lost[:n], Generation: x.base + uint64(n), MoreLost: n < len(x.lost)}
		return nil
	})
	return r, err
}

func (s *server) SessionHeld(ctx context.Context, _ uint16, id string) (held []engine.Held, err error) {
	err = s.call(ctx, "held", func() error {
		if x := s.sessions[id]; x != nil {
			for e, c := range x.held {
				if !s.hidden[e] {
					held = append(held, engine.Held{Execution: e, Claim: c.Fence.Claim})
				}
			}
		}
		return s.refuse["held"]
	})
	return held, err
}

func (s *server) ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (out engine.Snapshot, err error) {
	err = s.call(ctx, "read", func() error {
		for session, x := range s.sessions {
			if c, ok := x.held[id]; ok {
				out = engine.Snapshot{Code: codes.Active, Snapshot: flowfabric.Snapshot{ID: id,
					ExecutionSummary: flowfabric.ExecutionSummary{State: codes.Shown(codes.Active), Session: session,
						Epoch: c.Fence.Epoch, Attempts: c.Fence.Attempt}}}
				return nil
			}
		}
		return denied.New("ff_read_execution", "execution_not_found")
	})
	return out, err
}

func (s *server) RevokeLease(ctx context.Context, id flowfabric.ExecutionID,
	session string) (already bool, err error) {
	return false, s.call(ctx, "revoke", func() error {
		x := s.sessions[session]
		if _, held := x.held[id]; !held {
			return denied.New("ff_revoke_lease", "stale_lease")
		}
		delete(x.held, id)
		s.revoked = append(s.revoked, id)
		return nil
	})
}

func (s *server) ReleaseExecution(ctx context.Context, f flowfabric.Fence) (already bool, err error) {
	return false, s.call(ctx, "release", func() error {
		x := s.sessions[f.Session]
		switch {
		case s.refuse["release"] != nil:
			return s.refuse["release"]
		case !x.alive():
			return denied.New("ff_release_execution", "lease_expired")
		case x.held[f.Execution].Fence != f:
			return denied.New("ff_release_execution", "stale_lease")
		}
		delete(x.held, f.Execution)
		s.queue = append(s.queue, f.Execution)
		return nil
	})
}

func (s *server) CloseSession(ctx context.Context, _ uint16, id string) error {
	return s.call(ctx, "close", func() error {
		x := s.sessions[id]
		if !x.alive() {
			return denied.New("ff_session_close", "lease_expired")
		}
		if len(x.held) > 0 {
			return denied.New("ff_session_close", "session_not_empty")
		}
		x.closed = true
		return nil
	})
}
