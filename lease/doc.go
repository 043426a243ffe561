// Package lease claims work and keeps it, for worker loops of your own. Package runtime is built on the same parts and
// runs handlers for you; use this package where something else decides what runs when: a scheduler, a batch system, a
// process that starts others.
//
//	Open ─▶ Claim (waits) ─▶ Held ─▶ your code, under Held.Context ─▶ Complete · Fail · Delay · Release
//	                          └─ renewed in the background until then; Renewal tells how that goes, Renew renews now
//
// A loop, which decodes inputs and encodes results itself, mostly as JSON:
//
//	s, err := lease.Open(ctx, lease.Config{URL: url, Kinds: []string{"resize"}})
//	for {
//		list, err := s.Claim(ctx, 8)
//		if err != nil {
//			return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
//		}
//		for _, h := range list {
//			result, err := resize(h.Context(), h.Input)
//			if err == nil {
//				err = h.Complete(ctx, result)
//			} else {
//				_, _, err = h.Fail(ctx, handler.Failure{Reason: err.Error()})
//			}
//			if err != nil {
//				log.Print(err) // for example the lease was lost: others have the work
//			}
//		}
//	}
//
// One [Session.Claim] brings whatever there is: new work, what a gate has granted, retries, and what was
// taken from a worker that died (Held.Type tells). Steps, frames, waits, what is spent of gates and calls to services
// need package handler: they go on where an earlier run stopped, and end with the handler.
//
// A worker process has one session for each partition that it has work of. The session is the lease of everything
// that was claimed under it: renewed every third of its time to live (1 s to 1 h, default 30 s), and extended by each
// claim.
//
// # What a lease promises
//
//   - At most one process may write for an execution at any time. Every write carries a fence (the session, the
//     number of the claim and an epoch that grows with each claim), and the server refuses the writes of everybody
//     else.
//   - The holder stops first. It trusts its lease until the start of the last call that extended it, plus the time to
//     live, minus a margin of a tenth of it (at least 50 ms). Both clocks of the machine are asked, the wall clock
//     and the monotonic one, and the one that ran faster counts: a machine that slept and a wall clock that was set
//     back do not prolong a lease.
//   - Its handlers hear of it. When trust ends, when the server says that the session is gone, or when somebody
//     cancels, revokes or expires the execution, the handler's context ends, and context.Cause says why:
//     flowfabric.ErrLeaseLost (with code lease_revoked if an operator took it), ErrCancelled, ErrDeadline,
//     ErrAttemptTimeout or ErrOverBudget.
//   - Work is not lost. What a dead session held is queued again; this costs no retry, but counts as a reclaim, of
//     which there is a maximum.
//
// A lease does not promise that a handler has stopped when another one starts: a process may be paused between its
// last look at the clock and an effect outside the store. handler.Task.LeaseHealthy asks again, and
// handler.Task.Fence is a token that such systems can compare.
package lease
