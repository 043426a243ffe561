// Package schedule says when work recurs and what is submitted then: cron expressions in a time zone, fixed rates, and
// what happens to times that were missed because nothing was running.
//
//	Spec ── Next ──▶ instants ── plan (what is due, what was missed) ──▶ one atomic call per step ──▶ execution
//
// This package has the words only; client.Schedule makes and changes a schedule, and admin lists and pauses it:
//
//	_, err := client.Schedule(ctx, c, "nightly", schedule.Cron("30 2 * * *", "Europe/Berlin"), Report, "all")
//
// A definition is stored on the server as bytes that only Go reads. Any process that runs maintenance, as every
// worker does, fires it: it reads what is due, plans, and makes one call that creates the execution and moves the
// schedule on, if the schedule is still as it was read. So each instant is submitted once, however many processes run
// and whatever replies get lost, and an instant that is not submitted is counted together with the reason.
//
// A schedule may be over: at a time (Definition.Until), or once it has submitted so much (Definition.Runs), which the
// call that submits the last one decides. It may submit a flow: the flow is staged by calls that may be repeated, and
// the call that moves the schedule on releases it. It may start its work a little later than its instants
// (Definition.Jitter), by an amount that every process computes alike.
//
// Failures: a process that cannot read a definition, because a newer version wrote it, leaves it to others. A clock
// is never asked: the server's time decides what is due.
//
// # Time zones
//
// A cron expression names times of a wall clock. Its instants, where the clock is changed:
//
//   - An expression that matches every hour ("*/15 * * * *") follows elapsed time: what the clock skips does not
//     happen, what the clock shows twice happens twice.
//   - Any other names certain times of a day ("30 2 * * *"), and each happens exactly once: one that the clock skips
//     happens when the clock has jumped, all skipped ones together; one that the clock shows twice happens the first
//     time.
//
// A zone is a name of the time zone database, written as there; other files of a machine are no zones. Zones come from
// the system, or from the copy in the program where the system has none. Processes whose copies differ still fire each
// stored instant once; the process that fires computes the next one.
package schedule
