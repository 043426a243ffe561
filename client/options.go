package client

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// SubmitOption changes one submission: of package flowfabric Priority, Lane, Timeout, Deadline, DeadlineAt, Delay,
// DelayUntil, Retries, Retention, Capabilities, Tags, Gates, LimitKey, Namespace, Creator and Key; for
// [SubmitMany] [Keys] instead of Key. Later options win over earlier ones, and all of them over the definition.
type SubmitOption interface{ SubmitOption() }

// keysOption is [Keys].
type keysOption func(index int) flowfabric.Key

func (keysOption) SubmitOption() {}

// Keys gives every input of a [SubmitMany] its own flowfabric.Key; key is called once per index. Of inputs with equal
// keys the first is created, and the others return its handle. If the keys debounce, the last one counts.
func Keys(key func(index int) flowfabric.Key) SubmitOption { return keysOption(key) }

// submission is what the inputs of one call have in common.
type submission struct {
	coalesce.Submission             // of a single input, that which is sent
	keyFor              keysOption  // nil: they have no keys, or all have that of item
	box                 *sealed.Box // of the client
	digest              bool        // make one although there is no key
}

// take takes over what options say.
func (s *submission) take(opts []SubmitOption) error {
	if len(opts) == 0 {
		return nil
	}
	return option.Over(&s.Item.Start, func() error {
		for i, o := range opts {
			switch o := o.(type) {
			case keysOption:
				if s.keyFor != nil {
					return option.ErrTwoKeys
				}
				s.keyFor = o
			case option.Chosen:
				s.Item.ID = mint.Join(0, o.ChosenID())
			default:
				if err := option.Apply(&s.Item.Start, i, o); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// validate checks what options can say, before any I/O, and normalises capabilities; the definition has checked
// policy and payload. A mistake must not reach a batch, where it would be somebody else's error too.
func (s *submission) validate(now time.Time) error {
	if key := s.Item.Key; key != nil {
		if err := keyed(&s.Item, *key); err != nil {
			return err
		}
	}
	return valid.Start(&s.Item.Start, now)
}

// keyed gives an execution a key: one that debounces delays it.
func keyed(x *engine.NewExecution, key flowfabric.Key) error {
	if err := valid.Key(key); err != nil {
		return err
	}
	x.Key = &key
	if key.Debounce == 0 {
		return nil
	}
	if x.Delay != 0 || !x.DelayUntil.IsZero() {
		return fmt.Errorf("%w: Key.Debounce with Delay or DelayUntil: the execution is delayed by its own time",
			flowfabric.ErrInvalidInput)
	}
	x.Delay = flowfabric.Millis(key.Debounce.Truncate(time.Millisecond))
	return nil
}
