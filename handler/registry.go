package handler

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Registry finds the binding of a kind. It never changes and may be used concurrently.
type Registry struct {
	bindings map[string]Binding
}

// NewRegistry collects bindings, one per kind; none at all is allowed. It reports everything that is wrong at once:
// what [Binding.Err] says of each, and [flowfabric.ErrDuplicateHandler] with the kind that two bindings share.
func NewRegistry(bindings ...Binding) (*Registry, error) {
	r := &Registry{bindings: make(map[string]Binding, len(bindings))}
	var errs []error
	for i, b := range bindings {
		if err := b.Err(); err != nil {
			errs = append(errs, fmt.Errorf("binding %d: %w", i, err))
			continue
		}
		if _, taken := r.bindings[b.Kind()]; taken {
			errs = append(errs, fmt.Errorf("binding %d: %w: %q", i, flowfabric.ErrDuplicateHandler, b.Kind()))
			continue
		}
		r.bindings[b.Kind()] = b
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

// Kinds lists the kinds in order.
func (r *Registry) Kinds() []string { return slices.Sorted(maps.Keys(r.bindings)) }

// Lookup returns the binding of a kind; ok is false if there is none.
func (r *Registry) Lookup(kind string) (b Binding, ok bool) {
	b, ok = r.bindings[kind]
	return b, ok
}
