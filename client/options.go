package client

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/option"
)

// maxCreator is the longest creator, in bytes.
const maxCreator = limits.MaxName

// SubmitOption changes one submission: of package flowfabric Priority, Lane, Timeout, Deadline, DeadlineAt, Delay,
// DelayUntil, Retries, Retention, Capabilities, Tags, Budgets, Quotas, LimitKey, Namespace, Creator, Unique,
// IdempotencyKey, KeyWindow, Debounce and DebounceMax; for [SubmitMany] also [UniqueKeys], [IdempotencyKeys] and
// [DebounceKeys]. Later options win over earlier ones, and all of them over the definition.
type SubmitOption interface{ SubmitOption() }

// keysOption is [IdempotencyKeys], [UniqueKeys] or [DebounceKeys].
type keysOption struct {
	key   func(index int) string
	kind  option.Field
	delay time.Duration
}

func (keysOption) SubmitOption() {}

// IdempotencyKeys gives every input of a [SubmitMany] its own flowfabric.IdempotencyKey; key is called once per index.
func IdempotencyKeys(key func(index int) string) SubmitOption {
	return keysOption{key: key, kind: option.IdempotencyKey}
}

// UniqueKeys gives every input of a [SubmitMany] its own flowfabric.Unique; key is called once per index. Of inputs
// with equal keys the first is created, and the others return its handle.
func UniqueKeys(key func(index int) string) SubmitOption {
	return keysOption{key: key, kind: option.Unique}
}

// DebounceKeys gives every input of a [SubmitMany] its own key of a flowfabric.Debounce with delay d; key is called
// once per index. Of inputs with equal keys the last counts, and all have the same handle.
func DebounceKeys(key func(index int) string, d time.Duration) SubmitOption {
	return keysOption{key: key, kind: option.Debounce, delay: d}
}

// submission is what the inputs of one call have in common.
type submission struct {
	item   engine.NewExecution
	key    *coalesce.Key // nil: they have none, or each its own
	keyFor func(index int) string
	keyed  option.Field  // the kind of the keys; 0 if there are none
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
	var said option.Values
	for i, o := range opts {
		if keys, ok := o.(keysOption); ok {
			if s.keyFor != nil && s.keyed != keys.kind {
				return errTwoKeys
			}
			s.keyFor, s.keyed = keys.key, keys.kind
			if keys.kind == option.Debounce {
				s.delay = keys.delay
			}
		} else if err := say(&said, i, o); err != nil {
			return err
		}
	}
	s.item.Use(&said)
	s.item.ID = flowfabric.MakeExecutionID(0, said.ID)
	return s.takeKey(&said)
}

var errTwoKeys = fmt.Errorf("%w: an execution has one key: Unique, IdempotencyKey or Debounce",
	flowfabric.ErrInvalidInput)

// takeKey takes over what options say about keys.
func (s *submission) takeKey(said *option.Values) error {
	single := said.Said & (option.IdempotencyKey | option.Unique | option.Debounce)
	switch {
	case single&(single-1) != 0 || single != 0 && s.keyFor != nil:
		return errTwoKeys
	case single == option.Unique:
		s.keyed, s.key = single, &coalesce.Key{Text: said.Unique}
	case single == option.IdempotencyKey:
		s.keyed, s.key = single, &coalesce.Key{Text: said.IdempotencyKey}
	case single == option.Debounce:
		s.keyed, s.key, s.delay = single, &coalesce.Key{Text: said.DebounceKey}, said.Debounce
	}
	if err := s.takeDebounce(said); err != nil {
		return err
	}
	if s.keyed == option.IdempotencyKey {
		s.window = -1
	}
	if said.Has(option.KeyWindow) {
		if s.keyed == 0 {
			return fmt.Errorf("%w: KeyWindow without a key", flowfabric.ErrInvalidInput)
		}
		if said.KeyWindow < limits.MinKeyWindow || said.KeyWindow > limits.MaxKeyWindow {
			return fmt.Errorf("%w: KeyWindow is %s, want 1s..365 days", flowfabric.ErrInvalidInput, said.KeyWindow)
		}
		s.window = said.KeyWindow
	}
	if s.key != nil {
		*s.key = s.keyOf(s.key.Text)
	}
	return nil
}

// keyOf is a key of the submission's kind.
func (s *submission) keyOf(text string) coalesce.Key {
	return coalesce.Key{Text: text, For: s.window, Debounce: s.keyed == option.Debounce, Most: s.most}
}

// takeDebounce takes over what options say about a key that debounces.
func (s *submission) takeDebounce(said *option.Values) error {
	if s.keyed != option.Debounce {
		if said.Has(option.DebounceMax) {
			return fmt.Errorf("%w: DebounceMax without Debounce", flowfabric.ErrInvalidInput)
		}
		return nil
	}
	switch {
	case said.Has(option.Delay):
		return fmt.Errorf("%w: Debounce with Delay or DelayUntil: a debounced execution is delayed by its own time",
			flowfabric.ErrInvalidInput)
	case said.Has(option.KeyWindow):
		return fmt.Errorf("%w: Debounce with KeyWindow: its key is held until the execution is claimed",
			flowfabric.ErrInvalidInput)
	case s.delay < time.Millisecond || s.delay > limits.MaxDelay:
		return fmt.Errorf("%w: Debounce is %s, want 1ms..10 years", flowfabric.ErrInvalidInput, s.delay)
	case said.Has(option.DebounceMax) && (said.DebounceMax < s.delay || said.DebounceMax > limits.MaxDelay):
		return fmt.Errorf("%w: DebounceMax is %s, want the debounce delay (%s) to 10 years",
			flowfabric.ErrInvalidInput, said.DebounceMax, s.delay)
	}
	s.item.Delay, s.most = s.delay.Truncate(time.Millisecond), said.DebounceMax.Truncate(time.Millisecond)
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
	return s.item.Validate(now)
}

// say lets said say what an option of package flowfabric says. index is its place among the options of the call.
func say(said *option.Values, index int, o any) error {
	if !option.Apply(said, o) {
		return fmt.Errorf("%w: option %d is nil or not an option of flowfabric", flowfabric.ErrInvalidInput, index)
	}
	return nil
}

// checkKey judges a key of a kind.
func checkKey(kind option.Field, key string) error {
	if key == "" || len(key) > limits.MaxIdempotencyKey {
		name := "idempotency key"
		switch kind {
		case option.Unique:
			name = "unique key"
		case option.Debounce:
			name = "debounce key"
		}
		return fmt.Errorf("%w: %s has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, name, len(key),
			limits.MaxIdempotencyKey)
	}
	return nil
}
