// Package client is for producers: it submits executions, waits for their results, follows their frames, answers
// those that wait for somebody, and cancels. Package admin looks after all of them. It starts no worker and links
// neither fx nor zap.
//
//	c, err := client.Connect(ctx, client.Config{URL: os.Getenv("FLOWFABRIC_URL")})
//	exec, err := client.Submit(ctx, c, Render, 10, flowfabric.IdempotencyKey("order-17"), flowfabric.Priority(5))
//	for event, err := range exec.Tail(ctx) { … } // event.Frame is one if event.Kind is stream.TailFrame
//	text, err := exec.Result(ctx)                // typed; waits
//
// # Submitting
//
//	Submit ──▶ validate, encode, digest ──▶ coalescer ──▶ one create call ──▶ one partition
//	SubmitMany ─▶ the same ──▶ batches of ≤ 100, several in flight ──┘
//
// A lone Submit is one call made by the submitting goroutine itself. While a create call is in flight, later submits
// join the next batch, which leaves when that call returns. Each batch goes to one partition, the next in rotation;
// submits that come alone, 2 ms or more after the one before, stay in its partition, at most 16 in a row. With a key
// the partition follows from (namespace, kind, key), so that equal keys meet there.
//
// [Schedule] submits at every instant of a schedule, [ScheduleFlow] a flow; [Client.SyncSchedules] declares all
// schedules of an owner.
//
// # Flows
//
// [SubmitFlow] puts a graph of package flow into one partition. One call stores and releases a graph of at most 100
// nodes, all of it or nothing. A larger one goes in batches of which nothing runs, and the last call releases all of
// it. From then on the server resolves it: then use [Flow.Wait], [Flow.Snapshot] and [NodeResult] to read it,
// [Flow.Cancel] to stop it, and [Flow.Seal] to let no more members join. If the submit of a larger flow is cut short,
// the flow does not run. The same submit under the same flowfabric.Key completes it; without a key it is
// given up after a day.
//
// # Waiting and answering
//
//	Result ──▶ snapshot: ended? ──no──▶ subscribe to the execution's events ──▶ ready: snapshot again
//	              │                               │ a terminal event, or 5 s passed
//	              └──────────── read result ◀─────┘
//
// [Client.Signal] brings a payload to a waitpoint for a sender that holds its token; [Execution.Approve] needs no token
// and must say who approves. See package suspend.
//
// # When things fail
//
// A create call is idempotent: it is repeated with the same ids until it is answered or Config.SubmitTimeout has
// passed. Only then, or when the caller's context ends first, is the outcome unknown, and the error is an
// [*UnknownOutcomeError] that carries the id: the execution may exist, [Execution.Get] tells. A caller that gives up
// never takes the other submits of its batch with it. A refused item does not touch its neighbours.
//
// A wait is never lost: events only make it fast. After a lost connection every waiter reads again, and each waiter
// reads every 5 s anyway. The wait goes on while the server cannot be reached; the caller's context ends it. A replay
// gives an ended execution another end: a wait that began after it is answered only by an attempt that can still end.
//
// All functions and methods of this package may be called concurrently.
package client
