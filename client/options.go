package client

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// MaxIdempotencyKey is the longest idempotency key, in bytes.
const MaxIdempotencyKey = 256

// maxCreator is the longest creator, in bytes.
const maxCreator = limits.MaxName

// SubmitOption changes one submission. Later options win over earlier ones, and all of them over the definition.
type SubmitOption interface{ submit(s *submission) }

type submitFunc func(*submission)

func (f submitFunc) submit(s *submission) { f(s) }

// WorkOption is an option of [Submit] and of [Schedule].
type WorkOption interface {
	SubmitOption
	ScheduleOption
}

type workFunc func(*submission)

func (f workFunc) submit(s *submission)   { f(s) }
func (f workFunc) schedule(s *scheduling) { f(&s.submission) }

// CommonOption is an option of [Submit], [Schedule] and [SubmitFlow].
type CommonOption interface {
	WorkOption
	FlowOption
}

// KeyOption is [IdempotencyKey], an option of [Submit], [Client.Signal] and [Client.Approve].
type KeyOption interface {
	SubmitOption
	SignalOption
}

type idempotencyKey string

func (k idempotencyKey) submit(s *submission) { s.keyed, s.key = true, string(k) }
func (k idempotencyKey) signal(s *sending)    { s.keyed, s.IdempotencyKey = true, string(k) }

// Act does nothing: it makes the key an option of [Client.Approve].
func (k idempotencyKey) Act(*flowfabric.Act) {}

// submission is one input on its way to the server.
type submission struct {
	item   engine.NewExecution
	keyed  bool
	digest bool // make one although there is no key
	key    string
	keyFor func(index int) string
}

// IdempotencyKey makes the id depend on (namespace, kind, key) alone: as long as the execution is retained, a
// second submit with an equal key and an equal payload returns the first execution ([Execution.Duplicate]), and
// with a different payload it fails with flowfabric.ErrIdempotencyConflict. The payload is compared as encoded,
// before any encryption hook. 1..256 bytes. Not for [SubmitMany], see [IdempotencyKeys].
//
// Of a signal: a later one to the same waitpoint with the same key, whatever else it says, is answered like the first
// (Duplicate of the answer). So the key names the question that is answered, not the answer.
func IdempotencyKey(key string) KeyOption { return idempotencyKey(key) }

// IdempotencyKeys gives every input of a [SubmitMany] its own [IdempotencyKey]; key is called once per index.
func IdempotencyKeys(key func(index int) string) SubmitOption {
	return submitFunc(func(s *submission) { s.keyFor = key })
}

// Priority is 0 (default) to 9000; higher is claimed first, within a partition. A value outside is refused.
func Priority(n int) WorkOption {
	return workFunc(func(s *submission) { s.item.Priority = n })
}

// Delay keeps the execution from being claimed for d from the server's now, 0..10 years, in whole milliseconds.
func Delay(d time.Duration) SubmitOption {
	return submitFunc(func(s *submission) { s.item.Delay, s.item.DelayUntil = d, time.Time{} })
}

// DelayUntil keeps the execution from being claimed before t on the server's clock, at most 10 years ahead. A
// time that has passed means no delay.
func DelayUntil(t time.Time) SubmitOption {
	return submitFunc(func(s *submission) { s.item.Delay, s.item.DelayUntil = 0, t })
}

// Deadline ends the execution as expired when it has not ended d after its submission, whatever it does then:
// 1 ms to 10 years. 0 takes back the deadline of the definition.
func Deadline(d time.Duration) WorkOption {
	return workFunc(func(s *submission) { s.item.Deadline, s.item.DeadlineAt = d, time.Time{} })
}

// DeadlineAt is [Deadline] as an instant on the server's clock, at most 10 years ahead. A time that has passed is
// accepted: the execution never runs and expires at once, as soon as any worker looks after its partition.
func DeadlineAt(t time.Time) SubmitOption {
	return submitFunc(func(s *submission) { s.item.Deadline, s.item.DeadlineAt = 0, t })
}

// Tags are stored with the execution and handed to the handler: at most 64. A key such as team.region is two or more
// words of a-z, 0-9 and _, joined by dots, beginning with a letter, at most 64 bytes; a value has at most 256 bytes. The
// map must not change until the submit has returned.
func Tags(tags map[string]string) WorkOption {
	return workFunc(func(s *submission) { s.item.Tags = tags })
}

// Lane overrides the definition's lane: 1..64 printable ASCII bytes without braces.
func Lane(name string) WorkOption {
	return workFunc(func(s *submission) { s.item.Lane = name })
}

// Retention overrides for how long the execution is kept after its end, see handler.Retention: whole seconds, 1 s..10 years.
// 0 takes back what the definition says: the lane decides.
func Retention(d time.Duration) WorkOption {
	return workFunc(func(s *submission) { s.item.Policy.Retention = d })
}

// Retries overrides how often the execution is tried again after a failed attempt, 0..1000; the pauses are those of the definition,
// 1 s growing to 60 s if it has no retries, see handler.Retry.
func Retries(n int) WorkOption {
	return workFunc(func(s *submission) { s.item.Policy.Retry.MaxRetries = n })
}

// Timeout overrides how long one attempt may run, see handler.Timeout: 1 ms..10 years. 0 takes back what the definition says: no bound.
func Timeout(d time.Duration) WorkOption {
	return workFunc(func(s *submission) { s.item.Policy.AttemptTimeout = d })
}

// Namespace overrides Config.Namespace: 1..64 printable ASCII bytes without braces. It is a [CommonOption].
type Namespace string

func (n Namespace) submit(s *submission)         { s.item.Namespace = string(n) }
func (n Namespace) schedule(s *scheduling)       { n.submit(&s.submission) }
func (n Namespace) submitFlow(q *flowSubmission) { q.namespace = string(n) }

// Capabilities replaces the definition's required capabilities: a worker claims the execution only if it has all
// of them. At most 256 tokens and 4,096 bytes.
func Capabilities(tokens ...string) WorkOption {
	return workFunc(func(s *submission) { s.item.Capabilities = tokens })
}

// Creator overrides Config.Creator, a note of who submitted: at most 64 bytes. It is a [CommonOption].
type Creator string

func (n Creator) submit(s *submission)         { s.item.Creator = string(n) }
func (n Creator) schedule(s *scheduling)       { n.submit(&s.submission) }
func (n Creator) submitFlow(q *flowSubmission) { q.creator = string(n) }

// validate checks what options can say, before any I/O, and normalises capabilities; the definition has checked
// policy and payload. A mistake must not reach a batch, where it would be somebody else's error too.
func (s *submission) validate(now time.Time) error {
	if s.keyed && s.keyFor == nil {
		if err := s.validateKey(); err != nil {
			return err
		}
	}
	return s.item.Validate(now)
}

func (s *submission) validateKey() error {
	if s.key == "" || len(s.key) > MaxIdempotencyKey {
		return fmt.Errorf("%w: idempotency key has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, len(s.key), MaxIdempotencyKey)
	}
	return nil
}
