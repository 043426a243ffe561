// Package submission makes what is stored of a submission out of a definition, an input and options. Package client
// sends it to the store, and package outbox writes it to a table first.
package submission

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Option is client.SubmitOption.
type Option interface{ SubmitOption() }

// Keys is the option client.Keys.
type Keys func(index int) flowfabric.Key

func (Keys) SubmitOption() {}

// From is who submits: what holds if neither a definition nor an option says otherwise, and how inputs are encrypted.
type From struct {
	Namespace, Creator string
	Box                *sealed.Box // nil: nothing is encrypted
}

// Common is what the inputs of one call have in common.
type Common struct {
	coalesce.Submission      // of a single input, that which is sent
	KeyFor              Keys // nil: they have no keys, or all have that of Item
	Digest              bool // make one although there is no key
	box                 *sealed.Box
}

// Prepare makes what all inputs of one call have in common, and checks definition and options.
func Prepare[In, Out any, O Option](from From, def *handler.Definition[In, Out], opts []O) (*Common, error) {
	if err := def.Err(); err != nil {
		return nil, err
	}
	s := &Common{box: from.Box, Submission: coalesce.Submission{Item: engine.NewExecution{Start: def.Info()}}}
	s.Item.Namespace, s.Item.Creator = from.Namespace, from.Creator
	if def.Codec() == handler.JSON {
		s.Item.Type = kindschema.Input(reflect.TypeFor[In]())
	}
	if err := take(s, opts); err != nil {
		return nil, err
	}
	if err := s.validate(time.Now()); err != nil {
		return nil, err
	}
	return s, nil
}

// take takes over what options say.
func take[O Option](s *Common, opts []O) error {
	if len(opts) == 0 {
		return nil
	}
	return option.Over(&s.Item.Start, func() error {
		for i, o := range opts {
			switch o := any(o).(type) {
			case Keys:
				if s.KeyFor != nil {
					return option.ErrTwoKeys
				}
				s.KeyFor = o
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
func (s *Common) validate(now time.Time) error {
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

// Fill completes the submission of one input, which has what all have in common; nothing has been sent when it fails.
func Fill[In, Out any](sub *coalesce.Submission, common *Common, def *handler.Definition[In, Out], in In,
	index int) (err error) {
	item := &sub.Item
	if common.KeyFor != nil {
		if err = keyed(item, common.KeyFor(index)); err == nil && item.Key.Debounce > 0 {
			err = valid.Start(&item.Start, time.Now()) // with the delay that the key brings
		}
		if err != nil {
			return err
		}
	}
	if key := item.Key; common.Digest || key != nil && !key.WhileActive && key.Debounce == 0 {
		item.Payload, item.Digest, err = def.Encode(in)
	} else { // there is nothing to compare with
		item.Payload, err = def.Payload(in)
	}
	if err != nil {
		return err
	}
	if _, raw := any(in).([]byte); raw { // a call that is given up may still read it
		item.Payload = bytes.Clone(item.Payload)
	}
	if item.Payload, err = common.box.Seal(item.Payload); err != nil {
		return err
	}
	sub.Measure()
	return nil
}

// Error is the error of a submission that was refused, with its kind.
func Error[In, Out any](def *handler.Definition[In, Out], err error) error {
	if def == nil {
		return fmt.Errorf("submit: %w", err)
	}
	return fmt.Errorf("submit %s: %w", def.Kind(), err)
}
