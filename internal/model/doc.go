// Package model is the state machine of one partition in plain Go: no keys, no indexes, no server. It is written from
// what the states promise, not from the Lua, and is the oracle that the library is held against.
//
//	random calls ──► library on a server ──► reply, snapshot ─┐
//	      └────────► model.Partition ──────► reply, view ─────┴─ equal, or a test fails and shrinks the calls
//	concurrent history ──► porcupine: is there an order in which the model answers the same?
//
// One method per function of the library: it answers what the function must answer and changes the partition as the
// function must. What a server keeps in indexes is derived here: an execution waits because its code says so, its
// place in the queue follows from priority and age, its alarm from deadline and timeout. So the model cannot forget to
// move something, and whatever the library forgets shows as a difference.
//
//	                                 claim
//	R1f first  ◀─tick─ R2af delayed ──────▶ A1 ── complete ─────────────▶ T1
//	R1t retry  ◀─tick─ R2b  ◀─ fail ─────── A1 ── fail, none left ──────▶ T2
//	R1i goes on ◀─tick─ R2ai ◀─ delay ───── A1 ── timeout, none left ───▶ T4
//	R1i        ◀─ release ───────────────── A1 ── revoke ─▶ A3
//	R1r lost   ◀─ tick, session dead ────── A1    A3 ─ tick ─▶ R1r, over the cap ▶ T2
//	R1r        ◀─tick─ R2r ◀─ tick, again ─ A1
//	R1i, R2c ◀─ signal, operator ── S1, S2, S5 ◀─ suspend ── A1
//	R1p replayed ◀─ replay ── any T         anything but T ── cancel ▶ T3, deadline ▶ T4
//
// An end is T3n or T4n when it never ran. The table of all moves is [Legal]; a method that would break it panics.
//
// Failure story: a call that is refused changes nothing, because every method decides before it writes. A call may be
// repeated after a lost reply: it is fenced, or it finds that its effect already holds. The model knows no I/O, no
// waking of workers, no token keys, no conditions of several parts, no jitter and no schedules. Flows, waits for others
// in any partition, and gates have oracles of their own among the tests; a partition in it holds fewer executions than
// one tick may touch (20 of each kind of timer). A Partition is for one goroutine; [Partition.Clone] makes others.
package model
