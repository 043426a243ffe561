package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Definition is shared by producers and workers: the name of a kind of work, its types, how they are encoded,
// and the defaults of its executions. Build it with [Define], usually in a package variable that both sides
// import. It never changes and may be used concurrently.
type Definition[In, Out any] struct {
	info  flowfabric.Start
	codec Codec
	mute  bool // nothing is said of its types
	logs  string
	err   error
}

// Define describes a kind of work. kind is 1..64 bytes of printable ASCII without braces. Without options its
// executions go to lane "default" with priority 0, are retried 3 times with pauses of 1 s to 60 s, have no timeout
// and no deadline, and are encoded as [JSON].
//
// Define never panics: everything wrong with kind and options is remembered and reported by [Definition.Err],
// [Binding.Err] and every submission, each naming field and limit.
func Define[In, Out any](kind string, opts ...DefineOption) *Definition[In, Out] {
	s := settings{
		start: flowfabric.Start{Kind: kind, Lane: limits.DefaultLane,
			Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}},
		codec: JSON,
	}
	if err := valid.Name("kind", kind); err != nil {
		s.refuse(err)
	}
	for i, opt := range opts {
		s.apply(i, opt)
	}
	s.check()
	d := &Definition[In, Out]{codec: s.codec, mute: s.mute, logs: s.logs, info: clone(s.start)}
	if len(s.errs) > 0 {
		d.err = fmt.Errorf("definition of kind %.80q: %w", kind, errors.Join(s.errs...))
	}
	return d
}

// Err returns what is wrong with the definition, or nil. It wraps [flowfabric.ErrInvalidInput], also for a nil
// definition.
func (d *Definition[In, Out]) Err() error {
	if d == nil {
		return fmt.Errorf("%w: the definition is nil", flowfabric.ErrInvalidInput)
	}
	return d.err
}

// Kind is the name of the work, which routes executions to workers.
func (d *Definition[In, Out]) Kind() string { return d.info.Kind }

// Info returns the settings of the definition, without its types. Producers may override everything but the
// kind per submission, and of the policy the number of retries, the timeout and the retention. The caller gets its own
// copy.
func (d *Definition[In, Out]) Info() flowfabric.Start { return clone(d.info) }

// Codec is how inputs, results and step values are encoded.
func (d *Definition[In, Out]) Codec() Codec { return d.codec }

// Encode turns an input into the bytes to submit and a digest of them by which a repeated submission under the
// same id is recognised: 32 hex digits, of the bytes before they are offloaded and encrypted.
//
// Errors: [Definition.Err]; the codec's; [flowfabric.ErrPayloadTooLarge] above 1 MiB.
func (d *Definition[In, Out]) Encode(in In) (payload []byte, digest string, err error) {
	plain, payload, err := d.encode(in)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(plain)
	return payload, hex.EncodeToString(sum[:16]), nil
}

// Payload is Encode without the digest, for a submission whose id nobody can repeat by himself.
func (d *Definition[In, Out]) Payload(in In) ([]byte, error) {
	_, payload, err := d.encode(in)
	return payload, err
}

// encode returns the bytes before and after they are offloaded.
func (d *Definition[In, Out]) encode(in In) (plain, payload []byte, err error) {
	if err := d.Err(); err != nil {
		return nil, nil, err
	}
	plain, payload, err = encodeBoth(d.codec, in)
	if err != nil {
		return nil, nil, fmt.Errorf("encode input of kind %s: %w", d.info.Kind, err)
	}
	if len(payload) > limits.MaxPayload {
		return nil, nil, fmt.Errorf("%w: input of kind %s has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge,
			d.info.Kind, len(payload), limits.MaxPayload)
	}
	return plain, payload, nil
}

// Decode turns a stored result into an Out. Errors: [Definition.Err]; the codec's; [flowfabric.ErrEncrypted] for one
// that is still encrypted.
func (d *Definition[In, Out]) Decode(result []byte) (Out, error) {
	var out Out
	if err := d.Err(); err != nil {
		return out, err
	}
	if sealed.Is(result) {
		return out, fmt.Errorf("decode result of kind %s: %w", d.info.Kind, flowfabric.ErrEncrypted)
	}
	if err := d.codec.Decode(result, &out); err != nil {
		return *new(Out), fmt.Errorf("decode result of kind %s: %w", d.info.Kind, err)
	}
	return out, nil
}

func clone(s flowfabric.Start) flowfabric.Start {
	s.Capabilities, s.Names, s.Limits = slices.Clone(s.Capabilities), slices.Clone(s.Names), slices.Clone(s.Limits)
	s.Tags = maps.Clone(s.Tags)
	s.Policy.Retry.Categories = slices.Clone(s.Policy.Retry.Categories)
	return s
}
