package client

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// SubmitOption changes one submission: of package flowfabric Priority, Lane, Timeout, Deadline, DeadlineAt, Delay,
// DelayUntil, Retries, Retention, Capabilities, Tags, Budgets, Quotas, LimitKey, Namespace, Creator, Unique,
// IdempotencyKey, KeyWindow, Debounce and DebounceMax; for [SubmitMany] also [UniqueKeys], [IdempotencyKeys] and
// [DebounceKeys]. Later options win over earlier ones, and all of them over the definition.
type SubmitOption interface{ SubmitOption() }

// keyKind is what a key does, in words.
type keyKind string

const (
	keyless    keyKind = ""
	idempotent keyKind = "idempotency"
	unique     keyKind = "unique"
	debounced  keyKind = "debounce"
)

// keysOption is [IdempotencyKeys], [UniqueKeys] or [DebounceKeys].
type keysOption struct {
	key   func(index int) string
	kind  keyKind
	delay time.Duration
}

func (keysOption) SubmitOption() {}

// IdempotencyKeys gives every input of a [SubmitMany] its own flowfabric.IdempotencyKey; key is called once per index.
func IdempotencyKeys(key func(index int) string) SubmitOption {
	return keysOption{key: key, kind: idempotent}
}

// UniqueKeys gives every input of a [SubmitMany] its own flowfabric.Unique; key is called once per index. Of inputs
// with equal keys the first is created, and the others return its handle.
func UniqueKeys(key func(index int) string) SubmitOption {
	return keysOption{key: key, kind: unique}
}

// DebounceKeys gives every input of a [SubmitMany] its own key of a flowfabric.Debounce with delay d; key is called
// once per index. Of inputs with equal keys the last counts, and all have the same handle.
func DebounceKeys(key func(index int) string, d time.Duration) SubmitOption {
	return keysOption{key: key, kind: debounced, delay: d}
}

// submission is what the inputs of one call have in common.
type submission struct {
	item   engine.NewExecution
	key    *coalesce.Key // nil: they have none, or each its own
	keyFor func(index int) string
	keyed  keyKind
	window time.Duration // as engine.SubmitKey has it
	most   time.Duration // likewise
	delay  time.Duration // of a key that debounces
	digest bool          // make one although there is no key
}

// take takes over what options say.
func (s *submission) take(opts []SubmitOption) error {
	if len(opts) == 0 {
		return nil
	}
	err := option.Over(&s.item.Start, func() error {
		for i, o := range opts {
			switch o := o.(type) {
			case keysOption:
				if s.keyFor != nil && s.keyed != o.kind {
					return errTwoKeys
				}
				s.keyFor, s.keyed = o.key, o.kind
				if o.kind == debounced {
					s.delay = o.delay
				}
			case option.Chosen:
				s.item.ID = flowfabric.MakeExecutionID(0, o.ChosenID())
			default:
				if err := option.Apply(&s.item.Start, i, o); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.takeKey(&s.item.Start)
}

var errTwoKeys = fmt.Errorf("%w: an execution has one key: Unique, IdempotencyKey or Debounce",
	flowfabric.ErrInvalidInput)

// takeKey takes over what options say about keys.
func (s *submission) takeKey(said *flowfabric.Start) error {
	for _, key := range [...]struct {
		kind keyKind
		text *string
	}{{idempotent, said.IdempotencyKey}, {unique, said.UniqueKey}, {debounced, said.DebounceKey}} {
		if key.text == nil {
			continue
		}
		if s.keyed != keyless {
			return errTwoKeys
		}
		s.keyed, s.key = key.kind, &coalesce.Key{Text: *key.text}
	}
	if said.DebounceKey != nil {
		s.delay = time.Duration(said.Debounce)
	}
	if err := s.takeDebounce(said); err != nil {
		return err
	}
	if s.keyed == idempotent {
		s.window = -1
	}
	if said.KeyWindow != nil {
		if s.keyed == keyless {
			return fmt.Errorf("%w: KeyWindow without a key", flowfabric.ErrInvalidInput)
		}
		s.window = time.Duration(*said.KeyWindow)
		if s.window < limits.MinKeyWindow || s.window > limits.MaxKeyWindow {
			return fmt.Errorf("%w: KeyWindow is %s, want 1s..365 days", flowfabric.ErrInvalidInput, s.window)
		}
	}
	if s.key != nil {
		*s.key = s.keyOf(s.key.Text)
	}
	return nil
}

// keyOf is a key of the submission's kind.
func (s *submission) keyOf(text string) coalesce.Key {
	return coalesce.Key{Text: text, For: s.window, Debounce: s.keyed == debounced, Most: s.most}
}

// takeDebounce takes over what options say about a key that debounces.
func (s *submission) takeDebounce(said *flowfabric.Start) error {
	if s.keyed != debounced {
		if said.DebounceMax != nil || said.Debounce != 0 {
			return fmt.Errorf("%w: DebounceMax without Debounce", flowfabric.ErrInvalidInput)
		}
		return nil
	}
	if said.DebounceMax != nil {
		s.most = time.Duration(*said.DebounceMax)
		if s.most < s.delay || s.most > limits.MaxDelay {
			return fmt.Errorf("%w: DebounceMax is %s, want the debounce delay (%s) to 10 years",
				flowfabric.ErrInvalidInput, s.most, s.delay)
		}
	}
	switch {
	case said.Delay != 0 || !said.DelayUntil.IsZero():
		return fmt.Errorf("%w: Debounce with Delay or DelayUntil: a debounced execution is delayed by its own time",
			flowfabric.ErrInvalidInput)
	case said.KeyWindow != nil:
		return fmt.Errorf("%w: Debounce with KeyWindow: its key is held until the execution is claimed",
			flowfabric.ErrInvalidInput)
	case s.delay < time.Millisecond || s.delay > limits.MaxDelay:
		return fmt.Errorf("%w: Debounce is %s, want 1ms..10 years", flowfabric.ErrInvalidInput, s.delay)
	}
	s.item.Delay = flowfabric.Millis(s.delay.Truncate(time.Millisecond))
	s.most = s.most.Truncate(time.Millisecond)
	return nil
}

// validate checks what options can say, before any I/O, and normalises capabilities; the definition has checked
// policy and payload. A mistake must not reach a batch, where it would be somebody else's error too.
func (s *submission) validate(now time.Time) error {
	if s.key != nil {
		if err := checkKey(s.keyed, s.key.Text); err != nil {
			return err
		}
	}
	return valid.Start(&s.item.Start, now)
}

// checkKey judges a key of a kind.
func checkKey(kind keyKind, key string) error {
	if key == "" || len(key) > limits.MaxIdempotencyKey {
		return fmt.Errorf("%w: %s key has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, kind, len(key),
			limits.MaxIdempotencyKey)
	}
	return nil
}
