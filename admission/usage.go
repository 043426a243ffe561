package admission

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Usage reports what was used of a gate. The holder of an execution sets Epoch and Sequence, which counts its
// reports to this gate under this lease: 1, 2, …; everybody else sets Key. A repeated report changes nothing.
type Usage struct {
	Gate      string
	Execution flowfabric.ExecutionID // whose ledger it goes into; may be zero with a Key
	Epoch     uint64
	Sequence  uint64
	Key       string           // at most 128 printable bytes without spaces; known again for 24 h
	Amounts   map[string]int64 // by dimension, 0 … 2^53-1
}

// Reported answers a report of usage.
type Reported struct {
	// "OK": counted, and no limit is exceeded; "SOFT_BREACH": counted, and above a soft limit; "HARD_BREACH": it
	// would exceed a hard limit, and is counted only if the gate warns
	Verdict string `json:"verdict" jsonschema:"OK, SOFT_BREACH or HARD_BREACH"`
	Applied bool   `json:"counted"` // the report was
	// the reporter's lease is not the execution's newest; it was counted all the same
	Late     bool `json:"late" jsonschema:"the execution is another worker's by now; it was counted all the same"`
	Replayed bool `json:"repeated" jsonschema:"this is the answer of the first time"`
	// the gate's OnHard; HardFail instead of HardBlock for what is above a limit, so that no period has room for it
	Action   HardAction        `json:"action,omitempty" jsonschema:"what the gate wants done about a hard breach: reject (the worker decides), fail, block (release it), ask (a person for more), warn"`
	Left     flowfabric.Millis `json:"left_ms,omitzero" jsonschema:"of the period; absent: it does not end"`
	Period   uint64            `json:"period"`
	Parent   string            `json:"parent,omitempty" jsonschema:"the gate above it"`
	Breaches []Breach          `json:"breaches,omitempty"`
}

// Breach is one limit that a report passes, or would.
type Breach struct {
	Dimension string `json:"dimension"`
	Hard      bool   `json:"hard"` // else a soft limit
	Used      int64  `json:"used" jsonschema:"with the report, if it was counted"`
	Limit     int64  `json:"limit"`
	// a soft limit, passed by this report for the first time in the period
	Crossed bool `json:"crossed,omitempty"`
}
