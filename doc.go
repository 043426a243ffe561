// Package flowfabric holds the vocabulary that every other package of FlowFabric for Go shares: execution
// ids, fences, states, policies, the errors, and the options of executions.
//
// It owns no behaviour and no connection. Applications meet it in four places: they say how work is done with its
// options (flowfabric.Priority(5)), they compare errors with its sentinels (errors.Is(err, flowfabric.ErrLeaseLost)), they
// read a [State] from a snapshot, and they pass an [ExecutionID] around.
//
// # The life of an execution
//
//	            create                    claim                     complete
//	producer ──────────▶ waiting / delayed ─────▶ active (leased) ───────────▶ completed
//	                        ▲   ▲  ▲                │  │  │  │
//	     tick: due ─────────┘   │  └── fail, retry ─┘  │  │  └─ fail, none left ─▶ failed (dead letter)
//	     tick: session died ────┘  └── delay, release ─┘  └──── cancel, deadline ─▶ cancelled, expired
//
// A worker never owns an execution by itself: it owns a session (one per worker instance and partition, one
// expiry on the server's clock), and an execution is held under a session. When a process dies its session
// expires, the tick returns what it held to the queue, and whatever the dead process still sends is refused,
// because every write carries the [Fence] it was claimed under.
//
// # What a lease promises
//
// The session is the lease of everything that was claimed under it: renewed every third of its time to live
// (runtime.Config.LeaseTTL, 1 s to 1 h, default 30 s), and extended by each claim.
//
//   - At most one process may write for an execution at any time. Every write carries a fence (the session, the number of the claim and an
//     epoch that grows with each claim), and the server refuses the writes of everybody else.
//   - The holder stops first. It trusts its lease until the start of the last call that extended it, plus the time to live, minus a margin of
//     a tenth of it (at least 50 ms). Both clocks of the machine are asked, the wall clock and the monotonic one, and the one that ran faster
//     counts: a machine that slept and a wall clock that was set back do not prolong a lease.
//   - Its handlers hear of it. When trust ends, when the server says that the session is gone, or when somebody cancels, revokes or expires
//     the execution, the handler's context ends, and context.Cause says why: [ErrLeaseLost] (with [ErrLeaseRevoked] if an operator
//     took it), [ErrCancelled], [ErrDeadline], [ErrAttemptTimeout] or [ErrOverBudget].
//   - Work is not lost. What a dead session held is queued again; this costs no retry, but counts as a reclaim, of which there is a maximum.
//
// A lease does not promise that a handler has stopped when another one starts: a process may be paused between its last look at the clock
// and an effect outside the store. handler.Task.LeaseHealthy asks again, and handler.Task.Fence is a token that such systems can compare.
package flowfabric
