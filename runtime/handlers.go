package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
)

// handlers finds the binding of a kind. It never changes and may be used concurrently.
type handlers map[string]handler.Binding

// newHandlers collects bindings, one per kind. It reports everything that is wrong at once: what handler.Binding.Err
// says of each, and flowfabric.ErrConfig with the kind that two bindings share.
func newHandlers(all []handler.Binding) (handlers, error) {
	out := make(handlers, len(all))
	var errs []error
	for i, b := range all {
		if err := b.Err(); err != nil {
			errs = append(errs, fmt.Errorf("binding %d: %w", i, err))
			continue
		}
		if _, taken := out[b.Info().Kind]; taken {
			errs = append(errs, fmt.Errorf("binding %d: %w: %q", i, denied.DuplicateHandler, b.Info().Kind))
			continue
		}
		out[b.Info().Kind] = b
	}
	return out, errors.Join(errs...)
}

// fits tells whether batches can be filled: each of their executions has a slot.
func (b handlers) fits(concurrency int) error {
	for _, kind := range b.kinds() {
		if n := b[kind].Batch().Size; n > concurrency {
			return fmt.Errorf(
				"%w: the handler of kind %s gets batches of up to %d, and Concurrency is %d: raise it, since each execution of a batch counts",
				flowfabric.ErrConfig, kind, n, concurrency)
		}
	}
	return nil
}

// schemas are what the handlers say of their kinds, also of those of which they say nothing.
func (b handlers) schemas() map[string]kindschema.Pair {
	out := make(map[string]kindschema.Pair, len(b))
	for kind, binding := range b {
		in, result := binding.Schemas()
		out[kind] = kindschema.Pair{Input: in, Result: result}
	}
	return out
}

// kinds lists the kinds in order.
func (b handlers) kinds() []string { return slices.Sorted(maps.Keys(b)) }
