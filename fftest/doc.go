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
//   - [New] makes a [Env] in a bubble of yours, for scenarios: submit several, sleep, answer, and do to the worker what
//     production does to it: [Env.Kill], [Env.LoseLease], [Env.Drain].
//   - [Crashes] runs one execution again and again, with the worker dying before, and in another run after, each of
//     its writes to the store and each answer to it, and holds every run against the one in which nothing happened.
//
// # Who answers
//
// A handler that waits, see package suspend, needs somebody to answer it. An [Answer] is what they do: [Signal] as a
// sender with a token, [Publish] as a program that tells what happened, [Approve] and [Resume] as an operator, each as
// soon as it is waited for or, with [Answer.After], so much virtual time later. They are given
//
//   - by [Answered] around the handler, which serves Run, New and Crashes: for waits known beforehand;
//   - by [Tell] in a fake that the handler calls: the reader of the mail clicks, the customer pays;
//   - by [Execution.Answer] in a scenario, or by the environment's real client ([Env.Client]) where a refusal is what
//     is tested.
//
// Nobody answering is a test, too: virtual time passes until the wait's Within is over. [Env.Sleep] lets it pass in a
// scenario. The [Report] tells the waits, how long each lasted and what ended it.
//
// # Children
//
// A handler that waits for children, see package flow, needs handlers for them: [New] takes bindings of all kinds,
// [Run] and [Crashes] have one, which may be its own child, and those of [Also].
//
// # Gates
//
// [Gates] makes gates and has the execution spend from them; [Report.Spent] says how much it did, and
// [Report.Reservations] how those of [handler.Task.Reserve] ended. Periods restart in virtual time. Gates of
// services are asked by handler.Task.Acquire. Turns come in virtual time, and an execution that waits without a slot is
// woken as in production.
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
//   - Waiting for the network keeps the clock from moving, and a kept-alive connection keeps the bubble from ending.
//     Give handlers fakes, or an in-memory net.Pipe.
//   - A mutex that is held across a sleep stops the clock too, since waiting for a mutex is not waiting for time.
//   - While the test waits in a method of this package, such as [Env.Sleep], the environment steps from one due time
//     in its store to the next: delays, retries, timeouts, deadlines, schedules, windows of gates, the leases of dead
//     workers, retention. It does not matter who made the work: [Submit], the environment's client, a handler, a
//     schedule or a flow. The hours between cost nothing.
//   - An hour in which a handler runs, or the test is in time.Sleep, costs about two seconds, for the worker renews
//     leases, ticks and polls as it always does.
package fftest
