// Package flowfabric holds the vocabulary that every other package of FlowFabric for Go shares: execution
// ids, fences, states, policies, the errors, and the options of executions.
//
// It owns no behaviour and no connection. Applications meet it in four places: they say how work is done with its
// options (flowfabric.Priority(5)), they compare errors with its sentinels (errors.Is(err, flowfabric.ErrLeaseLost)),
// they read a [State] from a snapshot, and they pass an [ExecutionID] around.
//
// # Where to start
//
// The packages, each under github.com/flowfabric/flowfabric-go/:
//
//   - handler: define a kind of work, and bind the function that does it.
//   - runtime: the worker, runtime.New(cfg, bindings...) and Worker.Run(ctx).
//   - client: submit, wait for results, follow frames, approve, schedule, submit flows.
//   - flow: graphs of work, and children that a handler makes.
//   - suspend: a handler waits for a signal or an approval and holds nothing meanwhile.
//   - schedule: the times and rules of recurring work; client.Schedule makes a schedule.
//   - stream: frames, and the events by which a client follows them.
//   - admin: list, explain, replay; pause and remove schedules; gates, lanes and workers.
//   - embedded: a server in this process, in memory (URL "embedded://") or with a folder
//     ("embedded:./data"); a program without runtime must import it.
//   - fftest: tests of handlers, with virtual time.
//   - agent: the loop of a language model and its tools, as durable work.
//   - httpapi, dashboard: the HTTP API and the web page, to mount in a program of yours.
//   - admission, lease: types of gates, and what a lease promises.
//   - handler/middleware: a rate limit and a circuit breaker of one worker.
//
// A worker and a client in one program:
//
//	var Greet = handler.Define[string, string]("greet")
//
//	w, err := runtime.New(runtime.Config{URL: "embedded://"}, handler.Bind(Greet, greet))
//	go w.Run(ctx) // greet is a func(ctx context.Context, t *handler.Task, name string) (string, error)
//	c, err := client.Connect(ctx, client.Config{URL: "embedded://"})
//	exec, err := client.Submit(ctx, c, Greet, "Ada")
//	text, err := exec.Result(ctx)
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
//
// # Words
//
//   - A partition is one part of the store. It holds its executions whole, and its number is part of their ids.
//   - The tick is the maintenance loop that every worker runs; it acts on due delays, timeouts and dead sessions. One
//     process at a time does that for a partition.
//   - A waiter is a worker that has a free slot, found no work in a partition, and registered there to be told of the
//     next.
//   - A ring is the message that tells a waiter of work.
//   - A gate is a gate that must have room before an execution runs.
//   - A retry is a new attempt after a failed one. A reclaim is a new attempt because a worker died or lost its
//     lease; it uses up no retry.
//   - A replay is a new attempt of an execution that has ended, because somebody asked for it (admin.Admin.Replay).
//   - A tombstone is what is left of an execution or a flow that was purged: it keeps the id taken for a time.
//
// # Categories
//
// A category says why an attempt or an execution ended without success. Snapshots, lists, histories, streams and
// metrics have it. A handler may give categories of its own (handler.Category). Workers and the store give these:
//
//   - handler_error: the handler returned an error
//   - handler_panic: the handler panicked
//   - extractor_payload_decode: the input, or a recorded step, does not decode
//   - runtime_no_handler: the worker has no handler for the kind
//   - attempt_timeout: the attempt ran longer than its Timeout
//   - await_ignored: the handler completed although it had asked to wait
//   - suspend_refused: what the handler wants to wait for cannot be waited for
//   - child_failed: the handler returned that a child has no result
//   - budget_exceeded: a hard limit of a gate stopped the handler
//   - permanent: the handler chose it: never retried, whatever the policy says
//   - frames_lost: a failover lost frames that were acknowledged; retried like any
//   - execution_deadline: the Deadline passed; the execution expires
//   - suspension_timeout: a wait lasted too long; no retry follows
//   - lease_expired: the worker of the attempt was lost; uses up no retry
//   - lease_revoked: an operator took the attempt away; uses up no retry
//   - max_reclaims_exceeded: workers were lost more often than handler.MaxReclaims; it fails
//   - dependency_impossible: what the node depends on did not succeed; it is skipped
//   - not_needed: nothing failed before a node for failures; it is skipped
package flowfabric
