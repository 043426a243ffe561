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
// because every write carries the [Fence] it was claimed under. Package lease tells what a lease promises.
package flowfabric
