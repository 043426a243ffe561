package handler

import (
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// Permanent marks an error that no retry can repair: the execution fails at once, whatever its policy says, and
// stays stored and replayable as a dead letter. nil stays nil. The error text is that of err.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// RetryAfter fails the attempt and sets the pause before the next one, in place of the policy's; the policy still
// decides whether there is a next one. d is rounded up to whole milliseconds; a negative d is 0, and more than
// 168 h is 168 h. A nil err stays nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{d, err}
}

// Delay, returned by a handler, puts the execution aside for d and runs the handler again from the top as the
// same attempt: no retry is consumed, recorded steps are kept. d is rounded up to whole milliseconds; a negative
// d is 0 (again as soon as a worker is free), and more than 10 years is 10 years.
func Delay(d time.Duration) error { return &delayError{after: d} }

// Continue, returned by a handler, restarts the execution with another input, which must be of the definition's
// input type: for loops and conversations that would pass the 1,000 steps of an execution. The handler runs again, as
// the first attempt of a fresh execution: no recorded steps, waits or waitpoints, all retries and reclaims, an empty
// stream and summary, the whole attempt timeout. The rest stays: id, key, tags, priority, gates and limits,
// deadline, creator, flow, children, and messages that nobody has received. So those who wait for the result, follow
// the stream, cancel or send messages need not know. In one call of the server, so that a crash neither loses nor
// repeats a link. There is no bound on how often. The attempts and streams of the input before are kept, older ones
// go.
//
// Open waitpoints are closed: their links are dead. Children that still run go on, and nobody waits for them. An
// input of another type, that does not encode, or that has more than 1 MiB fails the execution for good. To those who
// depend on it, and to schedules, the execution has not ended.
func Continue(input any) error { return &continueError{input} }

// Cancel, returned by a handler, ends the execution as cancelled; no retry follows. The reason is cut to 1 KiB.
func Cancel(reason string) error { return &cancelError{reason} }

// Category fails the attempt under a category of its own, by which a retry policy and a dashboard can tell
// failures apart: 1..64 bytes of [A-Za-z0-9_.:-]. Default handler_error. A category that is not valid is replaced
// by handler_error and named in the failure's reason. Category "permanent" is never retried, whatever the policy says.
// A nil err stays nil. Keep categories few: they are labels.
func Category(category flowfabric.Category, err error) error {
	if err == nil {
		return nil
	}
	return &categoryError{category, err}
}

// The constructors nest: Category("rate_limited", RetryAfter(d, err)) is all three. Of several that decide what
// follows, Cancel wins over Permanent, then Continue, then Delay, then RetryAfter; of one kind, the outermost wins.
type (
	permanentError  struct{ err error }
	retryAfterError struct {
		after time.Duration
		err   error
	}
	delayError struct {
		after time.Duration
		// of one that waits for its turn at a service, and its place of how many there
		service   string
		place, of int
	}
	cancelError   struct{ reason string }
	continueError struct{ input any }
	categoryError struct {
		category flowfabric.Category
		err      error
	}
)

func (e *permanentError) Error() string  { return e.err.Error() }
func (e *permanentError) Unwrap() error  { return e.err }
func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }
func (e *delayError) Error() string {
	if e.service != "" {
		return fmt.Sprintf("waits without a slot for a turn at service %s: %d of %d in line, about %s", e.service,
			e.place, e.of, e.after.Round(time.Second))
	}
	return "delay the execution by " + e.after.String()
}
func (e *cancelError) Error() string   { return "cancel the execution: " + e.reason }
func (e *continueError) Error() string { return "continue the execution with another input" }
func (e *categoryError) Error() string { return e.err.Error() }
func (e *categoryError) Unwrap() error { return e.err }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// deliberate reports an error that decides what is to follow. Category and RetryAfter only describe a failure.
func deliberate(err error) bool {
	return is[*permanentError](err) || is[denied.Lasting](err) || is[*delayError](err) || is[*cancelError](err) ||
		is[*continueError](err) || IsWait(err)
}

// undecodable marks an error of a codec: a failure of category extractor_payload_decode, and a permanent one, since
// the same bytes will not decode next time either, unless only a key was missing (see [flowfabric.Cipher]). nil stays
// nil.
func undecodable(err error) error {
	return Category(causes.Decode, final(err))
}

// final makes an error of a codec permanent, but not one of a cipher or of a store of blobs that another try may do
// without: a key may be missing here and now alone.
func final(err error) error {
	if is[*storeError](err) {
		return err
	}
	if e, ok := errors.AsType[*sealed.Error](err); ok && !e.Final() {
		return err
	}
	return Permanent(err)
}
