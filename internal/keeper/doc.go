// Package keeper owns what a worker instance holds: one session per partition, its renewal, the time for which
// it may be trusted, and what happens to running handlers when it is lost. What a lease promises is said in package
// flowfabric.
//
//	         Claim finds work               renew every ttl/3, claims extend too
//	(no session) ─────────▶ open ◀──────────────────────────────────────────────┐
//	     ▲                   │ │ └─ empty for a ttl ─▶ CloseSession ─▶ forgotten │
//	     │                   │ └─── cannot be reconciled ─▶ retiring ─▶ not renewed once empty, expires
//	     │                   └───── lease_expired, claim_out_of_order, trust over ─▶ dead
//	     └── the next claim mints a new id; a dead session is never revived
//
// # What can go wrong, and what follows
//
//   - A claim's reply is lost. The session keeps its number, so the next claim repeats it and the server names
//     what it handed out; until then the session is not closed and nothing of it is handed back.
//   - The server cannot be reached. A session is trusted until request start + ttl − margin of the last call
//     that extended it, measured on the wall clock and on the monotonic clock, whichever runs faster. Then
//     everything held under it is lost: every context ends with [flowfabric.ErrLeaseLost].
//   - The process was stopped or the machine slept. The keeper's loop notices on its next turn, at most a
//     second later, and [Held.Check] notices before anything is written.
//   - Somebody takes one execution away (cancel, timeout, deadline, revoke). The server queues a notice for the
//     session; a renewal carries it and the execution's context ends with the matching cause. A notice that
//     overtakes the claim it belongs to is kept until that claim has been answered.
//   - Something stays in the session that this process does not run: it could not be settled, or a claim that was
//     given up as lost arrived late. The keeper compares what the server holds with what it runs (see below) and
//     hands the rest back, with its attempt.
//   - What comes back that way again and again is revoked: the tick requeues it and counts a reclaim, of which there
//     is a maximum.
//   - What cannot be handed back, or was claimed with an answer that cannot be read: the session retires. It takes no
//     more claims, is renewed only for what still runs, and then expires, so that the tick requeues the orphan.
//   - The server forgot a hold and left no notice, as after a failover. The second comparison that misses it,
//     some seconds after the first, ends its context; a settling call under way is answered by then.
//
// # Reconciliation
//
// A comparison is made when something was abandoned, when the connection was away ([Keeper.Reconnected]), after a
// renewal that had failed, after a claim of unknown outcome turned out to have had no effect, before a session is
// closed that the server says is not empty, and every tenth renewal. It has the partition's turn, so no claim is in
// flight, and waits while one is unresolved: the repeat of that claim names what it took. Hand-backs are fenced, so
// whatever else may still be on its way, one of the two is refused.
package keeper
