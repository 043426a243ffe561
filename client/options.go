package client

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
)

// maxCreator is the longest creator, in bytes.
const maxCreator = limits.MaxName

// SubmitOption changes one submission: of package flowfabric Priority, Lane, Timeout, Deadline, DeadlineAt, Delay, DelayUntil, Retries,
// Retention, Capabilities, Tags, Budgets, Quotas, Namespace, Creator and IdempotencyKey; for [SubmitMany] also [IdempotencyKeys]. Later
// options win over earlier ones, and all of them over the definition.
type SubmitOption interface{ SubmitOption() }

// keysOption is [IdempotencyKeys].
type keysOption func(index int) string

func (keysOption) SubmitOption() {}

// IdempotencyKeys gives every input of a [SubmitMany] its own flowfabric.IdempotencyKey; key is called once per index.
func IdempotencyKeys(key func(index int) string) SubmitOption { return keysOption(key) }

// submission is one input on its way to the server.
type submission struct {
	item   engine.NewExecution
	keyed  bool
	digest bool // make one although there is no key
	key    string
	keyFor func(index int) string
}

// take takes over what options say.
func (s *submission) take(opts []SubmitOption) error {
	if len(opts) == 0 {
		return nil
	}
	var said option.Values
	for i, o := range opts {
		if keys, ok := o.(keysOption); ok {
			s.keyFor = keys
		} else if err := say(&said, i, o); err != nil {
			return err
		}
	}
	s.item.Use(&said)
	s.keyed, s.key = said.Has(option.IdempotencyKey), said.IdempotencyKey
	return nil
}

// validate checks what options can say, before any I/O, and normalises capabilities; the definition has checked
// policy and payload. A mistake must not reach a batch, where it would be somebody else's error too.
func (s *submission) validate(now time.Time) error {
	if s.keyed && s.keyFor == nil {
		if err := checkKey(s.key); err != nil {
			return err
		}
	}
	return s.item.Validate(now)
}

// say lets said say what an option of package flowfabric says. index is its place among the options of the call.
func say(said *option.Values, index int, o any) error {
	if !option.Apply(said, o) {
		return fmt.Errorf("%w: option %d is nil or not an option of flowfabric", flowfabric.ErrInvalidInput, index)
	}
	return nil
}

func checkKey(key string) error {
	if key == "" || len(key) > limits.MaxIdempotencyKey {
		return fmt.Errorf("%w: idempotency key has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, len(key), limits.MaxIdempotencyKey)
	}
	return nil
}
