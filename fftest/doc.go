// Package fftest tests handlers against the real thing with nothing installed and no waiting: the real worker and
// client, the real function library on the embedded server, all of it in one testing/synctest bubble, so that
// every clock is virtual.
//
//	testing/synctest bubble: time moves, due to due, whenever everybody waits
//	┌───────────────────────────────────────────────────────────────────────────────┐
//	│ your test ── Submit ──▶ client ──pipe──▶ embedded server ◀──link── worker     │
//	│           ◀─ Report ──                    TIME, TTLs, tick  │      your handler│
//	│                                             Kill, LoseLease ┴ cut here        │
//	└───────────────────────────────────────────────────────────────────────────────┘
//
// Three ways in, from small to large:
//
//   - [Run] takes one input to its end and returns a [Report]: result or failure, frames, steps, attempts, and how
//     much virtual time it took. It makes its own bubble.
//   - [New] makes a [World] in a bubble of yours, for scenarios: submit several, sleep with time.Sleep, and do to
//     the worker what production does to it: [World.Kill], [World.LoseLease], [World.Drain].
//   - [Crashes] runs one execution again and again, with the worker dying before, and in another run after, each of
//     its writes to the store, and holds every run against the one in which nothing happened.
//
// # What goes wrong here as it does there
//
// A worker that was killed makes no more calls; its connections break; another one starts at once and gets the
// work when the lease has run out, as an attempt of type reclaim. Go cannot end a goroutine from outside, so the
// handler of a killed worker sees its context end with [flowfabric.ErrLeaseLost] and nothing of what it still does
// reaches the store. A worker that lost its lease sees the same, and goes on with other work.
//
// # What to know about the bubble
//
//   - The clock begins at midnight UTC of 2000-01-01 and stands still while any goroutine of the bubble can run.
//   - Every goroutine that a handler starts must end; what is left blocked when the test ends fails it.
//   - Waiting for the network keeps the clock from moving, and a kept-alive connection keeps the bubble from ending. Give
//     handlers fakes, or an in-memory net.Pipe.
//   - A mutex that is held across a sleep stops the clock too, since waiting for a mutex is not waiting for time.
//   - An hour in which all executions wait (a delay, a retry's pause) costs nothing. An hour in which a handler
//     runs costs about two seconds, for its worker renews leases, ticks and polls as it always does.
//
// Design §3, §9.
package fftest
