package valid

import (
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Key judges the key of an execution. The error, with the field, is flowfabric.ErrInvalidInput.
func Key(k flowfabric.Key) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{flowfabric.ErrInvalidInput}, args...)...)
	}
	switch {
	case k.Debounce != 0 && k.WhileActive:
		return bad("Key.Debounce with Key.WhileActive: its key is held until the execution is claimed")
	case k.Debounce != 0 && k.Window != 0:
		return bad("Key.Debounce with Key.Window: its key is held until the execution is claimed")
	case k.Debounce != 0 && (k.Debounce < time.Millisecond || k.Debounce > limits.MaxDelay):
		return bad("Key.Debounce is %s, want 1ms..10 years", k.Debounce)
	case k.Debounce == 0 && k.DebounceMax != 0:
		return bad("Key.DebounceMax without Key.Debounce")
	case k.DebounceMax != 0 && (k.DebounceMax < k.Debounce || k.DebounceMax > limits.MaxDelay):
		return bad("Key.DebounceMax is %s, want the debounce delay (%s) to 10 years", k.DebounceMax, k.Debounce)
	case k.Window != 0 && (k.Window < limits.MinKeyWindow || k.Window > limits.MaxKeyWindow):
		return bad("Key.Window is %s, want 1s..365 days", k.Window)
	}
	return KeyText(k.Text)
}

// FlowKey judges the key of a flow.
func FlowKey(k flowfabric.Key) error {
	k.WhileActive = false
	return TextKey(k, "a flow")
}

// TextKey judges the key of something whose key is a text and nothing else.
func TextKey(k flowfabric.Key, of string) error {
	var more []string
	for _, f := range [...]struct {
		name string
		said bool
	}{{"Key.WhileActive", k.WhileActive}, {"Key.Window", k.Window != 0}, {"Key.Debounce", k.Debounce != 0},
		{"Key.DebounceMax", k.DebounceMax != 0}} {
		if f.said {
			more = append(more, f.name)
		}
	}
	if more != nil {
		return fmt.Errorf("%w: %s: not for the key of %s", flowfabric.ErrInvalidInput, strings.Join(more, ", "), of)
	}
	return KeyText(k.Text)
}

// KeyText judges the text of a key.
func KeyText(text string) error {
	if text == "" || len(text) > limits.MaxIdempotencyKey {
		return fmt.Errorf("%w: the key has %d bytes, want 1..%d", flowfabric.ErrInvalidInput, len(text),
			limits.MaxIdempotencyKey)
	}
	return nil
}
