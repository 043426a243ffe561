package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// Keeper keeps the sessions of one worker instance. Create it with New, run [Keeper.Run] for as long as
// anything is held, end with [Keeper.Unresolved] and [Keeper.Close]. Safe for concurrent use.
type Keeper struct {
	cfg Config
	// of holds, with the values of cfg.Context: to enlist each with it would cost more than to end all when it ends
	base    context.Context
	trust   time.Duration // ttl − margin
	retry   time.Duration // pause after a failed renewal
	call    time.Duration // bound of one renewal call
	confirm time.Duration // between two looks that together end a hold
	wake    chan struct{} // capacity 1
	tasks   conc.WaitGroup

	mu         sync.Mutex
	partitions map[uint16]*partition
	sessions   map[*session]struct{}
	executions map[flowfabric.ExecutionID]*Held
	handedBack map[flowfabric.ExecutionID]int // how often, and not settled since
	calls      int                            // renewals, comparisons and closes under way
	closed     bool
}

// New builds a keeper; it makes no call before the first claim.
func New(cfg Config) *Keeper {
	cfg = cfg.withDefaults()
	k := &Keeper{
		cfg:        cfg,
		base:       context.WithoutCancel(cfg.Context),
		trust:      cfg.TTL - margin(cfg.TTL),
		retry:      max(cfg.TTL/15, minWait),
		call:       max(cfg.TTL/8, 5*minWait),
		confirm:    min(max(cfg.TTL/3, minConfirm), maxConfirm),
		wake:       make(chan struct{}, 1),
		partitions: map[uint16]*partition{},
		sessions:   map[*session]struct{}{},
		executions: map[flowfabric.ExecutionID]*Held{},
		handedBack: map[flowfabric.ExecutionID]int{},
	}
	context.AfterFunc(cfg.Context, k.interrupt)
	return k
}

// interrupt ends the contexts of all holds: the context that they derive from has ended.
func (k *Keeper) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.executions {
		h.cancel(context.Cause(k.cfg.Context))
	}
}

// Reply is the answer to a claim: the server's, with its claims turned into holds.
type Reply struct {
	engine.ClaimReply // Claims is nil; use Held
	Held              []*Held
}

// Claim asks a partition for work under the partition's current session; the keeper fills in session, number
// and ttl of the request. One claim per partition is in flight at a time; others wait for their turn or ctx.
//
// An error whose outcome is unknown ([flowfabric.ErrTransport], or ctx ended) leaves the claim pending: call
// again, and what the lost reply handed out is returned then. It may be more than the repeated request's Max,
// so the caller must be ready to release what exceeds its capacity. An expired session is replaced within the
// call. After Close it returns [flowfabric.ErrDraining].
func (k *Keeper) Claim(ctx context.Context, req engine.ClaimRequest) (Reply, error) {
	p := k.partition(req.Partition)
	select {
	case p.turn <- struct{}{}:
	default: // only who has to wait asks the context for a channel
		select {
		case p.turn <- struct{}{}:
		case <-ctx.Done():
			return Reply{}, context.Cause(ctx)
		}
	}
	defer func() { <-p.turn }()
	reply, err := k.claim(ctx, p, req)
	if sessionDied(err) {
		reply, err = k.claim(ctx, p, req)
	}
	return reply, err
}

// ClaimWith is Claim by another call, which does something else as well: call sends the request with what it is for.
// It is made at most once, and not at all if another claim is under way or the keeper takes no more; made tells. An
// answer to the claim that cannot be had leaves it pending, as in Claim.
func (k *Keeper) ClaimWith(ctx context.Context, req engine.ClaimRequest,
	call func(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error)) (
	reply Reply, made bool, err error) {
	p := k.partition(req.Partition)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	default:
		return Reply{}, false, nil
	}
	s, err := k.begin(p, &req)
	if err != nil {
		return Reply{}, false, err
	}
	start := k.cfg.Clock()
	answer, err := call(ctx, req)
	reply, err = k.finish(s, start, answer, err)
	return reply, true, err
}

// claim makes one call. The caller has the partition's turn.
func (k *Keeper) claim(ctx context.Context, p *partition, req engine.ClaimRequest) (Reply, error) {
	s, err := k.begin(p, &req)
	if err != nil {
		return Reply{}, err
	}
	start := k.cfg.Clock()
	reply, err := k.cfg.Claim(ctx, req)
	return k.finish(s, start, reply, err)
}

// begin picks or mints the session of a claim.
func (k *Keeper) begin(p *partition, req *engine.ClaimRequest) (*session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, flowfabric.ErrDraining
	}
	now := k.cfg.Clock()
	if s := p.current; s != nil && !s.trusted(now) {
		k.lose(s, lostTrust)
	}
	if p.current == nil {
		p.current = &session{keeper: k, id: ids.Session(k.cfg.Instance, k.cfg.Version), partition: p.id}
		k.sessions[p.current] = struct{}{}
	}
	s := p.current
	if !s.opened && !s.pending { // nothing exists on the server yet, trust begins with this call
		s.start, s.sent, s.emptySince = now, true, now
	}
	s.claiming = true
	req.Session, req.Number, req.TTL = s.id, s.number+1, k.cfg.TTL
	return s, nil
}

// finish turns the reply of a claim into holds and keeps the session's account of numbers.
func (k *Keeper) finish(s *session, start Instant, reply engine.ClaimReply, err error) (Reply, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.claiming = false
	if err != nil {
		switch {
		case sessionDied(err):
			k.lose(s, flowfabric.CodeOf(err))
		case unknownOutcome(err):
			k.unresolved(s, err)
		}
		return Reply{ClaimReply: reply}, err
	}
	claims, repeated := reply.Claims, s.pending
	s.pending, s.garbled = false, 0
	reply.Claims = nil
	out := Reply{ClaimReply: reply}
	if len(claims) > 0 || reply.Duplicate || reply.Granted {
		s.number++
		s.extend(start)
		if !s.opened {
			s.opened = true
			k.nudge()
		}
	} else if repeated { // the try that was not answered may still arrive, and take effect
		s.compared = k.cfg.Clock()
		s.doubt(comparePause)
		k.nudge()
	}
	now := k.cfg.Clock()
	if len(claims) > 0 && !s.trusted(now) { // the reply came too late to be acted on
		k.lose(s, lostLate)
		return out, denied.New("claim", flowfabric.CodeOf(denied.LeaseExpired))
	}
	if len(claims) > 0 {
		out.Held = make([]*Held, 0, len(claims))
	}
	for i := range claims {
		if h := k.hold(s, &claims[i]); h != nil {
			out.Held = append(out.Held, h)
		}
	}
	s.early = nil
	if reply.TickOverdue {
		k.cfg.OnTickOverdue(s.partition)
	}
	return out, nil
}

// unresolved records a claim of unknown outcome: its number is repeated. An answer that cannot be read will not be
// readable next time, so after a few the session is given up, and what the claim took is requeued at its expiry.
func (k *Keeper) unresolved(s *session, err error) {
	s.pending = true
	if denied.ClassOf(err) != fault.Bug {
		return
	}
	if s.garbled++; s.garbled >= maxGarbled {
		k.cfg.Logger.Error(
			"flowfabric: the answer to a claim cannot be read; its session takes no more work, and its executions are requeued when it expires",
			"partition", s.partition, "session", s.id, "error", err)
		s.pending = false
		k.retire(s)
	}
}

// hold records one claim. A hold of the same execution under an older epoch is over.
func (k *Keeper) hold(s *session, claim *engine.Claim) *Held {
	id := claim.Fence.Execution
	if old := k.executions[id]; old != nil {
		if old.claim.Fence == claim.Fence {
			return nil // a repeated answer names what already runs
		}
		old.lose(flowfabric.ErrLeaseLost)
		k.remove(old)
	}
	h := &Held{session: s, claim: *claim}
	h.ctx, h.cancel = context.WithCancelCause(k.base)
	if k.cfg.Context.Err() != nil {
		h.cancel(context.Cause(k.cfg.Context))
	}
	s.held.add(h)
	k.executions[id] = h
	for _, lost := range s.early {
		if lost.Execution == id && lost.Epoch == claim.Fence.Epoch {
			h.heed(lost)
		}
	}
	return h
}

// forget ends a hold. One that was abandoned is handed back by the next comparison.
func (k *Keeper) forget(h *Held, abandoned bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !abandoned || h.lost != nil {
		k.release(h)
		return
	}
	if h.gone {
		return
	}
	h.gone = true
	h.cancel(context.Canceled)
	k.remove(h)
	if !h.session.dead {
		h.session.doubt(0)
		k.nudge()
	}
}

// release ends a hold for good.
func (k *Keeper) release(h *Held) {
	if h.gone {
		return
	}
	h.gone = true
	h.cancel(context.Canceled)
	k.remove(h)
	if len(k.handedBack) > 0 {
		delete(k.handedBack, h.claim.Fence.Execution)
	}
}

// remove takes a hold out of the accounts.
func (k *Keeper) remove(h *Held) {
	s, id := h.session, h.claim.Fence.Execution
	if k.executions[id] != h {
		return
	}
	delete(k.executions, id)
	s.held.remove(h)
	if s.held.count == 0 {
		s.emptySince = k.cfg.Clock()
	}
}

// lose ends a session and everything held under it.
func (k *Keeper) lose(s *session, why string) {
	if s.dead {
		return
	}
	if s.held.count > 0 {
		k.cfg.Logger.Warn("flowfabric: lease lost", "partition", s.partition, "session", s.id, "executions",
			s.held.count, "reason", why)
	}
	if s.opened {
		k.cfg.OnSessionLost(s.partition, why)
	}
	s.dead = true
	k.drop(s)
	for h := s.held.first; h != nil; h = h.next {
		h.lose(flowfabric.ErrLeaseLost)
	}
}

// retire keeps a session from taking more claims.
func (k *Keeper) retire(s *session) {
	s.retiring = true
	if p := k.partitions[s.partition]; p.current == s {
		p.current = nil
	}
	if s.idle() {
		k.drop(s)
	}
}

// drop forgets a session; what the server still has of it expires.
func (k *Keeper) drop(s *session) {
	delete(k.sessions, s)
	if p := k.partitions[s.partition]; p.current == s {
		p.current = nil
	}
}

// RenewNow renews a partition's sessions at once: its lost notices were announced. It never blocks.
func (k *Keeper) RenewNow(partition uint16) {
	k.mu.Lock()
	for s := range k.sessions {
		if s.partition == partition {
			s.force = true
		}
	}
	k.mu.Unlock()
	k.nudge()
}

// Reconnected renews a partition's sessions at once and compares what the server holds under them with what is
// held here: the connection was away, or another server took over. It never blocks.
func (k *Keeper) Reconnected(partition uint16) {
	k.mu.Lock()
	for s := range k.sessions {
		if s.partition == partition {
			s.force = true
			s.doubt(0)
		}
	}
	k.mu.Unlock()
	k.nudge()
}

// Holding lists what is held, lost or not, and not yet released.
func (k *Keeper) Holding() []*Held {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := make([]*Held, 0, len(k.executions))
	for _, h := range k.executions {
		held = append(held, h)
	}
	return held
}

func (k *Keeper) partition(id uint16) *partition {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.partitions[id]
	if p == nil {
		p = &partition{id: id, turn: make(chan struct{}, 1)}
		k.partitions[id] = p
	}
	return p
}

// nudge wakes the loop.
func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// sessionDied reports an answer after which a session can never be used again.
func sessionDied(err error) bool {
	return errors.Is(err, denied.LeaseExpired) || errors.Is(err, denied.ClaimOrder) ||
		errors.Is(err, denied.LeaseRevoked)
}

// unknownOutcome reports that the server may or may not have acted.
func unknownOutcome(err error) bool {
	switch denied.ClassOf(err) {
	case 0, fault.Bug: // a context's error, or an answer that could not be read
		return true
	}
	return errors.Is(err, flowfabric.ErrTransport)
}
