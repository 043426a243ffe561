package keeper

import (
	"context"
	"errors"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// Held is one claimed execution for as long as this process answers for it. Exactly one of Release and Abandon
// must be called at the end; everything else may be called at any time. Safe for concurrent use.
type Held struct {
	session *session
	claim   engine.Claim
	ctx     context.Context
	cancel  context.CancelCauseFunc

	prev, next *Held // of the session's list; guarded by Keeper.mu, as all below

	told   []string           // notices that took nothing away
	listen func(cause string) // is told of them; nil: nobody

	lost    error   // why it is no longer ours
	gone    bool    // released or abandoned
	missing bool    // the server did not name it
	missed  Instant // when that was first noticed
}

// Claim is what the server handed out. The caller must not change what it points to.
func (h *Held) Claim() *engine.Claim { return &h.claim }

// Fence is the proof of ownership for every write.
func (h *Held) Fence() flowfabric.Fence { return h.claim.Fence }

// Context ends when the execution is no longer this process's to run, with the reason as its cause:
// flowfabric.ErrLeaseLost, ErrCancelled, ErrDeadline, ErrAttemptTimeout, ErrOverBudget, or what [Held.Cancel]
// was given. A lease that was revoked matches denied.LeaseRevoked besides ErrLeaseLost.
func (h *Held) Context() context.Context { return h.ctx }

// Bounded is the context, and ends at what the server will enforce anyway, too: the attempt's timeout and the
// execution's deadline, each with its own cause. Both are durations from the claim's reply, so no clocks are compared;
// waited is how long ago that was.
func (h *Held) Bounded(waited time.Duration) (context.Context, context.CancelFunc) {
	if h.claim.DeadlineIn <= 0 && h.claim.TimeLeft <= 0 {
		return h.ctx, func() {}
	}
	left, cause := h.claim.DeadlineIn, flowfabric.ErrDeadline
	if left <= 0 || h.claim.TimeLeft > 0 && h.claim.TimeLeft < left {
		left, cause = h.claim.TimeLeft, flowfabric.ErrAttemptTimeout
	}
	return context.WithTimeoutCause(h.ctx, left-waited, cause)
}

// Cancel ends the context with cause. The execution stays held: the caller still settles or releases it.
func (h *Held) Cancel(cause error) { h.cancel(cause) }

// Check returns nil while the hold may be acted on, else why not (the cause the context ended with). It reads
// the clock, so a process that was stopped finds out here even before the keeper's loop has had its turn.
// Call it before every write and every step.
func (h *Held) Check() error {
	k := h.session.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.lost == nil && !h.session.trusted(k.cfg.Clock()) {
		k.lose(h.session, lostTrust)
	}
	return h.lost
}

// Trusted reports whether [Held.Check] returns nil.
func (h *Held) Trusted() bool { return h.Check() == nil }

// Healthy reports whether the lease is trusted and fewer than three renewals failed in a row.
func (h *Held) Healthy() bool { return h.Check() == nil && h.Failures() < failureLimit }

// Failures is how many renewals of the session have failed in a row.
func (h *Held) Failures() int {
	h.session.keeper.mu.Lock()
	defer h.session.keeper.mu.Unlock()
	return h.session.failures
}

// Renewal is how the renewals of a hold's session go. Times are of this machine's wall clock.
type Renewal struct {
	At      time.Time // when the newest call that extended the lease was sent
	Next    time.Time // when the next is due
	Expires time.Time // when the server may give the execution to somebody else; trust ends a margin before
	Failed  int       // renewals in a row
}

// Renewal is how the renewals of the session go.
func (h *Held) Renewal() Renewal {
	k := h.session.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	s, now := h.session, k.cfg.Clock()
	return Renewal{At: s.start.Wall, Next: now.Wall.Add(max(0, s.untilRenewal(now))),
		Expires: s.start.Wall.Add(k.cfg.TTL), Failed: s.failures}
}

// Renew renews the session at once, and with it everything that is held under it. It returns what [Held.Check] says
// then, or why the server did not answer.
func (h *Held) Renew(ctx context.Context) error {
	k := h.session.keeper
	for again := true; again; {
		var err error
		if again, err = k.renewOnce(ctx, h.session); err != nil {
			return errors.Join(h.Check(), err)
		}
	}
	return h.Check()
}

// Refused tells the keeper what the server answered to a write under the hold's fence. An expired session
// takes everything held under it along; any other answer concerns this execution alone and changes nothing.
func (h *Held) Refused(err error) {
	if errors.Is(err, denied.LeaseExpired) {
		k := h.session.keeper
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lose(h.session, lostWrite)
	}
}

// Release forgets the hold after it was settled, or after it was lost. Idempotent.
func (h *Held) Release() { h.session.keeper.forget(h, false) }

// Release forgets several holds at once, as [Held.Release] does.
func (k *Keeper) Release(held ...*Held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range held {
		k.release(h)
	}
}

// Abandon forgets a hold that may still exist on the server: it was neither settled nor lost. The keeper hands
// the execution back as soon as the server lets it, with its attempt and without counting a retry. One that
// comes back this way for the fourth time is left to expire instead, which counts a reclaim. Idempotent.
func (h *Held) Abandon() { h.session.keeper.forget(h, true) }

// Listen implements tasks.Lease: f is told of what somebody says to the run, until Listen is called again.
func (h *Held) Listen(f func(cause string)) {
	k := h.session.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.listen = f; f == nil {
		return
	}
	for _, cause := range h.told {
		f(cause)
	}
}

// tell notes a notice that takes nothing away. Called with Keeper.mu held.
func (h *Held) tell(cause string) {
	if len(h.told) == maxTold { // the newest say it all
		h.told = slices.Delete(h.told, 0, 1)
	}
	h.told = append(h.told, cause)
	if h.listen != nil {
		h.listen(cause)
	}
}

// heed acts on a notice. Called with Keeper.mu held.
func (h *Held) heed(lost engine.Lost) {
	if lost.Told() {
		h.tell(lost.Cause)
	} else {
		h.lose(lost.Err())
	}
}

// lose takes the hold away: the first reason wins. Called with Keeper.mu held.
func (h *Held) lose(cause error) {
	if h.lost != nil || h.gone {
		return
	}
	h.lost = cause
	h.cancel(cause)
	h.session.keeper.cfg.OnLost(h.claim.Fence.Execution, cause)
}
