package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

const (
	// abandonAfter is how long a handler may ignore its ended context.
	abandonAfter = 4 * time.Second
	// closeTimeout bounds each of the last calls; together with abandonAfter it stays within stopGrace.
	closeTimeout = 800 * time.Millisecond
)

// drain ends the work as [Worker.Run] describes. fetching are the scheduler and the poll, which have been told
// to stop. The returned error names what had to be abandoned.
func (r *run) drain(fetching *conc.WaitGroup) error {
	began := time.Now()
	r.draining.Store(true)
	r.log.Info("flowfabric: worker drains", "running", r.cfg.Concurrency-r.slots.free(), "timeout", r.cfg.drainTimeout().String())
	patience, cancel := context.WithTimeout(r.ctx, r.cfg.drainTimeout())
	defer cancel()
	fetching.Wait() // each visit is bounded by visitTimeout

	if r.slots.wait(patience) != nil {
		for _, held := range r.keeper.Holding() {
			held.Cancel(flowfabric.ErrDraining)
		}
		last, cancel := context.WithTimeout(r.ctx, abandonAfter)
		defer cancel()
		_ = r.slots.wait(last)
	}
	err := r.abandoned()
	if err == nil {
		r.jobs.Wait() // a matter of microseconds: every slot is free
	}
	r.closeSessions()
	r.log.Info("flowfabric: worker drained", "took", time.Since(began).Round(time.Millisecond).String())
	return err
}

// abandoned names the handlers that are still running. Their sessions are left to expire.
func (r *run) abandoned() error {
	busy := r.slots.capacity - r.slots.free()
	if busy == 0 {
		return nil
	}
	for _, held := range r.keeper.Holding() {
		r.log.Error("flowfabric: handler ignored the end of its context and is abandoned; the execution is requeued when the lease runs out",
			"execution", held.Fence().Execution.String(), "attempt", held.Fence().Attempt, "within", r.cfg.LeaseTTL.String())
	}
	return fmt.Errorf("flowfabric: %d handlers did not return after their context ended (%w)", busy, flowfabric.ErrDraining)
}

// closeSessions resolves claims without an answer, hands back what they had brought, and closes the sessions.
func (r *run) closeSessions() {
	ctx, cancel := context.WithTimeout(r.ctx, closeTimeout)
	defer cancel()
	orphans, err := r.keeper.Unresolved(ctx)
	for _, held := range orphans {
		r.handBack(held)
	}
	r.returns.Wait()
	if err = errors.Join(err, r.keeper.Close(ctx)); err != nil {
		r.log.Warn("flowfabric: sessions were not closed; they expire", "within", r.cfg.LeaseTTL.String(), "error", err)
	}
}
