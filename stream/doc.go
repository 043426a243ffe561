// Package stream is the vocabulary of what executions put out while they run: frames, the runs that repeat some of
// them, the summary document, and the events of a tail. Handlers append frames (handler.Task), producers follow them
// (client.Execution). This package makes no call itself.
//
// # Frames
//
// Each attempt of an execution has a stream of its own. A [Frame] is one entry of it: a token, a log line, a progress
// report. The server gives it its ID, a [Cursor] in the order of the stream, and the writer its Sequence: 1, 2, 3 …
// without gaps.
//
//   - A durable frame is kept for as long as the attempt's retention says.
//   - A summary delta changes the attempt's [Summary], one JSON document that anybody can read at any time
//     ([MergeSummary]).
//   - A best-effort frame reaches those who listen now, and is gone seconds later.
//
// # Runs
//
// A drain, a delay or a wait keeps the attempt, but its handler starts again from the top: a new run. It repeats the
// frames of steps that were not recorded. Readers are told before the first frame of each such run, by a
// [Resumption], which frames it repeats; a reader that shows one text drops those ([Transcript]).
//
// A retry, or a reclaim after a crash, is a new attempt with a stream of its own. It does not send the frames of
// recorded steps again: its TailAttempt names, in Reused, the frames of earlier attempts that stay.
//
// A [Transcript] does all of this: fed with the events of a tail it has the frames as they stand. It is exact for
// frames that are sent inside steps which run one after the other.
//
// # Following
//
// A tail yields [TailEvent] values: an attempt begins, its frames in order, its end, then the next attempt, and at
// last the end of the execution. It loses nothing that the server retains, sees nothing twice, survives lost
// connections, and reports frames that were trimmed before they could be read as a gap.
//
//	kind            when                                          fields besides Attempt and Position
//	TailAttempt     an attempt has begun                          Type, At, Reused
//	TailResumed     the attempt goes on in another run            Resumed
//	TailFrame       a frame was appended                          Frame
//	TailGap         frames were gone before they could be read    Trimmed, Missed
//	TailSuspended   it waits: for answers, messages or children   At, Suspension
//	TailAttemptEnd  the attempt has ended, all frames are there   At, Reason, Category, Message, Recorded
//	TailRetry       another attempt is to begin                   At, Type, Category, Message
//	TailEnd         the execution has ended                       At, State, Category, Message, By, Source
//
// TailSuspended and TailRetry say what the execution waits for. A tail gets them once, and only while it waits. All
// other events are part of the history.
//
// A tail also has the events of the children that the handler shows (flow.Streamed), and of theirs, at most four levels
// down. TailEvent.Child says whose an event is; a TailEnd with a Child is that child's. Each source has the events that
// a tail of it alone would have, in the same order, and sources are merged by the server's clock, in the same way for
// every reader. What happens in one millisecond comes in the order in which the children were announced, and behind
// them their parent's. A tail follows 32 children at once. The next one waits until another has ended, and so does what
// its parent says behind the place where it was announced. If all 32 wait for children of their own, they do without.
// Output of a child after the end of its parent is not shown: the child has a tail of its own. While a child waits, the
// positions of all events also say whether that was told.
//
// To resume, keep the Position of the last event and pass it to client.From: a tail goes on behind any event and
// delivers exactly the rest.
package stream
