package httpapi

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// flowKeys are the members by which a body gives a flow a key. One that is there is said, also an empty one, which is
// refused.
type flowKeys struct {
	Idempotency *string `json:"idempotency_key,omitempty" jsonschema:"a second submission with an equal key and input is answered with the first one"`
	Unique      *string `json:"unique_key,omitempty" jsonschema:"only one has it until it has ended; a second submission is answered with that one"`
}

// keys are those by which a body gives an execution a key.
type keys struct {
	flowKeys
	Window      *flowfabric.Millis `json:"key_window_ms,omitempty" jsonschema:"the key stays taken for so long at least"`
	DebounceKey *string            `json:"debounce_key,omitempty" jsonschema:"further submissions replace the input of an execution that was never claimed, and put it off by debounce_ms again"`
	Debounce    flowfabric.Millis  `json:"debounce_ms,omitempty" jsonschema:"how long it waits for a further submission under its debounce_key"`
	DebounceMax *flowfabric.Millis `json:"debounce_max_ms,omitempty" jsonschema:"it may run at the latest so long after its creation"`
}

const twoKeys = "there are two keys, want one key"

// key is the one that a body says; nil if it says none.
func (k *flowKeys) key() (*flowfabric.Key, error) {
	switch {
	case k.Idempotency != nil && k.Unique != nil:
		return nil, invalid("", twoKeys)
	case k.Idempotency != nil:
		return &flowfabric.Key{Text: *k.Idempotency}, nil
	case k.Unique != nil:
		return &flowfabric.Key{Text: *k.Unique, WhileActive: true}, nil
	}
	return nil, nil
}

// key is the one that a body says; nil if it says none. What it says of a key that is not there is refused, and so is
// a span of 0, which means to a flowfabric.Key that nothing is said.
func (k *keys) key() (*flowfabric.Key, error) {
	key, err := k.flowKeys.key()
	switch {
	case err != nil:
		return nil, err
	case k.DebounceKey != nil && key != nil:
		return nil, invalid("", twoKeys)
	case k.DebounceKey != nil && k.Debounce == 0:
		return nil, invalid("/debounce_ms", "a debounce_key needs it")
	case k.DebounceKey == nil && k.Debounce != 0:
		return nil, invalid("/debounce_ms", "there is no debounce_key")
	case k.DebounceKey == nil && k.DebounceMax != nil:
		return nil, invalid("/debounce_max_ms", "there is no debounce_key")
	case k.DebounceMax != nil && *k.DebounceMax == 0:
		return nil, invalid("/debounce_max_ms", "it is 0, want debounce_ms or more")
	case k.DebounceKey != nil:
		key = &flowfabric.Key{Text: *k.DebounceKey, Debounce: time.Duration(k.Debounce)}
		if k.DebounceMax != nil {
			key.DebounceMax = time.Duration(*k.DebounceMax)
		}
	}
	switch {
	case k.Window == nil:
		return key, nil
	case key == nil:
		return nil, invalid("/key_window_ms", "there is no key")
	case *k.Window == 0:
		return nil, invalid("/key_window_ms", "it is 0, want 1000 or more")
	}
	key.Window = time.Duration(*k.Window)
	return key, nil
}

// keyed is [call.keyed] for what an execution or a flow starts with.
func (k *flowKeys) keyed(c *call) error {
	if k.Idempotency != nil {
		return c.keyed(k.Idempotency)
	}
	var key string
	err := c.keyed(&key)
	if key != "" {
		k.Idempotency = &key
	}
	return err
}
