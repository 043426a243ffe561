// Package framelog moves the frames of attempts: package stream says what they are. It holds the
// batching [Writer] of the task that produces them, the paged [framelog.Read] of what is stored, and the tail
// [framelog.Hub] that follows an execution live.
//
//	handler ─Append─▶ queue ──one batch in flight──▶ AppendFrames ──▶ stored entries ──▶ Read
//	                    ▲ full: Append waits              └─ published to who listens ──▶ Hub ─▶ tailers
//
// Every attempt has a stream of its own. Its frames carry two numbers: the id that the server gives
// (a [stream.Cursor]) and the producer sequence 1, 2, 3 … without gaps, by which a repeated
// append is recognised, a live message is fitted to what was read, and a hole is noticed.
//
// # Writing: what can go wrong, and what follows
//
//   - A reply is lost or the server cannot be reached. The same batch is sent again, with the same sequences,
//     until the writer's context ends; the server skips what it already has. Nothing doubles, nothing is lost.
//   - The lease is gone (stale, closed, not active, not found, gap). The writer stops for good, drops its queue and
//     ends the task's context with a cause that matches [flowfabric.ErrLeaseLost]. Batches that were
//     acknowledged before stay: they were written under a valid lease.
//   - Frames cannot be acknowledged in time. Flush and Close return an error that matches
//     [denied.Unflushed]; who gets it must not settle the attempt as if its output were complete.
//
// # Modes
//
// A frame is durable, a delta of the attempt's [stream.Summary], or best effort. Each mode has a log of its own, all
// have one order. The writer merges a delta when it is queued and sends the document along: what the rules of the
// merge refuse fails there, alone, and changes nothing. A best-effort frame never waits and never costs a durable one
// its place.
//
// # Runs
//
// A drain, a delay and a wait keep the attempt, but its handler begins again: a new run, which appends the frames of
// a step that was not recorded once more. Reads and tails tell of each run before its first frame, why it began and
// which frames before it were recorded ([stream.Resumption]); a reader drops the others
// ([stream.Transcript]). The end of
// an attempt says the same for the next one.
//
// # Following: what can go wrong, and what follows
//
// A tail subscribes, waits until that is confirmed, reads what is stored and goes on with what is published;
// sequences make the join exact. Whatever breaks that line leads back to a range read from the tailer's own
// position: a message that is missing, a connection that was lost, a tailer too slow for its bounded queue. So
// a tailer loses nothing that the server retains, sees nothing twice, and never holds up another. Frames that were
// trimmed before they could be read are reported as a gap with their number. An attempt that wrote nothing still
// ends, because its end is an event, and because every tail looks again every two seconds.
//
// # Children
//
// A handler announces the children that its output shows, each by a durable frame of a reserved type, before they
// exist. A tail that meets one becomes a merge: each source is a tail of its own, which yields where it would wait, and
// the server's clock says what comes first (docs/adr/0088-children-in-a-stream.md). When no child is open any more it
// is a plain tail again, so executions without such children pay for a comparison of a frame's type.
package framelog
