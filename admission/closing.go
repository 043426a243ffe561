package admission

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Closing is why a gate keeps work from running.
type Closing struct {
	Code      string          `json:"code" jsonschema:"amount, rate, cap, gate_not_found, unavailable, or other: see text"`
	Gate      flowfabric.Gate `json:"-"` // "" with other, and with unavailable if it was not known
	Name      string          `json:"gate,omitempty"`
	Key       string          `json:"limit_key,omitempty" jsonschema:"of a limit of a key"`
	PerKey    string          `json:"key_limit,omitempty" jsonschema:"what that limit is"`
	Dimension string          `json:"dimension,omitempty" jsonschema:"of an amount"`
	Used      int64           `json:"used,omitempty" jsonschema:"of the dimension"`
	Limit     int64           `json:"limit,omitempty" jsonschema:"of the dimension"`
	Refused   int64           `json:"refused,omitempty" jsonschema:"what does not fit"`
	Text      string          `json:"text" jsonschema:"for people"`
}
