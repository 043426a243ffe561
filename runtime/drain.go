package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// What is left of the stop budget after DrainTimeout (stopGrace) is spent in this order. The rest, 1.2 s, is for the
// connections: the driver gives a silent server one second to answer their end.
const (
	// abandonAfter is how long a handler may ignore its ended context.
	abandonAfter = 3 * time.Second
	// lastCallAfter is when the last call ends, answered or not: hand-backs, closes and released ticks alike.
	lastCallAfter = 3800 * time.Millisecond
	// farewellTimeout is how long a server may take to answer whether it is still there.
	farewellTimeout = 500 * time.Millisecond
)

// drain ends the work as [Worker.Run] describes. fetching are the scheduler and the poll, which have been told
// to stop. The returned error names what had to be abandoned. Whatever the server does, it is over
// lastCallAfter after DrainTimeout, and so is everything that uses the run's context.
func (r *run) drain(fetching *conc.WaitGroup) error {
	began := time.Now()
	patience := began.Add(r.cfg.drainTimeout())
	lastCall := patience.Add(lastCallAfter)
	end := time.AfterFunc(time.Until(lastCall), func() { r.cancel(flowfabric.ErrDraining) })
	defer end.Stop()
	r.claims.draining.Store(true)
	close(r.draining)
	running, _ := r.slots.counts()
	r.log.Info("flowfabric: worker drains", "running", running, "timeout", r.cfg.drainTimeout().String())
	r.jobs.giveBack(r.slots.close()) // what waits for a slot is better off elsewhere

	r.awaitJobs(fetching, patience)
	err := r.abandoned()
	r.jobs.pool.close()
	if err == nil {
		r.jobs.pool.wait() // a matter of microseconds: every slot is free
	}
	r.closeSessions(lastCall)
	r.name.leave(lastCall)
	r.tellTimes(lastCall)
	r.farewell(lastCall)
	r.log.Info("flowfabric: worker drained", "took", time.Since(began).Round(time.Millisecond).String())
	return err
}

// tellTimes sends how long the last attempts waited and ran. A server that is away must not take the time of what
// comes after it.
func (r *run) tellTimes(lastCall time.Time) {
	ctx, cancel := context.WithDeadline(r.ctx, lastCall)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, farewellTimeout)
	defer cancel()
	r.jobs.times.Send(ctx)
}

// awaitJobs waits for the handlers and for claims in flight, which have slots, too. When patience ends, so do the
// handlers' contexts.
func (r *run) awaitJobs(fetching *conc.WaitGroup, patience time.Time) {
	fetched := make(chan struct{})
	var waiting conc.WaitGroup
	defer waiting.Wait() // each claim round is bounded by roundTimeout, and by the end of the run's context
	waiting.Go(func() {
		defer close(fetched)
		fetching.Wait()
	})
	calm, cancel := context.WithDeadline(r.ctx, patience)
	defer cancel()
	if r.slots.wait(calm) == nil {
		return
	}
	last, cancelLast := context.WithDeadline(r.ctx, patience.Add(abandonAfter))
	defer cancelLast()
	r.interrupt()
	select {
	case <-fetched:
		r.interrupt() // those that a claim in flight still started
	case <-last.Done():
	}
	_ = r.slots.wait(last)
}

// interrupt ends the contexts of all handlers.
func (r *run) interrupt() {
	for _, held := range r.session.Keeper.Holding() {
		held.Cancel(flowfabric.ErrDraining)
	}
}

// abandoned names the handlers that are still running. Their sessions are left to expire.
func (r *run) abandoned() error {
	running, settling := r.slots.counts()
	if running+settling == 0 {
		return nil
	}
	for _, held := range r.session.Keeper.Holding() {
		r.log.Error(
			"flowfabric: the handler ignored the end of its context and is abandoned; the execution is requeued when its lease expires",
			"execution", held.Fence().Execution.String(), "attempt", held.Fence().Attempt, "within",
			r.cfg.LeaseTTL.String())
	}
	if running == 0 {
		return fmt.Errorf("flowfabric: %d executions were not settled (%w)", settling, flowfabric.ErrDraining)
	}
	return fmt.Errorf("flowfabric: %d handlers did not return after their context ended (%w)", running,
		flowfabric.ErrDraining)
}

// closeSessions resolves claims without an answer, hands back what they had brought, and closes the sessions.
func (r *run) closeSessions(lastCall time.Time) {
	ctx, cancel := context.WithDeadline(r.ctx, lastCall)
	defer cancel()
	if err := r.session.Close(ctx); err != nil {
		r.log.Warn("flowfabric: the worker could not close its sessions; they expire", "within",
			r.cfg.LeaseTTL.String(), "error", err)
	}
}

// farewell asks whether the server is still there. The end of the subscriptions waits for its answer, for as long as
// the driver does: when there will be none, the connections are closed first, which ends everything that waits.
func (r *run) farewell(lastCall time.Time) {
	if r.ticks != nil {
		r.ticks.EndBy(lastCall)
	}
	ctx, cancel := context.WithTimeout(r.ctx, farewellTimeout)
	defer cancel()
	if _, _, err := r.store.Poll(ctx, []uint16{0}); err != nil &&
		(ctx.Err() != nil || errors.Is(err, flowfabric.ErrTransport)) {
		r.log.Info("flowfabric: the server does not answer; the worker closes its connections without leaving", "error",
			err)
		r.cancel(flowfabric.ErrDraining)
		r.store.Close()
	}
}
