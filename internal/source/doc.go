// Package source finds work. A [Source] knows, for one offer of a worker, which partitions may have work for it, which
// of that is urgent, and what is stored of its subscriptions. It renews nothing and keeps no lease: whoever claims
// names the session. A [Listener] feeds sources: with doorbells, with polls, and by forwarding the wakes that nobody
// here can follow.
//
//	doorbell ─▶ ring ─┐
//	poll ─▶ suspect ──┼─▶ hot ──Take──▶ Request ─▶ a claim ─▶ Answered ──Left──▶ hot again, or registered
//	sweep ────────────┘
//
// Three callers share it: package runtime, whose slots say how much to take; internal/gateway, whose workers wait over
// HTTP; and package lease, for worker loops of an application's own.
//
// # What can go wrong, and what follows
//
//   - A ring is lost. Polls see ready routes where no ring came, and a registration is renewed before it expires.
//   - The connection is lost. The subscription is made again, and every partition is looked at.
//   - A partition does not answer. It is asked again ever more seldom, for one execution.
//   - A failover gave the number of a route to another one. The table is read anew; what was claimed by mistake goes
//     back.
//   - A ring comes to a process that has no room. It is forwarded to the next waiter.
package source
