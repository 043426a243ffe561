// Package lease owns what a worker instance holds: one session per partition, its renewal, the time for which
// it may be trusted, and what happens to running handlers when it is lost.
//
//	         Claim finds work               renew every ttl/3, claims extend too
//	(no session) ─────────▶ open ◀──────────────────────────────────────────────┐
//	     ▲                   │ │ └─ empty for a ttl ─▶ CloseSession ─▶ forgotten │
//	     │                   │ └─── Abandon, orphans ─▶ retiring ─▶ not renewed once empty, expires
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
//   - Something stays in the session that this process does not run (it could not be settled). The session
//     retires: it takes no more claims, is renewed only for what still runs, and then expires, so that the tick
//     returns the orphan to the queue.
//
// Spec: 10 §5, 40 §8; design §6.
package lease
