// Package client is the producer's and the operator's side of FlowFabric: it submits executions, waits for their
// results, follows their frames, and looks after them: cancel, replay, revoke, priority, tags, history, purge; and it
// answers those that wait: signals by token, approvals, resumptions, and the keys of tokens. It starts no worker and links
// neither fx nor zap.
//
//	Submit ──▶ validate, encode, digest ──▶ coalescer ──▶ engine.CreateExecutions ──▶ one partition
//	SubmitMany ─▶ the same ──▶ batches of ≤ 100, several in flight ──┘
//
//	Result ──▶ snapshot: ended? ──no──▶ subscribe to the execution's events ──▶ ready: snapshot again
//	              │                               │ a terminal event, or 5 s passed
//	              └──────────── read result ◀─────┘
//
// # Submitting
//
// A lone Submit is one call made by the submitting goroutine itself. While a create call is in flight, later
// submits join the next batch, which leaves when that call returns (group commit without a timer). Each batch
// goes to one partition, the next in rotation; the partition is part of the id, so nothing has to be looked up
// later. Submits that come alone, 2 ms or more after the one before, stay in its partition, at most 16 in a row. With an idempotency key the whole id is derived from (namespace, kind, key), and equal keys meet.
//
// # Flows
//
// [SubmitFlow] puts a graph of package flow into one partition, in batches of which nothing runs, and releases all of it with its
// last call. From then on the server resolves it: a [Flow] only looks ([Flow.Wait], [Flow.Snapshot], [NodeResult],
// [Client.Flows]) and operates ([Flow.Cancel], [Flow.Replay], [Flow.Seal], [Flow.SetTags]).
//
//	SubmitFlow ─▶ Build ─▶ create header ─▶ stage ≤ 100 members a call ─▶ seal ─▶ drain what the release left
//	                          staging: nothing is claimable                └── open: all of it may run
//
// Whoever dies before the seal leaves a flow that does not run. The same submit under the same [FlowKey] completes it; without a
// key it is given up after a day.
//
// # When things fail
//
// A create call is idempotent: it is repeated with the same ids until it is answered or Config.SubmitTimeout has
// passed. Only then, or when the caller's context ends first, is the outcome unknown, and the error is an
// [*UnknownOutcomeError] that carries the id: the execution may exist, Get tells. A caller that gives up never
// takes the other submits of its batch with it. A refused item does not touch its neighbours.
//
// A wait is never lost: events only make it fast. After a lost connection the hub resubscribes and every waiter
// reads again, and each waiter reads every 5 s anyway. A server that is away does not end a wait, the caller's
// context does.
//
// A replay gives an ended execution another end. A wait that began after it is answered only by an attempt that can
// still end, whatever event arrives late; a wait that began before may have been answered by the old end.
//
// # Answering what waits
//
// [Client.Signal] brings a payload to a waitpoint for whoever holds its token; [Client.Approve] and [Client.Resume] are for
// operators, who need none and must say who they are. [Client.RotateTokenKeys] changes the key that tokens are signed with,
// and refuses where that would strand a wait; [Client.ReissueToken] is the way out. See package suspend.
//
// # What may run
//
// [Client.CreateBudget] makes a budget, of which handlers spend, and [Client.CreateQuota] a quota, which bounds how often and how many at
// once executions start. An execution asks those that its definition or its submission names ([Budgets], [Quotas]), and those that were
// attached to its namespace, lane or tags when it was created ([Client.AttachGates]). What they keep from running is in [Client.Gates].
// [Client.Pause] keeps one execution back; [Client.SetShare] and [Client.LaneAgeing] say who comes next.
//
// # Looking at all of it
//
// [Client.List] and [Client.ListPage] list executions by state, lane, kind, tags or holder; [Client.Queues] tells what waits and for how
// long, [Client.Lanes] what operators said of lanes ([Client.PauseLane] and its kin), [Client.Partitions] how the store itself
// is doing.
//
// All functions and methods of this package may be called concurrently.
//
// Spec: 10 §4.1, D44, D57; 60; design §3, §4, §7, §9; performance §3.7.
package client
