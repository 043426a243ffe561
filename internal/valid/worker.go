package valid

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// WorkerError is a refusal of [Worker]: a field of [flowfabric.WorkerInfo] and its limit.
type WorkerError struct {
	Field  string // its Go name
	Item   string // an index of a list, or a key of a map; "" is the whole field
	Detail string // begins with a verb
	cause  error
}

func (e *WorkerError) Error() string {
	if e.Item == "" {
		return e.Field + " " + e.Detail
	}
	return fmt.Sprintf("%s[%s] %s", e.Field, e.Item, e.Detail)
}

// Unwrap is the error of the rule, [flowfabric.ErrInvalidInput] for most.
func (e *WorkerError) Unwrap() error { return cmp.Or(e.cause, flowfabric.ErrInvalidInput) }

// Worker checks what a worker declares of itself, and puts its capabilities in order. The error is a [*WorkerError].
func Worker(w *flowfabric.WorkerInfo) (err error) {
	outside := func(field, item, format string, args ...any) error {
		return &WorkerError{Field: field, Item: item, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case w.Concurrency < 1 || w.Concurrency > limits.MaxConcurrency:
		return outside("Concurrency", "", "is %d, want 1..%d", w.Concurrency, limits.MaxConcurrency)
	case len(w.Namespaces) > limits.MaxNamespaces:
		return outside("Namespaces", "", "has %d names, want at most %d, or \"*\"", len(w.Namespaces),
			limits.MaxNamespaces)
	case len(w.LaneWeights) > limits.MaxLaneWeights:
		return outside("LaneWeights", "", "has %d weights, want at most %d", len(w.LaneWeights), limits.MaxLaneWeights)
	case len(w.Version) > limits.MaxName:
		return outside("Version", "", "has %d bytes, want at most %d bytes", len(w.Version), limits.MaxName)
	case len(w.Labels) > limits.MaxTags:
		return outside("Labels", "", "has %d labels, want at most %d", len(w.Labels), limits.MaxTags)
	}
	for _, list := range []struct {
		field string
		names []string
	}{{"Kinds", w.Kinds}, {"Lanes", w.Lanes}, {"Namespaces", w.Namespaces}} {
		for i, name := range list.names {
			if Name("", name) != nil {
				return outside(list.field, strconv.Itoa(i),
					"is %.48q, want 1..%d bytes of printable ASCII without braces, neither . nor ..", name,
					limits.MaxName)
			}
		}
	}
	for _, lane := range slices.Sorted(maps.Keys(w.LaneWeights)) {
		switch n := w.LaneWeights[lane]; {
		case !slices.Contains(w.Lanes, lane):
			return outside("LaneWeights", "",
				"names lane %.70q, which is not among its lanes: a worker shares only lanes that it serves", lane)
		case n < 1 || n > limits.MaxLaneWeight:
			return outside("LaneWeights", strconv.Quote(lane), "is %d, want 1..%d", n, limits.MaxLaneWeight)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Labels)) {
		if value := w.Labels[name]; name == "" || len(name) > limits.MaxName || len(value) > limits.MaxTagValue {
			return outside("Labels", "",
				"has label %.70q with a value of %d bytes, want names of 1..%d and values of at most %d bytes",
				name, len(value), limits.MaxName, limits.MaxTagValue)
		}
	}
	if w.Capabilities, err = Capabilities(w.Capabilities); err != nil {
		return &WorkerError{Field: "Capabilities", Detail: "is refused: " + err.Error(), cause: err}
	}
	return nil
}
