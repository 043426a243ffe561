// Package crash proves the promises of the failure story with real processes: workers, a producer and the server are
// killed (SIGKILL) or stopped past their lease (SIGSTOP) while work goes on, and then everything is counted.
//
//	test ──spawns, kills, stops──▶ worker/ (8 processes) ──Listen──▶ server
//	  │                              └─ journal: every claim and fenced write that the server acknowledged
//	  │                            worker/ (producer) ─ journal: what was sent, what was acknowledged
//	  └─ afterwards: journals + executions + internal/invariant = nothing lost, doubled, stale or adrift
//
// A journal is written below the engine, from the bytes on the connection (wire.go), and before the process itself
// sees the answer. So it is what the server said, not what the runtime believes, and SIGKILL does not lose a line.
//
// Two older tests run the test binary as the worker and look at single executions closely; the worker of the large
// runs is a program of its own, so that it is measured without the race detector.
//
// Two rollouts restart workers in good order, one of them with processes of a next revision of the library among them,
// which the test makes, and hold every journal against every execution.
//
// Counts are small by default. FLOWFABRIC_SOAK_CRASH=1 runs the full ones; FLOWFABRIC_CRASH_EXECUTIONS,
// FLOWFABRIC_CRASH_KILLS, FLOWFABRIC_CRASH_ROLLS, FLOWFABRIC_CRASH_UPGRADES, FLOWFABRIC_CRASH_GATE_KILLS,
// FLOWFABRIC_CRASH_RESERVATIONS and FLOWFABRIC_CRASH_CALLS set them;
// FLOWFABRIC_SEED repeats a run's choices (who is hit when; not the scheduling).
package crash
